/* train.h - the inner loops of training: attention over listed keys, backward passes, AdamW. All
 * sums have a fixed order, so that every level gives the same bits. Sizes of rows are multiples of
 * 16. */
#ifndef PITH_ENGINE_KERNELS_TRAIN_H
#define PITH_ENGINE_KERNELS_TRAIN_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

/* For each cell and head: o = sum of p[j] v[j] over the cell's keys j, p = softmax of (q . k[j]) /
 * sqrt(head). Every cell has at least one key. head is a multiple of 16. */
typedef struct pith__key_attention {
    const float *qkv;      /* [cells, 3 * dim]: queries, keys, values */
    const uint32_t *begin; /* [cells + 1] into keys */
    const uint32_t *keys;
    float *out;   /* [cells, dim] */
    float *share; /* [heads, begin[cells]] the softmax, which the backward pass reads */
    int64_t cells, dim, head;
    /* Of the backward pass: */
    const float *d_out; /* [cells, dim] */
    float *d_qkv;       /* [cells, 3 * dim], zeros before */
} pith__key_attention;
typedef void pith__key_attention_fn(const pith__key_attention *a);
PITH_KERNEL_DECLARE(key_attention_f32, pith__key_attention_fn)
PITH_KERNEL_DECLARE(key_attention_back_f32, pith__key_attention_fn)

/* Adds the gradient of y = x * inverse * gamma to d_x [rows, n] and d_gamma [n]; inverse [rows] is
 * 1 / sqrt(mean(x^2) + epsilon). */
typedef void pith__rms_norm_back_fn(const float *x, const float *inverse, const float *gamma,
                                    const float *d_y, float *d_x, float *d_gamma, int64_t rows,
                                    int64_t n);
PITH_KERNEL_DECLARE(rms_norm_back_f32, pith__rms_norm_back_fn)

/* y [rows, n] = silu(x[:, :n]) * x[:, n:] of x [rows, 2 n]. */
typedef void pith__swiglu_fn(const float *x, float *y, int64_t rows, int64_t n);
PITH_KERNEL_DECLARE(swiglu_f32, pith__swiglu_fn)
/* d_x [rows, 2 n] of it. */
typedef void pith__swiglu_back_fn(const float *x, const float *d_y, float *d_x, int64_t rows,
                                  int64_t n);
PITH_KERNEL_DECLARE(swiglu_back_f32, pith__swiglu_back_fn)

/* A step of AdamW (Loshchilov and Hutter, arXiv 1711.05101). rate1 = rate / (1 - beta1^t), fix2 = 1
 * / (1 - beta2^t). */
typedef struct pith__adamw {
    float *w, *m, *v;
    const float *g;
    float g_scale, beta1, beta2, rate, rate1, fix2, decay, epsilon;
} pith__adamw;
typedef void pith__adamw_fn(const pith__adamw *a, int64_t n);
PITH_KERNEL_DECLARE(adamw_f32, pith__adamw_fn)

#endif
