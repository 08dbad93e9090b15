/* test_feed.c - the tensors that texts become: every role in every dtype, packed and padded, number
 * by number; and graphs whose inputs cannot be made from text. */
#include <string.h>

#include "support/graph_test.h"

#include "models/encode/text_inputs.h"

static pith__arena arena;
static pith_error err;

static int setup(void **state) {
    (void)state;
    pith__arena_init(&arena, NULL);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    pith__arena_free(&arena);
    return 0;
}

static const int32_t long_ids[] = { 7, 8, 9 }, long_types[] = { 0, 1, 1 }, short_ids[] = { 5, 6 };
static const int32_t short_types[] = { 1, 0 };
static const pith__row long_row = { long_ids, long_types, 3, 0, 0 },
                       short_row = { short_ids, short_types, 2, 0, 0 };

/* A graph with one more input than input_ids, which is [N, dims]. */
static pith__graph *graph_with(const char *name, int dtype, const char *ids_dims) {
    pith__graph *graph = graph_new(&arena, NULL, &err);
    pith__value *ids = graph_input(graph, "input_ids"), *other = graph_input(graph, name);
    ids->type.dtype = PITH_I64;
    for (ids->type.rank = 0; ids_dims[ids->type.rank]; ids->type.rank++) {
        char c = ids_dims[ids->type.rank];
        ids->type.dims[ids->type.rank] =
            c == 'S' ? pith__dim_symbol(graph->dims, PITH_STR("sequence")) : (pith__dim)(c - '0');
    }
    other->type.dtype = dtype;
    return graph;
}

static double element(const pith_tensor *t, size_t i) {
    switch (t->dtype) {
    case PITH_I64: return (double)((const int64_t *)t->data)[i];
    case PITH_I32: return ((const int32_t *)t->data)[i];
    case PITH_F32: return (double)((const float *)t->data)[i];
    default: return ((const bool *)t->data)[i];
    }
}

static void check_tensor(const pith_tensor *t, int dtype, int rank, size_t count,
                         const int *expected) {
    static const size_t sizes[] = {
        [PITH_I64] = 8, [PITH_I32] = 4, [PITH_F32] = 4, [PITH_BOOL] = 1
    };
    assert_int_equal(t->dtype, dtype);
    assert_int_equal(t->rank, rank);
    assert_int_equal(t->bytes, count * sizes[dtype]);
    assert_int_equal(t->dims[0], rank == 1 ? count : 1);
    assert_int_equal(t->dims[1], rank == 2 ? count : 0);
    for (size_t i = 0; i < count; i++) {
        int wanted = dtype == PITH_BOOL ? expected[i] != 0 : expected[i];
        if (element(t, i) != wanted)
            fail_msg("element %zu of %zu is %g, not %d", i, count, element(t, i), wanted);
    }
}

/* What a role holds for the long row and the short one packed, for the short row, and padded to 5.
 */
static const struct {
    const char *name;
    size_t packed_count;
    int packed[5], alone[2], padded[5];
} roles[] = {
    { "input_ids", 5, { 7, 8, 9, 5, 6 }, { 5, 6 }, { 5, 6, 4, 4, 4 } },
    { "attention_mask", 5, { 1, 1, 1, 1, 1 }, { 1, 1 }, { 1, 1, 0, 0, 0 } },
    { "input_mask", 5, { 1, 1, 1, 1, 1 }, { 1, 1 }, { 1, 1, 0, 0, 0 } },
    { "token_type_ids", 5, { 0, 1, 1, 1, 0 }, { 1, 0 }, { 1, 0, 0, 0, 0 } },
    { "segment_ids", 5, { 0, 1, 1, 1, 0 }, { 1, 0 }, { 1, 0, 0, 0, 0 } },
    { "position_ids", 5, { 0, 1, 2, 0, 1 }, { 0, 1 }, { 0, 1, 2, 3, 4 } },
    { "pith.positions", 5, { 0, 1, 2, 0, 1 }, { 0, 1 }, { 0, 1, 2, 3, 4 } },
    { "pith.offsets", 3, { 0, 3, 5 }, { 0 }, { 0 } },
};

static void every_role(void **state) {
    (void)state;
    static const int dtypes[] = { PITH_I64, PITH_I32, PITH_F32, PITH_BOOL, PITH_UNDEFINED };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            const pith__row *both[] = { &long_row, &short_row }, *one[] = { &short_row };
            int made = dtypes[d] == PITH_UNDEFINED ? PITH_I64 : dtypes[d];
            bool typed = strstr(roles[i].name, "type") || strstr(roles[i].name, "segment");
            pith_tensor inputs[2];
            pith__text_inputs feed;
            const pith__graph *graph = graph_with(roles[i].name, dtypes[d], "S");
            assert_int_equal(pith__text_inputs_init(&feed, graph, true, 4, &arena, &err), PITH_OK);
            assert_int_equal(feed.typed, typed);
            assert_int_equal(feed.fixed_length, 0);
            assert_int_equal(pith__text_inputs_fill(inputs, &feed, both, 2, &arena, &err), PITH_OK);
            check_tensor(&inputs[0], PITH_I64, 1, 5, roles[0].packed);
            check_tensor(&inputs[1], made, 1, roles[i].packed_count, roles[i].packed);
            if (roles[i].packed_count != 5) continue; /* offsets are of packed texts only */

            graph = graph_with(roles[i].name, dtypes[d], "1S");
            assert_int_equal(pith__text_inputs_init(&feed, graph, false, 4, &arena, &err), PITH_OK);
            assert_int_equal(feed.fixed_length, 0);
            assert_int_equal(pith__text_inputs_fill(inputs, &feed, one, 1, &arena, &err), PITH_OK);
            check_tensor(&inputs[0], PITH_I64, 2, 2, roles[0].alone);
            check_tensor(&inputs[1], made, 2, 2, roles[i].alone);

            graph = graph_with(roles[i].name, dtypes[d], "15");
            assert_int_equal(pith__text_inputs_init(&feed, graph, false, 4, &arena, &err), PITH_OK);
            assert_int_equal(feed.typed, typed);
            assert_int_equal(feed.fixed_length, 5);
            assert_int_equal(pith__text_inputs_fill(inputs, &feed, one, 1, &arena, &err), PITH_OK);
            check_tensor(&inputs[0], PITH_I64, 2, 5, roles[0].padded);
            check_tensor(&inputs[1], made, 2, 5, roles[i].padded);
        }
}

/* A length the graph says counts where it is the second size of the ids of a graph that is not
 * packed. */
static void fixed_lengths(void **state) {
    (void)state;
    static const struct {
        const char *dims;
        bool ragged;
        int64_t length;
    } cases[] = { { "15", false, 5 },
                  { "15", true, 0 },
                  { "5", false, 0 },
                  { "S5", false, 5 },
                  { "153", false, 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith__text_inputs feed;
        const pith__graph *graph = graph_with("attention_mask", PITH_I64, cases[i].dims);
        assert_int_equal(pith__text_inputs_init(&feed, graph, cases[i].ragged, 0, &arena, &err),
                         PITH_OK);
        assert_int_equal(feed.fixed_length, cases[i].length);
        assert_int_equal(feed.typed, 0);
    }
}

static void refused(void **state) {
    (void)state;
    pith__text_inputs feed;
    pith_tensor inputs[2];
    const pith__row *one[] = { &short_row };
    const pith__graph *graph = graph_with("pixel_values", PITH_F32, "S");
    assert_int_equal(pith__text_inputs_init(&feed, graph, true, 0, &arena, &err),
                     PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "'pixel_values'"));
    graph = graph_with("attention_mask", PITH_F64, "S");
    assert_int_equal(pith__text_inputs_init(&feed, graph, true, 0, &arena, &err), PITH_OK);
    assert_int_equal(pith__text_inputs_fill(inputs, &feed, one, 1, &arena, &err),
                     PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "'attention_mask' has dtype float64"));
    pith__graph *without = graph_new(&arena, NULL, &err);
    graph_input(without, "attention_mask");
    assert_int_equal(pith__text_inputs_init(&feed, without, true, 0, &arena, &err),
                     PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "no input 'input_ids'"));
    /* More tokens than can be counted. */
    const pith__row many = { short_ids, short_types, INT32_MAX, 0, 0 };
    const pith__row *huge[] = { &many };
    graph = graph_with("attention_mask", PITH_I64, "S");
    pith__arena small;
    pith__arena_init(&small, NULL);
    small.limit = 1 << 20;
    assert_int_equal(pith__text_inputs_init(&feed, graph, true, 0, &arena, &err), PITH_OK);
    assert_int_equal(pith__text_inputs_fill(inputs, &feed, huge, 1, &small, &err), PITH_ERR_MEMORY);
    pith__arena_free(&small);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_role),
                                        cmocka_unit_test(fixed_lengths),
                                        cmocka_unit_test(refused) };
    return cmocka_run_group_tests(tests, setup, teardown);
}
