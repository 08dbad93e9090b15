/* Small floats: every pattern of every format is decoded by the definition in double, and every
 * encoding is compared with a search for the nearest representable value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "pith/pith.h"

typedef struct format {
    int dtype, bits, mantissa, bias;
    bool infinity, nan_all_ones, nan_negative_zero;
    unsigned max; /* pattern of the largest finite value */
} format;

static const format formats[] = {
    { PITH_F16, 16, 10, 15, true, false, false, 0x7BFF },
    { PITH_BF16, 16, 7, 127, true, false, false, 0x7F7F },
    { PITH_F8E4M3FN, 8, 3, 7, false, true, false, 0x7E },
    { PITH_F8E4M3FNUZ, 8, 3, 8, false, false, true, 0x7F },
    { PITH_F8E5M2, 8, 2, 15, true, false, false, 0x7B },
    { PITH_F8E5M2FNUZ, 8, 2, 16, false, false, true, 0x7F },
    { PITH_F4E2M1, 4, 1, 1, false, false, false, 0x7 },
};

/* The value by the definition of the format. */
static double define(unsigned pattern, const format *f) {
    int exponent_bits = f->bits - 1 - f->mantissa;
    bool negative = pattern >> (f->bits - 1);
    int exponent = (int)(pattern >> f->mantissa) & ((1 << exponent_bits) - 1);
    int mantissa = (int)pattern & ((1 << f->mantissa) - 1);
    if (f->nan_negative_zero && negative && !exponent && !mantissa) return NAN;
    if (exponent == (1 << exponent_bits) - 1) {
        if (f->infinity) return mantissa ? NAN : negative ? -INFINITY : INFINITY;
        if (f->nan_all_ones && mantissa == (1 << f->mantissa) - 1) return NAN;
    }
    double scale = pow(2, (exponent ? exponent : 1) - f->bias);
    double x = (mantissa / pow(2, f->mantissa) + (exponent ? 1 : 0)) * scale;
    return negative ? -x : x;
}

/* The same from a table of one format's values. */
static double value_of(unsigned pattern, const format *f) {
    static double values[1 << 16];
    static const format *made_for;
    if (made_for != f)
        for (unsigned p = 0; p < 1u << f->bits; p++) values[p] = define(p, f);
    made_for = f;
    return values[pattern];
}

static float decode(unsigned pattern, const format *f) {
    if (f->dtype == PITH_F16) return pith__f32_of_f16((uint16_t)pattern);
    if (f->dtype == PITH_BF16) return pith__f32_of_bf16((uint16_t)pattern);
    return pith__f32_of_f8((uint8_t)pattern, f->dtype);
}

static unsigned encode(float x, const format *f, bool saturate) {
    if (f->dtype == PITH_F16) return pith__f16_of_f32(x);
    if (f->dtype == PITH_BF16) return pith__bf16_of_f32(x);
    return pith__f8_of_f32(x, f->dtype, saturate);
}

static void decoding(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        assert_true(isfinite(value_of(formats[k].max, &formats[k])));
        assert_false(formats[k].bits > 4 && formats[k].max < 0x7F &&
                     isfinite(value_of(formats[k].max + 1, &formats[k])));
        for (unsigned pattern = 0; pattern < 1u << formats[k].bits; pattern++) {
            double want = value_of(pattern, &formats[k]);
            float got = decode(pattern, &formats[k]);
            if (isnan(want))
                assert_true(isnan(got));
            else if ((double)got != want || !signbit(got) != !signbit(want))
                fail_msg("format %d pattern %x: %g, not %g", formats[k].dtype, pattern, (double)got,
                         want);
        }
    }
}

/* Nearest by looking at the two neighbours; the even pattern at a tie. The step above the largest
 * value counts as one more value of the same spacing, and what rounds there has overflowed. */
static unsigned nearest(double x, const format *f, bool saturate) {
    unsigned sign = signbit(x) ? 1u << (f->bits - 1) : 0, max = f->max, low = 0, high = max + 1;
    double a = fabs(x);
    double beyond = 2 * value_of(max, f) - value_of(max - 1, f);
    bool over;
    if (a >= beyond) {
        over = true;
    } else {
        while (high - low > 1) {
            unsigned middle = (low + high) / 2;
            if (value_of(middle, f) <= a)
                low = middle;
            else
                high = middle;
        }
        double below = a - value_of(low, f),
               above = (low == max ? beyond : value_of(low + 1, f)) - a;
        if (above < below || (above == below && (low & 1))) low++;
        over = low > max;
    }
    if (over) {
        bool none = !f->infinity && !f->nan_all_ones && !f->nan_negative_zero;
        if (saturate || none)
            low = max;
        else if (f->nan_negative_zero)
            return 1u << (f->bits - 1);
        else
            low = max + 1;
    }
    if (f->nan_negative_zero && low == 0) return 0;
    return sign | low;
}

static void check(float x, const format *f) {
    for (int saturate = 0; saturate < 2; saturate++) {
        bool wide = f->bits == 16;
        unsigned got = encode(x, f, saturate), want = nearest(x, f, saturate && !wide);
        if (got != want)
            fail_msg("format %d, %a saturate %d: %x, not %x", f->dtype, (double)x, saturate, got,
                     want);
    }
}

static void encoding(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        const format *f = &formats[k];
        /* Each value, each half way point and their neighbours in f32. */
        for (unsigned p = 0; p <= f->max; p++) {
            float x = (float)value_of(p, f),
                  next = (float)(p == f->max ? 2 * value_of(p, f) - value_of(p - 1, f)
                                             : value_of(p + 1, f));
            float middle = (float)((double)x / 2 + (double)next / 2);
            const float points[] = { x, nextafterf(x, INFINITY), middle, nextafterf(middle, 0),
                                     nextafterf(middle, INFINITY) };
            for (size_t i = 0; i < 5; i++) {
                check(points[i], f);
                check(-points[i], f);
            }
        }
        uint32_t random = 12345;
        for (int i = 0; i < 200000; i++) {
            random = random * 1664525 + 1013904223;
            float x;
            memcpy(&x, &random, sizeof x);
            if (!isnan(x)) check(x, f);
        }
        check(INFINITY, f);
        check(-INFINITY, f);
        unsigned nan = encode(NAN, f, true);
        if (f->dtype == PITH_F4E2M1)
            assert_int_equal(nan, 8);
        else
            assert_true(isnan(decode(nan, f)));
    }
}

/* Once through f32 would round twice. */
static void f16_of_f64_rounds_once(void **state) {
    (void)state;
    assert_int_equal(pith__f16_of_f64(1 + 0x1p-11 + 0x1p-40), 0x3C01);
    assert_int_equal(pith__f16_of_f64(1 + 0x1p-11), 0x3C00);
    assert_int_equal(pith__f16_of_f64(0x1p-25 + 0x1p-70), 0x0001);
    assert_int_equal(pith__f16_of_f64(0x1p-25), 0x0000);
    assert_int_equal(pith__f16_of_f64(65519.999), 0x7BFF);
    assert_int_equal(pith__f16_of_f64(65520), 0x7C00);
    assert_int_equal(pith__f16_of_f64(-1e300), 0xFC00);
    assert_int_equal(pith__f16_of_f64(4e-320), 0x0000);
}

static void e8m0(void **state) {
    (void)state;
    for (int p = 0; p < 255; p++) {
        float x = pith__f32_of_f8((uint8_t)p, PITH_F8E8M0);
        assert_true((double)x == pow(2, p - 127));
        if (p) assert_int_equal(pith__f8_of_f32(x, PITH_F8E8M0, true), p);
        if (p && p < 254)
            assert_int_equal(pith__f8_of_f32(nextafterf(x, INFINITY), PITH_F8E8M0, true), p + 1);
    }
    assert_true(isnan(pith__f32_of_f8(255, PITH_F8E8M0)));
    assert_int_equal(pith__f8_of_f32(NAN, PITH_F8E8M0, true), 255);
    assert_int_equal(pith__f8_of_f32(0x1.8p127f, PITH_F8E8M0, true), 254);
    assert_int_equal(pith__f8_of_f32(0x1.8p127f, PITH_F8E8M0, false), 255);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(decoding), cmocka_unit_test(encoding),
                                        cmocka_unit_test(f16_of_f64_rounds_once),
                                        cmocka_unit_test(e8m0) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
