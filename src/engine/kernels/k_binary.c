/* k_binary.c - elementwise functions of two f32 arrays, either of which may be one element. */
#include "engine/kernels/binary.h"

#include "engine/kernels/vec.h"

/* The operand's next n (1 to 16) lanes. */
PITH_INLINE vf binary_take(const float *x, int64_t i, int64_t n, vf one, int stride) {
    if (stride == 0) return one;
    return n == 16 ? vf_load(x + i) : vf_load_n(x + i, (size_t)n);
}

#define BINARY(name, f)                                                                            \
    void PITH_K(name##_f32)(void *y, const void *a, const void *b, int64_t n, int as, int bs) {    \
        vf one_a = n > 0 ? vf_set1(*(const float *)a) : vf_zero(),                                 \
           one_b = n > 0 ? vf_set1(*(const float *)b) : one_a;                                     \
        int64_t i = 0;                                                                             \
        for (; n - i >= 16; i += 16)                                                               \
            vf_store((float *)y + i,                                                               \
                     f(binary_take(a, i, 16, one_a, as), binary_take(b, i, 16, one_b, bs)));       \
        if (i < n) {                                                                               \
            vf r = f(binary_take(a, i, n - i, one_a, as), binary_take(b, i, n - i, one_b, bs));    \
            vf_store_n((float *)y + i, r, (size_t)(n - i));                                        \
        }                                                                                          \
    }

BINARY(add, vf_add)
BINARY(div, vf_div)
BINARY(max, vf_max_nan)
BINARY(min, vf_min_nan)
BINARY(mul, vf_mul)
BINARY(sub, vf_sub)
