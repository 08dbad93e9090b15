/* task_causal_answer.c - language models that answer with one token: one logit per text, that of
 * "yes" minus that of "no" behind its last token, or that of "yes" alone. Only these rows of the
 * vocabulary are computed.
 *
 * The sigmoid of the difference is what the softmax of the two logits gives "yes". Sources: the
 * model card of Qwen/Qwen3-Reranker-0.6B; sentence-transformers 6.2,
 * cross_encoder/modules/logit_score.py. */
#include "base/str.h"
#include "models/modules/rerank_prompt.h"
#include "models/tasks/task.h"

/* Row `id` of the table [vocab, hidden], [hidden, 1]. */
static pith__value *answer_column(pith__hf_builder *b, pith__value *table, int64_t id) {
    pith__value *row = PITH_HF_PUT(b, "Gather", table, pith__hf_i64(b, id));
    return pith__hf_transpose(b, pith__hf_widen(b, table, row), (int64_t[]){ 1, 0 }, 2);
}

/* Whether the answers are in the vocabulary. Ids of a file are an error if they are not. */
static bool answer_fits(pith__hf_builder *b, const pith__rerank_prompt *rerank) {
    const int64_t size = b->config->vocab_size,
                  most = rerank->yes > rerank->no ? rerank->yes : rerank->no;
    if (most >= size && rerank->only)
        pith__hf_fail(
            b, PITH_ERR_FORMAT,
            "module LogitScore names token %lld, but config.json has a vocab_size of %lld",
            (long long)most, (long long)size);
    return most < size;
}

/* The matrix of lm_head, which stands beside the network; with tied weights, the table of
 * embeddings. */
static pith__value *answer_table(pith__hf_builder *b) {
    const pith__hf_config *c = b->config;
    pith_str name, prefix = b->prefix;
    b->prefix = PITH_STR("");
    pith__hf_go_to(b, "lm_head");
    if (!pith__hf_find(b, ".weight", &name)) {
        b->prefix = prefix;
        pith__hf_go_to(b, "embed_tokens");
    }
    pith__value *table =
        pith__hf_tensor(b, ".weight", NULL, 2, (int64_t[]){ c->vocab_size, c->hidden_size });
    b->prefix = prefix;
    return table;
}

/* Only two rows of lm_head are needed of a vocabulary of a hundred thousand; their difference is
 * one row, so a score is one product per text. */
static pith__value *task_causal_answer(pith__hf_builder *b, pith__value *x) {
    const pith__rerank_prompt *rerank = b->config->rerank;
    if (!rerank) return NULL;
    if (!pith__hf_task_lists(PITH_HF_TASK_CAUSAL_ANSWER_TYPES, b->config->model_type)) return NULL;
    if (!answer_fits(b, rerank)) return NULL;
    pith__hf_want_absent(b, "final_logit_softcapping");
    pith__value *last = pith__hf_task_last(b, x, false);
    pith__value *table = answer_table(b), *weight = answer_column(b, table, rerank->yes);
    if (rerank->no >= 0)
        weight = PITH_HF_PUT(b, "Sub", weight, answer_column(b, table, rerank->no));
    return PITH_HF_PUT(b, "MatMul", last, weight);
}

const pith__hf_task pith__hf_task_causal_answer = { PITH_HF_TASK_CAUSAL_ANSWER,
                                                    .build = task_causal_answer };
