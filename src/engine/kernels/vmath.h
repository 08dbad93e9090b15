/* vmath.h - exp, log, erf, tanh, sigmoid, sin, cos and the activations on sixteen lanes.
 *
 * One polynomial each, the same for every level, so the bits agree. tools/polynomials.py makes the
 * coefficients. The errors stated are the largest over all floats, in units in the last place of
 * the true value, subnormal results included; tests/unit/engine/kernels/test_kernels_math.c
 * measures them. NaN gives NaN; limits are those of C (Annex F). */
#ifndef PITH_ENGINE_KERNELS_VMATH_H
#define PITH_ENGINE_KERNELS_VMATH_H

#include <math.h>

#include "engine/kernels/vec.h"

/* Inlined where vectors are registers; the arrays of the scalar level would only make code grow. */
#if defined(PITH_LEVEL_scalar)
#define PITH_VMATH static inline
#else
#define PITH_VMATH PITH_INLINE
#endif

/* Vectors that functions with chains take side by side at most. */
enum { PITH_CHAINS_MAX = 8 };

/* y = c[0] x^(count - 1) + … + c[count - 1], by Horner's rule, for each of the chains: the steps of
 * one wait for each other, those of different chains do not. */
PITH_VMATH void vf_poly(vf *y, const vf *x, const int chains, const float *c, const int count) {
    PITH_UNROLL
    for (int i = 0; i < chains; i++) y[i] = vf_set1(c[0]);
    PITH_UNROLL
    for (int step = 1; step < count; step++) {
        PITH_UNROLL
        for (int i = 0; i < chains; i++) y[i] = vf_fma(y[i], x[i], vf_set1(c[step]));
    }
}
#define PITH_POLY_EACH(y, x, chains, ...)                                                          \
    vf_poly(y, x, chains, (const float[]){ __VA_ARGS__ },                                          \
            (int)(sizeof((const float[]){ __VA_ARGS__ }) / sizeof(float)))
PITH_VMATH vf vf_poly_one(vf x, const float *c, const int count) {
    vf y;
    vf_poly(&y, &x, 1, c, count);
    return y;
}
#define PITH_POLY(x, ...)                                                                          \
    vf_poly_one(x, (const float[]){ __VA_ARGS__ },                                                 \
                (int)(sizeof((const float[]){ __VA_ARGS__ }) / sizeof(float)))

/* Adding 1.5 * 2^23 rounds to an integer, found in the low bits of the sum; good for |x| < 2^22. */
#define PITH_ROUND_MAGIC 0x1.8p23f

/* Ranges below this have reciprocals beyond f32: where numbers become integers they count as
 * nothing. */
#define PITH_RANGE_MIN 0x1p-100f

/* e^x where x is within [-104, 89] or NaN. x = n ln 2 + r, |r| <= ln 2 / 2. */
PITH_VMATH vf vf_exp_core(vf x) {
    const vf magic = vf_set1(PITH_ROUND_MAGIC);
    vf n = vf_sub(vf_fma(x, vf_set1(0x1.715476p0f), magic), magic);
    vf r = vf_fma(n, vf_set1(-0x1.62e430p-1f), x);
    r = vf_fma(n, vf_set1(0x1.05c610p-29f), r);
    vf q = PITH_POLY(r, 0x1.6a215ep-10f, 0x1.123b9ap-7f, 0x1.5558fcp-5f, 0x1.555490p-3f,
                     0x1.fffffcp-2f, 1.0f, 1.0f);
    return vf_ldexp(q, n);
}

/* e^x, 1 ulp. Below -104 it is 0, above 89 infinity. */
PITH_VMATH vf vf_exp(vf x) {
    /* min and max return their second operand for NaN, so NaN passes. */
    return vf_exp_core(vf_min(vf_set1(89.0f), vf_max(vf_set1(-104.0f), x)));
}

/* x = n + f for each of the chains, n integral, f within [-0.5, 0.5], both exact; y = 2^f, 1 where
 * f is 0. */
PITH_VMATH void vf_exp2_core(vf *y, vf *n, const vf *x, const int chains) {
    vf f[PITH_CHAINS_MAX];
    PITH_UNROLL
    for (int i = 0; i < chains; i++) n[i] = vf_round(x[i]);
    PITH_UNROLL
    for (int i = 0; i < chains; i++) f[i] = vf_sub(x[i], n[i]);
    PITH_POLY_EACH(y, f, chains, 0x1.5bba14p-10f, 0x1.3cea88p-7f, 0x1.c6b752p-5f, 0x1.ebf9bcp-3f,
                   0x1.62e42ap-1f, 1.0f);
}

/* 2^x where x is not above 125, 2.1 ulp; 0 where that would be subnormal. Fewer operations than
 * e^x. */
PITH_VMATH vf vf_exp2(vf x) {
    vf y, n;
    vf_exp2_core(&y, &n, &x, 1);
    return vf_keep(vf_not_lt(x, vf_set1(-126.0f)), vf_scale(y, n));
}

/* e log 2 + log(1 + f), 1 + f within [sqrt(1/2), sqrt 2). */
PITH_VMATH vf vf_log_core(vf e, vf f) {
    vf q =
        PITH_POLY(f, 0x1.145e60p-4f, -0x1.de3708p-4f, 0x1.e6ea30p-4f, -0x1.fc227ep-4f,
                  0x1.2337eap-3f, -0x1.555c4ep-3f, 0x1.99a4aep-3f, -0x1.000006p-2f, 0x1.555548p-2f);
    vf s = vf_mul(f, f);
    q = vf_fma(vf_mul(q, f), s, vf_mul(e, vf_set1(-0x1.05c610p-29f)));
    q = vf_fma(s, vf_set1(-0.5f), q);
    return vf_fma(e, vf_set1(0x1.62e430p-1f), vf_add(f, q));
}

/* log x, 1 ulp. x = 2^e (1 + f), 1 + f within [sqrt(1/2), sqrt 2). */
PITH_VMATH vf vf_log(vf x) {
    vm tiny = vf_lt(x, vf_set1(0x1p-126f));
    vf y = vf_select(tiny, vf_mul(x, vf_set1(0x1p23f)), x);
    vi i = vi_sub(vi_bits(y), vi_set1(0x3F3504F3));
    vf e = vf_add(vf_of_vi(vi_sar(i, 23)), vf_select(tiny, vf_set1(-23.0f), vf_zero()));
    vf f =
        vf_sub(vf_bits(vi_add(vi_and(i, vi_set1(0x7FFFFF)), vi_set1(0x3F3504F3))), vf_set1(1.0f));
    vf r = vf_log_core(e, f);
    r = vf_select(vf_lt(x, vf_set1(INFINITY)), r, x); /* infinity and NaN */
    r = vf_select(vf_eq(x, vf_zero()), vf_set1(-INFINITY), r);
    return vf_select(vf_lt(x, vf_zero()), vf_set1(NAN), r);
}

/* log(1 + e^x) = max(x, 0) + log(1 + t), t = e^-|x|; 2 ulp. 1 + t is 1 + f, or 2 (1 + f) with f =
 * (t - 1) / 2. */
PITH_VMATH vf vf_softplus(vf x) {
    vf t = vf_exp(vf_neg(vf_abs(x)));
    vm upper = vf_gt(t, vf_set1(0x1.a8p-2f));
    vf f = vf_select(upper, vf_mul(vf_sub(t, vf_set1(1.0f)), vf_set1(0.5f)), t);
    return vf_add(vf_max(vf_zero(), x), vf_log_core(vf_keep(upper, vf_set1(1.0f)), f));
}

/* x tanh(log(1 + e^x)) = x n / (n + 2), n = e^x (e^x + 2), which beyond 20 is x; 4.5 ulp, or 1e-43.
 */
PITH_VMATH vf vf_mish(vf x) {
    vf e = vf_exp(vf_min(vf_set1(20.0f), x)), n = vf_mul(e, vf_add(e, vf_set1(2.0f)));
    return vf_mul(x, vf_div(n, vf_add(n, vf_set1(2.0f))));
}

/* e^x - 1 where x is not above 0, or NaN; 2 ulp. x = n ln 2 + r as for e^x; 2^n (e^r - 1) + (2^n -
 * 1). */
PITH_VMATH vf vf_expm1_below(vf x) {
    const vf magic = vf_set1(PITH_ROUND_MAGIC), one = vf_set1(1.0f);
    x = vf_max(vf_set1(-20.0f), x);
    vf n = vf_sub(vf_fma(x, vf_set1(0x1.715476p0f), magic), magic);
    vf r = vf_fma(n, vf_set1(-0x1.62e430p-1f), x);
    r = vf_fma(n, vf_set1(0x1.05c610p-29f), r);
    vf q = PITH_POLY(r, 0x1.6a215ep-10f, 0x1.123b9ap-7f, 0x1.5558fcp-5f, 0x1.555490p-3f,
                     0x1.fffffcp-2f);
    q = vf_fma(vf_mul(r, r), q, r);
    vf power = vf_ldexp(one, n);
    return vf_fma(power, q, vf_sub(power, one));
}

/* erf x, 1.5 ulp: x + x times a polynomial in x^2 below 1, 1 - e^(a polynomial) above. */
PITH_VMATH vf vf_erf(vf x) {
    vf a = vf_abs(x), s = vf_mul(x, x);
    vf p = PITH_POLY(s, 0x1.496a30p-14f, -0x1.a3f700p-11f, 0x1.5405b2p-8f, -0x1.b7f90cp-6f,
                     0x1.ce2cf8p-4f, -0x1.81273ep-2f, 0x1.06eba8p-3f);
    p = vf_fma(a, p, a);
    vf q = PITH_POLY(vf_min(vf_set1(4.0f), a), 0x1.86dd72p-13f, -0x1.825aeep-9f, 0x1.65cb72p-6f,
                     -0x1.a65340p-4f, -0x1.46baecp-1f, -0x1.2088eap+0f, -0x1.661d7cp-12f);
    q = vf_sub(vf_set1(1.0f), vf_exp_core(q));
    return vf_copysign(vf_select(vf_lt(a, vf_set1(1.0f)), p, q), x);
}

/* tanh x, 1.5 ulp. A polynomial below 0.625, 1 - 2 / (e^2|x| + 1) above. */
PITH_VMATH vf vf_tanh(vf x) {
    vf a = vf_abs(x), s = vf_mul(x, x);
    vf p = PITH_POLY(s, 0x1.195366p-9f, -0x1.0c19aap-7f, 0x1.639428p-6f, -0x1.b9ef86p-5f,
                     0x1.11106cp-3f, -0x1.555554p-2f);
    p = vf_fma(vf_mul(p, s), a, a);
    vf e = vf_exp_core(vf_min(vf_set1(20.0f), vf_add(a, a)));
    vf one = vf_set1(1.0f);
    vf q = vf_sub(one, vf_div(vf_set1(2.0f), vf_add(e, one)));
    return vf_copysign(vf_select(vf_lt(a, vf_set1(0.625f)), p, q), x);
}

/* 1 / (1 + e^-x), 2.5 ulp. */
PITH_VMATH vf vf_sigmoid(vf x) {
    vf e = vf_exp(vf_neg(vf_abs(x))), one = vf_set1(1.0f);
    return vf_div(vf_select(vf_lt(x, vf_zero()), e, one), vf_add(e, one));
}

/* x / 2 * (1 + erf(x / sqrt 2)) = max(x, 0) + n P(n), n = -|x|, where P, the share of a normal
 * distribution below n, is 2^(a polynomial in n); from -10 on, where it is 2^-62, n stays. Error at
 * most 1.5e-7 or 2 ulp. For each of the chains. */
PITH_VMATH void vf_gelu_each(vf *y, const vf *x, const int chains) {
    vf n[PITH_CHAINS_MAX], power[PITH_CHAINS_MAX], whole[PITH_CHAINS_MAX], share[PITH_CHAINS_MAX];
    PITH_UNROLL
    for (int i = 0; i < chains; i++)
        n[i] = vf_max(vf_set1(-10.0f), vf_bits(vi_or(vi_bits(x[i]), vi_set1(INT32_MIN))));
    PITH_POLY_EACH(power, n, chains, -0x1.1ecfc4p-18f, -0x1.abe0c8p-17f, 0x1.2df764p-11f,
                   0x1.f6bb6ap-8f, 0x1.b1c1c0p-5f, -0x1.d60f96p-2f, 0x1.26b042p+0f, -1.0f);
    vf_exp2_core(share, whole, power, chains);
    PITH_UNROLL
    for (int i = 0; i < chains; i++) {
        /* of -infinity NaN, as by the formula */
        y[i] = vf_fma(n[i], vf_scale(share[i], whole[i]), vf_sub(x[i], vf_min(x[i], vf_zero())));
    }
}
PITH_VMATH vf vf_gelu(vf x) {
    vf_gelu_each(&x, &x, 1);
    return x;
}

/* GELU for results of 8-bit products, whose own noise is a hundred times as large: P a polynomial
 * itself, n at least -3.84. Error at most 1.3e-4. */
PITH_VMATH vf vf_gelu_coarse(vf x) {
    const vf n = vf_max(vf_set1(-3.84f), vf_bits(vi_or(vi_bits(x), vi_set1(INT32_MIN))));
    const vf share = PITH_POLY(n, -0x1.75de6ap-11f, -0x1.62f142p-7f, -0x1.fd791cp-5f,
                               -0x1.367464p-3f, -0x1.d8c6d8p-5f, 0x1.87052ep-2f, 0x1.fe96e4p-2f);
    return vf_fma(n, share, vf_sub(x, vf_min(x, vf_zero())));
}

/* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), error at most 1.5e-7 * max(|x|, 1): the
 * sum cancels where x is negative. */
PITH_VMATH vf vf_gelu_tanh(vf x) {
    vf h = vf_mul(x, vf_set1(0.5f)), s = vf_mul(x, x);
    vf inner = vf_mul(vf_fma(vf_mul(s, vf_set1(0.044715f)), x, x), vf_set1(0x1.988454p-1f));
    return vf_fma(h, vf_tanh(inner), h);
}

/* x / (1 + e^-x), 3.5 ulp; below -87, where e^x is subnormal, 1e-43. */
PITH_VMATH vf vf_silu(vf x) { return vf_mul(x, vf_sigmoid(x)); }

/* x / (1 + e^-1.702x), 1.702 as a float. The factor's rounding grows with |x| where the result
 * vanishes: error at most 1.5e-7 * max(|x|, 1), or 4 ulp. */
PITH_VMATH vf vf_quick_gelu(vf x) { return vf_mul(x, vf_sigmoid(vf_mul(x, vf_set1(1.702f)))); }

/* Where |x| is beyond this, sine and cosine go lane by lane through double. */
#define PITH_SIN_LIMIT 100000.0f

/* sin(x + quarters * pi / 2), 1.6 ulp for |x| <= PITH_SIN_LIMIT. x = n pi / 2 + r with pi / 2 in
 * three parts: the first step is exact, the others lose nothing to cancellation. */
PITH_VMATH vf vf_sin_quarters(vf x, int32_t quarters) {
    const vf magic = vf_set1(PITH_ROUND_MAGIC);
    vf t = vf_fma(x, vf_set1(0x1.45f306p-1f), magic), n = vf_sub(t, magic);
    vi quadrant = vi_add(vi_bits(t), vi_set1(quarters));
    vf r = vf_fma(n, vf_set1(-0x1.921fb6p0f), x);
    r = vf_fma(n, vf_set1(0x1.777a5cp-25f), r);
    r = vf_fma(n, vf_set1(0x1.ee59dap-50f), r);
    vf s = vf_mul(r, r);
    vf sine = PITH_POLY(s, -0x1.994b68p-13f, 0x1.110758p-7f, -0x1.555546p-3f);
    sine = vf_fma(vf_mul(sine, s), r, r);
    vf cosine = PITH_POLY(s, 0x1.99ffb0p-16f, -0x1.6c0c84p-10f, 0x1.55554ap-5f, -0.5f, 1.0f);
    vf y = vf_select(vi_eq(vi_and(quadrant, vi_set1(1)), vi_set1(0)), sine, cosine);
    return vf_bits(vi_xor(vi_bits(y), vi_shl(vi_and(quadrant, vi_set1(2)), 30)));
}

/* For the few lanes beyond the range in which three parts of pi / 2 are enough. */
PITH_VMATH vf vf_lanes_double(vf x, double (*f)(double)) {
    float t[16];
    vf_store(t, x);
    for (int i = 0; i < 16; i++) t[i] = (float)f(t[i]);
    return vf_load(t);
}
PITH_VMATH vf vf_sin(vf x) {
    vm large = vf_gt(vf_abs(x), vf_set1(PITH_SIN_LIMIT));
    vf y = vf_sin_quarters(x, 0);
    y = vf_select(vf_eq(x, vf_zero()), x, y); /* the sign of zero */
    return vm_any(large) ? vf_select(large, vf_lanes_double(x, sin), y) : y;
}
PITH_VMATH vf vf_cos(vf x) {
    vm large = vf_gt(vf_abs(x), vf_set1(PITH_SIN_LIMIT));
    vf y = vf_sin_quarters(x, 1);
    return vm_any(large) ? vf_select(large, vf_lanes_double(x, cos), y) : y;
}

#endif
