/* Numbers are read as the C library reads them: any digits and exponents, and the middles of two
 * doubles. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/formats/read_double.h"

static uint64_t state = 88172645463325252u;

static uint64_t next(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static void same(const char *text) {
    const double got = pith__read_double((pith_str){ text, strlen(text) }),
                 want = strtod(text, NULL);
    if (memcmp(&got, &want, sizeof got)) fail_msg("%s: %.17g, not %.17g", text, got, want);
}

static void single(void **unused) {
    static const char *const texts[] = {
        "0",
        "-0",
        "0e99999",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "-1.8e308",
        "5e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "-2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "9007199254740993",
        "9007199254740993.00000000000000000000000000000000000000001",
        "123456789012345678901234567890",
        "0.000000000000000000000000000000000000000001e42"
    };
    (void)unused;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) same(texts[i]);
}

static void random_digits(void **unused) {
    static char text[2100];
    (void)unused;
    for (int i = 0; i < 200000; i++) {
        size_t n = 0;
        const size_t digits = i % 100 ? 1 + next() % 40 : 1 + next() % 2000,
                     point = next() % (digits + 1);
        if (next() % 4 == 0) text[n++] = '-';
        for (size_t d = 0; d < digits; d++) {
            text[n++] = (char)('0' + next() % 10);
            if (d == point && d + 1 < digits) text[n++] = '.';
        }
        snprintf(text + n, sizeof text - n, next() % 8 ? "e%d" : "", (int)(next() % 700) - 350);
        same(text);
    }
}

/* The middle of two doubles rounds to the even one; a bit more than the middle rounds up. */
static void middles(void **unused) {
    static char text[1400];
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        const int exponent = (int)(next() % 2098) - 1074;
        const uint64_t mantissa =
            (exponent == -1074 ? next() >> 12 : next() >> 11 | UINT64_C(1) << 52) | (i & 1);
        const long double middle = ldexpl((long double)(mantissa * 2 + 1), exponent - 1);
        if (exponent > 970) continue;
        snprintf(text, sizeof text, "%.1100Lg", middle);
        char *e = strchr(text, 'e');
        same(text);
        if (e || !strchr(text, '.')) continue;
        strcat(text, "0000000001");
        same(text);
    }
}

int main(void) {
#if LDBL_MANT_DIG < 64
    const struct CMUnitTest tests[] = { cmocka_unit_test(single), cmocka_unit_test(random_digits) };
    (void)middles;
#else
    const struct CMUnitTest tests[] = { cmocka_unit_test(single), cmocka_unit_test(random_digits),
                                        cmocka_unit_test(middles) };
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
