/* distinct_rows.h - finding duplicate rows of a matrix, so that work is done once per distinct row.
 */
#ifndef PITH_ENGINE_OPS_SHARED_DISTINCT_ROWS_H
#define PITH_ENGINE_OPS_SHARED_DISTINCT_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* The distinct rows of a matrix [m, k]; rows are compared bit for bit. */
typedef struct pith__distinct_rows {
    int64_t count;        /* number of distinct rows */
    const float *rows;    /* [count, k], in order of first occurrence */
    const int32_t *place; /* [m]: row i equals rows[place[i]], and place[i] <= i; NULL: rows is the
                             matrix itself */
} pith__distinct_rows;

/* Returns the bytes of memory that the search needs; 0 for matrices with too few or too many rows
 * to be searched. */
size_t pith__distinct_rows_bytes(int64_t m, int64_t k);

/* Finds the distinct rows. The result is at the beginning of memory, which must be aligned to 64
 * bytes. If there are few duplicates, all rows count as distinct. A row that begins like many
 * others is compared with a few of them only, so a duplicate may count as distinct. */
const pith__distinct_rows *pith__distinct_rows_find(void *memory, const float *x, int64_t m,
                                                    int64_t k);

/* y is [m, n], and its first count rows are the results of the distinct rows. Copies them, so that
 * row i becomes the result of row place[i]. */
void pith__distinct_rows_spread(const pith__distinct_rows *d, float *y, int64_t m, int64_t n);

#endif
