/* Floats as text: the characters of printf, for random numbers, powers of ten and what surrounds
 * them, and ties. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/base/float_text.h"

static void check(float x) {
    char wanted[64], got[NUMBER_CHARS];
    snprintf(wanted, sizeof wanted, "%.9g", (double)x);
    size_t size = number_print(got, x);
    assert_string_equal(got, wanted);
    assert_int_equal(size, strlen(wanted));
}

static void test_random(void **state) {
    (void)state;
    uint32_t bits = 1;
    for (int i = 0; i < 300000; i++) {
        float x, ordinary;
        bits = bits * 1664525 + 1013904223;
        memcpy(&x, &bits, sizeof x);
        check(x);
        ordinary = (float)(int32_t)bits * 0x1p-33f;
        check(ordinary);
    }
}

static void test_edges(void **state) {
    (void)state;
    for (int power = -12; power <= 12; power++) {
        float below = (float)pow(10, power), above = below;
        for (int i = 0; i < 200;
             i++, below = nextafterf(below, 0), above = nextafterf(above, INFINITY)) {
            check(below), check(-below);
            check(above), check(-above);
        }
    }
    for (int power = -30; power <= 30; power++) /* few binary digits: exact ties */
        for (int odd = 1; odd < 2000; odd += 2) check((float)ldexp(odd, power));
    const float special[] = { 0.0f,    -0.0f,      INFINITY,   -INFINITY, NAN,
                              0x1p23f, 8388607.5f, 9999999.5f, 0.5f,      1.0f };
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) check(special[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_random),
                                        cmocka_unit_test(test_edges) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
