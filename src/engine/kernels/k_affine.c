/* k_affine.c - see affine.h. */
#include "engine/kernels/affine.h"

#include "engine/kernels/vec.h"

/* BLOCK: elements whose sum is made in f32 before it joins the sum in f64. Longer blocks round
 * more, shorter ones spend more on the 16 lanes at their ends. VECTORS: accumulators of a block, so
 * that their additions overlap. Both decide the order of the additions, and with it the bits: they
 * are the same at every level. */
enum { BLOCK = 1024, VECTORS = 4 };

void PITH_K(affine_f32)(float *y, const float *x, const float *a, const float *b, int64_t n,
                        int step) {
    if (n <= 0) return;
    vf scale = vf_set1(*a), shift = vf_set1(*b);
    int64_t i = 0;
    for (; n - i >= 16; i += 16) {
        if (step) scale = vf_load(a + i), shift = vf_load(b + i);
        vf_store(y + i, vf_fma(vf_load(x + i), scale, shift));
    }
    if (i < n) {
        size_t rest = (size_t)(n - i);
        if (step) scale = vf_load_n(a + i, rest), shift = vf_load_n(b + i, rest);
        vf_store_n(y + i, vf_fma(vf_load_n(x + i, rest), scale, shift), rest);
    }
}

/* The sum with what an element adds: x - mean, or its square. */
PITH_INLINE vf affine_term(vf sum, vf x, vf mean, const int square) {
    vf d = vf_sub(x, mean);
    return square ? vf_fma(d, d, sum) : vf_add(sum, d);
}

/* The sum over n elements of a block. */
PITH_INLINE float affine_block(const float *x, int64_t n, vf mean, const int square) {
    vf sums[VECTORS];
    int64_t i = 0;
    PITH_UNROLL
    for (int k = 0; k < VECTORS; k++) sums[k] = vf_zero();
    for (; n - i >= 16 * VECTORS; i += 16 * VECTORS) {
        PITH_UNROLL
        for (int k = 0; k < VECTORS; k++)
            sums[k] = affine_term(sums[k], vf_load(x + i + 16 * k), mean, square);
    }
    PITH_UNROLL
    for (int k = 0; k < VECTORS; k++) {
        int64_t left = n - i - 16 * k;
        if (left <= 0) continue;
        size_t rest = left < 16 ? (size_t)left : 16;
        vf more = affine_term(sums[k], vf_load_n(x + i + 16 * k, rest), mean, square);
        sums[k] = vf_select(vm_first(rest), more, sums[k]);
    }
    return vf_sum(vf_add(vf_add(sums[0], sums[1]), vf_add(sums[2], sums[3])));
}

PITH_INLINE double affine_sum(const float *x, int64_t n, float mean, const int square) {
    double sum = 0;
    for (int64_t i = 0; i < n; i += BLOCK)
        sum += (double)affine_block(x + i, n - i < BLOCK ? n - i : BLOCK, vf_set1(mean), square);
    return sum;
}

/* Two passes, because the mean of squares less the square of the mean would cancel where the mean
 * is large. Deviations are taken from the mean as rounded to f32, since lanes are f32. With r the
 * rounded mean, the variance is mean((x - r)^2) - (mean - r)^2, which takes that rounding out
 * again. */
void PITH_K(moments_f32)(const float *x, int64_t n, double *mean, double *variance) {
    double whole = affine_sum(x, n, 0.0f, 0) / (double)n;
    float rounded = (float)whole;
    double rest = whole - (double)rounded; /* deviations were taken from the rounded mean */
    *mean = whole;
    *variance = affine_sum(x, n, rounded, 1) / (double)n - rest * rest;
    if (*variance < 0) *variance = 0;
}
