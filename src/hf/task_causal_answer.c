/* task_causal_answer.c - language models that answer "yes" or "no": one logit per text, that of "yes" minus that of
 * "no" behind its last token. Only these two rows of the vocabulary are computed.
 *
 * The sigmoid of the difference is what the softmax of the two logits gives "yes". Source: the model card of
 * Qwen/Qwen3-Reranker-0.6B. */
#include "hf/task.h"

/* Row `id` of the table [vocab, hidden], [hidden, 1]. */
static pith_value *answer_column(pith_hf_builder *b, pith_value *table, int64_t id) {
    pith_value *row = PITH_HF_PUT(b, "Gather", table, pith_hf_i64(b, id));
    return pith_hf_transpose(b, pith_hf_widen(b, table, row), (int64_t[]){ 1, 0 }, 2);
}

static pith_value *task_causal_answer(pith_hf_builder *b, pith_value *x) {
    const pith_hf_config *c = b->config;
    pith_str name, prefix = b->prefix;
    if (!c->answers[0] || !pith_str_is(c->model_type, "qwen3")) return NULL;
    pith_value *last = pith_hf_task_last(b, x);
    /* lm_head stands beside the network; with tied weights it is the table of embeddings. */
    b->prefix = PITH_STR("");
    pith_hf_go_to(b, "lm_head");
    bool own = pith_hf_find(b, ".weight", &name);
    if (!own) {
        b->prefix = prefix;
        pith_hf_go_to(b, "embed_tokens");
    }
    pith_value *table = pith_hf_tensor(b, ".weight", NULL, 2, (int64_t[]){ c->vocab_size, c->hidden_size });
    pith_value *weight =
        PITH_HF_PUT(b, "Sub", answer_column(b, table, c->answers[0]), answer_column(b, table, c->answers[1]));
    pith_value *y = PITH_HF_PUT(b, "MatMul", last, weight);
    b->prefix = prefix;
    return y;
}

const pith_hf_task pith_hf_task_causal_answer = { .suffix = "ForCausalLM",
                                                  .output = "logits",
                                                  .build = task_causal_answer };
