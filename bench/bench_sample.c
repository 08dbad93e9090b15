/* bench_sample.c - how fast the cells are collected that a model reads: the sampler of src/tables,
 * on its own.
 *
 * Packs of the training rows of a task are drawn for half a second with 1, then 2 ... threads,
 * without and with the lists of keys that attention reads; the median of five is printed, as JSON:
 * millions of cells per second of the world's time. Usage: bench_sample DATABASE TASK [threads
 * [config]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/os/threads.h"
#include "cli/base/seconds.h"
#include "tables/network/trainer.h"

enum { TURNS = 5, PARTS = 64, MOST_THREADS = 16 };

typedef struct sampling {
    pith_relational *r;
    size_t next; /* of the rows */
    bool lists, failed;
    size_t cells[PARTS];
} sampling;

static void sampling_part(void *context, size_t part, int worker) {
    sampling *s = context;
    const pith__trainer_source *source = s->r->sources;
    pith__trainer_worker *w = &s->r->workers[worker];
    pith__pack pack;
    pith__arena_reset(&w->arena);
    if (!pith__pack_begin(&pack, &w->arena, PITH_NETWORK_PACK, &s->r->config.sample)) {
        s->failed = true;
        return;
    }
    for (size_t i = 0; i < PITH_NETWORK_PACK; i++) {
        const size_t at = (s->next + part * PITH_NETWORK_PACK + i) * 7919 % source->row_count;
        pith__pack_add(&pack, source->rdb, source->task, source->rows[at], &s->r->config.sample);
    }
    if (s->lists && !pith__pack_list(&pack, &w->arena, s->r->config.shape.attend)) s->failed = true;
    s->cells[part] += pack.cell_count;
}

/* Millions of cells per second. */
static double sampling_speed(sampling *s, int threads) {
    const double begin = now_seconds();
    double seconds = 0;
    size_t cells = 0;
    memset(s->cells, 0, sizeof s->cells);
    while (seconds < 0.5) {
        pith__threads_run(sampling_part, s, PARTS, threads);
        s->next += (size_t)PARTS * PITH_NETWORK_PACK;
        seconds = now_seconds() - begin;
    }
    for (int i = 0; i < PARTS; i++) cells += s->cells[i];
    return (double)cells / seconds * 1e-6;
}

static int speed_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sampling_median(sampling *s, int threads) {
    double speed[TURNS];
    for (int i = 0; i < TURNS; i++) speed[i] = sampling_speed(s, threads);
    qsort(speed, TURNS, sizeof *speed, speed_compare);
    return speed[TURNS / 2];
}

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    const int threads = argc > 3 ? atoi(argv[3]) : 2;
    sampling s = { .next = 0 };
    pith__rdb rdb;
    if (argc < 3 || threads < 1 || threads > MOST_THREADS) {
        fprintf(stderr, "usage: bench_sample DATABASE TASK [threads [config]]\n");
        return 2;
    }
    if (pith__rdb_open(&rdb, argv[1], NULL, &pith__allocator_default, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    const pith__trainer_question question = { &rdb, { argv[2], strlen(argv[2]) } };
    const pith_str config = { argc > 4 ? argv[4] : NULL, argc > 4 ? strlen(argv[4]) : 0 };
    if (pith__trainer_create(&s.r, &question, 1, config, 1, NULL, &pith__allocator_default, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    printf("{");
    for (int t = 1; t <= threads && pith__trainer_workers(s.r, t) == t; t++) {
        s.lists = false;
        printf("%s\"%d\": {\"cells\": %.2f, ", t > 1 ? ", " : "", t, sampling_median(&s, t));
        s.lists = true;
        printf("\"cells and keys\": %.2f}", sampling_median(&s, t));
    }
    printf("}\n");
    pith__trainer_free(s.r);
    pith__rdb_close(&rdb);
    return s.failed;
}
