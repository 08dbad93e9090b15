/* search.h - exact search for the rows nearest to queries.
 *
 *     pith_search_index_options how = PITH_SEARCH_INDEX_OPTIONS_INIT;
 *     pith_search_index *index;
 *     pith_hit hits[10];
 *     if (pith_search_index_create(&index, rows, count, dim, &how, &err)) puts(err.message);
 *     if (pith_search(hits, index, query, 1, 10, NULL, &err)) puts(err.message);
 *     pith_search_index_destroy(index);
 *
 * An index looks at rows in memory of the caller, such as a mapped file, and does not copy them.
 * Each row is compared with each query, so the hits are the true ones. A first pass over a smaller
 * copy of the rows, which the index then owns, makes searching faster: it picks the candidates, and
 * only these are compared exactly.
 *
 * A score has the same bits whatever the number of threads, of queries and of rows, with or without
 * a first pass, and on every CPU. */
#ifndef PITH_SEARCH_H
#define PITH_SEARCH_H

#include "pith/call.h"
#include "pith/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the score of a row and a query is. All of it is computed in f32. Rows of other types are
 * widened first. */
typedef enum pith_metric {
    PITH_METRIC_COSINE = 0, /* the cosine of their angle; the largest is the best. A vector of zeros
                               has the score 0 with every other one; so has a finite one whose
                               squares add up to 0 or to infinity in f32. */
    PITH_METRIC_DOT = 1,    /* their dot product; the largest is the best */
    PITH_METRIC_L2 = 2,     /* their Euclidean distance; the smallest is the best */
    PITH_METRIC_MAXSIM = 3  /* of documents and queries of several rows each: for each row of the
                               query the largest dot product with a row of the document, added up
                               (ColBERT); the largest is the best. The score of a document without
                               rows is -infinity. */
} pith_metric;

/* How candidates are found. Hits whose scores differ little may be missed. */
typedef enum pith_first_pass {
    PITH_FIRST_PASS_NONE = 0,  /* all rows are compared exactly */
    PITH_FIRST_PASS_INT8 = 1,  /* rows and queries rounded to whole numbers from -127 to 127, with a
                                  scale for each row: a quarter of the memory of f32 */
    PITH_FIRST_PASS_BINARY = 2 /* one bit for each component, 1 if it is above 0, and the number of
                                  bits that differ: a 32nd of the memory of f32. It is meant for
                                  vectors of several hundred components around 0 whose lengths
                                  differ little, as text embeddings are. */
} pith_first_pass;

typedef struct pith_search_index pith_search_index;

/* Of the call context threads, the three ways to end a call, while a copy is made for the first
 * pass, and allocator have an effect. Searches use the allocator too, from any thread. */
typedef struct pith_search_index_options {
    pith_call call;
    int32_t metric;     /* a pith_metric */
    int32_t dtype;      /* of the rows: PITH_F32, PITH_F16, PITH_I8 or PITH_U8; 0: PITH_F32 */
    int32_t bits;       /* 1: rows of PITH_U8 hold one bit for each component, as numpy.packbits
                           makes them: the first component is the highest bit of the first byte, and
                           bits behind the last component do not count. A 1 stands for the component
                           +1, a 0 for -1. Of a query, components above 0 count as +1 and all others
                           as -1. */
    int32_t first_pass; /* a pith_first_pass; only for rows of f32 and f16, and not with
                           PITH_METRIC_MAXSIM */
    size_t row_bytes;   /* bytes from one row to the next; 0: rows follow each other without gaps */
    const int64_t *offsets; /* for PITH_METRIC_MAXSIM: document i has the rows from
                               offsets[i] up to, without, offsets[i + 1]. The first offset
                               is 0, the last one is the number of rows. Not copied. */
    size_t documents;       /* number of documents; there is one offset more */
} pith_search_index_options;

#define PITH_SEARCH_INDEX_OPTIONS_INIT PITH_OPTIONS_INIT(pith_search_index_options)

/* Makes an index of count rows of dim components each. count may be 0; dim is 1 to 2147483647, and
 * at most 131072 with a first pass of int8. rows must be aligned as its elements are, and must stay
 * as it is until the index is destroyed. The caller owns *index, which does not change any more, so
 * any number of threads may search it at once. *index is unchanged after an error. */
PITH_API pith_status pith_search_index_create(pith_search_index **index, const void *rows,
                                              size_t count, size_t dim,
                                              const pith_search_index_options *options,
                                              pith_error *err);
/* Frees the index, not the rows; NULL is allowed. No search may be running. */
PITH_API void pith_search_index_destroy(pith_search_index *index);
/* Returns the number of things a search ranks: rows, or with PITH_METRIC_MAXSIM documents.
 * Thread-safe. */
PITH_API size_t pith_search_index_count(const pith_search_index *index);
/* Returns the bytes that the index owns, the copy of the first pass above all. Thread-safe. */
PITH_API size_t pith_search_index_bytes(const pith_search_index *index);

/* One result: a row, or with PITH_METRIC_MAXSIM a document, and its score. */
typedef struct pith_hit {
    int64_t index;
    float score;
} pith_hit;

/* Of the call context threads and the three ways to end a call have an effect. */
typedef struct pith_search_options {
    pith_call call;
    int32_t rescore;             /* the first pass picks this many times as many candidates as hits
                                    are wanted; 0: 4 */
    int32_t exact;               /* 1: leave out the first pass */
    const size_t *query_offsets; /* for PITH_METRIC_MAXSIM: query i has the rows from
                                    query_offsets[i] up to, without, query_offsets[i + 1], count + 1
                                    numbers; NULL: each query is one row */
} pith_search_options;

#define PITH_SEARCH_OPTIONS_INIT PITH_OPTIONS_INIT(pith_search_options)

/* Finds the k best of the index for each query. hits is pith_hit[count][k], owned by the caller:
 * the hits of each query follow each other, the best first. Equal scores are ordered by index, the
 * smaller one first. Scores that are NaN come after all numbers. If k is larger than the index, the
 * rest of a query's hits have index -1 and the score NaN. queries is float[count][dim], row-major.
 * After an error hits is unspecified. A query that holds an infinity or NaN is compared with all
 * rows exactly, whatever the first pass; a row that does is the last candidate of a first pass of
 * int8.
 *
 * A call reads the rows once for several queries, so one call with many queries is faster than many
 * calls. Any number of threads may search one index at once. */
PITH_API pith_status pith_search(pith_hit *hits, const pith_search_index *index,
                                 const float *queries, size_t count, size_t k,
                                 const pith_search_options *options, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
