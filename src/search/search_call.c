/* search_call.c - a search: the caller's queries in blocks, each a scan and, after a first pass,
 * exact scores of its candidates. */
#include <limits.h>
#include <math.h>

#include "base/caller_options.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/os/cpu.h"
#include "base/os/threads.h"
#include "search/search.h"

/* A block of queries is read once for each few rows, so it should stay in L2; more queries in it
 * mean fewer readings of the rows. */
enum { CALL_QUERIES_MAX = 64 };
#define CALL_QUERY_BYTES ((size_t)256 << 10)
/* The lists of the best of a block, of all threads. One query may take more. */
#define CALL_LIST_BYTES ((size_t)64 << 20)
/* Candidates of a query between two looks at whether the call must end. */
enum { CALL_STOP_EVERY = 1024 };
enum { CALL_RESCORE = 4, CALL_DOCUMENTS = 16 /* of a block of the scan */ };

typedef struct search_call {
    const pith_search_index *index;
    pith_search_options options;
    pith__stop *stop;
    pith__arena *arena;
    int threads;
    size_t items, k, candidates; /* k: hits that there are; candidates: of the first pass, 0: there
                                    is none */
    pith_hit *hits;              /* where the results of the block go */
    size_t stride;               /* hits of a query, as the caller wants them */
} search_call;

static void call_put_hits(pith_hit *hits, size_t k, const pith__top *top,
                          const pith_search_index *x) {
    for (size_t i = 0; i < k; i++) {
        if (i >= top->count) {
            hits[i] = (pith_hit){ -1, NAN };
            continue;
        }
        const float score = x->metric == PITH_METRIC_L2 ? -top->hits[i].score : top->hits[i].score;
        const int64_t at = top->hits[i].index;
        hits[i] =
            (pith_hit){ x->find ? at : pith__search_id(x, (size_t)at), isnan(score) ? NAN : score };
    }
}

/* ---- exact, and the first pass ---- */

static void call_score_exact(pith__search_room *room, pith__search_room *inner,
                             const pith__search_scan *scan, size_t item, size_t n) {
    (void)inner;
    pith__search_score(room, scan->index, scan->queries, item, n);
}

static void call_score_quick(pith__search_room *room, pith__search_room *inner,
                             const pith__search_scan *scan, size_t item, size_t n) {
    (void)inner;
    pith__search_quick(room, scan->index, scan->queries, item, n);
}

typedef struct rescore_job {
    const search_call *call;
    const pith__search_queries *queries;
    const pith__top *candidates;
    pith__search_room *rooms; /* [threads], for one score each */
    pith_hit *kept;           /* [queries][k] */
} rescore_job;

static void rescore_task(void *context, size_t part, int worker) {
    const rescore_job *j = context;
    const search_call *c = j->call;
    pith__search_queries q = pith__search_query(c->index, j->queries, part);
    pith__search_room *room = &j->rooms[worker];
    const pith__top *from = &j->candidates[part];
    pith__top best = { .hits = j->kept + part * c->k, .k = c->k };
    for (size_t i = 0; i < from->count; i++) {
        if (i % CALL_STOP_EVERY == 0 && pith__stop_asked(c->stop)) return;
        const int64_t number = from->hits[i].index;
        const size_t row = c->index->find ? c->index->find(c->index, number) : (size_t)number;
        pith__search_score(room, c->index, &q, row, 1);
        pith__top_offer(&best, number, room->scores[0]);
    }
    if (!pith__top_sort(&best, c->stop)) return;
    call_put_hits(c->hits + part * c->stride, c->stride, &best, c->index);
}

/* The exact scores of each query's candidates, query by query in parallel. The first pass only
 * decides which rows are candidates; hits and their scores are those of an exact search, as far as
 * the candidates hold them. */
static pith_status call_rescore(const search_call *c, const pith__search_queries *queries,
                                const pith__top *candidates, pith_error *err) {
    rescore_job j = { .call = c, .queries = queries, .candidates = candidates };
    const size_t threads =
        (size_t)c->threads < queries->count ? (size_t)c->threads : queries->count;
    j.rooms = pith__arena_array(c->arena, threads, sizeof *j.rooms);
    j.kept = pith__arena_array(c->arena, queries->count * c->k, sizeof *j.kept);
    bool good = j.rooms && j.kept;
    for (size_t i = 0; good && i < threads; i++)
        good = pith__search_room_get(&j.rooms[i], c->arena, 1, 1);
    if (!good)
        return pith__fail(err, PITH_ERR_MEMORY, "out of memory for the candidates of %zu queries",
                          queries->count);
    pith__threads_run_until(c->stop, rescore_task, &j, queries->count, (int)threads);
    return pith__stop_check(c->stop, err);
}

static pith_status call_block(const search_call *c, const float *rows, size_t count, bool quick,
                              pith_error *err) {
    const pith_search_index *x = c->index;
    const size_t row_bytes = quick ? x->copy_row_bytes : x->row_bytes;
    pith__search_queries queries;
    PITH_TRY(pith__search_prepare(&queries, c->arena, x, rows, count, quick, err));
    pith__top *tops = pith__arena_array(c->arena, count, sizeof *tops);
    if (!tops) return pith__fail_memory(err, count * sizeof *tops);
    const pith__search_scan scan = { .index = x,
                                     .queries = &queries,
                                     .score = quick ? call_score_quick : call_score_exact,
                                     .items = c->items,
                                     .block = pith__search_block(row_bytes),
                                     .lists = count,
                                     .item_bytes = row_bytes,
                                     .k = quick ? c->candidates : c->k,
                                     .threads = c->threads,
                                     .stop = c->stop };
    PITH_TRY(pith__search_scan_run(tops, c->arena, &scan, err));
    if (quick) return call_rescore(c, &queries, tops, err);
    for (size_t i = 0; i < count; i++)
        call_put_hits(c->hits + i * c->stride, c->stride, &tops[i], x);
    return PITH_OK;
}

static bool call_finite(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

/* How many of the queries make a block, all of which have a first pass or have none. */
static size_t call_block_size(const search_call *c, const float *rows, size_t left, bool *quick) {
    const size_t dim = c->index->dim, k = c->candidates ? c->candidates : c->k;
    size_t most = CALL_QUERY_BYTES / sizeof(float) / dim,
           lists = CALL_LIST_BYTES / sizeof(pith_hit) / k, n = 1;
    lists /= (size_t)c->threads;
    most = most < lists ? most : lists;
    most = most < CALL_QUERIES_MAX ? most : CALL_QUERIES_MAX;
    *quick = c->candidates && call_finite(rows, dim);
    while (n < left && n < most && (c->candidates && call_finite(rows + n * dim, dim)) == *quick)
        n++;
    return n;
}

static pith_status call_rows(search_call *c, const float *queries, size_t count, pith_error *err) {
    for (size_t at = 0, n; at < count; at += n) {
        bool quick;
        const float *rows = queries + at * c->index->dim;
        n = call_block_size(c, rows, count - at, &quick);
        PITH_TRY(call_block(c, rows, n, quick, err));
        c->hits += n * c->stride;
        pith__arena_reset(c->arena);
    }
    return PITH_OK;
}

/* ---- documents ---- */

/* One query of several vectors: a document's score is the sum, over the query's vectors, of the
 * best score among the document's rows (MaxSim of ColBERT). The scan goes over documents. */
static pith_status call_document_query(const search_call *c, const float *rows, size_t count,
                                       pith_error *err) {
    const pith_search_index *x = c->index;
    pith__search_queries queries;
    pith__top top;
    PITH_TRY(pith__search_prepare(&queries, c->arena, x, rows, count, false, err));
    const pith__search_scan scan = { .index = x,
                                     .queries = &queries,
                                     .score = pith__search_maxsim,
                                     .items = c->items,
                                     .block = CALL_DOCUMENTS,
                                     .lists = 1,
                                     .inner_queries = PITH_SEARCH_MAXSIM_ROWS,
                                     .inner_block = PITH_SEARCH_MAXSIM_ROWS,
                                     .item_bytes = x->count * x->row_bytes / x->documents,
                                     .k = c->k,
                                     .threads = c->threads,
                                     .stop = c->stop };
    PITH_TRY(pith__search_scan_run(&top, c->arena, &scan, err));
    call_put_hits(c->hits, c->stride, &top, x);
    return PITH_OK;
}

static pith_status call_documents(search_call *c, const float *queries, size_t count,
                                  pith_error *err) {
    const size_t *offsets = c->options.query_offsets;
    for (size_t i = 0; i < count; i++, c->hits += c->stride) {
        const size_t begin = offsets ? offsets[i] : i, end = offsets ? offsets[i + 1] : i + 1;
        PITH_TRY(call_document_query(c, queries + begin * c->index->dim, end - begin, err));
        pith__arena_reset(c->arena);
    }
    return PITH_OK;
}

/* ---- the call ---- */

static pith_status call_check(const pith_search_index *x, const pith_search_options *o,
                              const float *queries, size_t count, size_t k, pith_error *err) {
    size_t last = count, bytes;
    PITH_TRY(pith__threads_check(o->call.threads, err));
    if (o->rescore < 0) return pith__fail(err, PITH_ERR_ARGUMENT, "rescore must not be negative");
    if (o->query_offsets && x->metric != PITH_METRIC_MAXSIM)
        return pith__fail(err, PITH_ERR_ARGUMENT, "query_offsets are for the metric maxsim only");
    if (pith__mul_overflows(count, k, &bytes) ||
        pith__mul_overflows(bytes, sizeof(pith_hit), &bytes))
        return pith__fail(err, PITH_ERR_ARGUMENT, "%zu hits of %zu queries are larger than memory",
                          k, count);
    const size_t ranges = o->query_offsets ? count : 0;
    for (size_t i = 0; i < ranges; i++) {
        last = o->query_offsets[i + 1];
        if (last < o->query_offsets[i])
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "query_offsets[%zu] is less than the one before it", i + 1);
    }
    if (pith__mul_overflows(last, x->dim * sizeof(float), &bytes))
        return pith__fail(err, PITH_ERR_ARGUMENT, "%zu queries of dim %zu are larger than memory",
                          last, x->dim);
    if (last && !queries) return pith__fail(err, PITH_ERR_ARGUMENT, "queries is NULL");
    return PITH_OK;
}

/* A first pass is worth it only if its candidates are not all items anyway, so it is left out where
 * k times the rescoring factor is more than there are. A larger factor finds more of the true best
 * and costs as many more exact scores. */
pith_status pith__search_run(pith_hit *hits, const pith_search_index *index, const float *queries,
                             size_t count, size_t k, const pith_search_options *options,
                             pith_error *err) {
    search_call c = {
        .index = index, .options = PITH_SEARCH_OPTIONS_INIT, .hits = hits, .stride = k
    };
    pith__stop own;
    PITH_TAKE_OPTIONS(c.options, options, err);
    c.stop = pith__stop_begin(&own, &c.options.call);
    PITH_TRY(pith__stop_check(c.stop, err));
    PITH_TRY(call_check(index, &c.options, queries, count, k, err));
    c.items = pith__search_index_items(index);
    c.k = k < c.items ? k : c.items;
    c.threads = pith__threads_count(c.options.call.threads);
    if (!c.k) {
        for (size_t i = 0; i < count * k; i++) hits[i] = (pith_hit){ -1, NAN };
        return PITH_OK;
    }
    const size_t rescore = c.options.rescore ? (size_t)c.options.rescore : CALL_RESCORE;
    if (index->first_pass && !c.options.exact && c.k <= c.items / rescore)
        c.candidates = c.k * rescore;
    pith__arena arena;
    pith__arena_init(&arena, &index->allocator);
    c.arena = &arena;
    pith_status status;
    if (index->metric == PITH_METRIC_MAXSIM)
        status = call_documents(&c, queries, count, err);
    else
        status = call_rows(&c, queries, count, err);
    pith__arena_free(&arena);
    return status;
}
