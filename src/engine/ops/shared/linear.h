/* linear.h - the ways in which pith.Linear can multiply: one table each, chosen by the node's
 * attribute precision.
 *
 * A way packs the weights, may convert rows of x (such as quantise them), and multiplies blocks of
 * rows by blocks of columns. Blocks may be computed in any order and in parallel, with the same
 * bits. */
#ifndef PITH_ENGINE_OPS_SHARED_LINEAR_H
#define PITH_ENGINE_OPS_SHARED_LINEAR_H

#include "engine/kernels/gemm.h"
#include "engine/kernels/quantize.h"
#include "engine/ops/shared/packed_constants.h"

/* The state of a pith.Linear. */
typedef struct pith__linear {
    const struct pith__linear_way *way;
    const void *packed;
    size_t packed_bytes;
    float *bias; /* [n] or NULL */
    int64_t k, n;
    pith__gemm_activation activation;
    bool repeats; /* x is likely to have duplicate rows */
    pith__kernel_fn *gemm, *convert;
    void *form;     /* private to the way */
    int64_t grain;  /* multiply-adds that take about five microseconds; a smaller part is not worth
                       a thread */
    size_t element; /* bytes, of converted rows; the ways whose rows have several forms set it */
} pith__linear;

/* The grain of f32 matmuls, and the bytes of weights that take as long to read. */
#define PITH_LINEAR_GRAIN 400000
#define PITH_LINEAR_GRAIN_BYTES 65536

/* Rows of a run. converted: as the way's convert makes them, or NULL. */
typedef struct pith__linear_rows {
    const float *x; /* [m, k] */
    float *y;       /* [m, n] */
    void *converted;
    int64_t m;
    const void *next; /* for prefetching: the weights that are read after these, or NULL */
} pith__linear_rows;

typedef struct pith__linear_way {
    const char *kernel; /* for profiles */
    /* Finds the kernels, packs the weights, and sets grain and packed_bytes. s->k, n and activation
     * are set; k is at least 1. */
    pith_status (*prepare)(pith__linear *s, pith__prepare *c, const pith__pack_matrix *weights,
                           size_t count);
    size_t (*row_bytes)(const pith__linear *s); /* of converted, per row, a multiple of 64; NULL: x
                                                   is read as it is */
    void (*convert)(const pith__linear *s, const pith__linear_rows *r, int64_t m0, int64_t m1);
    void (*multiply)(const pith__linear *s, const pith__linear_rows *r, int64_t m0, int64_t m1,
                     int64_t n0, int64_t n1);
    /* From now on weights are quantised for rows of x with this factor (GPTQ); NULL: rounded to
     * nearest. The factor is read when weights are packed. A way without fit does not quantise. */
    void (*fit)(const pith__linear *s, const pith__factor *factor);
} pith__linear_way;

/* The state of a prepared node if its operator is pith.Linear; else NULL. */
const pith__linear *pith__linear_state(const pith__node *node, const void *state);

/* The attribute's values: PITH_PRECISION_F32, … of pith.h. */
extern const pith__linear_way pith__linear_f32, pith__linear_int8, pith__linear_bf16;
/* f32 arithmetic on weights stored in 16 bits: half the memory, the same results. */
extern const pith__linear_way pith__linear_f16_stored, pith__linear_bf16_stored;

#endif
