/* distinct_rows.h - rows of a matrix that come again, so that work is done once for all that are equal. */
#ifndef PITH_OPS_DISTINCT_ROWS_H
#define PITH_OPS_DISTINCT_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* Which rows of a matrix [m, k] are equal, bit for bit. */
typedef struct pith_distinct_rows {
    int64_t count;        /* of rows that differ */
    const float *rows;    /* [count, k], in the order in which they come first */
    const int32_t *place; /* [m]: row i is rows[place[i]], at most i; NULL: rows are the matrix */
} pith_distinct_rows;

/* Bytes of memory for a matrix; 0: it has so few or so many rows that none are looked for. */
size_t pith_distinct_rows_bytes(int64_t m, int64_t k);

/* The result lies at the beginning of memory, which is 64-byte aligned. Where few rows come again, all count as
 * different. So may one that begins like many others: it is compared with a few of them only. */
const pith_distinct_rows *pith_distinct_rows_find(void *memory, const float *x, int64_t m, int64_t k);

/* y [m, n], whose first count rows were made of rows: every row gets that of its place. */
void pith_distinct_rows_spread(const pith_distinct_rows *d, float *y, int64_t m, int64_t n);

#endif
