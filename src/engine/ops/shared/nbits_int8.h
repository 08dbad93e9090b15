/* nbits_int8.h - MatMulNBits with accuracy_level 4: inputs in 8 bits with a scale for every block
 * of weights.
 *
 * The level is the least accuracy that a file asks for. Weights that are not constants, blocks that
 * are no power of two from 16 to 256, weights of 2 bits, groups, and zero points that are floats
 * are computed in f32 whatever it says. */
#ifndef PITH_ENGINE_OPS_SHARED_NBITS_INT8_H
#define PITH_ENGINE_OPS_SHARED_NBITS_INT8_H

#include "engine/kernels/gemm_blocks.h"
#include "engine/ops/shared/infer_shapes.h"

/* The inputs of the operators of op_ms_matmul_nbits.c. */
enum {
    PITH_NBITS_A,
    PITH_NBITS_B,
    PITH_NBITS_SCALES,
    PITH_NBITS_ZEROS,
    PITH_NBITS_GROUPS,
    PITH_NBITS_BIAS
};

typedef struct pith__nbits_int8 {
    pith__blocks_form form;
    int64_t n, grain; /* grain: multiply-adds that are worth a thread */
    pith__quantize_blocks_fn *quantize;
    pith__gemm_blocks_fn *gemm;
    const void *packed;
    size_t packed_bytes;
    const pith_tensor *b, *scales, *zeros; /* zeros: NULL if the form has none */
} pith__nbits_int8;

/* Sets q->form if the node's inputs are to be taken in 8 bits; else returns false. */
bool pith__nbits_int8_takes(pith__nbits_int8 *q, const pith__prepare *c);
/* Finds the loops and packs the weights. q lives as long as the plan. */
pith_status pith__nbits_int8_prepare(pith__nbits_int8 *q, pith__prepare *c);
/* Bytes of scratch for m rows; false on overflow. */
bool pith__nbits_int8_scratch(const pith__nbits_int8 *q, int64_t m, size_t *bytes);
/* y [m, n] = x [m, k] weights^T + bias. bias: NULL: none. */
void pith__nbits_int8_run(pith__run *r, const pith__nbits_int8 *q, float *y, const float *x,
                          const float *bias, int64_t m);

#endif
