/* shared_texts.c - see shared_texts.h. A request is a call of the encoder whose window is all of
 * its texts. A worker has a call of its own, which owns the runner and the chunk that runs. */
#include "models/encode/shared_texts.h"

#include "base/error.h"
#include "base/memory/account.h"
#include "base/os/clock.h"
#include "base/os/threads.h"
#include "models/encode/call_state.h"
#include "text/token_rows.h"

struct pith__shared_job {
    encode_call call;
    pith__encode_job job;
};

struct pith__shared_worker {
    const pith_allocator *allocator;
    pith__shared_fault *fault;
    pith__shared_alone *alone; /* NULL: a text is not tried again alone */
    void *context;
    pith__shared_report *report;
    encode_call run; /* of the encoder whose runner the worker has; encoder NULL: none */
    pith__encode_job job;
    encode_worker tokens; /* of texts; it has no runner */
    encode_worker chunk;
};

/* ---- requests ---- */

pith_status pith__shared_open(pith__shared_job **shared, pith__encoder *e,
                              const pith__encode_job *job, const pith__head_use *uses, size_t count,
                              pith_error *err) {
    const pith_allocator *allocator = e->parts.executor.allocator;
    pith__shared_job *s = pith__memory_alloc(allocator, sizeof *s, 16);
    if (!s) return pith__fail_memory(err, sizeof *s);
    s->job = *job;
    s->job.threads = 1, s->job.batch_tokens = 0, s->job.batching = NULL, s->job.stop = NULL;
    s->job.progress = NULL, s->job.profile = NULL, s->job.stats = NULL;
    s->job.results = NULL, s->job.failures = NULL;
    encode_call *c = &s->call;
    pith_status status = pith__encode_begin(c, e, &s->job, uses, count, allocator, err);
    if (status) {
        pith__memory_free(allocator, s);
        return status;
    }
    status = pith__encode_open_heads(c, err);
    if (!status) {
        c->count = job->count;
        c->rows = pith__arena_array(&c->arena, job->count, sizeof *c->rows);
        c->truncated = pith__arena_array(&c->arena, job->count, sizeof *c->truncated);
        if (!c->rows || !c->truncated)
            status = pith__fail_memory(err, job->count * (sizeof *c->rows + 1));
    }
    if (status)
        pith__shared_close(s);
    else {
        pith__count(c->executor.counters, PITH_COUNT_calls, 1);
        *shared = s;
    }
    return status;
}

void pith__shared_close(pith__shared_job *s) {
    if (!s) return;
    const pith_allocator *allocator = s->call.executor.allocator;
    pith__encode_end(&s->call);
    pith__memory_free(allocator, s);
}

int64_t pith__shared_budget(const pith__encoder *e, bool pressed) {
    const bool less = pressed && e->text_inputs.ragged && e->chunk_tokens > PITH_CHUNK_TOKENS_MIN;
    return less ? PITH_CHUNK_TOKENS_MIN : e->chunk_tokens;
}
bool pith__shared_packs(const pith__encoder *e) { return e->text_inputs.ragged; }

/* ---- workers ---- */

pith_status pith__shared_worker_create(pith__shared_worker **worker,
                                       const pith_allocator *allocator, pith__shared_fault *fault,
                                       pith__shared_alone *alone, void *context, pith_error *err) {
    pith__shared_worker *w = pith__memory_alloc(allocator, sizeof *w, 16);
    if (!w) return pith__fail_memory(err, sizeof *w);
    *w = (pith__shared_worker){
        .allocator = allocator, .fault = fault, .alone = alone, .context = context
    };
    encode_worker *const parts[] = { &w->tokens, &w->chunk };
    for (int i = 0; i < 2; i++) {
        *parts[i] = (encode_worker){ .tokens = PITH_TOKENS_INIT };
        pith__arena_init(&parts[i]->rows, allocator);
        pith__arena_init(&parts[i]->chunk, allocator);
    }
    *worker = w;
    return PITH_OK;
}

void pith__shared_forget(pith__shared_worker *w) { pith__arena_reset(&w->tokens.rows); }

void pith__shared_rest(pith__shared_worker *w) {
    if (w->run.encoder) pith__encode_return_runner(&w->run, &w->chunk);
    w->run.encoder = NULL;
    pith__token_rows_free(&w->tokens.tokens);
    pith__arena_free(&w->tokens.rows);
    pith__arena_free(&w->chunk.chunk);
}

void pith__shared_worker_destroy(pith__shared_worker *w) {
    if (!w) return;
    pith__shared_rest(w);
    pith__memory_free(w->allocator, w);
}

/* ---- texts ---- */

static const pith__row *shared_row(const pith__shared_text *t) {
    return &t->job->call.rows[t->text];
}

/* A text without tokens, or one that has failed. */
static pith_status shared_emit_none(pith__shared_worker *w, const pith__shared_text *t,
                                    pith_error *err) {
    const encode_call *c = &t->job->call;
    for (size_t use = 0; use < c->use_count; use++) {
        const int64_t width = c->encoder->models[c->uses[use].output].width;
        pith__head_rows rows = {
            t->text, NULL, 0, width, 0, NULL, &w->chunk.chunk, t->status != 0
        };
        PITH_TRY(c->uses[use].head->emit(c->states[use], &rows, err));
    }
    return PITH_OK;
}

static void shared_fail(pith__shared_worker *w, pith__shared_text *t, const pith_error *fault) {
    if (t->status) return;
    w->fault(w->context, t, fault);
    t->status = fault->code;
    shared_emit_none(w, t, NULL);
}

/* ---- memory ---- */

/* What keeps memory for speed is freed. */
static void shared_free(pith__shared_worker *w, const encode_call *c) {
    pith__encode_trim(c);
    pith__runner_destroy(&w->chunk.runner);
    pith__arena_free(&w->chunk.chunk);
    pith__account_trim(c->executor.allocator);
}

typedef pith_status shared_try(pith__shared_worker *w, pith__shared_text *text, pith_error *err);

/* What one text was refused memory for is tried again, with all freed that is kept for speed; and
 * then once more while nothing else runs. */
static pith_status shared_insist(pith__shared_worker *w, shared_try *try, pith__shared_text *text,
                                 pith_error *err) {
    const encode_call *c = &text->job->call;
    shared_free(w, c);
    pith_status status = try(w, text, err);
    if (status != PITH_ERR_MEMORY || !w->alone) return status;
    shared_free(w, c);
    w->alone(w->context, true);
    shared_free(w, c); /* what the others have given back */
    status = try(w, text, err);
    if (status) shared_free(w, c);
    w->alone(w->context, false);
    return status;
}

static pith_status shared_tokenise(pith__shared_worker *w, pith__shared_text *t, pith_error *err) {
    return pith__encode_text_row(&t->job->call, &w->tokens, t->text, err);
}

void pith__shared_tokenise(pith__shared_worker *w, pith__shared_text *t) {
    encode_call *c = &t->job->call;
    pith_error fault = PITH_ERROR_INIT;
    const uint64_t begin = pith__clock_ns();
    pith_status status = shared_tokenise(w, t, &fault);
    if (status == PITH_ERR_MEMORY) status = shared_insist(w, shared_tokenise, t, &fault);
    if (status) {
        shared_fail(w, t, &fault);
    } else {
        t->tokens = (uint32_t)c->rows[t->text].count;
        t->truncated = c->truncated[t->text];
    }
    pith__count(c->executor.counters, PITH_COUNT_tokenize_ns, pith__clock_ns() - begin);
}

/* ---- runs ---- */

/* A head has failed with a text: the text is bad, or there was no memory for its rows. Of several
 * texts such a one is run again by itself. */
static pith_status shared_emit_failed(pith__shared_worker *w, pith__shared_text *t, bool alone,
                                      const pith_error *fault, pith_error *err) {
    if (fault->code != PITH_ERR_MEMORY) {
        shared_fail(w, t, fault);
        return PITH_OK;
    }
    t->again = true;
    return alone ? pith__fail(err, PITH_ERR_MEMORY, "out of memory for its results") : PITH_OK;
}

/* Hands an output to the heads that read it. The rows of a text begin where those of the one before
 * it end, whether a head takes them or not. */
static pith_status shared_emit_output(pith__shared_worker *w, int output, const float *all,
                                      int64_t missing, pith__shared_text *const *texts,
                                      size_t count, pith_error *err) {
    const pith__head_model *model = &w->run.encoder->models[output];
    for (size_t i = 0; i < count; i++) {
        pith__shared_text *t = texts[i];
        const encode_call *c = &t->job->call;
        const pith__row *row = shared_row(t);
        for (size_t use = 0; use < c->use_count; use++) {
            const float *x = all;
            pith_error fault = PITH_ERROR_INIT;
            if (c->uses[use].output != output || t->status || t->again) continue;
            if (pith__encode_emit_row(&x, c, use, t->text, row, missing, &w->chunk.chunk, &fault))
                PITH_TRY(shared_emit_failed(w, t, count == 1, &fault, err));
        }
        const int64_t skipped = missing < row->count ? missing : row->count;
        all += (model->pooled ? 1 : row->count - skipped) * model->width;
    }
    return PITH_OK;
}

/* The rows of these texts become the chunk of the worker's call. They are in the arena of texts,
 * since a run begins with an empty arena of its own. */
static pith_status shared_order(pith__shared_worker *w, pith__shared_text *const *texts,
                                size_t count, pith_error *err) {
    const pith__row **rows = pith__arena_array(&w->tokens.rows, count, sizeof *rows);
    if (!rows) return pith__fail_memory(err, count * sizeof *rows);
    for (size_t i = 0; i < count; i++) rows[i] = shared_row(texts[i]);
    w->run.ordered = rows;
    return PITH_OK;
}

/* Whether the memory of a run of the first `count` rows is there, as far as can be told before it
 * runs. The prediction may be wrong either way, and other threads may take the memory first: too
 * large a run is caught by the limit itself. */
static bool shared_fits(pith__shared_worker *w, size_t count) {
    encode_call *c = &w->run;
    const encode_chunk k = { 0, count };
    pith_error fault = PITH_ERROR_INIT;
    pith_tensor *inputs;
    size_t bytes;
    if (pith__encode_fill_chunk(&inputs, c, &w->chunk, &k, &fault) ||
        pith__runner_plan_bytes(&w->chunk.runner, &bytes, inputs, c->inner_threads, &fault))
        return fault.code != PITH_ERR_MEMORY;
    const size_t has = pith__runner_bytes(&w->chunk.runner);
    return bytes <= has || bytes - has <= pith__account_room(c->executor.allocator);
}

static pith_status shared_run_once(pith__shared_worker *w, pith__shared_text *const *texts,
                                   size_t count, pith_error *err) {
    encode_call *c = &w->run;
    const pith_tensor *outputs;
    int64_t fed = 0, missing;
    const encode_chunk k = { 0, count };
    for (size_t i = 0; i < count; i++) texts[i]->again = false;
    w->report->runs++;
    PITH_TRY(pith__encode_run_rows(&outputs, &fed, c, &w->chunk, &k, err));
    const uint64_t begin = pith__clock_ns();
    pith__encoder *e = c->encoder;
    for (int output = 0; output < e->parts.output_count; output++) {
        const pith__head_model *model = &e->models[output];
        const float *x;
        PITH_TRY(pith__encode_output_rows(&x, &missing, &outputs[e->outputs[output]],
                                          model->pooled ? (int64_t)count : fed, model,
                                          e->text_inputs.ragged, &w->chunk.chunk, err));
        PITH_TRY(shared_emit_output(w, output, x, missing, texts, count, err));
    }
    pith__count(c->executor.counters, PITH_COUNT_head_ns, pith__clock_ns() - begin);
    return PITH_OK;
}

static pith_status shared_run_alone(pith__shared_worker *w, pith__shared_text *text,
                                    pith_error *err) {
    PITH_TRY(shared_order(w, &text, 1, err));
    return shared_run_once(w, &text, 1, err);
}

/* A run that fails, or is predicted not to fit, is run in halves, until those that cannot be run
 * are alone. */
static void shared_run_all(pith__shared_worker *w, pith__shared_text *const *texts, size_t count) {
    pith_error fault = PITH_ERROR_INIT;
    pith__counters *counters = w->run.executor.counters;
    pith_status status = shared_order(w, texts, count, &fault);
    const bool fits =
        status || count == 1 || !w->run.encoder->parts.predicts || shared_fits(w, count);
    if (!fits)
        status = pith__fail(&fault, PITH_ERR_MEMORY, "out of memory");
    else if (!status)
        status = shared_run_once(w, texts, count, &fault);
    if (!status) {
        for (size_t i = 0; i < count; i++)
            if (texts[i]->again) shared_run_all(w, texts + i, 1);
        return;
    }
    if (count > 1) {
        if (status == PITH_ERR_MEMORY) {
            shared_free(w, &w->run);
            w->report->smaller++;
            pith__count(counters,
                        fits ? PITH_COUNT_batches_retried_smaller
                             : PITH_COUNT_batches_predicted_smaller,
                        1);
        }
        shared_run_all(w, texts, count / 2);
        shared_run_all(w, texts + count / 2, count - count / 2);
        return;
    }
    if (status == PITH_ERR_MEMORY) status = shared_insist(w, shared_run_alone, texts[0], &fault);
    if (!status) return;
    pith__fail_at(&fault, status, "text %zu: ", texts[0]->text);
    shared_fail(w, texts[0], &fault);
}

/* The worker's runner becomes one of this encoder. */
static void shared_take_encoder(pith__shared_worker *w, pith__encoder *e) {
    if (w->run.encoder == e) return;
    if (w->run.encoder) pith__encode_return_runner(&w->run, &w->chunk);
    w->run = (encode_call){ .encoder = e,
                            .job = &w->job,
                            .executor = e->parts.executor,
                            .began = pith__clock_thread_ns() };
}

/* Texts that the network is not needed for are given to the heads at once. Returns whether the text
 * is left. */
static bool shared_is_left(pith__shared_worker *w, pith__shared_text *t) {
    pith_error fault = PITH_ERROR_INIT;
    const encode_call *c = &t->job->call;
    pith_status status = PITH_OK;
    if (t->status) return false;
    if (shared_row(t)->count && !c->job->tokens_only) return true;
    pith__arena_reset(&w->chunk.chunk);
    if (!shared_row(t)->count)
        status = shared_emit_none(w, t, &fault);
    else
        for (size_t use = 0; use < c->use_count && !status; use++) {
            const float *x = NULL;
            status = pith__encode_emit_row(&x, c, use, t->text, shared_row(t), 0, &w->chunk.chunk,
                                           &fault);
        }
    if (status) shared_fail(w, t, &fault);
    return false;
}

void pith__shared_run(pith__shared_report *report, pith__shared_worker *w, pith__shared_text *texts,
                      size_t count, int64_t budget, int threads) {
    size_t left = 0;
    *report = (pith__shared_report){ 0, 0 };
    w->report = report;
    if (!count) return;
    pith__encoder *e = texts[0].job->call.encoder;
    pith__counters *counters = e->parts.executor.counters;
    shared_take_encoder(w, e);
    w->run.threads = w->run.inner_threads = threads;
    if (e->parts.busy) pith__busy_begin(e->parts.busy, threads);
    pith__shared_text **order = pith__arena_array(&w->tokens.rows, count, sizeof *order);
    uint64_t tokens = 0, truncated = 0;
    pith_error none = PITH_ERROR_INIT;
    if (!order) pith__fail_memory(&none, count * sizeof *order);
    for (size_t i = 0; i < count; i++) {
        tokens += texts[i].tokens;
        truncated += texts[i].truncated;
        if (!order)
            shared_fail(w, &texts[i], &none);
        else if (shared_is_left(w, &texts[i]))
            order[left++] = &texts[i];
    }
    /* runs of about the same size, where one is not enough */
    const int64_t parts = ((int64_t)tokens + budget - 1) / budget;
    const int64_t part = parts ? ((int64_t)tokens + parts - 1) / parts : 0;
    for (size_t first = 0, n; first < left; first += n) {
        int64_t sum = order[first]->tokens;
        for (n = 1; first + n < left && sum < part; n++) {
            if (!e->text_inputs.ragged || sum + order[first + n]->tokens > budget) break;
            sum += order[first + n]->tokens;
        }
        shared_run_all(w, order + first, n);
    }
    pith__count(counters, PITH_COUNT_texts, count);
    pith__count(counters, PITH_COUNT_tokens, tokens);
    pith__count(counters, PITH_COUNT_truncated, truncated);
    if (e->parts.busy) pith__busy_end(e->parts.busy, counters);
}

bool pith__shared_pressed(const pith__encoder *e) {
    char why[200];
    if (!e->parts.gauge || !pith__memory_gauge_short(e->parts.gauge, why, sizeof why)) return false;
    const encode_call call = { .encoder = (pith__encoder *)(uintptr_t)e,
                               .executor = e->parts.executor };
    pith__encode_trim(&call);
    pith__count(e->parts.executor.counters, PITH_COUNT_pressure_cleanups, 1);
    pith__log_write(e->parts.executor.log, PITH_LOG_INFO,
                    "%s; kept buffers are freed, and batches made small", why);
    return true;
}
