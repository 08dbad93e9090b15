/* bench_border.c - what the border promises of costs, each beside what it is compared with, in
 * turns; bench/border.py makes the network and reads the result.
 *
 *     bench_border subset MODEL OUTPUT [threads]   a run for this output alone, beside one for all
 *     bench_border queue MODEL [threads]           1,000 callers of one short text each through a
 *                                                  queue, beside one call with all the texts
 *
 * Prints JSON: the median of the ratios of neighbours, with the least and the largest, and the
 * seconds of both. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/seconds.h"
#include "pith/pith.h"

enum { TURNS = 41, CALLERS = 1000, INPUTS_MOST = 16, OUTPUTS_MOST = 64 };

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *of) {
    double sorted[TURNS];
    memcpy(sorted, of, sizeof sorted);
    qsort(sorted, TURNS, sizeof *sorted, compare);
    return sorted[TURNS / 2];
}

static void report(const double *part, const double *all) {
    double ratios[TURNS];
    for (int i = 0; i < TURNS; i++) ratios[i] = part[i] / all[i];
    qsort(ratios, TURNS, sizeof *ratios, compare);
    printf("{\"ratio\": %.4f, \"least\": %.4f, \"most\": %.4f, \"seconds\": %.6f, \"beside\": "
           "%.6f}\n",
           ratios[TURNS / 2], ratios[0], ratios[TURNS - 1], median(part), median(all));
}

static int fail(const pith_error *err) { return fprintf(stderr, "%s\n", err->message), 1; }

/* ---- some outputs ---- */

/* Numbers between -1 and 1, or zeros where they are integers; sizes that are open are 1. */
static int make_input(pith_tensor *t, const pith_port *port) {
    *t = (pith_tensor){ .dtype = port->dtype, .rank = port->rank };
    size_t count = 1;
    for (int i = 0; i < port->rank; i++) {
        t->dims[i] = port->dims[i] < 0 ? 1 : port->dims[i];
        count *= (size_t)t->dims[i];
    }
    t->bytes = count * (port->dtype == PITH_I64 ? 8 : 4);
    t->data = calloc(1, t->bytes + 1);
    if (!t->data) return 0;
    if (port->dtype == PITH_F32)
        for (size_t i = 0; i < count; i++)
            ((float *)t->data)[i] = (float)((i * 37) % 201) / 100 - 1;
    return 1;
}

static double run_seconds(pith_session *session, const char *const *names, const pith_tensor *in,
                          size_t count, const pith_run_options *o, pith_error *err) {
    pith_tensor outputs[OUTPUTS_MOST];
    const double begin = now_seconds();
    if (pith_session_run(session, outputs, names, in, count, o, err)) return -1;
    return now_seconds() - begin;
}

static int subset(const pith_model *model, const char *output, int32_t threads) {
    const size_t count = pith_model_input_count(model);
    const char *names[INPUTS_MOST];
    pith_tensor in[INPUTS_MOST];
    pith_session *session;
    pith_error err = PITH_ERROR_INIT;
    double part[TURNS], all[TURNS];
    if (count > INPUTS_MOST || pith_model_output_count(model) > OUTPUTS_MOST)
        return fprintf(stderr, "the model has too many inputs or outputs\n"), 1;
    for (size_t i = 0; i < count; i++) {
        const pith_port *port = pith_model_input(model, i);
        names[i] = port->name;
        if (!make_input(&in[i], port)) return fprintf(stderr, "out of memory\n"), 1;
    }
    pith_run_options whole = PITH_RUN_OPTIONS_INIT, some = PITH_RUN_OPTIONS_INIT;
    whole.call.threads = some.call.threads = threads;
    some.output_names = &output;
    some.output_count = 1;
    if (pith_session_create(&session, model, &err)) return fail(&err);
    for (int turn = -3; turn < TURNS; turn++) { /* the first ones plan and warm up */
        const double a = run_seconds(session, names, in, count, &some, &err);
        const double b = run_seconds(session, names, in, count, &whole, &err);
        if (a < 0 || b < 0) return fail(&err);
        if (turn >= 0) part[turn] = a, all[turn] = b;
    }
    report(part, all);
    pith_session_destroy(session);
    for (size_t i = 0; i < count; i++) free(in[i].data);
    return 0;
}

/* ---- the queue ---- */

typedef struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t here;
    int left, failed;
} waiting;

static void done(void *user, const pith_response *response) {
    waiting *w = user;
    pthread_mutex_lock(&w->lock);
    w->failed += response->status || response->failed;
    if (!--w->left) pthread_cond_signal(&w->here);
    pthread_mutex_unlock(&w->lock);
}

static double queue_seconds(pith_queue *queue, const pith_str *texts, pith_error *err) {
    waiting w = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, CALLERS, 0 };
    const double begin = now_seconds();
    for (int i = 0; i < CALLERS; i++) {
        pith_request r = PITH_REQUEST_INIT;
        r.texts = &texts[i];
        r.count = 1;
        r.key = (uint64_t)i;
        r.done = done;
        r.user = &w;
        if (!pith_queue_submit(NULL, queue, &r, err)) continue;
        pthread_mutex_lock(&w.lock);
        w.left--, w.failed++;
        pthread_mutex_unlock(&w.lock);
    }
    pthread_mutex_lock(&w.lock);
    while (w.left) pthread_cond_wait(&w.here, &w.lock);
    pthread_mutex_unlock(&w.lock);
    return w.failed ? -1 : now_seconds() - begin;
}

static int callers(const pith_model *model, int32_t threads) {
    static char words[CALLERS][64];
    static pith_str texts[CALLERS];
    pith_error err = PITH_ERROR_INIT;
    pith_queue *queue;
    pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
    pith_embed_options e = PITH_EMBED_OPTIONS_INIT;
    double part[TURNS], all[TURNS];
    o.call.threads = e.call.threads = threads;
    for (int i = 0; i < CALLERS; i++) {
        snprintf(words[i], sizeof words[i], "how do I cancel order number %d", i);
        texts[i] = (pith_str){ words[i], strlen(words[i]) };
    }
    float *vectors = malloc(CALLERS * pith_embed_dim(model, NULL) * sizeof *vectors);
    if (!vectors) return fprintf(stderr, "out of memory\n"), 1;
    if (pith_queue_create(&queue, model, &o, &err)) return fail(&err);
    for (int turn = -3; turn < TURNS; turn++) {
        const double a = queue_seconds(queue, texts, &err), begin = now_seconds();
        if (a < 0 || pith_embed(vectors, model, texts, CALLERS, &e, &err)) return fail(&err);
        if (turn >= 0) part[turn] = a, all[turn] = now_seconds() - begin;
    }
    report(part, all);
    pith_queue_destroy(queue);
    free(vectors);
    return 0;
}

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    const int is_subset = argc > 3 && !strcmp(argv[1], "subset");
    if (!is_subset && (argc < 3 || strcmp(argv[1], "queue") != 0))
        return fprintf(stderr, "usage: bench_border subset MODEL OUTPUT [threads] | queue MODEL "
                               "[threads]\n"),
               2;
    const int at = is_subset ? 4 : 3;
    const int32_t threads = argc > at ? atoi(argv[at]) : 1;
    if (pith_model_open(&model, argv[2], NULL, &err)) return fail(&err);
    const int status = is_subset ? subset(model, argv[3], threads) : callers(model, threads);
    pith_model_close(model);
    return status;
}
