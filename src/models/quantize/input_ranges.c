/* input_ranges.c - see input_ranges.h.
 *
 * Each matmul has a histogram of its inputs over [-reach, reach]. A number beyond doubles the
 * reach: two bins become one, so that numbers once counted stay where they are. Sources: percentile
 * and entropy calibration as in onnxruntime/quantization/calibrate.py and S. Migacz, "8-bit
 * Inference with TensorRT" (2017). */
#include "models/quantize/input_ranges.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "models/quantize/made_up_texts.h"
#include "models/quantize/text_runs.h"

/* BINS: of a histogram; more place a limit more exactly and make the entropy search slower. LEVELS:
 * magnitudes of 8 bits. ENTROPY_STEP: bins from one threshold that is tried to the next.
 * ROWS_AT_ONCE: rows of a run that are kept, so that they come from many texts. */
enum { BINS = 4096, HALF = BINS / 2, LEVELS = 128, ENTROPY_STEP = 8, ROWS_AT_ONCE = 4 };
#define FIRST_REACH 1.0f

typedef struct watched {
    float low, high, reach;
    uint64_t *bins; /* [BINS] */
    pith__input_range *range;
} watched;

typedef struct range_run {
    pith__stop *stop; /* may be NULL */
    const pith__input_ranges *job;
    watched *all;
    pith__arena *arena;
    pith_error *err;
    pith_status status; /* of what is met while steps run */
} range_run;

/* ---- watching ---- */

/* Pairs of bins become one, and the outer halves are empty. */
static void range_double(watched *w) {
    w->reach *= 2;
    for (int i = 0; i < HALF / 2; i++) {
        w->bins[HALF + i] = w->bins[HALF + 2 * i] + w->bins[HALF + 2 * i + 1];
        w->bins[HALF - 1 - i] = w->bins[HALF - 1 - 2 * i] + w->bins[HALF - 2 - 2 * i];
    }
    memset(w->bins, 0, (size_t)(HALF / 2) * sizeof *w->bins);
    memset(w->bins + BINS - HALF / 2, 0, (size_t)(HALF / 2) * sizeof *w->bins);
}

/* Two passes: the range must be known before numbers are counted, since a bin's width follows from
 * it. */
static bool range_count(watched *w, const float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(x[i])) return false;
        w->low = x[i] < w->low ? x[i] : w->low;
        w->high = x[i] > w->high ? x[i] : w->high;
    }
    while (w->high > w->reach || w->low < -w->reach) range_double(w);
    const float scale = (float)HALF / w->reach;
    for (int64_t i = 0; i < count; i++) {
        int bin = (int)floorf(x[i] * scale) + HALF;
        if (bin < 0) bin = 0;
        if (bin >= BINS) bin = BINS - 1;
        w->bins[bin]++;
    }
    return true;
}

static bool range_is_finite(watched *w, const float *x, int64_t count) {
    (void)w;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

/* Rows evenly from those of a step, up to the limit. */
static void range_keep(range_run *c, watched *w, const float *x, int64_t rows, int64_t k) {
    pith__input_range *r = w->range;
    if (!r->rows)
        r->rows =
            pith__arena_alloc64(c->arena, (size_t)(PITH_INPUT_RANGE_ROWS * k) * sizeof *r->rows);
    if (!r->rows) {
        c->status =
            pith__fail_memory(c->err, (size_t)(PITH_INPUT_RANGE_ROWS * k) * sizeof *r->rows);
        return;
    }
    const int64_t take = rows < ROWS_AT_ONCE ? rows : ROWS_AT_ONCE;
    for (int64_t i = 0; i < take && r->row_count < PITH_INPUT_RANGE_ROWS; i++)
        memcpy(r->rows + r->row_count++ * k, x + i * rows / take * k, (size_t)k * sizeof *r->rows);
}

/* Called on the one thread that runs the texts. */
static void range_listen(void *context, const pith__trace_event *event) {
    range_run *c = context;
    const size_t at =
        event->step && !event->step->memory ? c->job->find(c->job->user, event->step) : SIZE_MAX;
    if (at >= c->job->count || c->status) return;
    const pith_tensor *x = event->run->in[0];
    const int64_t count = (int64_t)(x->bytes / sizeof(float));
    if (!(c->job->rows_only ? range_is_finite : range_count)(&c->all[at], x->data, count))
        c->status = pith__fail(c->err, PITH_ERR_RUN,
                               "calibration: a matmul gets a number that is not finite; use other "
                               "texts or tensors");
    else
        range_keep(c, &c->all[at], x->data, count / c->job->row_lengths[at],
                   c->job->row_lengths[at]);
}

/* ---- limits ---- */

static uint64_t range_total(const watched *w) {
    uint64_t total = 0;
    for (int i = 0; i < BINS; i++) total += w->bins[i];
    return total;
}

/* What is left out is left out on both sides alike, in number. */
static void range_percentile(watched *w, double percentile) {
    const double out = (double)range_total(w) * (100 - percentile) / 200;
    const float step = w->reach / (float)HALF;
    uint64_t below = 0, above = 0;
    int first = 0, last = BINS - 1;
    while (first < last && (double)(below += w->bins[first]) <= out) first++;
    while (last > first && (double)(above += w->bins[last]) <= out) last--;
    w->low = fmaxf(w->low, (float)(first - HALF) * step);
    w->high = fminf(w->high, (float)(last + 1 - HALF) * step);
}

/* The divergence of the magnitudes below bin `limit`, with those above added to the last one, from
 * the same in LEVELS steps. */
static double range_divergence(const uint64_t *magnitudes, int limit) {
    double total = 0, inside = 0, sum = 0;
    for (int i = 0; i < HALF; i++) total += (double)magnitudes[i];
    for (int i = 0; i < limit; i++) inside += (double)magnitudes[i];
    const double all = inside > 0 ? inside : 1;
    for (int level = 0; level < LEVELS; level++) {
        const int from = (int)((int64_t)level * limit / LEVELS),
                  to = (int)((int64_t)(level + 1) * limit / LEVELS);
        double mass = 0, used = 0;
        for (int i = from; i < to; i++) {
            mass += (double)magnitudes[i];
            used += magnitudes[i] != 0;
        }
        for (int i = from; i < to; i++) {
            const double p =
                ((double)magnitudes[i] + (i == limit - 1 ? total - inside : 0)) / total;
            const double q = magnitudes[i] ? mass / used / all : 0;
            if (p > 0) sum += p * log(p / (q > 0 ? q : 1e-12));
        }
    }
    return sum;
}

/* TensorRT's calibration, as ONNX Runtime's tools have it: of all limits the one whose quantised
 * histogram diverges least from the real one. */
static void range_entropy(watched *w) {
    uint64_t magnitudes[HALF];
    double least = INFINITY;
    int best = HALF;
    for (int i = 0; i < HALF; i++) magnitudes[i] = w->bins[HALF + i] + w->bins[HALF - 1 - i];
    for (int limit = LEVELS; limit <= HALF; limit += ENTROPY_STEP) {
        const double divergence = range_divergence(magnitudes, limit);
        if (divergence < least) {
            least = divergence;
            best = limit;
        }
    }
    const float reach = (float)best * w->reach / (float)HALF;
    w->low = fmaxf(w->low, -reach);
    w->high = fminf(w->high, reach);
}

static void range_settle(watched *w, const pith__input_ranges *job) {
    if (job->method == PITH_RANGE_PERCENTILE) range_percentile(w, (double)job->percentile);
    if (job->method == PITH_RANGE_ENTROPY) range_entropy(w);
    w->range->low = fminf(w->low, 0.0f);
    w->range->high = fmaxf(w->high, 0.0f);
}

/* ---- runs ---- */

static pith_status range_after(void *user) { return ((const range_run *)user)->status; }

/* When only rows are wanted, texts stop once each matmul that gets any has as many as are kept. */
static bool range_enough(void *user) {
    const range_run *c = user;
    bool some = false, enough = true;
    for (size_t i = 0; i < c->job->count; i++) {
        const int64_t rows = c->all[i].range->row_count;
        some = some || rows;
        enough = enough && (!rows || rows == PITH_INPUT_RANGE_ROWS);
    }
    return some && enough;
}

/* As in gram_matrices.c, runners that exist do not know the trace. */
static pith_status range_texts(range_run *c, pith__arena *scratch) {
    pith_calibrate_options o = *c->job->options;
    if (!o.texts) {
        pith_str *made;
        PITH_TRY(pith__made_up_texts(&made, &o.text_count, c->job->tokenizer, scratch, c->err));
        o.texts = made;
    }
    const pith__text_runs runs = { .encoder = c->job->encoder,
                                   .options = &o,
                                   .stop = c->stop,
                                   .user = c,
                                   .after = range_after,
                                   .enough = c->job->rows_only ? range_enough : NULL,
                                   .err = c->err };
    pith__encoder_trim(c->job->encoder);
    pith__encoder_trace(c->job->encoder, range_listen, c);
    pith_status status = pith__text_runs_all(&runs);
    pith__encoder_trace(c->job->encoder, NULL, NULL);
    pith__encoder_trim(c->job->encoder); /* its executors still have the trace */
    return status;
}

/* The caller's tensors run through the model's own program, one set after the other. */
static pith_status range_tensors(range_run *c, pith__arena *scratch) {
    const pith__graph *graph = c->job->program->graph;
    const pith__executor_options how = { .allocator = c->job->allocator };
    pith_tensor *outputs = pith__arena_array(scratch, graph->output_count + 1, sizeof *outputs);
    pith__runner runner;
    if (!outputs) return pith__fail_memory(c->err, graph->output_count * sizeof *outputs);
    PITH_TRY(pith__runner_create(&runner, c->job->program, &how, c->err));
    pith__runner_trace(&runner, range_listen, c);
    pith_status status = PITH_OK;
    for (size_t i = 0; i < c->job->sets && !status; i++) {
        status = pith__runner_run(&runner, outputs, c->job->inputs + i * graph->input_count, 1,
                                  c->stop, c->err);
        if (status && !pith__status_stops(status))
            pith__fail_at(c->err, status, "calibration, set %zu: ", i);
        if (!status) status = c->status;
    }
    pith__runner_destroy(&runner);
    return status;
}

/* Histograms are in scratch memory; only limits and kept rows outlive the call. */
static pith_status range_begin(range_run *c, pith__input_range *ranges, pith__arena *scratch) {
    c->all = pith__arena_array(scratch, c->job->count + 1, sizeof *c->all);
    if (!c->all) return pith__fail_memory(c->err, c->job->count * sizeof *c->all);
    for (size_t i = 0; i < c->job->count; i++) {
        c->all[i] = (watched){ .reach = FIRST_REACH, .range = &ranges[i] };
        ranges[i] = (pith__input_range){ 0 };
        c->all[i].bins = pith__arena_array(scratch, BINS, sizeof *c->all[i].bins);
        if (!c->all[i].bins) return pith__fail_memory(c->err, BINS * sizeof *c->all[i].bins);
    }
    return PITH_OK;
}

pith_status pith__input_ranges_run(pith__input_range *ranges, const pith__input_ranges *job,
                                   pith__arena *arena, pith_error *err) {
    pith__stop own;
    range_run c = { .job = job,
                    .stop = job->options ? pith__stop_begin(&own, &job->options->call) : NULL,
                    .arena = arena,
                    .err = err };
    pith__arena scratch;
    pith__arena_init(&scratch, job->allocator);
    pith_status status = range_begin(&c, ranges, &scratch);
    if (!status) status = job->encoder ? range_texts(&c, &scratch) : range_tensors(&c, &scratch);
    if (!status) {
        for (size_t i = 0; i < job->count && !status; i++) {
            range_settle(&c.all[i], job);
            status = pith__stop_check(c.stop, err);
        }
    }
    pith__arena_free(&scratch);
    return status;
}
