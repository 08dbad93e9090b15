/* test_picture_vectors.c - the loops over pictures that take several bytes at a time, against the
 * definition in plain C: weighted sums of bytes, and bytes as planes of floats. Inputs end where
 * they may, so that sanitizers see what is read beyond. The test runs at every instruction set
 * level (tests/CMakeLists.txt). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "images/float_planes.h"
#include "images/resize_sums.h"

static uint32_t seed = 1;

static uint32_t next(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static uint8_t *bytes_of(size_t count) {
    uint8_t *bytes = malloc(count);
    uint32_t kind = next(3); /* all white, white and black, anything */
    for (size_t i = 0; i < count; i++)
        bytes[i] = kind == 0 ? 255 : kind == 1 ? (uint8_t)(next(2) * 255) : (uint8_t)next(256);
    return bytes;
}

/* As those of a filter: their sum is one, and some are negative. One weight alone is one. */
static void weights_of(int32_t *weights, int32_t count) {
    int32_t sum = 0;
    for (int32_t k = 0; k < count; k++) {
        weights[k] = (int32_t)next(1 << PITH_RESIZE_PLACES) / count -
                     (next(4) ? 0 : (1 << (PITH_RESIZE_PLACES - 3)) / count);
        sum += weights[k];
    }
    weights[next((uint32_t)count)] += (1 << PITH_RESIZE_PLACES) - sum;
}

static uint8_t byte_of(int64_t sum) {
    sum = (sum + (1 << (PITH_RESIZE_PLACES - 1))) >> PITH_RESIZE_PLACES;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void check_along(int channels, int32_t in, int32_t out, int32_t taps) {
    const size_t pixel = (size_t)channels, halves = pith__resize_halves(taps), width = (size_t)out;
    const size_t to_step = width * pixel + next(3), from_step = (size_t)in * pixel + next(3);
    const int lines = 1 + (channels == 3 ? (int)next(2) : 0);
    uint8_t *from =
        bytes_of((size_t)(lines - 1) * from_step + (size_t)in * pixel + PITH_RESIZE_OVERREAD);
    uint8_t *to = calloc((size_t)(lines - 1) * to_step + width * pixel, 1);
    int32_t *weights = calloc(width * (size_t)taps, sizeof *weights),
            *first = calloc(width, sizeof *first);
    int32_t *counts = calloc(width, sizeof *counts);
    int16_t *split = calloc(width * halves, sizeof *split);
    for (size_t i = 0; i < width; i++) {
        counts[i] = 1 + (int32_t)next((uint32_t)taps);
        first[i] = (int32_t)next((uint32_t)(in - counts[i] + 1));
        weights_of(weights + i * (size_t)taps, counts[i]);
        pith__resize_split(split + i * halves, weights + i * (size_t)taps, counts[i], taps);
    }
    const pith__resize_row row = { split, first, counts, out, taps };
    const pith__resize_lines both = { to, from, to_step, from_step, lines };
    pith__resize_sum_along(&both, &row, channels);
    for (size_t n = 0; n < (size_t)lines * width * pixel; n++) {
        const size_t line = n / (width * pixel), i = n / pixel % width, c = n % pixel;
        int64_t sum = 0;
        for (int32_t k = 0; k < counts[i]; k++)
            sum += (int64_t)weights[i * (size_t)taps + (size_t)k] *
                   from[line * from_step + (size_t)(first[i] + k) * pixel + c];
        assert_int_equal(to[line * to_step + i * pixel + c], byte_of(sum));
    }
    free(from), free(to), free(weights), free(first), free(counts), free(split);
}

static void check_down(size_t bytes, int32_t count, int32_t taps) {
    uint8_t *rows = bytes_of(bytes * (size_t)count), *to = calloc(bytes, 1);
    int32_t *weights = calloc((size_t)taps, sizeof *weights);
    int16_t *split = calloc(pith__resize_halves(taps), sizeof *split);
    weights_of(weights, count);
    pith__resize_split(split, weights, count, taps);
    pith__resize_sum_down(to, rows, bytes, split, count);
    for (size_t i = 0; i < bytes; i++) {
        int64_t sum = 0;
        for (int32_t k = 0; k < count; k++)
            sum += (int64_t)weights[k] * rows[(size_t)k * bytes + i];
        assert_int_equal(to[i], byte_of(sum));
    }
    free(rows), free(to), free(weights), free(split);
}

static void sums(void **unused) {
    (void)unused;
    if (!pith__resize_sums_usable()) skip();
    for (int n = 0; n < 400; n++) {
        const int32_t taps = 1 + (int32_t)next(n % 2 ? 9 : 40), in = taps + (int32_t)next(50);
        check_along(3 + n % 2, in, 1 + (int32_t)next(40), taps);
        check_down(32 + next(n % 3 ? 100 : 1000), 1 + (int32_t)next((uint32_t)taps), taps);
    }
}

static void planes(void **unused) {
    (void)unused;
    static const int orders[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 1, 2 } };
    for (int n = 0; n < 600; n++) {
        const int channels = n % 3 == 0 ? 1 : n % 3 + 2, *order = orders[n / 3 % 3];
        const size_t count = 1 + next(n < 300 ? 30 : 300);
        uint8_t *pixels = bytes_of(count * (size_t)channels);
        float *rows[3];
        for (int p = 0; p < 3; p++) rows[p] = malloc(count * sizeof(float));
        pith__planes_of_row(rows, pixels, channels, order, count);
        for (int p = 0; p < 3; p++) {
            for (size_t x = 0; x < count; x++)
                assert_true(rows[p][x] ==
                            pixels[x * (size_t)channels + (size_t)(channels == 1 ? 0 : order[p])]);
            free(rows[p]);
        }
        free(pixels);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(sums), cmocka_unit_test(planes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
