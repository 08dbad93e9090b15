/* plain_attention.h - softmax(scale * q k^T (softcap) + mask) v per batch and head, with all scores
 * in memory. It is shared by Attention of ai.onnx and com.microsoft's GroupQueryAttention.
 *
 * The scores of a head are scaled, capped, masked and turned into probabilities row by row, in f32
 * or f64. Masked scores are -infinity. A row whose keys are all masked has probabilities of 0, so
 * its result is 0. Heads run in parallel. */
#ifndef PITH_ENGINE_OPS_SHARED_PLAIN_ATTENTION_H
#define PITH_ENGINE_OPS_SHARED_PLAIN_ATTENTION_H

#include "engine/ops/shared/tensor_matmul.h"

typedef struct pith__attend_kernels {
    pith__product product; /* nothing packed */
    pith__kernel_fn *softmax, *tanh;
    int dtype;
} pith__attend_kernels;

/* For tensors of f16, bf16, f32 (computed in f32) and f64. */
pith_status pith__attend_prepare(pith__attend_kernels *kernels, pith__prepare *c, int dtype);

typedef struct pith__attend {
    const pith__attend_kernels *kernels;
    const void *q, *k, *v;
    void *y;
    int64_t batch, heads, kv_heads, rows, keys, d, dv;
    int64_t q_at[3], k_at[3], v_at[3], y_at[3]; /* elements from batch to batch, head to head, row
                                                   to row */
    const pith_tensor *mask;                    /* bool or added, broadcast to [batch, heads, rows,
                                                   keys]; NULL */
    const int64_t *lengths;                     /* [batch] keys that count; NULL: all */
    const int64_t *first;                       /* [batch] the key that row 0 is at, for causal,
                                                   window; NULL: past */
    int64_t past;
    int64_t left, right;   /* keys before and after the row's own that it may see; -1: all */
    const float *sinks;    /* [heads] a score more in each row's sum, f32 only; NULL */
    double scale, softcap; /* softcap 0: none */
    double masked;         /* a key with this or less added to its score is masked */
    int precision;         /* dtype that masked scores and probabilities are rounded to; 0: none */
    void *scores;          /* [batch, heads, rows, keys] gets the scores; NULL */
    int mode;              /* 0: scaled, 1: and capped, 2: and masked, 3: probabilities */
    bool causal, smooth;   /* smooth: a sink of 0 for all */
    bool at_end;           /* the rows are the last ones of `lengths`, whatever `past` is */
} pith__attend;

/* The strides of rows of `size` elements in [batch, heads, rows, size], or in [batch, rows, heads *
 * size]. */
void pith__attend_strides(int64_t at[3], bool head_major, int64_t heads, int64_t rows,
                          int64_t size);
/* Bytes of scratch for one worker; -1 on overflow. */
int64_t pith__attend_scratch(const pith__attend *a);
void pith__attend_run(pith__run *r, const pith__attend *a, void *scratch);
/* Every query with every key, masked or not. */
void pith__attend_cost(const pith__attend *a, pith__cost *cost);

#endif
