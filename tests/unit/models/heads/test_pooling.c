/* test_pooling.c - every pooling mode on numbers that have exact results, alone and joined; texts
 * without tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "models/heads/dense_request.h"
#include "models/heads/pooling.h"

enum { ROWS = 4, WIDTH = 3 };
#define AND(a, b) ((a) | (b) << PITH_POOL_BITS)

/* The maximum lies in the second, the last and the first row; the sums of four rows are 12, -6 and
 * 2. No mode may read the fifth. */
static const float rows[ROWS + 1][WIDTH] = {
    { 1, -8, 6 }, { 9, 2, -1 }, { -4, -3, -2 }, { 6, 3, -1 }, { 50, 60, 70 }
};

/* Behind the vector lie numbers that no mode may touch. */
static void check_after(uint32_t pooling, int64_t count, int64_t skip, const float *expected,
                        int parts) {
    float vector[PITH_POOL_PARTS_MAX * WIDTH + 1];
    for (int i = 0; i <= PITH_POOL_PARTS_MAX * WIDTH; i++) vector[i] = -99;
    pith__pool_rows(vector, pooling, rows[0], count, WIDTH, skip, false);
    assert_int_equal(pith__pool_parts(pooling), parts);
    for (int i = 0; i < parts * WIDTH; i++) assert_float_equal(vector[i], expected[i], 0);
    for (int i = parts * WIDTH; i <= PITH_POOL_PARTS_MAX * WIDTH; i++)
        assert_float_equal(vector[i], -99, 0);
}

static void check(uint32_t pooling, int64_t count, const float *expected, int parts) {
    check_after(pooling, count, 0, expected, parts);
}

/* Weighted: (1*1 + 2*9 - 3*4 + 4*6) / 10 and so on; 10 is 1 + 2 + 3 + 4. */
static void every_mode(void **state) {
    (void)state;
    check(PITH_POOL_CLS, ROWS, (const float[]){ 1, -8, 6 }, 1);
    check(PITH_POOL_LAST, ROWS, (const float[]){ 6, 3, -1 }, 1);
    check(PITH_POOL_LAST, 2, (const float[]){ 9, 2, -1 }, 1);
    check(PITH_POOL_MAX, ROWS, (const float[]){ 9, 3, 6 }, 1);
    check(PITH_POOL_MAX, 2, (const float[]){ 9, 2, 6 }, 1);
    check(PITH_POOL_MEAN, ROWS, (const float[]){ 3, -1.5f, 0.5f }, 1);
    check(PITH_POOL_MEAN, 2, (const float[]){ 5, -3, 2.5f }, 1);
    check(PITH_POOL_MEAN_SQRT, ROWS, (const float[]){ 6, -3, 1 }, 1);
    check(PITH_POOL_WEIGHTED, ROWS, (const float[]){ 3.1f, -0.1f, -0.6f }, 1);
    check(PITH_POOL_WEIGHTED, 3, (const float[]){ 7.0f / 6, -13.0f / 6, -2.0f / 6 }, 1);
    check(PITH_POOL_WEIGHTED, 2, (const float[]){ 19.0f / 3, -4.0f / 3, 4.0f / 3 }, 1);
}

/* One row is its own result in every mode. */
static void one_row(void **state) {
    (void)state;
    for (uint32_t mode = PITH_POOL_CLS; mode < PITH_POOL_MODES; mode++) check(mode, 1, rows[0], 1);
}

/* The parts stand in the order that was asked for, and may be there twice. */
static void joined(void **state) {
    (void)state;
    check(AND(PITH_POOL_CLS, PITH_POOL_MEAN), ROWS, (const float[]){ 1, -8, 6, 3, -1.5f, 0.5f }, 2);
    check(AND(PITH_POOL_LAST, PITH_POOL_MAX), ROWS, (const float[]){ 6, 3, -1, 9, 3, 6 }, 2);
    check(AND(PITH_POOL_CLS, AND(PITH_POOL_CLS, PITH_POOL_LAST)), ROWS,
          (const float[]){ 1, -8, 6, 1, -8, 6, 6, 3, -1 }, 3);
    check(AND(PITH_POOL_CLS, AND(PITH_POOL_MAX, AND(PITH_POOL_MEAN,
                                                    AND(PITH_POOL_MEAN_SQRT,
                                                        AND(PITH_POOL_WEIGHTED, PITH_POOL_LAST))))),
          ROWS,
          (const float[]){ 1, -8, 6, 9, 3, 6, 3, -1.5f, 0.5f, 6, -3, 1, 3.1f, -0.1f, -0.6f, 6, 3,
                           -1 },
          6);
}

/* Two rows are left out: (3 * -4 + 4 * 6) / 7 is the first component of the weighted mean. Then all
 * are. */
static void without_the_first(void **state) {
    (void)state;
    const float zero[WIDTH] = { 0 }, least[WIDTH] = { -INFINITY, -INFINITY, -INFINITY };
    check_after(PITH_POOL_CLS, ROWS, 2, rows[2], 1);
    check_after(PITH_POOL_LAST, ROWS, 2, rows[3], 1);
    check_after(PITH_POOL_MAX, ROWS, 2, (const float[]){ 6, 3, -1 }, 1);
    check_after(PITH_POOL_MEAN, ROWS, 2, (const float[]){ 1, 0, -1.5f }, 1);
    check_after(PITH_POOL_MEAN_SQRT, ROWS, 3, rows[3], 1);
    check_after(PITH_POOL_WEIGHTED, ROWS, 2, (const float[]){ 12.0f / 7, 3.0f / 7, -10.0f / 7 }, 1);
    for (int64_t skip = ROWS; skip < ROWS + 2; skip++) {
        check_after(PITH_POOL_CLS, ROWS, skip, rows[0], 1);
        check_after(PITH_POOL_LAST, ROWS, skip, zero, 1);
        check_after(PITH_POOL_MEAN, ROWS, skip, zero, 1);
        check_after(PITH_POOL_MEAN_SQRT, ROWS, skip, zero, 1);
        check_after(PITH_POOL_WEIGHTED, ROWS, skip, zero, 1);
        float vector[WIDTH];
        pith__pool_rows(vector, PITH_POOL_MAX, rows[0], ROWS, WIDTH, skip, false);
        assert_memory_equal(vector, least, sizeof vector);
    }
}

/* A NaN in any row is the maximum of its component. */
static void nan_is_kept(void **state) {
    (void)state;
    const float x[3][2] = { { NAN, 1 }, { 2, NAN }, { 3, 3 } };
    float vector[2];
    pith__pool_rows(vector, PITH_POOL_MAX, x[0], 3, 2, 0, false);
    assert_true(isnan(vector[0]) && isnan(vector[1]));
    pith__pool_rows(vector, PITH_POOL_MAX, x[1], 2, 2, 0, false);
    assert_float_equal(vector[0], 3, 0);
}

/* Of equal numbers the first stays, which shows in the sign of zero. */
static void first_of_equals(void **state) {
    (void)state;
    const float x[2][2] = { { 0.0f, -0.0f }, { -0.0f, 0.0f } };
    float vector[2];
    pith__pool_rows(vector, PITH_POOL_MAX, x[0], 2, 2, 0, false);
    assert_memory_equal(vector, x[0], sizeof vector);
}

/* The vector of a text without tokens is zero, also where vectors are normalised; it touches no
 * other. */
static void no_tokens(void **state) {
    (void)state;
    for (int normalize = 0; normalize < 2; normalize++) {
        const pith__modules modules = { .pooling = PITH_POOL_MEAN };
        const pith__head_model model = { .modules = &modules,
                                         .width = WIDTH,
                                         .isa = pith__cpu_get()->isa };
        const pith__head *head;
        const void *opened;
        pith__arena arena;
        pith_error err = PITH_ERROR_INIT;
        float vectors[3][WIDTH];
        const pith__dense_request request = { .normalize =
                                                  normalize ? PITH_CHOICE_YES : PITH_CHOICE_NO,
                                              .vectors = vectors[0] };
        const pith__head_rows none = { 1, NULL, 0, WIDTH, 0, NULL, &arena, false },
                              all = { 2, rows[0], ROWS, WIDTH, 0, NULL, &arena, false };
        for (int i = 0; i < WIDTH; i++) vectors[0][i] = vectors[1][i] = vectors[2][i] = -99;
        pith__arena_init(&arena, NULL);
        assert_int_equal(pith__head_find(&head, "nothing", &err), PITH_ERR_UNSUPPORTED);
        assert_non_null(strstr(err.message, "'nothing'"));
        assert_int_equal(pith__head_find(&head, "dense", &err), PITH_OK);
        assert_int_equal(head->open(&opened, &model, &request, &arena, &err), PITH_OK);
        assert_int_equal(head->emit(opened, &none, &err), PITH_OK);
        assert_int_equal(head->emit(opened, &all, &err), PITH_OK);
        for (int i = 0; i < WIDTH; i++) {
            assert_float_equal(vectors[0][i], -99, 0);
            assert_float_equal(vectors[1][i], 0, 0);
        }
        const double length = sqrt(3 * 3 + 1.5 * 1.5 + 0.5 * 0.5); /* of the mean */
        assert_float_equal(vectors[2][0], normalize ? 3 / length : 3, 1e-6);
        pith__arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mode),  cmocka_unit_test(one_row),
        cmocka_unit_test(joined),      cmocka_unit_test(without_the_first),
        cmocka_unit_test(nan_is_kept), cmocka_unit_test(first_of_equals),
        cmocka_unit_test(no_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
