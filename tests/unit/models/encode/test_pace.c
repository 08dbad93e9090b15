/* test_pace.c - windows that are steered by a target time, on a made-up machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "models/encode/pace.h"

static uint64_t seed;

static double uniform(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Runs `windows` windows of texts of 20 to 400 bytes. A window takes `fixed` seconds and `cost` per
 * byte, with noise. Returns the 90th percentile of their times; *texts: how many texts there were
 * in the last window. */
static double simulate(pith__pace *pace, int windows, double fixed, double cost, double noise,
                       size_t *texts) {
    enum { MOST = 400 };
    double times[MOST];
    for (int w = 0; w < windows; w++) {
        size_t bytes = 0;
        for (*texts = 0; !*texts || pith__pace_admits(pace, *texts, bytes); ++*texts)
            bytes += 20 + (size_t)(380 * uniform());
        times[w] = (fixed + cost * (double)bytes) * (1 + noise * uniform());
        pith__pace_note(pace, *texts, bytes, times[w]);
    }
    qsort(times, (size_t)windows, sizeof *times, ascending);
    return times[windows * 9 / 10];
}

static void test_targets(void **state) {
    (void)state;
    static const double targets[] = { 0.005, 0.02, 0.1 };
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        for (double noise = 0; noise < 0.5; noise += 0.2) {
            pith__pace pace;
            size_t texts;
            seed = i + 7;
            pith__pace_begin(&pace, targets[i], 1, 1 << 20);
            double p90 = simulate(&pace, 200, 0.0003, 2e-6, noise, &texts);
            assert_true(p90 <= 1.2 * targets[i]);
            assert_true(p90 >= 0.6 * targets[i]); /* windows are not needlessly small */
        }
    }
}

/* The machine becomes three times slower: windows shrink. */
static void test_change(void **state) {
    (void)state;
    pith__pace pace;
    size_t before, after;
    seed = 3;
    pith__pace_begin(&pace, 0.02, 1, 1 << 20);
    simulate(&pace, 100, 0.0003, 2e-6, 0.1, &before);
    simulate(&pace, 60, 0.0003, 6e-6, 0.1, &after);
    assert_true(after < before / 2);
    assert_true(simulate(&pace, 100, 0.0003, 6e-6, 0.1, &after) <= 1.2 * 0.02);
}

static void test_bounds(void **state) {
    (void)state;
    pith__pace pace;
    size_t texts;
    seed = 3;
    pith__pace_begin(&pace, 1e-9, 4, 64); /* out of reach: the least */
    simulate(&pace, 30, 0.0003, 2e-6, 0, &texts);
    assert_int_equal(texts, 4);
    pith__pace_begin(&pace, 1e3, 4, 64); /* no limit: the most */
    simulate(&pace, 30, 0.0003, 2e-6, 0, &texts);
    assert_int_equal(texts, 64);
    pith__pace_begin(&pace, 0, 4, 64); /* not steered: the most from the first */
    simulate(&pace, 1, 0.0003, 2e-6, 0, &texts);
    assert_int_equal(texts, 64);
    pith__pace_begin(&pace, 0.02, 2, 1 << 20); /* the first windows feel their way */
    simulate(&pace, 1, 0.0003, 2e-6, 0, &texts);
    assert_int_equal(texts, 2);
    simulate(&pace, 1, 0.0003, 2e-6, 0, &texts);
    assert_true(texts <= 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_change),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
