/* inspect_time.c - pith inspect --time.
 *
 * Each run is recorded in a profile of its own and follows a short measurement of the peak-FMA
 * loop. So the fractions hold for that moment, whatever the clock and other programs do. Medians
 * over the runs are shown. */
#include "cli/measure/inspect_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/input/model_inputs.h"
#include "cli/input/synthetic_texts.h"
#include "cli/measure/cpu_peak.h"
#include "cli/measure/step_times.h"
#include "cli/output/json_out.h"

/* Words of the made-up text if --text is not given: a long paragraph, as in docs/performance.md. */
enum { DEFAULT_WORDS = 110 };
/* How long the peak-FMA loop runs before each run. Short, so that the run right after it sees the
 * same clock. */
#define PEAK_SECONDS 0.002

/* One thing to run: a text, or a session with its inputs. */
typedef struct subject {
    const pith_model *model;
    pith_str text;
    float *vector; /* NULL: not a text */
    pith_session *session;
    model_inputs inputs;
    pith_tensor *outputs;
    int32_t threads;
} subject;

static pith_status run_once(subject *s, pith_profile *profile, pith_error *err) {
    pith_embed_options embed = PITH_EMBED_OPTIONS_INIT;
    pith_run_options run = PITH_RUN_OPTIONS_INIT;
    embed.call.threads = run.call.threads = s->threads;
    embed.call.profile = run.call.profile = profile;
    if (s->vector) return pith_embed(s->vector, s->model, &s->text, 1, &embed, err);
    return pith_session_run(s->session, s->outputs, s->inputs.names, s->inputs.tensors,
                            s->inputs.count, &run, err);
}

static double median(const double *numbers, size_t count) {
    double *copy = grow(NULL, count * sizeof *copy);
    memcpy(copy, numbers, count * sizeof *copy);
    double m = quantile(copy, count, 0.5);
    free(copy);
    return m;
}

/* The first input and what comes out, of all shapes of a step. */
static void print_shapes(const char *shapes) {
    const char *arrow = strstr(shapes, " -> "), *end = strchr(shapes, ']');
    if (arrow && end && end < arrow)
        printf("%.*s%s", (int)(end + 1 - shapes), shapes, arrow);
    else
        fputs(shapes, stdout);
}

static void print_table(const step_times *times, double total) {
    printf("%5s %-20s %9s %6s %9s %6s %8s  %s\n", "step", "op", "ms", "%", "GFLOP/s", "% peak",
           "GB/s", "shape");
    for (size_t i = 0; i < times->count; i++) {
        const step_time *s = &times->steps[i];
        double seconds = median(s->seconds, s->runs), per = seconds > 0 ? 1e-9 / seconds : 0;
        printf("%5lld %-20s %9.4f %6.1f %9.1f %6.1f %8.1f  ", (long long)s->step, s->op,
               seconds * 1e3, 100 * seconds / total, s->flop * per,
               100 * median(s->fraction, s->runs), s->bytes * per);
        print_shapes(s->shapes);
        putchar('\n');
    }
}

static json_t *steps_json(const step_times *times, double total) {
    json_t *steps = json_array();
    for (size_t i = 0; i < times->count; i++) {
        const step_time *s = &times->steps[i];
        double seconds = median(s->seconds, s->runs), per = seconds > 0 ? 1 / seconds : 0;
        json_array_append_new(
            steps, json_pack("{s:I, s:s, s:s, s:s, s:s, s:f, s:f, s:I, s:I, s:f, s:f, s:f}", "step",
                             (json_int_t)s->step, "op", s->op, "node", s->node, "shapes", s->shapes,
                             "kernel", s->kernel, "seconds", seconds, "share", seconds / total,
                             "flop", (json_int_t)s->flop, "bytes", (json_int_t)s->bytes,
                             "flop_per_second", s->flop * per, "peak_fraction",
                             median(s->fraction, s->runs), "bytes_per_second", s->bytes * per));
    }
    return steps;
}

static int print_all(const subject *s, const step_times *times, const time_options *o,
                     double *seconds, double *peaks) {
    size_t runs = (size_t)o->runs;
    double total = 0, flop = 0, run = median(seconds, runs), peak = median(peaks, runs);
    for (size_t i = 0; i < times->count; i++) {
        total += median(times->steps[i].seconds, times->steps[i].runs);
        flop += times->steps[i].flop;
    }
    if (total <= 0) total = 1;
    if (o->as_json) {
        json_t *json = json_pack("{s:i, s:i, s:f, s:f, s:f, s:I, s:o}", "runs", (int)o->runs,
                                 "threads", (int)s->threads, "seconds", run, "steps_seconds", total,
                                 "peak_flop_per_second", peak, "flop", (json_int_t)flop, "steps",
                                 steps_json(times, total));
        json_print(json);
        return EXIT_DONE;
    }
    print_table(times, total);
    printf("\n%.4f ms per run, %.4f ms of it in steps, %.1f GFLOP/s; %.1f %% of the peak of %.1f "
           "GFLOP/s; %d thread%s, "
           "%d runs\n",
           run * 1e3, total * 1e3, flop / run * 1e-9, 100 * flop / run / peak, peak * 1e-9,
           (int)s->threads, s->threads > 1 ? "s" : "", (int)o->runs);
    return EXIT_DONE;
}

static int measure(const command *c, subject *s, const time_options *o) {
    pith_error err = PITH_ERROR_INIT;
    step_times times = { NULL, 0 };
    size_t runs = (size_t)o->runs;
    double *seconds = grow(NULL, runs * sizeof *seconds), *peaks = grow(NULL, runs * sizeof *peaks);
    /* shapes are bound, pages are there */
    int code = run_once(s, NULL, &err) ? fail(c, "%s", err.message) : EXIT_DONE;
    for (size_t r = 0; r < runs && !code; r++) {
        pith_profile *profile = NULL;
        peaks[r] = cpu_peak_flops(s->threads, PEAK_SECONDS);
        if (pith_profile_create(&profile, NULL, &err)) return fail(c, "%s", err.message);
        double begin = now_seconds();
        pith_status status = run_once(s, profile, &err);
        seconds[r] = now_seconds() - begin;
        if (status)
            code = fail(c, "%s", err.message);
        else if (!step_times_add(&times, profile, peaks[r], runs))
            code = fail(c, "the profile cannot be read");
        pith_profile_destroy(profile);
    }
    if (!code) code = print_all(s, &times, o, seconds, peaks);
    step_times_free(&times);
    free(seconds);
    free(peaks);
    return code;
}

int inspect_time(const command *c, const pith_model *model, const time_options *o) {
    pith_error err = PITH_ERROR_INIT;
    subject s = { .model = model, .threads = o->threads };
    bytes words = { NULL, 0, 0 };
    uint64_t seed = 1;
    size_t dim = o->inputs.count ? 0 : pith_embed_dim(model, NULL);
    int code = EXIT_DONE;
    if (dim) {
        synthetic_words(&words, DEFAULT_WORDS, &seed);
        s.text =
            o->text ? (pith_str){ o->text, strlen(o->text) } : (pith_str){ words.data, words.size };
        s.vector = grow(NULL, dim * sizeof *s.vector);
    } else {
        s.outputs = grow(NULL, pith_model_output_count(model) * sizeof *s.outputs);
        code = model_inputs_load(&s.inputs, c, model, &o->inputs);
        if (!code) code = model_inputs_invent(&s.inputs, c, model);
        if (!code) code = model_inputs_shape(&s.inputs, c, &o->shapes);
        if (!code && pith_session_create(&s.session, model, &err))
            code = fail(c, "%s", err.message);
    }
    if (!code) code = measure(c, &s, o);
    pith_session_destroy(s.session);
    model_inputs_free(&s.inputs);
    free(s.outputs);
    free(s.vector);
    free(words.data);
    return code;
}
