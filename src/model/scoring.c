/* scoring.c - classifiers and rerankers: the head "scores" on the logits of a model. */
#include "model/scoring.h"

#include <string.h>

#include "base/caller_options.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/str.h"
#include "base/utf8.h"
#include "heads/score_request.h"
#include "text/token_rows.h"

/* Sets *output to the index of the model's logits and *labels to how many there are. */
static pith_status scoring_find(int *output, size_t *labels, const pith_model *m, pith_error *err) {
    const pith_head *head;
    PITH_TRY(pith_head_find(&head, "scores", err));
    if (m->no_text.code) return pith_fail(err, m->no_text.code, "this model cannot read text: %s", m->no_text.message);
    *output = pith_head_output(head, m->graph);
    const pith_type *type = *output < 0 ? NULL : &m->graph->outputs[*output]->type;
    pith_dim width = type ? type->dims[type->rank - 1] : PITH_DIM_UNKNOWN;
    pith_str name = type ? m->graph->output_names[*output] : PITH_STR("");
    bool named = pith_str_is(name, "logits") || pith_str_is(name, "scores");
    bool known = pith_dim_known(width) && width > 0;
    if (m->labels.causal && !(named && known && width == 1))
        return pith_fail(
            err, PITH_ERR_UNSUPPORTED,
            "a causal language model answers with words behind a prompt, and this version knows only that of "
            "Qwen3-Reranker in safetensors; take a conversion to sequence classification");
    if (!known || !(named || m->labels.classifier || m->labels.count == (size_t)width))
        return pith_fail(err, PITH_ERR_UNSUPPORTED,
                         "the model is not a classifier: it has no output 'logits' with a row of known width per text");
    if (m->labels.count && m->labels.count != (size_t)width)
        return pith_fail(err, PITH_ERR_FORMAT,
                         "config.json has %zu labels, but the model's output '" PITH_STR_FMT "' gives %lld scores",
                         m->labels.count, PITH_STR_ARG(name), (long long)width);
    *labels = (size_t)width;
    return PITH_OK;
}

size_t pith_model_label_count(const pith_model *m) {
    int output;
    size_t labels;
    return scoring_find(&output, &labels, m, NULL) ? 0 : labels;
}

int pith_model_score_output(const pith_model *m) {
    int output;
    size_t labels;
    return scoring_find(&output, &labels, m, NULL) ? -1 : output;
}

const char *pith_model_label_name(const pith_model *m, size_t label) {
    bool named = label < m->labels.count && m->labels.names[label].data;
    return named ? m->labels.names[label].data : "";
}

static pith_status scoring_run(float *scores, const pith_model *m, int output, pith_activation activation,
                               const pith_str *texts, const pith_str *pairs, size_t count,
                               const pith_encode_frame *frame, const pith_score_options *o, pith_error *err) {
    const pith_text_view *view;
    pith_scores request = { activation, scores };
    pith_head_use use = { .request = &request };
    pith_encode_job job = { .texts = texts,
                            .pairs = pairs,
                            .count = count,
                            .prompt_name = "",
                            .frame = frame,
                            .threads = o->threads,
                            .max_length = o->max_length,
                            .batch_tokens = o->batch_tokens,
                            .cancel = o->cancel,
                            .profile = o->profile,
                            .stats = o->stats,
                            .batching = o->batching };
    PITH_TRY(pith_head_find(&use.head, "scores", err));
    PITH_TRY(pith_text_view_get(&view, m, &output, 1, true, err));
    return pith_encoder_run(view->encoder, &job, &use, 1, err);
}

static pith_status scoring_options(pith_score_options *o, const pith_score_options *given, pith_error *err) {
    *o = (pith_score_options)PITH_SCORE_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(*o, given, err);
    if (o->activation >= PITH_ACTIVATION_MODEL && o->activation <= PITH_ACTIVATION_SOFTMAX) return PITH_OK;
    return pith_fail(err, PITH_ERR_ARGUMENT, "activation is %d, which is not a PITH_ACTIVATION_* value", o->activation);
}

pith_status pith_model_classify(float *scores, const pith_model *m, const pith_str *texts, const pith_str *pairs,
                                size_t count, const pith_score_options *options, pith_error *err) {
    pith_score_options o;
    int output;
    size_t labels;
    PITH_TRY(scoring_options(&o, options, err));
    PITH_TRY(scoring_find(&output, &labels, m, err));
    pith_activation own = m->labels.classify;
    if (labels == 1 && own == PITH_ACTIVATION_SOFTMAX) own = PITH_ACTIVATION_SIGMOID; /* a softmax of one is always 1 */
    pith_activation activation = o.activation ? (pith_activation)o.activation : own;
    pith_status status = scoring_run(scores, m, output, activation, texts, pairs, count, NULL, &o, err);
    return pith_account_explain(&m->account, status, err);
}

/* ---- language models that judge a document: "yes" or "no" ---- */

/* The words around query and document, and the limit, of Qwen3-Reranker. Source: its model card. */
static const char judging_before[] =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    "provided. "
    "Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n";
static const char judging_after[] = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
static const char judging_instruction[] = "Given a web search query, retrieve relevant passages that answer the query";
enum { JUDGING_LENGTH = 8192 };

static pith_status judging_tokens(pith_tokens *tokens, const pith_model *m, const char *text, pith_error *err) {
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    options.no_specials = options.no_offsets = 1;
    return pith_tokenizer_encode(tokens, m->tokenizer, pith_str_of(text), NULL, &options, err);
}

static pith_status judging_texts(pith_str *texts, const pith_str *documents, size_t count, pith_str query,
                                 const char *instruction, pith_arena *arena, pith_error *err) {
    for (size_t i = 0; i < count; i++) {
        /* a document may hold NUL bytes, so it is not printed */
        pith_str head = pith_arena_printf(arena, "<Instruct>: %s\n<Query>: ", instruction);
        const pith_str parts[] = { head, query, PITH_STR("\n<Document>: "), documents[i] };
        size_t size = 0, used = 0;
        for (int p = 0; p < 4; p++)
            if (pith_add_overflows(size, parts[p].size, &size)) return pith_fail_memory(err, SIZE_MAX);
        char *text = head.data ? pith_arena_alloc(arena, size) : NULL;
        if (!text) return pith_fail_memory(err, size);
        for (int p = 0; p < 4; p++) {
            if (parts[p].size) memcpy(text + used, parts[p].data, parts[p].size);
            used += parts[p].size;
        }
        texts[i] = (pith_str){ text, size };
    }
    return PITH_OK;
}

static pith_status judging_all(float *scores, const pith_model *m, int output, pith_str query,
                               const pith_str *documents, size_t count, pith_score_options o, pith_tokens tokens[2],
                               pith_arena *arena, pith_error *err) {
    const char *instruction = o.instruction ? o.instruction : judging_instruction;
    const size_t size = strlen(instruction);
    if (pith_utf8_valid_prefix(instruction, size) < size)
        return pith_fail(err, PITH_ERR_ARGUMENT, "instruction: is not UTF-8");
    PITH_TRY(judging_tokens(&tokens[0], m, judging_before, err));
    PITH_TRY(judging_tokens(&tokens[1], m, judging_after, err));
    const pith_encode_frame frame = { .before = tokens[0].ids,
                                      .before_count = tokens[0].count,
                                      .after = tokens[1].ids,
                                      .after_count = tokens[1].count,
                                      .marker = -1 };
    pith_str *texts = pith_arena_array(arena, count, sizeof *texts);
    if (!texts) return pith_fail_memory(err, count * sizeof *texts);
    PITH_TRY(judging_texts(texts, documents, count, query, instruction, arena, err));
    if (!o.max_length) o.max_length = JUDGING_LENGTH;
    pith_activation activation = o.activation ? (pith_activation)o.activation : PITH_ACTIVATION_SIGMOID;
    return scoring_run(scores, m, output, activation, texts, NULL, count, &frame, &o, err);
}

static pith_status judging_run(float *scores, const pith_model *m, int output, pith_str query,
                               const pith_str *documents, size_t count, const pith_score_options *o, pith_error *err) {
    pith_tokens tokens[2] = { PITH_TOKENS_INIT, PITH_TOKENS_INIT };
    pith_arena arena;
    pith_arena_init(&arena, m->options.allocator);
    pith_status status = judging_all(scores, m, output, query, documents, count, *o, tokens, &arena, err);
    for (int i = 0; i < 2; i++) pith_token_rows_free(&tokens[i]);
    pith_arena_free(&arena);
    return status;
}

pith_status pith_model_rerank(float *scores, const pith_model *m, pith_str query, const pith_str *documents,
                              size_t count, const pith_score_options *options, pith_error *err) {
    pith_score_options o;
    int output;
    size_t labels;
    PITH_TRY(scoring_options(&o, options, err));
    PITH_TRY(scoring_find(&output, &labels, m, err));
    if (labels != 1)
        return pith_fail(err, PITH_ERR_UNSUPPORTED,
                         "the model gives %zu scores per pair of texts; a reranker gives one (use classify)", labels);
    size_t bytes, valid = pith_utf8_valid_prefix(query.data, query.size);
    if (valid < query.size) return pith_fail(err, PITH_ERR_ARGUMENT, "query: invalid UTF-8 at byte %zu", valid);
    if (m->labels.causal)
        return pith_account_explain(&m->account, judging_run(scores, m, output, query, documents, count, &o, err), err);
    if (o.instruction)
        return pith_fail(err, PITH_ERR_ARGUMENT, "instruction: only rerankers that are language models take one");
    bool fits = !pith_mul_overflows(count ? count : 1, sizeof query, &bytes);
    pith_str *queries = fits ? pith_memory_alloc(m->options.allocator, bytes, 16) : NULL;
    if (!queries) return pith_account_explain(&m->account, pith_fail_memory(err, fits ? bytes : SIZE_MAX), err);
    for (size_t i = 0; i < count; i++) queries[i] = query;
    pith_activation activation = o.activation ? (pith_activation)o.activation : m->labels.rerank;
    pith_status status = scoring_run(scores, m, output, activation, queries, documents, count, NULL, &o, err);
    pith_memory_free(m->options.allocator, queries);
    return pith_account_explain(&m->account, status, err);
}
