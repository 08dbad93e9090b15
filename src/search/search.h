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
    void *rows;     /* NULL: there is none */
    float *factors; /* int8: one for each row */
    float *shifts;  /* int8 with l2: one for each row */
} pith__search_copy;

/* Rows that follow each other in memory. */
typedef struct pith__search_segment {
    const char *rows;
    const int64_t *ids; /* one for each row; NULL: they are numbered from 0 on */
    pith__search_copy copy;
} pith__search_segment;

struct pith__search_own;

/* Rows of the caller and rows of a file are one segment, `whole`. An index that owns its rows has
 * many of one size, which are never moved (search_own.c). */
struct pith_search_index {
    pith_allocator allocator;
    size_t bytes; /* owned, with this struct */
    pith__search_segment *segments, whole;
    unsigned shift; /* a segment has 2^shift rows, the last one fewer */
    size_t count, dim;
    size_t row_bytes;      /* from one row to the next */
    size_t copy_row_bytes; /* of the first pass. int8: a multiple of 32; binary: a multiple of 8.
                              Padded with zeros. */
    int metric, dtype, first_pass;
    bool bits;
    struct pith__search_own *own; /* NULL: the rows are somebody else's */
    void *file;                   /* what an index that was opened holds (index_file.c) */
    /* The row of an id. NULL: rows are in the order of their ids, so that hits are ordered by rows
     * and get their ids last. */
    size_t (*find)(const pith_search_index *index, int64_t id);
    void (*drop)(pith_search_index *index); /* frees what the index has beside the copy of `whole`;
                                               NULL: nothing */
    const int64_t *offsets;                 /* maxsim: [documents + 1] */
    size_t documents;
    pith__scores_fn *score, *sumsq; /* not with bits */
    pith__int_scores_fn *hamming, *int8;
};

/* Returns the segment of a row. */
static inline const pith__search_segment *pith__search_segment_of(const pith_search_index *x,
                                                                  size_t row) {
    return &x->segments[row >> x->shift];
}
/* Returns a row's place in its segment. */
static inline size_t pith__search_place(const pith_search_index *x, size_t row) {
    return row & (((size_t)1 << x->shift) - 1);
}
/* Returns how many of n rows from `row` on are in its segment. */
static inline size_t pith__search_within(const pith_search_index *x, size_t row, size_t n) {
    const size_t left = ((size_t)1 << x->shift) - pith__search_place(x, row);
    return n < left ? n : left;
}
/* Returns the id of a row, or of a document. */
static inline int64_t pith__search_id(const pith_search_index *x, size_t row) {
    const int64_t *ids = pith__search_segment_of(x, row)->ids;
    return ids ? ids[pith__search_place(x, row)] : (int64_t)row;
}
/* Returns the number by which hits are ordered that have equal scores. */
static inline int64_t pith__search_number(const pith_search_index *x, size_t row) {
    return x->find ? pith__search_id(x, row) : (int64_t)row;
}

pith_status pith__search_index_make(pith_search_index **index, const void *rows, size_t count,
                                    size_t dim, const pith_search_index_options *options,
                                    pith_error *err);
void pith__search_index_free(pith_search_index *index);

/* Completes the caller's options and checks them. */
pith_status pith__search_take_options(pith_search_index_options *o,
                                      const pith_search_index_options *given, pith_error *err);
/* Sets *row_bytes to the bytes of a row of dim components, without a gap, and checks both. */
pith_status pith__search_row_bytes(size_t *row_bytes, size_t dim,
                                   const pith_search_index_options *o, pith_error *err);
/* Checks the offsets of documents, and that they end with `count` rows. */
pith_status pith__search_check_offsets(const int64_t *offsets, size_t documents, size_t count,
                                       pith_error *err);
/* Makes an index without rows, whose kernels are all there. */
pith_status pith__search_index_new(pith_search_index **index, size_t dim, size_t row_bytes,
                                   const pith_search_index_options *o, pith_error *err);
size_t pith__search_index_items(const pith_search_index *index);

/* See pith/search.h. */
pith_status pith__search_index_build(pith_search_index **index, const pith_row_source *source,
                                     size_t dim, const pith_search_index_options *options,
                                     pith_error *err);
pith_status pith__search_index_add(pith_search_index *index, const void *rows, const int64_t *ids,
                                   size_t count, const pith_call *call, pith_error *err);
pith_status pith__search_index_remove(pith_search_index *index, size_t *removed, const int64_t *ids,
                                      size_t count, const pith_call *call, pith_error *err);
pith_status pith__search_index_save(const pith_search_index *index, const pith_call *call,
                                    const pith_writer *writer, pith_error *err);
pith_status pith__search_index_open(pith_search_index **index, const char *path, size_t dim,
                                    const pith_search_index_options *options, pith_error *err);
pith_status pith__search_index_open_memory(pith_search_index **index, const void *data, size_t size,
                                           size_t dim, const pith_search_index_options *options,
                                           pith_error *err);
pith_status pith__search_index_verify(const char *path, const pith_call *call, pith_error *err);
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
    const int16_t *quick_int8; /* first pass: [count][copy_row_bytes] */
    const float *quick_scales; /* [count] */
    const uint8_t *quick_bits; /* [count][copy_row_bytes] */
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

/* Makes index->whole.copy on `threads` threads. The caller frees it, also after a failure. */
pith_status pith__search_copy_make(pith_search_index *index, int threads, pith__stop *stop,
                                   pith_error *err);
/* Writes the copy of the rows from `from` up to, without, `to`. They may lie behind the last row
 * that is counted. */
pith_status pith__search_copy_rows(pith_search_index *index, size_t from, size_t to, int threads,
                                   pith__stop *stop, pith_error *err);
void pith__search_copy_free(pith_search_index *index);
/* The copy of one row or query of dim floats; for int8 returns its scale, NaN if a component is not
 * finite. to has copy_row_bytes bytes. */
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
