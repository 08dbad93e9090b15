/* Symbolic sizes: the normal form, evaluation, bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/str.h"
#include "engine/graph/symbolic_dim.h"

static pith__arena arena;
static pith__dims *dims;
static pith__dim S, B;

static int setup(void **state) {
    (void)state;
    pith__arena_init(&arena, NULL);
    assert_int_equal(pith__dims_create(&dims, &arena), PITH_OK);
    S = pith__dim_symbol(dims, PITH_STR("S"));
    B = pith__dim_symbol(dims, PITH_STR("B"));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    pith__arena_free(&arena);
    return 0;
}

static pith__dim add(pith__dim a, pith__dim b) { return pith__dim_apply(dims, PITH_DIM_ADD, a, b); }
static pith__dim sub(pith__dim a, pith__dim b) { return pith__dim_apply(dims, PITH_DIM_SUB, a, b); }
static pith__dim mul(pith__dim a, pith__dim b) { return pith__dim_apply(dims, PITH_DIM_MUL, a, b); }
static pith__dim floor_div(pith__dim a, pith__dim b) {
    return pith__dim_apply(dims, PITH_DIM_FLOOR_DIV, a, b);
}
static pith__dim ceil_div(pith__dim a, pith__dim b) {
    return pith__dim_apply(dims, PITH_DIM_CEIL_DIV, a, b);
}
static pith__dim min(pith__dim a, pith__dim b) { return pith__dim_apply(dims, PITH_DIM_MIN, a, b); }
static pith__dim max(pith__dim a, pith__dim b) { return pith__dim_apply(dims, PITH_DIM_MAX, a, b); }

static pith__dim eval(pith__dim d, int64_t s, int64_t b) {
    return pith__dim_eval(dims, d, (pith__dim[]){ s, b });
}

static void equal_sizes_are_equal_handles(void **state) {
    (void)state;
    assert_true(S != B);
    assert_int_equal(pith__dim_symbol(dims, PITH_STR("S")), S);
    assert_int_equal(add(S, 0), S);
    assert_int_equal(mul(S, 1), S);
    assert_int_equal(mul(S, 0), 0);
    assert_int_equal(sub(S, S), 0);
    assert_int_equal(add(sub(S, 1), 1), S);
    assert_int_equal(floor_div(mul(S, 12), 12), S);
    assert_int_equal(floor_div(mul(B, S), S), B);
    assert_int_equal(floor_div(mul(mul(B, S), 384), mul(S, 32)), mul(B, 12));
    assert_int_equal(mul(add(S, 1), add(S, -1)), sub(mul(S, S), 1));
    assert_int_equal(floor_div(sub(mul(S, S), 1), add(S, 1)), sub(S, 1));
    assert_int_equal(mul(S, B), mul(B, S));
    assert_int_equal(add(mul(S, B), add(S, 3)), add(3, add(S, mul(B, S))));
    /* what a stride does to a size: floor((S - 1) / 2) + 1 = floor((S + 1) / 2) = ceil(S / 2) */
    assert_int_equal(add(floor_div(sub(S, 1), 2), 1), floor_div(add(S, 1), 2));
    assert_int_equal(ceil_div(S, 2), floor_div(add(S, 1), 2));
    assert_int_equal(floor_div(add(mul(S, 4), 3), 4), S);
    assert_int_equal(floor_div(add(mul(S, 4), 3), 2), add(mul(S, 2), 1));
    pith__dim items[] = { B, S, 12, 32 };
    assert_int_equal(pith__dim_product(dims, items, 4), mul(mul(B, S), 384));
    assert_int_equal(pith__dim_product(dims, items, 0), 1);
}

static void minima_and_maxima(void **state) {
    (void)state;
    assert_int_equal(min(S, S), S);
    assert_int_equal(max(S, add(S, 1)), add(S, 1));
    assert_int_equal(max(S, 0), S);
    assert_int_equal(min(0, S), 0);
    assert_int_equal(min(S, INT64_MAX), S);
    assert_int_equal(min(B, S), min(S, B));
    assert_true(min(S, 512) != S);
    assert_int_equal(eval(min(S, 512), 700, 1), 512);
    assert_int_equal(eval(min(S, 512), 70, 1), 70);
    assert_int_equal(max(min(S, 5), 0), min(S, 5));
}

static void unknown_equals_nothing(void **state) {
    (void)state;
    assert_false(pith__dim_equal(PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN));
    assert_true(pith__dim_equal(S, S));
    assert_int_equal(add(S, PITH_DIM_UNKNOWN), PITH_DIM_UNKNOWN);
    assert_int_equal(floor_div(S, 0), PITH_DIM_UNKNOWN);
    assert_int_equal(floor_div(7, 0), PITH_DIM_UNKNOWN);
    assert_int_equal(mul(INT64_MAX, 2), PITH_DIM_UNKNOWN);
    assert_int_equal(pith__dim_apply(NULL, PITH_DIM_ADD, S, 1), PITH_DIM_UNKNOWN);
    assert_int_equal(pith__dim_apply(NULL, PITH_DIM_FLOOR_DIV, -7, 2), -4);
    assert_int_equal(pith__dim_apply(NULL, PITH_DIM_CEIL_DIV, -7, 2), -3);
    assert_int_equal(pith__dim_eval(dims, S, (pith__dim[]){ PITH_DIM_UNKNOWN, 1 }),
                     PITH_DIM_UNKNOWN);
    assert_int_equal(eval(mul(S, S), INT64_MAX / 2, 1), PITH_DIM_UNKNOWN);
}

/* Any expression, simplified or not, has the value that plain arithmetic gives. */
static void evaluation_agrees_with_arithmetic(void **state) {
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        pith__dim d = S;
        int64_t s = 1 + round % 13, b = 1 + round % 7, value = s;
        for (int i = 0; i < 6; i++) {
            seed = seed * 1664525u + 1013904223u;
            pith__dim_op op = (pith__dim_op)(seed >> 8) % 7;
            int64_t number = (int64_t)(seed >> 16 & 7) + 1;
            bool symbol = seed >> 28 & 1;
            d = pith__dim_apply(dims, op, d, symbol ? B : number);
            value = pith__dim_apply(NULL, op, value, symbol ? b : number);
            if (d == PITH_DIM_UNKNOWN) break;
            pith__dim found = eval(d, s, b);
            if (found != value) {
                char text[256];
                fail_msg("%s is %lld, not %lld", pith__dim_text(dims, d, text, sizeof text),
                         (long long)found, (long long)value);
            }
        }
    }
}

static void hostile_expressions_stay_small(void **state) {
    (void)state;
    pith__dim d = S;
    for (int i = 0; i < 200; i++) d = mul(add(d, B), add(d, i));
    assert_int_equal(d, PITH_DIM_UNKNOWN);
    d = S;
    for (int i = 0; i < 100000 && d != PITH_DIM_UNKNOWN; i++) d = min(add(d, i + 2), mul(d, 2));
    assert_int_equal(d, PITH_DIM_UNKNOWN);
    assert_true(arena.total < 4u << 20);
}

static void symbols_and_solving(void **state) {
    (void)state;
    int32_t symbol;
    int64_t size;
    assert_int_equal(pith__dims_symbol_count(dims), 2);
    assert_int_equal(pith__dim_symbol_index(dims, B), 1);
    assert_int_equal(pith__dim_symbol_index(dims, add(B, 1)), -1);
    assert_int_equal(pith__dim_symbol_index(dims, 4), -1);
    assert_true(pith__str_is(pith__dims_symbol_name(dims, 0), "S"));
    assert_true(pith__dim_solve(dims, add(mul(B, 2), 1), 9, &symbol, &size));
    assert_int_equal(symbol, 1);
    assert_int_equal(size, 4);
    assert_false(pith__dim_solve(dims, add(mul(B, 2), 1), 8, &symbol, &size));
    assert_false(pith__dim_solve(dims, mul(S, B), 8, &symbol, &size));
    assert_false(pith__dim_solve(dims, add(S, 5), 3, &symbol, &size));
}

static void handles_of_others_mean_nothing(void **state) {
    (void)state;
    char buffer[64];
    int32_t symbol;
    int64_t size;
    pith__dim strange[] = { INT64_MIN + 1000, INT64_MIN / 2, INT64_MIN / 2 - 1,
                            INT64_MIN + (1 << 22) };
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        pith__dim d = strange[i];
        assert_false(pith__dim_means(dims, d));
        for (int op = PITH_DIM_ADD; op <= PITH_DIM_MAX; op++) {
            assert_int_equal(pith__dim_apply(dims, (pith__dim_op)op, d, 2), PITH_DIM_UNKNOWN);
            assert_int_equal(pith__dim_apply(dims, (pith__dim_op)op, S, d), PITH_DIM_UNKNOWN);
        }
        assert_int_equal(pith__dim_eval(dims, d, NULL), PITH_DIM_UNKNOWN);
        assert_int_equal(pith__dim_symbol_index(dims, d), -1);
        assert_false(pith__dim_solve(dims, d, 3, &symbol, &size));
        assert_string_equal(pith__dim_text(dims, d, buffer, sizeof buffer), "?");
        assert_int_equal(pith__dim_of(d), PITH_DIM_UNKNOWN);
    }
    assert_true(pith__dim_means(dims, S));
    assert_false(pith__dim_means(NULL, S));
    assert_true(pith__dim_means(NULL, PITH_DIM_LIMIT + 1));
}

static void text(void **state) {
    (void)state;
    char buffer[64];
    assert_string_equal(pith__dim_text(dims, 384, buffer, sizeof buffer), "384");
    assert_string_equal(pith__dim_text(dims, PITH_DIM_UNKNOWN, buffer, sizeof buffer), "?");
    assert_string_equal(pith__dim_text(dims, mul(S, 12), buffer, sizeof buffer), "12*S");
    assert_string_equal(pith__dim_text(dims, sub(mul(S, B), 3), buffer, sizeof buffer), "S*B - 3");
    assert_string_equal(pith__dim_text(dims, min(S, 512), buffer, sizeof buffer), "min(S, 512)");
    assert_int_equal(strlen(pith__dim_text(dims, min(S, 512), buffer, 5)), 4);
    static const char name[] = "a_name_of_more_than_forty_characters_of_which_none_is_lost";
    pith__dim sizes[] = { S, mul(S, 12), PITH_DIM_UNKNOWN, 384,
                          pith__dim_symbol(dims, pith__str_of(name)) };
    char shape[128], wanted[128];
    snprintf(wanted, sizeof wanted, "[S, 12*S, ?, 384, %s]", name);
    assert_string_equal(pith__shape_text(dims, sizes, 5, shape, sizeof shape), wanted);
    assert_string_equal(pith__shape_text(dims, sizes, 4, shape, 14), "[S, 12*S, …");
    assert_string_equal(pith__shape_text(dims, sizes, 0, shape, sizeof shape), "[]");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(equal_sizes_are_equal_handles),  TEST(minima_and_maxima),
        TEST(unknown_equals_nothing),         TEST(evaluation_agrees_with_arithmetic),
        TEST(hostile_expressions_stay_small), TEST(symbols_and_solving),
        TEST(handles_of_others_mean_nothing), TEST(text)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
