/* k_unary.c - elementwise functions of one f32 array: each one is a loop of sixteen lanes and a
 * partial tail. */
#include "engine/kernels/unary.h"

#include "engine/kernels/vmath.h"

#define EACH_16(f)                                                                                 \
    for (; n >= 16; n -= 16, x += 16, y += 16) vf_store(y, f(vf_load(x)));                         \
    if (n > 0) vf_store_n(y, f(vf_load_n(x, n)), n);
#define UNARY(name, f)                                                                             \
    void PITH_K(name##_f32)(const float *x, float *y, size_t n) { EACH_16(f) }

/* Vectors of GELU computed side by side. GELU is a chain of 19 dependent operations, and one chain
 * leaves the execution ports idle. More chains fill them, up to the number that fits the
 * registers. */
#if defined(PITH_LEVEL_avx512)
enum { CHAINS = 7 };
#elif defined(PITH_LEVEL_avx2)
enum { CHAINS = 2 };
#else
enum { CHAINS = 1 };
#endif
void PITH_K(gelu_f32)(const float *x, float *y, size_t n) {
    vf v[CHAINS];
    for (; n >= 16 * CHAINS; n -= 16 * CHAINS, x += 16 * CHAINS, y += 16 * CHAINS) {
        PITH_UNROLL
        for (int i = 0; i < CHAINS; i++) v[i] = vf_load(x + 16 * i);
        vf_gelu_each(v, v, CHAINS);
        PITH_UNROLL
        for (int i = 0; i < CHAINS; i++) vf_store(y + 16 * i, v[i]);
    }
    EACH_16(vf_gelu)
}

PITH_INLINE vf unary_relu(vf x) { return vf_max(vf_zero(), x); }
PITH_INLINE vf reciprocal(vf x) { return vf_div(vf_set1(1.0f), x); }

UNARY(abs, vf_abs)
UNARY(cos, vf_cos)
UNARY(erf, vf_erf)
UNARY(exp, vf_exp)
UNARY(gelu_coarse, vf_gelu_coarse)
UNARY(gelu_tanh, vf_gelu_tanh)
UNARY(log, vf_log)
UNARY(mish, vf_mish)
UNARY(neg, vf_neg)
UNARY(quick_gelu, vf_quick_gelu)
UNARY(reciprocal, reciprocal)
UNARY(relu, unary_relu)
UNARY(sigmoid, vf_sigmoid)
UNARY(silu, vf_silu)
UNARY(sin, vf_sin)
UNARY(softplus, vf_softplus)
UNARY(sqrt, vf_sqrt)
UNARY(tanh, vf_tanh)
