/* k_matmul.c - see matmul.h: matmuls of f64 whose rows of b are contiguous. A tile of sums stays in
 * registers. Each sum is a chain of products that are rounded and then added, as in matmul.c, so
 * that levels without multiply-add give the same bits. */
#include "engine/kernels/matmul.h"

#include <string.h>

#include "engine/kernels/vec.h"

/* Unlike those of vec.h, the vectors of the scalar level are registers too. */
#if defined(PITH_LEVEL_scalar)
#undef PITH_UNROLL
#if defined(__clang__)
#define PITH_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PITH_UNROLL _Pragma("GCC unroll 8")
#endif
#endif

/* LANES: f64 of a register. A tile has ROWS rows and PANELS registers of columns: ROWS * PANELS
 * sums, PANELS elements of b and one of a fit the registers. A product that is rounded and then
 * added takes two instructions in a chain, so there must be enough sums to overlap them; more of
 * them spill. */
#if defined(PITH_LEVEL_avx512)
enum { LANES = 8, ROWS = 6, PANELS = 4 };
#elif defined(PITH_LEVEL_avx2)
enum { LANES = 4, ROWS = 4, PANELS = 3 };
#elif defined(PITH_LEVEL_neon)
enum { LANES = 2, ROWS = 6, PANELS = 4 };
#else
enum { LANES = 2, ROWS = 2, PANELS = 4 };
#endif
typedef double vd __attribute__((vector_size(8 * LANES)));

/* `rows` rows times `panels` vectors of columns, or n < LANES columns if n is not 0. */
PITH_INLINE void matmul_tile(const pith__matmul *p, const int rows, const int panels, int64_t n,
                             const double *a, const double *b, double *c) {
    vd sum[ROWS][PANELS];
    PITH_UNROLL
    for (int i = 0; i < rows; i++) {
        PITH_UNROLL
        for (int j = 0; j < panels; j++) sum[i][j] = (vd){ 0 };
    }
    for (int64_t k = 0; k < p->k; k++, a += p->a_column, b += p->b_row) {
        vd column[PANELS];
        PITH_UNROLL
        for (int j = 0; j < panels; j++) {
            if (n) {
                column[j] = (vd){ 0 };
                for (int64_t l = 0; l < n; l++) column[j][l] = b[l];
            } else {
                memcpy(&column[j], b + LANES * j, sizeof column[j]);
            }
        }
        PITH_UNROLL
        for (int i = 0; i < rows; i++) {
            const double element = a[i * p->a_row];
            PITH_UNROLL
            for (int j = 0; j < panels; j++) sum[i][j] += element * column[j];
        }
    }
    PITH_UNROLL
    for (int i = 0; i < rows; i++) {
        PITH_UNROLL
        for (int j = 0; j < panels; j++)
            memcpy(c + i * p->n + LANES * j, &sum[i][j], n ? (size_t)n * sizeof *c : sizeof(vd));
    }
}

/* All columns of `rows` rows. */
PITH_INLINE void matmul_rows(const pith__matmul *p, const int rows, const double *a, double *c,
                             int64_t j, int64_t end) {
    for (; j + LANES * PANELS <= end; j += LANES * PANELS)
        matmul_tile(p, rows, PANELS, 0, a, (const double *)p->b + j, c + j);
    for (; j + LANES <= end; j += LANES)
        matmul_tile(p, rows, 1, 0, a, (const double *)p->b + j, c + j);
    if (j < end) matmul_tile(p, rows, 1, end - j, a, (const double *)p->b + j, c + j);
}

void PITH_K(matmul_f64)(const pith__matmul *p, int64_t m0, int64_t m1) {
    enum {
        BLOCK = 4 * LANES * PANELS
    }; /* columns of b that stay in the cache while all rows meet
                                            them */
    if (p->b_column != 1) {
        pith__matmul_any_f64(p, m0, m1);
        return;
    }
    for (int64_t j = 0; j < p->n; j += BLOCK) {
        const int64_t end = p->n - j < BLOCK ? p->n : j + BLOCK;
        int64_t i = m0;
        for (; i + ROWS <= m1; i += ROWS)
            matmul_rows(p, ROWS, (const double *)p->a + i * p->a_row, (double *)p->c + i * p->n, j,
                        end);
        for (; i < m1; i++)
            matmul_rows(p, 1, (const double *)p->a + i * p->a_row, (double *)p->c + i * p->n, j,
                        end);
    }
}
