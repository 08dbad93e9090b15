/* Equal rows are found, each once and in order, and spread again. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory/memory.h"
#include "engine/ops/shared/distinct_rows.h"

/* A matrix of which row i has `kinds[i]` at element `at` and else nothing, and what was found in
 * it. */
typedef struct found {
    float *x;
    pith__arena arena;
    const pith__distinct_rows *d;
} found;

static found find(const int *kinds, int64_t m, int64_t k, int64_t at) {
    found f = { .x = calloc((size_t)(m * k), sizeof *f.x) };
    pith__arena_init(&f.arena, &pith__allocator_default);
    for (int64_t i = 0; i < m; i++) f.x[i * k + at] = (float)kinds[i];
    void *memory = pith__arena_alloc64(&f.arena, pith__distinct_rows_bytes(m, k));
    f.d = pith__distinct_rows_find(memory, f.x, m, k);
    return f;
}

static void drop(found *f) {
    pith__arena_free(&f->arena);
    free(f->x);
}

static void test_rows_are_found_and_spread(void **state) {
    (void)state;
    enum { M = 300, K = 37, N = 5 };
    int kinds[M], seen = 0, place_of[M];
    for (int i = 0; i < M; i++) kinds[i] = i % 3 ? i * i % 41 : i;
    found f = find(kinds, M, K, 9);
    float y[M * N];
    for (int i = 0; i < M; i++) { /* the row that is equal and first */
        int first = 0;
        while (kinds[first] != kinds[i]) first++;
        place_of[i] = first == i ? seen++ : place_of[first];
        assert_int_equal(f.d->place[i], place_of[i]);
        assert_memory_equal(f.d->rows + place_of[i] * K, f.x + i * K, K * sizeof(float));
    }
    assert_int_equal(f.d->count, seen);
    assert_true(seen < M);
    for (int i = 0; i < seen * N; i++) y[i] = (float)i;
    pith__distinct_rows_spread(f.d, y, M, N);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) assert_true(y[i * N + j] == (float)(place_of[i] * N + j));
    drop(&f);
}

static void test_what_hardly_repeats_stays(void **state) {
    (void)state;
    enum { M = 64, K = 8 };
    int kinds[M];
    /* two of 64 come again, four would be enough */
    for (int i = 0; i < M; i++) kinds[i] = i < 3 ? 7777 : i;
    found f = find(kinds, M, K, 0);
    float y[M];
    assert_int_equal(f.d->count, M);
    assert_ptr_equal(f.d->rows, f.x);
    for (int i = 0; i < M; i++) y[i] = (float)i;
    pith__distinct_rows_spread(f.d, y, M, 1);
    for (int i = 0; i < M; i++) assert_true(y[i] == (float)i);
    drop(&f);
}

/* Rows that begin alike share a hash: some equal ones may be missed, none is taken for another. */
static void test_rows_that_begin_alike(void **state) {
    (void)state;
    enum { M = 128, K = 64 };
    int kinds[M];
    for (int i = 0; i < M; i++) kinds[i] = i % 32;
    found f = find(kinds, M, K, K - 1);
    assert_true(f.d->count < M);
    for (int i = 0; i < M; i++) {
        assert_true(f.d->place[i] <= i);
        assert_memory_equal(f.d->rows + f.d->place[i] * K, f.x + i * K, K * sizeof(float));
    }
    drop(&f);
}

/* Zeros of either sign and not-a-numbers are told apart by their bits. */
static void test_bits_decide(void **state) {
    (void)state;
    enum { M = 16 };
    _Alignas(64) float memory[1024];
    float x[M];
    for (int i = 0; i < M; i++) x[i] = i % 2 ? -0.0f : 0.0f;
    x[15] = x[14] = (float)strtod("nan", NULL);
    assert_true(pith__distinct_rows_bytes(M, 1) <= sizeof memory);
    const pith__distinct_rows *d = pith__distinct_rows_find(memory, x, M, 1);
    assert_int_equal(d->count, 3);
    assert_memory_equal(d->rows, ((const float[]){ 0.0f, -0.0f, x[14] }), 3 * sizeof(float));
}

static void test_few_and_many_are_not_looked_for(void **state) {
    (void)state;
    assert_int_equal(pith__distinct_rows_bytes(2, 384), 0);
    assert_int_equal(pith__distinct_rows_bytes(8192, 384), 0);
    assert_int_equal(pith__distinct_rows_bytes(256, INT64_MAX), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_found_and_spread),
        cmocka_unit_test(test_what_hardly_repeats_stays),
        cmocka_unit_test(test_rows_that_begin_alike),
        cmocka_unit_test(test_bits_decide),
        cmocka_unit_test(test_few_and_many_are_not_looked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
