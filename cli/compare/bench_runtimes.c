/* bench_runtimes.c - see bench_runtimes.h.
 *
 * The calls of the two alternate, so a machine whose speed drifts changes both alike. A ratio is
 * taken between neighbours; its spread is that of all pairs. Memory is what the process holds more
 * after a runtime has opened the model and run once. */
#include "cli/compare/bench_runtimes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/input/random_inputs.h"
#include "cli/measure/step_times.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"

/* Calls of each runtime before the first that counts, and calls per round. More steady the medians.
 */
enum { WARM_UP = 3, CALLS_PER_ROUND = 20 };

/* One runtime in one series. */
typedef struct side {
    double open, first; /* seconds */
    double *seconds;    /* [calls] */
    int64_t memory;     /* bytes */
} side;

/* One workload with one number of threads. */
typedef struct pair {
    const bench_runtimes *b;
    const bench_texts *load; /* NULL: tensors */
    int32_t threads;
    two_runtimes t;
    model_inputs in;
    float *vectors[RUNTIMES];
    size_t calls, dim;
    double largest; /* difference of two elements */
    side sides[RUNTIMES];
} pair;

static int64_t resident_bytes(void) {
    long long pages = 0, all;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%lld %lld", &all, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Of the library of ONNX Runtime, or of this program. */
static int64_t file_bytes(const char *path) {
    struct stat st;
    if (stat(*path ? path : "/proc/self/exe", &st)) return 0;
    return st.st_size;
}

static int call_once(pair *p, int i, double *seconds) {
    pith_error err = PITH_ERROR_INIT;
    pith_run_options run = PITH_RUN_OPTIONS_INIT;
    pith_embed_options embed = p->b->embed;
    pith_status status;
    run.call.threads = embed.call.threads = p->threads;
    double began = now_seconds();
    if (p->load)
        status =
            pith_embed(p->vectors[i], p->t.models[i], p->load->texts, p->load->count, &embed, &err);
    else
        status = pith_session_run(p->t.sessions[i], p->t.outputs[i], p->in.names, p->in.tensors,
                                  p->in.count, &run, &err);
    *seconds = now_seconds() - began;
    return status ? fail(p->b->command, "%s: %s", p->t.names[i], err.message) : EXIT_DONE;
}

/* Opens the model with one runtime after the other, so that the memory of each is seen. */
static int pair_open(pair *p) {
    const bench_runtimes *b = p->b;
    pith_open_options open = b->open;
    open.input_shapes = b->shapes->items;
    open.input_shape_count = b->shapes->count;
    int code = EXIT_DONE;
    two_runtimes_prepare(&p->t, &open, b->choice, p->threads);
    for (int i = 0; i < RUNTIMES && !code; i++) {
        int64_t before = resident_bytes();
        code = two_runtimes_open_one(&p->t, b->command, b->model, &open, i);
        if (!code && !i && !p->load)
            code = random_inputs_add(&p->in, b->command, p->t.models[0], 0);
        if (!code && p->load) {
            p->dim = pith_embed_dim(p->t.models[i], &b->embed);
            p->vectors[i] = grow(NULL, p->load->count * p->dim * sizeof(float));
        }
        if (!code) code = call_once(p, i, &p->sides[i].first);
        p->sides[i].open = p->t.open_seconds[i];
        p->sides[i].memory = resident_bytes() - before;
    }
    return code;
}

/* The results of the first calls. */
static int pair_check(pair *p) {
    const command *c = p->b->command;
    if (p->load) {
        for (size_t i = 0; i < p->load->count * p->dim; i++) {
            double by = fabs((double)p->vectors[0][i] - p->vectors[1][i]);
            if (!(by <= p->largest)) p->largest = isnan(by) ? INFINITY : by;
        }
    }
    if (!p->load)
        for (size_t i = 0; i < pith_model_output_count(p->t.models[0]); i++) {
            difference_of d;
            int code = two_runtimes_compare(&d, &p->t, c, i);
            if (code) return code;
            if (d.max_abs > p->largest) p->largest = d.max_abs;
        }
    if (p->largest <= p->b->atol) return EXIT_DONE;
    return fail(c,
                "%s and %s do not give the same: an element differs by %.3g, and %.3g is allowed "
                "(--atol); nothing is "
                "measured",
                p->t.names[0], p->t.names[1], p->largest, p->b->atol);
}

static int pair_measure(pair *p) {
    double ignored;
    int code = EXIT_DONE;
    p->calls = (size_t)p->b->rounds * CALLS_PER_ROUND;
    for (int i = 0; i < RUNTIMES; i++) p->sides[i].seconds = grow(NULL, p->calls * sizeof(double));
    for (int n = 0; n < WARM_UP * RUNTIMES && !code; n++)
        code = call_once(p, n % RUNTIMES, &ignored);
    for (size_t n = 0; n < p->calls; n++)
        for (int i = 0; i < RUNTIMES && !code; i++) code = call_once(p, i, &p->sides[i].seconds[n]);
    return code;
}

/* ---- telling ---- */

/* How many times as long the second takes, by pairs of calls; sorted. The caller frees it. */
static double *pair_ratios(const pair *p) {
    double *ratios = grow(NULL, p->calls * sizeof *ratios);
    for (size_t n = 0; n < p->calls; n++)
        ratios[n] = p->sides[1].seconds[n] / p->sides[0].seconds[n];
    return ratios;
}

static const char *load_name(const pair *p) { return p->load ? p->load->name : "tensors"; }

static void pair_print(pair *p) {
    double *ratios = pair_ratios(p);
    printf("\n%s, %d thread%s: results differ by %.3g at most\n", load_name(p), p->threads,
           p->threads > 1 ? "s" : "", p->largest);
    printf("%-10s %10s %10s %10s %10s %10s %10s %10s\n", "runtime", "open ms", "first ms",
           "median ms", "min ms", "p95 ms", "memory MB", "file MB");
    for (int i = 0; i < RUNTIMES; i++) {
        side *s = &p->sides[i];
        double median = quantile(s->seconds, p->calls, 0.5);
        printf("%-10s %10.2f %10.3f %10.3f %10.3f %10.3f %10.1f %10.1f\n", p->t.names[i],
               s->open * 1e3, s->first * 1e3, median * 1e3, s->seconds[0] * 1e3,
               quantile(s->seconds, p->calls, 0.95) * 1e3, (double)s->memory / 1e6,
               (double)file_bytes(p->t.reports[i].library) / 1e6);
    }
    printf("%s takes %.2f times as long as %s (%.2f to %.2f for eight pairs of ten)\n",
           p->t.names[1], quantile(ratios, p->calls, 0.5), p->t.names[0],
           quantile(ratios, p->calls, 0.1), quantile(ratios, p->calls, 0.9));
    free(ratios);
}

static json_t *pair_json(pair *p) {
    double *ratios = pair_ratios(p);
    json_t *runtimes = json_array();
    for (int i = 0; i < RUNTIMES; i++) {
        side *s = &p->sides[i];
        double median = quantile(s->seconds, p->calls, 0.5);
        json_array_append_new(runtimes,
                              json_pack("{s:s, s:o, s:f, s:f, s:f, s:f, s:f, s:I, s:I}", "runtime",
                                        p->t.names[i], "version",
                                        json_text(*p->t.reports[i].version ? p->t.reports[i].version
                                                                           : pith_version()),
                                        "open_seconds", s->open, "first_seconds", s->first,
                                        "seconds", median, "seconds_min", s->seconds[0],
                                        "seconds_p95", quantile(s->seconds, p->calls, 0.95),
                                        "memory_bytes", (json_int_t)s->memory, "file_bytes",
                                        (json_int_t)file_bytes(p->t.reports[i].library)));
    }
    json_t *json =
        json_pack("{s:s, s:i, s:I, s:f, s:o, s:f, s:f, s:f}", "workload", load_name(p), "threads",
                  (int)p->threads, "calls", (json_int_t)p->calls, "max_abs", p->largest, "runtimes",
                  runtimes, "ratio", quantile(ratios, p->calls, 0.5), "ratio_p10",
                  quantile(ratios, p->calls, 0.1), "ratio_p90", quantile(ratios, p->calls, 0.9));
    free(ratios);
    return json;
}

static void pair_end(pair *p) {
    two_runtimes_close(&p->t);
    model_inputs_free(&p->in);
    for (int i = 0; i < RUNTIMES; i++) {
        free(p->vectors[i]);
        free(p->sides[i].seconds);
    }
}

static int run_pair(const bench_runtimes *b, const bench_texts *load, int32_t threads,
                    json_t *results) {
    pair p = {
        .b = b, .load = load, .threads = threads, .t = { .names = { b->names[0], b->names[1] } }
    };
    int code = pair_open(&p);
    if (!code) code = pair_check(&p);
    if (!code) code = pair_measure(&p);
    if (!code && b->as_json) json_array_append_new(results, pair_json(&p));
    if (!code && !b->as_json) pair_print(&p);
    pair_end(&p);
    return code;
}

/* Whether the model has vectors of texts. */
static bool embeds_text(const bench_runtimes *b) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    if (pith_model_open(&model, b->model, &b->open, &err)) return false; /* the runs tell why */
    bool embeds = pith_embed_dim(model, NULL) > 0;
    pith_model_close(model);
    return embeds;
}

int bench_runtimes_run(const bench_runtimes *b) {
    json_t *results = json_array();
    const bool texts = embeds_text(b);
    int code = EXIT_DONE;
    for (size_t w = 0; w < (texts ? b->load_count : 1) && !code; w++)
        for (size_t i = 0; i < b->thread_count && !code; i++)
            code = run_pair(b, texts ? &b->loads[w] : NULL, b->threads[i], results);
    if (!code && b->as_json)
        json_print(json_pack("{s:s, s:o, s:O}", "version", pith_version(), "model",
                             json_text(b->model), "results", results));
    json_decref(results);
    return output_close_standard(b->command, code);
}
