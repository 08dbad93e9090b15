/* The largest error of the own math functions over all floats, in units in the last place of the
 * true value, held against what vmath.h states. The true value is libm's in double, whose own error
 * is below 1e-5 of a float's last place. A prime stride samples the bit patterns; PITH_TEST_LONG=1
 * takes them all. */
#include "support/kernel_test.h"

#include <math.h>
#include <stdio.h>

#include "engine/kernels/maps.h"
#include "engine/kernels/unary.h"

static double gelu(double x) { return x / 2 * erfc(-x / sqrt(2)); }
static double gelu_tanh(double x) {
    double u = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
    return x / (1 + exp(-2 * u));
}
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x * sigmoid(x); }
static double softplus(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))); }
static double mish(double x) {
    double e = exp(fmin(x, 40)), n = e * (e + 2);
    return x * (n / (n + 2));
}
static double quick_gelu(double x) { return x * sigmoid((double)1.702f * x); }

static const struct {
    const char *family;
    double (*f)(double);
    double ulp;      /* allowed */
    double absolute; /* or, where not 0, this times max(|x|, 1) */
    float limit;     /* tested for |x| up to here, infinity included if infinite */
} functions[] = {
    { "exp", exp, 1.0, 0, INFINITY },
    { "log", log, 1.0, 0, INFINITY },
    { "erf", erf, 1.5, 0, INFINITY },
    { "tanh", tanh, 1.5, 0, INFINITY },
    { "sigmoid", sigmoid, 2.5, 0, INFINITY },
    { "sin", sin, 1.6, 0, INFINITY },
    { "cos", cos, 1.6, 0, INFINITY },
    { "silu", silu, 3.5, 1e-43, 3e38f },
    { "gelu", gelu, 2.0, 1.5e-7, 3e38f },
    { "gelu_coarse", gelu, 2.0, 1.3e-4, 3e38f },
    { "gelu_tanh", gelu_tanh, 2.0, 1.5e-7, 1e12f },
    { "softplus", softplus, 2.0, 0, INFINITY },
    { "mish", mish, 4.5, 1e-43, 3e38f },
    { "quick_gelu", quick_gelu, 4.0, 1.5e-7, 1e38f },
};

static double error_in_ulp(float y, double exact) {
    if (y != y || exact != exact) return (y != y) == (exact != exact) ? 0 : INFINITY;
    if (isinf((float)exact) || isinf(y)) return (float)exact == y ? 0 : INFINITY;
    int exponent = exact == 0 ? -126 : ilogb(exact);
    if (exponent < -126) exponent = -126;
    return ldexp(fabs((double)y - exact), 23 - exponent);
}

static void test_ulp(void **state) {
    (void)state;
    enum { BLOCK = 4096 };
    const uint64_t stride = getenv("PITH_TEST_LONG") ? 1 : 8191;
    static float x[BLOCK], y[BLOCK];
    int failed = 0;
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        pith__unary_f32_fn *fn = PITH_KERNEL_FIND(pith__unary_f32_fn, functions[f].family, PITH_F32,
                                                  pith__cpu_get()->isa);
        double worst = 0, worst_absolute = 0;
        float at = 0;
        for (uint64_t bits = 0; bits < (uint64_t)1 << 32;) {
            size_t n = 0;
            for (; n < BLOCK && bits < (uint64_t)1 << 32; bits += stride) {
                uint32_t low = (uint32_t)bits;
                memcpy(&x[n], &low, sizeof low);
                if (!(fabsf(x[n]) > functions[f].limit)) n++;
            }
            fn(x, y, n);
            for (size_t i = 0; i < n; i++) {
                double exact = functions[f].f((double)x[i]);
                double e = error_in_ulp(y[i], exact);
                if (e > functions[f].ulp && functions[f].absolute > 0) {
                    e = fabs((double)y[i] - exact) / fmax(fabs((double)x[i]), 1);
                    worst_absolute = fmax(worst_absolute, e);
                } else if (e > worst) {
                    worst = e, at = x[i];
                }
            }
        }
        print_message(
            "%-10s %.3f ulp at %a (allowed %.1f), %.3g * max(|x|, 1) elsewhere (allowed %g)\n",
            functions[f].family, worst, (double)at, functions[f].ulp, worst_absolute,
            functions[f].absolute);
        failed |= worst > functions[f].ulp || worst_absolute > functions[f].absolute;
    }
    assert_false(failed);
}

/* e^x - 1 below zero, by ELU with the factor 1. */
static void test_expm1(void **state) {
    (void)state;
    static const double parameters[2] = { 1, 0 };
    pith__map_fn *elu = PITH_KERNEL_FIND(pith__map_fn, "map_elu", PITH_F32, pith__cpu_get()->isa);
    double worst = 0;
    for (uint64_t bits = 0x80000001; bits <= 0xFF800000;
         bits += getenv("PITH_TEST_LONG") ? 1 : 1021) {
        uint32_t low = (uint32_t)bits;
        float x, y;
        memcpy(&x, &low, sizeof x);
        elu(&y, &x, 1, parameters);
        worst = fmax(worst, error_in_ulp(y, expm1((double)x)));
    }
    print_message("expm1      %.3f ulp (allowed 2.0)\n", worst);
    assert_true(worst <= 2.0);
}

/* Limits and signs as C's Annex F has them. */
static void test_limits(void **state) {
    (void)state;
    static const struct {
        const char *family;
        float x, y;
    } cases[] = {
        { "exp", INFINITY, INFINITY },  { "exp", -INFINITY, 0.0f },
        { "exp", 0.0f, 1.0f },          { "exp", 89.0f, INFINITY },
        { "exp", -104.0f, 0.0f },       { "log", 0.0f, -INFINITY },
        { "log", -0.0f, -INFINITY },    { "log", -1.0f, NAN },
        { "log", INFINITY, INFINITY },  { "log", 1.0f, 0.0f },
        { "erf", -0.0f, -0.0f },        { "erf", INFINITY, 1.0f },
        { "erf", -INFINITY, -1.0f },    { "tanh", -0.0f, -0.0f },
        { "tanh", INFINITY, 1.0f },     { "tanh", -INFINITY, -1.0f },
        { "sin", -0.0f, -0.0f },        { "sin", INFINITY, NAN },
        { "cos", 0.0f, 1.0f },          { "cos", -INFINITY, NAN },
        { "sigmoid", INFINITY, 1.0f },  { "sigmoid", -INFINITY, 0.0f },
        { "sigmoid", 0.0f, 0.5f },      { "relu", NAN, NAN },
        { "relu", -3.0f, 0.0f },        { "sqrt", -1.0f, NAN },
        { "sqrt", -0.0f, -0.0f },       { "neg", 0.0f, -0.0f },
        { "abs", -INFINITY, INFINITY }, { "reciprocal", -0.0f, -INFINITY },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!level_usable(level)) continue;
            float y;
            PITH_KERNEL_FIND(pith__unary_f32_fn, cases[i].family, PITH_F32, (pith__isa)level)
            (&cases[i].x, &y, 1);
            if (!same_float(y, cases[i].y))
                fail_msg("%s(%g) is %g", cases[i].family, (double)cases[i].x, (double)y);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_ulp), cmocka_unit_test(test_expm1),
                                        cmocka_unit_test(test_limits) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
