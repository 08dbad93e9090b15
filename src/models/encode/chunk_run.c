/* chunk_run.c - runs a chunk of tokens through the model, and hands the rows of each text to the
 * heads. */
#include "base/dtype.h"
#include "base/error.h"
#include "base/half.h"
#include "base/os/clock.h"
#include "base/os/threads.h"
#include "engine/exec/profile.h"
#include "models/encode/call_state.h"

/* Memory that is given back must be mapped and cleared by the system when it is needed again, at
 * about 4 GB/s. A call keeps its buffers for the next one if that price exceeds PRICE_SHARE of the
 * time that its thread worked. */
#define SECONDS_PER_BYTE 0.25e-9
#ifndef PITH_SANITIZED
#define PRICE_SHARE 0.002
#else /* there the work takes many times as long */
#define PRICE_SHARE 0.00002
#endif

static pith_status encode_borrow_runner(encode_call *c, encode_worker *w, pith_error *err) {
    pith__encoder *e = c->encoder;
    if (w->runner.runtime) return PITH_OK;
    if (!c->makes_runners) pith__idle_runners_take(&w->runner, &e->idle);
    if (w->runner.runtime) return PITH_OK;
    if (!c->makes_runners) pith__count(c->executor.counters, PITH_COUNT_sessions_made, 1);
    return pith__runner_create(&w->runner, &e->parts.program, &c->executor, err);
}

void pith__encode_return_runner(encode_call *c, encode_worker *w) {
    if (!w->runner.runtime) return;
    double price = (double)pith__runner_bytes(&w->runner) * SECONDS_PER_BYTE;
    if (price > (double)(pith__clock_thread_ns() - c->began) * 1e-9 * PRICE_SHARE) {
        pith__idle_runners_give(&c->encoder->idle, &w->runner);
        return;
    }
    pith__runner_destroy(&w->runner);
    pith__count(c->executor.counters, PITH_COUNT_sessions_evicted, 1);
    c->gives_back = true;
}

pith_status pith__encode_output_rows(const float **x, int64_t *missing, const pith_tensor *out,
                                     int64_t rows, const pith__head_model *model, bool ragged,
                                     pith__arena *arena, pith_error *err) {
    const int64_t width = model->width, count = pith__dims_count(out->dims, out->rank);
    bool fits = out->rank >= 1 && out->dims[out->rank - 1] == width && count % width == 0;
    *missing = fits ? rows - count / width : 0;
    if (!fits || (*missing && (*missing < 0 || ragged || model->pooled))) {
        char shape[128];
        return pith__fail(err, PITH_ERR_RUN,
                          "the model's output has shape %s; %lld rows of %lld numbers are needed",
                          pith__dims_text(out->dims, out->rank, shape, sizeof shape),
                          (long long)rows, (long long)width);
    }
    *x = out->data;
    if (out->dtype == PITH_F32) return PITH_OK;
    size_t n = (size_t)count;
    float *wide = pith__arena_array(arena, n, sizeof *wide);
    if (!wide) return pith__fail_memory(err, n * sizeof *wide);
    const uint16_t *half = out->data;
    for (size_t i = 0; i < n; i++)
        wide[i] = out->dtype == PITH_F16 ? pith__f32_of_f16(half[i]) : pith__f32_of_bf16(half[i]);
    *x = wide;
    return PITH_OK;
}

/* How many threads share the steps of the chunk that begins now. */
static int encode_threads_within(const encode_call *c) {
    const bool last = c->inner_threads < c->threads && pith__threads_left() < (size_t)c->threads;
    return last && !c->executor.tight ? LAST_CHUNK_THREADS : c->inner_threads;
}

pith_status pith__encode_emit_row(const float **x, const encode_call *c, size_t use, size_t text,
                                  const pith__row *row, int64_t missing, pith__arena *scratch,
                                  pith_error *err) {
    const pith__head_model *model = &c->encoder->models[c->uses[use].output];
    int64_t skipped = missing < row->count ? missing : row->count;
    int64_t count = model->pooled ? 1 : row->count - skipped;
    pith__arena_mark mark = pith__arena_get_mark(scratch);
    pith__head_rows rows = {
        text,    *x,   count, model->width, c->prompt_rows + row->prompt, row->ids + skipped,
        scratch, false
    };
    if (*x) *x += count * model->width;
    pith_status status = c->uses[use].head->emit(c->states[use], &rows, err);
    pith__arena_rewind(scratch, mark);
    return status ? pith__fail_at(err, status, "text %zu: ", text) : PITH_OK;
}

/* Hands the rows of each text of the chunk to a head. x: all of them, or NULL; missing: the first
 * so many of a text are not there. */
static pith_status encode_emit(const encode_call *c, size_t use, const encode_chunk *k,
                               const float *x, int64_t missing, pith__arena *scratch,
                               pith_error *err) {
    for (size_t i = 0; i < k->count; i++)
        PITH_TRY(pith__encode_emit_row(&x, c, use, c->first_text + c->order[k->first + i],
                                       c->ordered[k->first + i], missing, scratch, err));
    return PITH_OK;
}

/* Reads the outputs of a chunk of so many tokens, padding included, and hands their rows to the
 * heads. */
static pith_status encode_emit_all(const encode_call *c, const encode_chunk *k,
                                   const pith_tensor *outputs, int64_t fed, pith__arena *arena,
                                   pith_error *err) {
    pith__encoder *e = c->encoder;
    pith__lane *lane = pith__profile_lane(c->job->profile);
    for (size_t use = 0; use < c->use_count; use++) {
        int output = c->uses[use].output;
        const pith__head_model *model = &e->models[output];
        const float *x = NULL;
        int64_t missing;
        PITH_TRY(pith__encode_output_rows(&x, &missing, &outputs[e->outputs[output]],
                                          model->pooled ? (int64_t)k->count : fed, model,
                                          e->text_inputs.ragged, arena, err));
        uint64_t begin = pith__lane_now(lane);
        PITH_TRY(encode_emit(c, use, k, x, missing, arena, err));
        pith__lane_phase(lane, c->uses[use].head->phase, begin, (int64_t)k->count);
    }
    return PITH_OK;
}

pith_status pith__encode_fill_chunk(pith_tensor **inputs, encode_call *c, encode_worker *w,
                                    const encode_chunk *k, pith_error *err) {
    const pith__graph *graph = c->encoder->parts.program.graph;
    PITH_TRY(encode_borrow_runner(c, w, err));
    pith__arena_reset(&w->chunk);
    *inputs = pith__arena_array(&w->chunk, graph->input_count, sizeof **inputs);
    if (!*inputs) return pith__fail_memory(err, graph->input_count * sizeof **inputs);
    return pith__text_inputs_fill(*inputs, &c->encoder->text_inputs, c->ordered + k->first,
                                  k->count, &w->chunk, err);
}

pith_status pith__encode_run_rows(const pith_tensor **results, int64_t *fed, encode_call *c,
                                  encode_worker *w, const encode_chunk *k, pith_error *err) {
    pith__encoder *e = c->encoder;
    const size_t output_count = e->parts.program.graph->output_count;
    pith__lane *lane = pith__profile_lane(c->job->profile);
    pith_tensor *inputs;
    PITH_TRY(pith__encode_fill_chunk(&inputs, c, w, k, err));
    pith_tensor *outputs = pith__arena_array(&w->chunk, output_count, sizeof *outputs);
    if (!outputs) return pith__fail_memory(err, output_count * sizeof *outputs);
    if (e->trace)
        pith__runner_trace(&w->runner, e->trace, e->trace_context);
    else
        pith__runner_trace(&w->runner, pith__lane_trace(lane), lane);
    int64_t tokens = 0;
    for (size_t i = 0; i < k->count; i++) tokens += c->ordered[k->first + i]->count;
    pith__counters *counters = c->executor.counters;
    *fed = tokens > e->text_inputs.fixed_length ? tokens : e->text_inputs.fixed_length;
    *results = outputs;
    pith__count(counters, PITH_COUNT_batches, 1);
    pith__count_most(counters, PITH_COUNT_batch_tokens_most, (uint64_t)*fed);
    uint64_t begin = pith__clock_ns();
    PITH_TRY(
        pith__runner_run(&w->runner, outputs, inputs, encode_threads_within(c), c->job->stop, err));
    pith__lane_phase(lane, "run", begin, tokens);
    pith__count(counters, PITH_COUNT_run_ns, pith__clock_ns() - begin);
    size_t bytes = pith__runner_bytes(&w->runner);
    if (bytes > w->peak_bytes) w->peak_bytes = bytes;
    return PITH_OK;
}

static pith_status encode_run_chunk(encode_call *c, encode_worker *w, const encode_chunk *k,
                                    pith_error *err) {
    const pith_tensor *outputs;
    int64_t fed;
    PITH_TRY(pith__encode_run_rows(&outputs, &fed, c, w, k, err));
    uint64_t end = pith__clock_ns();
    pith_status status = encode_emit_all(c, k, outputs, fed, &w->chunk, err);
    pith__count(c->executor.counters, PITH_COUNT_head_ns, pith__clock_ns() - end);
    return status;
}

/* Hands the ids of the chunk's texts to the heads. */
static pith_status encode_run_tokens(encode_call *c, encode_worker *w, const encode_chunk *k,
                                     pith_error *err) {
    pith__arena_reset(&w->chunk);
    for (size_t use = 0; use < c->use_count; use++)
        PITH_TRY(encode_emit(c, use, k, NULL, 0, &w->chunk, err));
    return PITH_OK;
}

pith_status pith__encode_try_chunk(encode_call *c, encode_worker *w, const encode_chunk *k,
                                   pith_error *err) {
    if (pith__encode_first_failed(c) != SIZE_MAX) return PITH_OK;
    PITH_TRY(pith__stop_check(c->job->stop, err));
    PITH_TRY((c->job->tokens_only ? encode_run_tokens : encode_run_chunk)(c, w, k, err));
    const size_t done =
        atomic_fetch_add_explicit(&c->emitted, k->count, memory_order_relaxed) + k->count;
    pith__progress_tell(c->job->progress, "texts", c->first_text + done, c->job->count);
    return PITH_OK;
}

void pith__encode_chunk_part(void *context, size_t part, int index) {
    encode_call *c = context;
    encode_worker *w = &c->workers[index];
    pith_error fault = PITH_ERROR_INIT;
    const encode_chunk *k = &c->chunks[part];
    pith_status status = pith__encode_try_chunk(c, w, k, &fault);
    if (!status) return;
    if (c->apart && pith__encode_is_of_text(status))
        c->apart(c, w, k);
    else
        pith__encode_fail_text(c, w, &fault, c->order[k->first]);
}
