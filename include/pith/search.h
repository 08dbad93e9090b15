/* search.h - exact search for the rows nearest to queries.
 *
 *     pith_search_index_options how = PITH_SEARCH_INDEX_OPTIONS_INIT;
 *     pith_search_index *index;
 *     pith_hit hits[10];
 *     if (pith_search_index_create(&index, rows, count, dim, &how, &err)) puts(err.message);
 *     if (pith_search(hits, index, query, 1, 10, NULL, &err)) puts(err.message);
 *     pith_search_index_destroy(index);
 *
 * Such an index looks at rows in memory of the caller, such as a mapped file, and does not copy
 * them. One that pith_search_index_build makes reads rows page by page, owns them, and can change.
 * Both can be saved; the file opens in milliseconds.
 *
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

/* Any number of threads may search it at once; pith_search_index_add and _remove need it alone. */
typedef struct pith_search_index pith_search_index;

/* In the call context, threads, the three ways to end a call, while a copy is made for the first
 * pass, and allocator have an effect. Searches use the allocator too, from any thread. */
typedef struct pith_search_index_options {
    pith_call call;
    int32_t metric;     /* a pith_metric */
    int32_t dtype;      /* of the rows: PITH_F32, PITH_F16, PITH_I8 or PITH_U8; 0: PITH_F32 */
    int32_t bits;       /* 1: rows of PITH_U8 hold one bit for each component, as numpy.packbits
                           makes them: the first component is the highest bit of the first byte, and
                           bits after the last component are ignored. A 1 stands for the component
                           +1, a 0 for -1. In a query, components above 0 are +1 and all others
                           -1. */
    int32_t first_pass; /* a pith_first_pass; only for rows of f32 and f16, and not with
                           PITH_METRIC_MAXSIM */
    size_t row_bytes;   /* bytes from one row to the next; 0: rows follow each other without gaps */
    const int64_t *offsets; /* [documents + 1] for PITH_METRIC_MAXSIM: document i has the rows from
                               offsets[i] up to, without, offsets[i + 1]. The first offset is 0, the
                               last one is the number of rows. Not copied. */
    size_t documents;       /* number of documents; there is one offset more */
} pith_search_index_options;

#define PITH_SEARCH_INDEX_OPTIONS_INIT PITH_OPTIONS_INIT(pith_search_index_options)

/* Makes an index of rows[count][row_bytes], of dim components each. count may be 0; dim is 1 to
 * 2147483647, and at most 131072 with a first pass of int8. rows must be aligned as its elements
 * are, and must stay as it is until the index is destroyed. The caller owns *index, which does not
 * change any more, so any number of threads may search it at once. *index is unchanged after an
 * error. */
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

/* One result: a row, or with PITH_METRIC_MAXSIM a document, and its score. index: the row's id, if
 * the index has ids; else its number from 0 on. A plain value: it never grows. */
typedef struct pith_hit {
    int64_t index;
    float score;
} pith_hit;

/* In the call context, threads and the three ways to end a call have an effect. */
typedef struct pith_search_options {
    pith_call call;
    int32_t rescore;             /* the first pass picks this many times as many candidates as hits
                                    are asked for; 0: 4 */
    int32_t exact;               /* 1: leave out the first pass */
    const size_t *query_offsets; /* [count + 1] for PITH_METRIC_MAXSIM: query i has the rows from
                                    query_offsets[i] up to, without, query_offsets[i + 1]; NULL:
                                    each query is one row */
} pith_search_options;

#define PITH_SEARCH_OPTIONS_INIT PITH_OPTIONS_INIT(pith_search_options)

/* Finds the k best of the index for each query. hits is pith_hit[count][k], owned by the caller:
 * the hits of each query follow each other, the best first. Equal scores are ordered by index, the
 * smaller one first. Scores that are NaN come after all numbers. If k is larger than the index, the
 * rest of a query's hits have index -1 and the score NaN. queries is float[count][dim], row-major.
 * After an error hits is unspecified. A query that holds an infinity or NaN is compared with all
 * rows exactly, whatever the first pass. A row that does is the last candidate of a first pass of
 * int8.
 *
 * A call reads the rows once for several queries, so one call with many queries is faster than many
 * calls. Any number of threads may search one index at once. */
PITH_API pith_status pith_search(pith_hit *hits, const pith_search_index *index,
                                 const float *queries, size_t count, size_t k,
                                 const pith_search_options *options, pith_error *err);

/* ---- an index that owns its rows and changes ---- */

/* Where rows come from: pages of a database, lines of a file. next sets *rows to the next rows, as
 * they lie in an index, and *count to their number; they stay valid until it is called again, and
 * need no alignment. *ids is NULL before it is called; it may set it to the ids of these rows, 0 to
 * 9223372036854775807. Rows without ids are numbered by 1 more than the largest id so far, the
 * first one by 0. *count 0: there are no more rows. A status that is not PITH_OK ends the call,
 * which returns it and what next wrote to err. It is called on the calling thread. A plain value:
 * it never grows. */
typedef struct pith_row_source {
    pith_status (*next)(void *user, const void **rows, const int64_t **ids, size_t *count,
                        pith_error *err);
    void *user; /* passed to next */
} pith_row_source;

/* Makes an index of the rows of a source, of dim components each, which it copies, so that it can
 * change. Its hits have the ids of the rows, and equal scores are ordered by id. They are those of
 * an index that pith_search_index_create makes of the same rows in the order of their ids. Memory:
 * the rows without gaps, 8 bytes for each id, 11 to 22 bytes for each row to find it by its id, the
 * copy of the first pass, and at most 1 MiB that is not in use.
 *
 * Errors in addition to those of pith_search_index_create: PITH_ERR_ARGUMENT if an id is negative
 * or comes twice; PITH_ERR_UNSUPPORTED for PITH_METRIC_MAXSIM, whose documents only
 * pith_search_index_create accepts. *index is unchanged after an error. */
PITH_API pith_status pith_search_index_build(pith_search_index **index,
                                             const pith_row_source *source, size_t dim,
                                             const pith_search_index_options *options,
                                             pith_error *err);

/* Adds rows[count][row_bytes], which it copies, to an index that pith_search_index_build made or
 * that was opened. They lie as row_bytes of the index's options says, and need no alignment. ids:
 * int64_t[count] as in pith_row_source, or NULL. An id that is there already gets the new row, and
 * so does one that comes twice, the last time. The first change of an index that was opened reads
 * all of its rows into memory and lets go of the file.
 *
 * call: NULL or a context; only the threads and what ends the call have an effect. It ends early
 * only before the index begins to change, which takes less than 1 microsecond for each row: add
 * many rows in parts. After an error the index has the rows that it had. Errors: PITH_ERR_ARGUMENT
 * for an index over rows of the caller; PITH_ERR_FORMAT if the ids of an opened file do not ascend.
 * Not thread-safe: no search may be running. */
PITH_API pith_status pith_search_index_add(pith_search_index *index, const void *rows,
                                           const int64_t *ids, size_t count, const pith_call *call,
                                           pith_error *err);

/* Removes the rows of these ids and sets *removed to how many of them were there; removed may be
 * NULL. Ids that are not there are no error. Otherwise as pith_search_index_add. */
PITH_API pith_status pith_search_index_remove(pith_search_index *index, size_t *removed,
                                              const int64_t *ids, size_t count,
                                              const pith_call *call, pith_error *err);

/* ---- files ---- */

/* Writes an index of any kind, with the copy of its first pass and its ids, as docs/search.md says,
 * so that it opens by mapping. The same rows and ids give the same bytes, in whatever order they
 * were added. It needs up to 48 bytes of memory for each row. call: as of pith_search_index_add;
 * one thread works. Thread-safe as searching is. */
PITH_API pith_status pith_search_index_save(const pith_search_index *index, const pith_call *call,
                                            const pith_writer *writer, pith_error *err);

/* Maps what pith_search_index_save wrote, whose size does not matter for the time it takes, but
 * that offsets of documents are read. The file must stay as it is until the index is destroyed or
 * changed. dim: that of the queries to come; a file of another one is refused. 0: the file says it,
 * and the caller asks pith_search_index_dim. In the options the call context is used, and
 * first_pass: 0, or that of the file, or it is refused.
 *
 * The header and the sizes of the contents are checked, so that searching any file is safe; the
 * contents are not, which pith_search_index_verify does. Errors: PITH_ERR_FORMAT for a damaged
 * file, PITH_ERR_UNSUPPORTED for one of a newer format, PITH_ERR_ARGUMENT if dim or first_pass is
 * another one. */
PITH_API pith_status pith_search_index_open(pith_search_index **index, const char *path, size_t dim,
                                            const pith_search_index_options *options,
                                            pith_error *err);
/* The same of data, a file in memory, which must be aligned to 8 bytes and stay as it is until the
 * index is destroyed or changed. */
PITH_API pith_status pith_search_index_open_memory(pith_search_index **index, const void *data,
                                                   size_t size, size_t dim,
                                                   const pith_search_index_options *options,
                                                   pith_error *err);
/* Compares the contents of a file with the hashes in its header, which reads all of it. call: as of
 * pith_search_index_save. PITH_ERR_FORMAT names the damaged section. Thread-safe. */
PITH_API pith_status pith_search_index_verify(const char *path, const pith_call *call,
                                              pith_error *err);

/* Return the components of a row, and the metric (a pith_metric). Thread-safe. */
PITH_API size_t pith_search_index_dim(const pith_search_index *index);
PITH_API int32_t pith_search_index_metric(const pith_search_index *index);

#ifdef __cplusplus
}
#endif

#endif
