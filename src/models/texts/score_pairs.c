/* score_pairs.c - classifiers and rerankers: the head "scores" on the logits of a model. */
#include "models/texts/score_pairs.h"

#include "base/caller_options.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "models/encode/given_tokens.h"
#include "models/heads/scores_request.h"
#include "models/modules/answer_logit.h"
#include "models/texts/score_prompts.h"

/* Sets *output to the index of the model's logits and *labels to how many there are. */
static pith_status scoring_find(int *output, size_t *labels, const pith_model *m, pith_error *err) {
    const pith__head *head;
    PITH_TRY(pith__head_find(&head, "scores", err));
    if (m->no_text.code)
        return pith__fail(err, m->no_text.code, "this model cannot read text: %s",
                          m->no_text.message);
    *output = pith__head_output(head, m->graph);
    const pith__type *type = *output < 0 ? NULL : &m->graph->outputs[*output]->type;
    pith__dim width = type ? type->dims[type->rank - 1] : PITH_DIM_UNKNOWN;
    pith_str name = type ? m->graph->output_names[*output] : PITH_STR("");
    bool named = pith__str_is(name, "logits") || pith__str_is(name, "scores") ||
                 pith__str_is(name, PITH_ANSWER_OUTPUT);
    bool known = pith__dim_known(width) && width > 0;
    if (m->labels.causal && !(named && known && width == 1))
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "a causal language model answers with words behind a prompt; those of "
                          "Qwen3-Reranker and mxbai-rerank-v2 "
                          "are known, and what a module LogitScore says; use a conversion to one "
                          "of these, or to sequence "
                          "classification");
    if (!known || !(named || m->labels.classifier || m->labels.count == (size_t)width))
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the model is not a classifier: it has no output 'logits' with a row of "
                          "known width per text");
    if (m->labels.count && m->labels.count != (size_t)width)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "config.json has %zu labels, but the model's output '" PITH_STR_FMT
                          "' gives %lld scores",
                          m->labels.count, PITH_STR_ARG(name), (long long)width);
    *labels = (size_t)width;
    return PITH_OK;
}

size_t pith__model_label_count(const pith_model *m) {
    int output;
    size_t labels;
    return scoring_find(&output, &labels, m, NULL) ? 0 : labels;
}

int pith__model_score_output(const pith_model *m) {
    int output;
    size_t labels;
    return scoring_find(&output, &labels, m, NULL) ? -1 : output;
}

const char *pith__model_label_name(const pith_model *m, size_t label) {
    bool named = label < m->labels.count && m->labels.names[label].data;
    return named ? m->labels.names[label].data : "";
}

/* What is scored. */
typedef struct scoring_texts {
    const pith_str *texts, *pairs;   /* pairs may be NULL */
    const pith__given_tokens *given; /* NULL, or instead of both */
    const pith__encode_frame *frame; /* may be NULL */
    size_t count;
} scoring_texts;

/* No prompt: prompts are for embedding. What rerankers put around texts is in the frame. */
static pith_status scoring_make_task(pith__text_task *task, const pith_model *m, int output,
                                     const pith__scores_request *request, const scoring_texts *t,
                                     const pith_score_options *o, pith__stop *stop,
                                     pith_error *err) {
    const pith__text_view *view;
    task->uses[0] = (pith__head_use){ .request = request };
    task->use_count = 1;
    task->job = (pith__encode_job){ .texts = t->texts,
                                    .pairs = t->pairs,
                                    .given = t->given,
                                    .count = t->count,
                                    .prompt_name = "",
                                    .frame = t->frame,
                                    .threads = o->call.threads,
                                    .max_length = o->max_length,
                                    .batch_tokens = o->batch_tokens,
                                    .stop = stop,
                                    .profile = o->call.profile,
                                    .stats = o->stats,
                                    .results = o->results,
                                    .failures = o->failures,
                                    .batching = o->batching };
    PITH_TRY(pith__head_find(&task->uses[0].head, "scores", err));
    PITH_TRY(pith__text_view_get(&view, m, &output, 1, true, stop, err));
    task->encoder = view->encoder;
    return PITH_OK;
}

static pith_status scoring_run(float *scores, const pith_model *m, int output,
                               pith_activation activation, const scoring_texts *t,
                               const pith_score_options *o, pith__stop *stop, pith_error *err) {
    pith__text_task task;
    pith__progress told;
    const pith__scores_request request = { activation, scores };
    PITH_TRY(scoring_make_task(&task, m, output, &request, t, o, stop, err));
    task.job.progress = pith__progress_begin(&told, &o->call);
    return pith__encoder_run(task.encoder, &task.job, task.uses, 1, err);
}

static pith_status scoring_options(pith_score_options *o, const pith_score_options *given,
                                   pith_error *err) {
    *o = (pith_score_options)PITH_SCORE_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(*o, given, err);
    if (o->stats) o->stats->texts_done = 0;
    if (o->activation >= PITH_ACTIVATION_MODEL && o->activation <= PITH_ACTIVATION_SOFTMAX)
        return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "activation is %d, which is not a PITH_ACTIVATION_* value", o->activation);
}

/* Without an activation the model's own counts. */
static pith_activation scoring_of_classifier(const pith_model *m, const pith_score_options *o,
                                             size_t labels) {
    pith_activation own = m->labels.classify;
    /* a softmax of one is always 1 */
    if (labels == 1 && own == PITH_ACTIVATION_SOFTMAX) own = PITH_ACTIVATION_SIGMOID;
    return o->activation ? (pith_activation)o->activation : own;
}

/* The options are complete. */
static pith_status scoring_classify(float *scores, const pith_model *m, const scoring_texts *t,
                                    const pith_score_options *o, pith_error *err) {
    int output;
    size_t labels;
    pith__stop of_call, *stop = pith__stop_begin(&of_call, &o->call);
    PITH_TRY(pith__stop_check(stop, err));
    PITH_TRY(scoring_find(&output, &labels, m, err));
    pith_status status =
        scoring_run(scores, m, output, scoring_of_classifier(m, o, labels), t, o, stop, err);
    return pith__account_explain(&m->account, status, err);
}

pith_status pith__model_classify(float *scores, const pith_model *m, const pith_str *texts,
                                 const pith_str *pairs, size_t count,
                                 const pith_score_options *options, pith_error *err) {
    pith_score_options o;
    PITH_TRY(scoring_options(&o, options, err));
    const scoring_texts t = { .texts = texts, .pairs = pairs, .count = count };
    return scoring_classify(scores, m, &t, &o, err);
}

/* The options of a call of tokens, and what it gives to the encoder. */
static pith_status scoring_give(pith__given_tokens *given, const pith_token_ids *texts,
                                pith_score_options *o, const pith_score_options *options,
                                pith_error *err) {
    PITH_TRY(scoring_options(o, options, err));
    if (o->instruction)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "instruction: texts that are tokens have theirs among them");
    return pith__given_tokens_begin(given, texts, o->max_length, NULL, err);
}

pith_status pith__model_classify_tokens(float *scores, const pith_model *m,
                                        const pith_token_ids *texts, size_t count,
                                        const pith_score_options *options, pith_error *err) {
    pith__given_tokens given;
    pith_score_options o;
    PITH_TRY(scoring_give(&given, texts, &o, options, err));
    const scoring_texts t = { .given = &given, .count = count };
    return scoring_classify(scores, m, &t, &o, err);
}

/* Without an activation the model's own counts. */
static pith_activation scoring_of_reranker(const pith_model *m, const pith_score_options *o) {
    if (o->activation) return (pith_activation)o->activation;
    return m->modules.rerank.form == PITH_RERANK_MXBAI ? PITH_ACTIVATION_NONE : m->labels.rerank;
}

/* Sets *output if the model is a reranker. */
static pith_status scoring_find_reranker(int *output, const pith_model *m, pith_error *err) {
    size_t labels;
    PITH_TRY(scoring_find(output, &labels, m, err));
    if (labels == 1) return PITH_OK;
    return pith__fail(
        err, PITH_ERR_UNSUPPORTED,
        "the model gives %zu scores per pair of texts; a reranker gives one (use classify)",
        labels);
}

pith_status pith__model_rerank_tokens(float *scores, const pith_model *m,
                                      const pith_token_ids *pairs, size_t count,
                                      const pith_score_options *options, pith_error *err) {
    pith__given_tokens given;
    pith_score_options o;
    int output;
    PITH_TRY(scoring_give(&given, pairs, &o, options, err));
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    PITH_TRY(pith__stop_check(stop, err));
    PITH_TRY(scoring_find_reranker(&output, m, err));
    const scoring_texts t = { .given = &given, .count = count };
    pith_status status =
        scoring_run(scores, m, output, scoring_of_reranker(m, &o), &t, &o, stop, err);
    return pith__account_explain(&m->account, status, err);
}

/* A reranker whose texts have words of the model around them, or a prompt. */
static pith_status scoring_reranked(float *scores, const pith_model *m, int output, pith_str query,
                                    const pith_str *documents, size_t count, pith_score_options *o,
                                    pith__stop *stop, pith_error *err) {
    pith__score_prompts j;
    pith_status status = pith__score_prompts_begin(&j, m, query, documents, count, o, stop, err);
    if (!status) {
        const scoring_texts t = {
            .texts = j.texts, .pairs = j.pairs, .frame = &j.frame, .count = count
        };
        o->max_length = j.max_length;
        status = scoring_run(scores, m, output, scoring_of_reranker(m, o), &t, o, stop, err);
    }
    pith__score_prompts_end(&j);
    return status;
}

/* The query is checked here, since it is put into other texts before the encoder looks at them. */
static pith_status scoring_check_query(const pith_model *m, pith_str query,
                                       const pith_score_options *o, pith_error *err) {
    size_t valid = pith__utf8_valid_prefix(query.data, query.size);
    if (valid < query.size)
        return pith__fail(err, PITH_ERR_ARGUMENT, "query: invalid UTF-8 at byte %zu", valid);
    if (o->instruction && !pith__score_prompts_takes_instruction(m))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "instruction: only rerankers that are language models read one");
    return PITH_OK;
}

pith_status pith__model_rerank(float *scores, const pith_model *m, pith_str query,
                               const pith_str *documents, size_t count,
                               const pith_score_options *options, pith_error *err) {
    pith_score_options o;
    int output;
    PITH_TRY(scoring_options(&o, options, err));
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    PITH_TRY(pith__stop_check(stop, err));
    PITH_TRY(scoring_find_reranker(&output, m, err));
    PITH_TRY(scoring_check_query(m, query, &o, err));
    return pith__account_explain(
        &m->account, scoring_reranked(scores, m, output, query, documents, count, &o, stop, err),
        err);
}

/* ---- calls that others run ---- */

typedef struct scoring_task {
    pith__text_task task;
    const pith_allocator *allocator;
    pith__scores_request request;
    pith__given_tokens given;
    pith__score_prompts prompts;
    bool has_prompts;
} scoring_task;

static void scoring_task_drop(pith__text_task *task) {
    scoring_task *t = (scoring_task *)task;
    if (t->has_prompts) pith__score_prompts_end(&t->prompts);
    pith__memory_free(t->allocator, t->request.scores);
    pith__memory_free(t->allocator, t);
}

/* What is scored, and the activation. */
static pith_status scoring_task_texts(scoring_texts *t, scoring_task *task, const pith_model *m,
                                      size_t labels, const pith__score_ask *ask,
                                      pith_score_options *o, pith_error *err) {
    *t = (scoring_texts){ .texts = ask->texts, .count = ask->count };
    task->request.activation =
        ask->reranks ? scoring_of_reranker(m, o) : scoring_of_classifier(m, o, labels);
    if (ask->tokens) {
        const pith_score_options given = *o;
        t->given = &task->given;
        return scoring_give(&task->given, ask->tokens, o, &given, err);
    }
    if (!ask->reranks) return PITH_OK;
    PITH_TRY(scoring_check_query(m, ask->query, o, err));
    task->has_prompts = true;
    PITH_TRY(pith__score_prompts_begin(&task->prompts, m, ask->query, ask->texts, ask->count, o,
                                       NULL, err));
    o->max_length = task->prompts.max_length;
    t->texts = task->prompts.texts;
    t->pairs = task->prompts.pairs;
    t->frame = &task->prompts.frame;
    return PITH_OK;
}

static pith_status scoring_task_fill(scoring_task *t, const pith_model *m,
                                     const pith__score_ask *ask, const pith_score_options *options,
                                     pith_error *err) {
    pith_score_options o;
    scoring_texts texts;
    int output;
    size_t labels, bytes;
    PITH_TRY(scoring_options(&o, options, err));
    if (ask->reranks) PITH_TRY(scoring_find_reranker(&output, m, err));
    PITH_TRY(scoring_find(&output, &labels, m, err));
    if (pith__mul_overflows(ask->count, labels * sizeof(float), &bytes))
        return pith__fail_memory(err, SIZE_MAX);
    PITH_TRY(scoring_task_texts(&texts, t, m, labels, ask, &o, err));
    t->request.scores = pith__memory_alloc(t->allocator, bytes, 64);
    if (!t->request.scores) return pith__fail_memory(err, bytes);
    t->task.rows = t->request.scores;
    t->task.width = labels;
    return scoring_make_task(&t->task, m, output, &t->request, &texts, &o, NULL, err);
}

pith_status pith__model_score_task(pith__text_task **task, const pith_model *m,
                                   const pith__score_ask *ask, const pith_score_options *options,
                                   pith_error *err) {
    const pith_allocator *allocator = m->options.call.allocator;
    scoring_task *t = pith__memory_alloc(allocator, sizeof *t, 16);
    if (!t) return pith__account_explain(&m->account, pith__fail_memory(err, sizeof *t), err);
    *t = (scoring_task){ .task.drop = scoring_task_drop, .allocator = allocator };
    pith_status status = scoring_task_fill(t, m, ask, options, err);
    if (status) {
        scoring_task_drop(&t->task);
        return pith__account_explain(&m->account, status, err);
    }
    *task = &t->task;
    return PITH_OK;
}
