/* attention.h - softmax(scale * q k^T + bias) v for one sequence and one head.
 *
 * Definition: s[i,j] = fma chain over ascending d of q[i,d] * k[j,d]. With a bias, or a scale that
 * is not positive, s becomes s * scale + bias[i,j] and c is log2 e, else c is log2 e * scale.
 * Masked keys are skipped; m = max of the row, and where c * m is not within 2^30, s becomes s - m
 * and m becomes 0; p = 2^fma(s, c, -(c * m)) by vmath.h; the sum of p over 16 lanes (lane = (j -
 * first_key) mod 16, fixed tree); o[i,:] = (fma chain over ascending j of p[j] * v[j,:]) * (1 /
 * sum). No online softmax, so the result does not depend on tiling. none_left says what a row
 * without a key gives.
 *
 * i16 uses 16-bit integers and exact sums, for models that run in int8 or bf16. It needs an open
 * call, d and dv that are multiples of 16, and at most PITH_ATTENTION_I16_KEYS keys; other calls
 * use f32. Numbers must be finite. With S the largest integer of which d * S^2 < 2^30, Q[i] the
 * largest magnitude of a query and K that of all keys, q becomes round(q * (S / Q[i])), k round(k *
 * (S / K)), and s[i,j] their exact sum. p[i,j] is 2^-x in units of 2^-15, x = (max of the row -
 * s[i,j]) * log2e * scale * (K / S) * (Q[i] / S), to 11 bits behind the point in integers that
 * k_attention_i16.c spells out. A column of v has a middle and half its range, h: w = round((v -
 * middle) * (255 / h)), and o[i,:] = fma(sum, 1 / sum of p * (h / 255), middle), where sum is that
 * of p * w, exact for 256 keys at a time, these added in ascending order as floats. A range below
 * 2^-100 counts as none. */
#ifndef PITH_ENGINE_KERNELS_ATTENTION_H
#define PITH_ENGINE_KERNELS_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/kernels/kernel.h"

/* Adding this or less to a score absorbs the score completely. */
#define PITH_ABSORBS (-1e30f)

typedef enum pith__none_left {
    PITH_NONE_LEFT_NAN,  /* as a softmax over -infinity */
    PITH_NONE_LEFT_MEAN, /* the plain mean of v over all keys, as where a finite number was added to
                            all scores */
    PITH_NONE_LEFT_ZERO,
    PITH_NONE_LEFT_SCORES /* for pith.Attention: softmax of the scores with what its mask adds; no
                             kernel knows it */
} pith__none_left;

/* The meaning of numbers in a key mask of pith.Attention. */
typedef enum pith__mask_numbers {
    PITH_MASK_ANY_KEEPS, /* all but 0 keep */
    PITH_MASK_LINEAR,    /* a number m adds (1 - m) * (the number that a skipped key adds) to the
                            score */
    PITH_MASK_BINARY     /* numbers other than 0 and 1 are refused */
} pith__mask_numbers;

typedef struct pith__attention {
    const float *q, *k, *v;                         /* [queries, d], [keys, d], [keys, dv] */
    float *o;                                       /* [queries, dv] */
    int64_t q_stride, k_stride, v_stride, o_stride; /* floats from row to row */
    int64_t queries, keys, d, dv;
    float scale;
    const float *bias;                 /* element (i, j) at bias[i * bias_stride + j], or NULL */
    int64_t bias_stride;               /* 0: the same row for every query */
    const uint8_t *key_mask;           /* [keys] 1 keep, 0 skip, or NULL: keep all */
    int64_t causal_offset;             /* key j is kept for query i only if j <= i + causal_offset;
                                          INT64_MAX: all */
    int64_t window_left, window_right; /* … and i - window_left <= j <= i + window_right (aligned by
                                          causal_offset when causal, else by 0); -1: no limit */
    pith__none_left none_left;
} pith__attention;

/* The facts about a call that its masks give. */
typedef struct pith__attention_keys {
    int64_t first, count; /* the range of all keys that the mask keeps */
    bool holes;           /* the mask skips some keys in the range */
    bool open;            /* there are keys, every query sees every one of them, the scale is
                             positive, no bias */
} pith__attention_keys;
pith__attention_keys pith__attention_look(const pith__attention *a);

/* Returns the number of queries of the tile that begins with query i: at most `most`, and about as
 * many in each tile that is left. Prefetches their results, since stores would otherwise hold up
 * the next tile (gemm_tile.h). */
static inline int64_t pith__attention_tile(const pith__attention *a, int64_t i, int64_t most) {
    const int64_t left = a->queries - i, tiles = (left + most - 1) / most,
                  rows = (left + tiles - 1) / tiles;
    for (int64_t r = i; r < i + rows; r++) {
        for (int64_t j = 0; j < a->dv; j += 16) __builtin_prefetch(a->o + r * a->o_stride + j, 1);
    }
    return rows;
}

enum { PITH_ATTENTION_I16_KEYS = 1 << 16 }; /* the sum of their probabilities fits 32 bits */

/* The most rows of scores that are held at once. */
enum { PITH_ATTENTION_ROWS = 14 };

/* Returns the floats of scratch that a call needs for these sizes. */
int64_t pith__attention_f32_scratch(int64_t keys, int64_t d, int64_t dv);

typedef void pith__attention_f32_fn(const pith__attention *a, float *scratch);
PITH_KERNEL_DECLARE(attention_f32, pith__attention_f32_fn) /* family "attention" f32 */
PITH_KERNEL_DECLARE(attention_i16, pith__attention_f32_fn) /* family "attention" i16 */
/* family "attention_vnni": AVX512_VNNI or AVX_VNNI */
PITH_KERNEL_DECLARE(attention_vnni_i16, pith__attention_f32_fn)

/* Returns the fastest i16 kernel that this processor can run at the level. All give the same bits.
 */
pith__attention_f32_fn *pith__attention_i16_find(pith__isa isa);

#endif
