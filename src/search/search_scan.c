/* search_scan.c - scoring all items of an index on several threads, and keeping the best of each
 * query.
 *
 * A part is a run of items that one thread takes as a whole. Each thread has lists of its own,
 * which are put together at the end. The order of results is total (top.h), so neither parts nor
 * threads can be seen in them. */
#include "base/stop.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/os/threads.h"
#include "search/search.h"

/* Bytes of a part. Larger parts leave threads idle at the end; smaller ones make threads fetch them
 * too often, and break the runs of addresses that the processor's prefetching follows. */
#define SCAN_PART_BYTES ((size_t)512 << 10)

typedef struct scan_worker {
    pith__search_room room, inner;
    pith__top *tops; /* [lists] */
} scan_worker;

typedef struct scan_job {
    const pith__search_scan *scan;
    scan_worker *workers;
    size_t part_items;
} scan_job;

/* A list that is full passes over most scores by one comparison. */
static void scan_offer(pith__top *top, const pith_search_index *x, const float *scores, size_t item,
                       size_t n) {
    size_t i = 0;
    for (; i < n; i++) {
        if (top->count >= top->k) break;
        pith__top_put(top, pith__search_number(x, item + i), scores[i]);
    }
    for (; i < n; i++)
        if (!(scores[i] < top->hits[0].score))
            pith__top_offer(top, pith__search_number(x, item + i), scores[i]);
}

static void scan_task(void *context, size_t part, int worker) {
    const scan_job *job = context;
    const pith__search_scan *s = job->scan;
    scan_worker *w = &job->workers[worker];
    const size_t begin = part * job->part_items;
    const size_t end = s->items - begin < job->part_items ? s->items : begin + job->part_items;
    for (size_t item = begin, n; item < end; item += n) {
        n = end - item < s->block ? end - item : s->block;
        if (pith__stop_asked(s->stop)) return;
        s->score(&w->room, &w->inner, s, item, n);
        for (size_t i = 0; i < s->lists; i++)
            scan_offer(&w->tops[i], s->index, w->room.scores + i * w->room.stride, item, n);
    }
}

static bool scan_tops(pith__top *tops, pith__arena *arena, size_t lists, size_t k) {
    size_t hits;
    if (pith__mul_overflows(k, sizeof(pith_hit), &hits) || pith__mul_overflows(hits, lists, &hits))
        return false;
    pith_hit *all = pith__arena_alloc64(arena, hits);
    if (!all) return false;
    for (size_t i = 0; i < lists; i++) tops[i] = (pith__top){ .hits = all + i * k, .k = k };
    return true;
}

static bool scan_workers(scan_worker **workers, pith__arena *arena, const pith__search_scan *s,
                         size_t threads) {
    scan_worker *w = pith__arena_array(arena, threads, sizeof *w);
    if (!w) return false;
    for (size_t t = 0; t < threads; t++) {
        w[t].tops = pith__arena_array(arena, s->lists, sizeof *w[t].tops);
        if (!w[t].tops || !scan_tops(w[t].tops, arena, s->lists, s->k)) return false;
        if (!pith__search_room_get(&w[t].room, arena, s->lists, s->block)) return false;
        if (s->inner_queries &&
            !pith__search_room_get(&w[t].inner, arena, s->inner_queries, s->inner_block))
            return false;
    }
    *workers = w;
    return true;
}

/* The lists of all threads into those of the first one, which become the result. It is incomplete
 * if the call must end, which the stop tells. */
static void scan_merge(pith__top *tops, const scan_worker *workers, size_t threads,
                       const pith__search_scan *scan) {
    for (size_t i = 0; i < scan->lists; i++) {
        tops[i] = workers[0].tops[i];
        for (size_t t = 1; t < threads; t++) {
            const pith__top *other = &workers[t].tops[i];
            for (size_t h = 0; h < other->count; h++) {
                if (h % PITH_TOP_STOP_EVERY == 0 && pith__stop_asked(scan->stop)) return;
                pith__top_offer(&tops[i], other->hits[h].index, other->hits[h].score);
            }
        }
        if (!pith__top_sort(&tops[i], scan->stop)) return;
    }
}

/* Items are cut into parts of about SCAN_PART_BYTES, whole blocks each, which threads draw. Every
 * thread keeps lists of its own, one per query, and they are merged at the end: equal scores are
 * ordered by index, so the result does not depend on who drew what. */
pith_status pith__search_scan_run(pith__top *tops, pith__arena *arena,
                                  const pith__search_scan *scan, pith_error *err) {
    scan_job job = { .scan = scan };
    const size_t per_part =
        scan->item_bytes < SCAN_PART_BYTES ? SCAN_PART_BYTES / (scan->item_bytes + 1) : 1;
    job.part_items = (per_part + scan->block - 1) / scan->block * scan->block;
    const size_t parts = scan->items / job.part_items + (scan->items % job.part_items != 0);
    size_t threads = (size_t)scan->threads < parts ? (size_t)scan->threads : parts;
    if (!parts) threads = 1;
    if (!scan_workers(&job.workers, arena, scan, threads))
        return pith__fail(err, PITH_ERR_MEMORY,
                          "out of memory for the best %zu of %zu queries on %zu threads", scan->k,
                          scan->lists, threads);
    pith__threads_run_until(scan->stop, scan_task, &job, parts, (int)threads);
    PITH_TRY(pith__stop_check(scan->stop, err));
    scan_merge(tops, job.workers, threads, scan);
    return pith__stop_check(scan->stop, err);
}
