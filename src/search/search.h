/* search.h - exact vector search: the index, prepared queries, and the scores of some rows.
 *
 * A search is a scan: threads take parts of the rows, score them in small blocks and keep the best
 * k of each query. What a score is (exact, that of a first pass, or of whole documents) is a
 * function; the scan is the same for all. */
#ifndef PITH_SEARCH_SEARCH_H
#define PITH_SEARCH_SEARCH_H

#include <stdbool.h>

#include "base/memory/memory.h"
#include "base/stop.h"
#include "engine/kernels/scores.h"
#include "pith/search.h"
#include "search/top.h"

/* Sums of products of two int8 stay in int32 up to this many components. */
#define PITH_SEARCH_INT8_DIM_MAX ((size_t)1 << 17)

/* The rows in fewer bits. int8: rank = sum * factor, for l2 sum * scale of the query * factor +
 * shift. */
typedef struct pith__search_copy {
    void *rows;       /* NULL: there is none */
    size_t row_bytes; /* int8: a multiple of 32; binary: a multiple of 8. Padded with zeros. */
    float *factors;   /* int8: [count] */
    float *shifts;    /* int8 with l2: [count] */
} pith__search_copy;

struct pith_search_index {
    pith_allocator allocator;
    size_t bytes; /* owned, with this struct */
    const char *rows;
    size_t count, dim, row_bytes;
    int metric, dtype, first_pass;
    bool bits;
    const int64_t *offsets; /* maxsim: [documents + 1] */
    size_t documents;
    pith__scores_fn *score, *sumsq; /* not with bits */
    pith__int_scores_fn *hamming, *int8;
    pith__search_copy copy;
};

pith_status pith__search_index_make(pith_search_index **index, const void *rows, size_t count,
                                    size_t dim, const pith_search_index_options *options,
                                    pith_error *err);
void pith__search_index_free(pith_search_index *index);
size_t pith__search_index_items(const pith_search_index *index);
pith_status pith__search_run(pith_hit *hits, const pith_search_index *index, const float *queries,
                             size_t count, size_t k, const pith_search_options *options,
                             pith_error *err);

/* ---- the parts of a search ---- */

/* 1 / the length of a vector whose squares add up to sumsq: 0 for a length of 0, and NaN for NaN.
 */
float pith__search_unit(float sumsq);

/* Queries, and what the index at hand needs of them; the rest is NULL. */
typedef struct pith__search_queries {
    const float *rows; /* [count][dim] */
    size_t count;
    const float *units;        /* cosine: [count] 1 / length */
    const uint8_t *bits;       /* of an index of bits: [count][(dim + 7) / 8] */
    const int16_t *quick_int8; /* first pass: [count][copy.row_bytes] */
    const float *quick_scales; /* [count] */
    const uint8_t *quick_bits; /* [count][copy.row_bytes] */
} pith__search_queries;

/* Prepares count queries; quick: for the first pass too. All memory is from the arena. */
pith_status pith__search_prepare(pith__search_queries *queries, pith__arena *arena,
                                 const pith_search_index *index, const float *rows, size_t count,
                                 bool quick, pith_error *err);
/* One of them. */
pith__search_queries pith__search_query(const pith_search_index *index,
                                        const pith__search_queries *queries, size_t at);

/* Room for the scores of a block of items and queries, for one thread. */
typedef struct pith__search_room {
    float *scores;  /* [queries][stride] */
    int32_t *sums;  /* [queries][stride] */
    float *factors; /* [stride] */
    size_t stride;
} pith__search_room;

/* Items of a block: enough for loops to run, and few enough for their rows to stay in the L1 cache
 * while all queries pass over them. */
size_t pith__search_block(size_t row_bytes);
/* Gets room from the arena; false: memory is out. */
bool pith__search_room_get(pith__search_room *room, pith__arena *arena, size_t queries,
                           size_t stride);

/* Sets room->scores to the ranks of n rows from `row` on; n is at most the stride. A rank is the
 * score, or its negative where smaller is better. The same bits whatever n and the number of
 * queries. */
void pith__search_score(pith__search_room *room, const pith_search_index *index,
                        const pith__search_queries *queries, size_t row, size_t n);
/* The same of the first pass, by the copy. */
void pith__search_quick(pith__search_room *room, const pith_search_index *index,
                        const pith__search_queries *queries, size_t row, size_t n);

/* Makes index->copy on `threads` threads. The caller frees it, also after a failure. */
pith_status pith__search_copy_make(pith_search_index *index, int threads, pith__stop *stop,
                                   pith_error *err);
void pith__search_copy_free(pith_search_index *index);
/* The copy of one row or query of dim floats; for int8 returns its scale, NaN if a component is not
 * finite. to has copy.row_bytes bytes. */
float pith__search_round(void *to, const pith_search_index *index, const float *x);

/* ---- the scan ---- */

typedef struct pith__search_scan pith__search_scan;
/* Sets room->scores to the ranks of n items from `item` on. inner is room for what they consist of,
 * if needed. */
typedef void pith__search_score_fn(pith__search_room *room, pith__search_room *inner,
                                   const pith__search_scan *scan, size_t item, size_t n);

struct pith__search_scan {
    const pith_search_index *index;
    const pith__search_queries *queries;
    pith__search_score_fn *score;
    size_t items, block;               /* block: items scored at a time */
    size_t lists;                      /* of the best: the number of queries, or 1 for a query of
                                          several rows */
    size_t inner_queries, inner_block; /* of the inner room; 0: none */
    size_t item_bytes;                 /* about; decides how many items a part has */
    size_t k;
    int threads;
    pith__stop *stop;
};

/* Finds the best k items of each list: tops[lists], sorted, in memory of the arena. */
pith_status pith__search_scan_run(pith__top *tops, pith__arena *arena,
                                  const pith__search_scan *scan, pith_error *err);

/* Scores of documents: the sum over the query's rows of the largest score with a row of the
 * document. */
pith__search_score_fn pith__search_maxsim;
enum {
    PITH_SEARCH_MAXSIM_ROWS = 64
}; /* rows of a query, and of a document, that are compared at a
                                          time */

#endif
