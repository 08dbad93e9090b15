/* test_operators.c - what the conformance suite does not see of operators: contents followed
 * through shape arithmetic, older spellings, named errors for impossible attributes, exact sums,
 * results that do not depend on threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "base/error.h"
#include "engine/exec/executor.h"
#include "support/graph_test.h"
#include "engine/kernels/kernel.h"

static pith__value *constant(fixture *f, int dtype, const void *data, int rank,
                             const int64_t *dims) {
    pith_tensor t = { .data = (void *)(uintptr_t)data, .dtype = dtype, .rank = rank };
    for (int i = 0; i < rank; i++) t.dims[i] = dims[i];
    assert_true(pith__dtype_bytes(dtype, pith__dims_count(dims, rank), &t.bytes));
    return pith__graph_add_const(f->graph, PITH_STR(""), &t);
}

static pith__value *numbers(fixture *f, int64_t count, const int64_t *items) {
    return pith__graph_add_i64s(f->graph, PITH_STR(""), items, count);
}

static pith__node *node(fixture *f, const char *op_type, int opset, int count, pith__value *a,
                        pith__value *b, pith__value *c) {
    pith__node *made = pith__graph_add_node(f->graph, NULL, "", op_type,
                                            (pith__value *[]){ a, b, c }, count, NULL, 1);
    made->opset = opset;
    made->index = 0;
    return made;
}

static pith__value *apply(fixture *f, const char *op_type, int count, pith__value *a,
                          pith__value *b) {
    return node(f, op_type, 21, count, a, b, NULL)->outputs[0];
}

static pith_status infer(fixture *f) {
    PITH_TRY(pith__ops_bind(f->graph, &f->err));
    return pith__ops_infer(f->graph, false, &f->err);
}

static void infer_ok(fixture *f) {
    if (infer(f)) fail_msg("%s", f->err.message);
}

static void run_ok(fixture *f, pith_tensor *out, const pith_tensor *in, int threads) {
    pith__executor_options options = { .allocator = &pith__allocator_default };
    if (!f->executor &&
        (infer(f) || pith__plan_build(&f->plan, f->graph, NULL, &f->arena, &f->err) ||
         pith__executor_create(&f->executor, f->plan, &options, &f->err))) {
        fail_msg("%s", f->err.message);
    }
    if (pith__executor_run(f->executor, out, in, threads, NULL, &f->err))
        fail_msg("%s", f->err.message);
}

static pith_tensor tensor(int dtype, void *data, int rank, int64_t a, int64_t b) {
    pith_tensor t = { .data = data, .dtype = dtype, .rank = rank, .dims = { a, b } };
    assert_true(pith__dtype_bytes(dtype, pith__dims_count(t.dims, rank), &t.bytes));
    return t;
}

static const char *dims_of(fixture *f, const pith__value *value, char *buffer, size_t size) {
    return pith__shape_text(f->graph->dims, value->type.dims, value->type.rank, buffer, size);
}

/* ---- contents of shapes ---- */

static void shapes_are_followed(void **state) { /* x[B, S, 6] seen as [B, S, 2, 3] by way of its
                                                   shape */
    fixture *f = *state;
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "BS6"),
                *shape = apply(f, "Shape", 1, x, NULL);
    pith__value *zero = numbers(f, 1, (int64_t[]){ 0 }), *one = numbers(f, 1, (int64_t[]){ 1 });
    pith__value *batch = apply(f, "Gather", 2, shape, zero),
                *length = apply(f, "Gather", 2, shape, one);
    pith__value *twice = apply(f, "Mul", 2, length, numbers(f, 1, (int64_t[]){ 2 }));
    pith__value *half = apply(f, "Div", 2, twice, numbers(f, 1, (int64_t[]){ 2 }));
    pith__node *join = node(f, "Concat", 21, 3, batch, half, numbers(f, 2, (int64_t[]){ 2, 3 }));
    assert_int_equal(pith__node_set_int(join, "axis", 0), PITH_OK);
    pith__value *y = apply(f, "Reshape", 2, x, join->outputs[0]);
    char text[128];
    graph_output(f->graph, y);
    infer_ok(f);
    assert_string_equal(dims_of(f, y, text, sizeof text), "[B, S, 2, 3]");
}

/* The int64 result of a graph whose only input is x[S]. */
static void run_to_ints(void **state, pith__value *y, int64_t size, int64_t count,
                        const int64_t *wanted) {
    fixture *f = *state;
    pith_tensor x = { .data = malloc((size_t)size * 4),
                      .bytes = (size_t)size * 4,
                      .dtype = PITH_F32,
                      .rank = 1 },
                out;
    x.dims[0] = size;
    memset(x.data, 0, x.bytes);
    graph_output(f->graph, y);
    run_ok(f, &out, &x, 1);
    assert_int_equal(pith__tensor_count(&out), count);
    for (int64_t i = 0; i < count; i++) assert_true(((const int64_t *)out.data)[i] == wanted[i]);
    free(x.data);
    fixture_teardown(state);
    fixture_setup(state);
}

static void numbers_at_the_edges_are_followed(void **state) {
    static const int64_t edges[] = { INT64_MIN,         INT64_MIN + 1, INT64_MIN + 40,
                                     PITH_DIM_LIMIT,    INT64_MAX,     PITH_DIM_LIMIT - 1,
                                     PITH_DIM_LIMIT + 1 };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        fixture *f = *state;
        graph_input_of(f->graph, "x", PITH_F32, "S");
        run_to_ints(
            state,
            apply(f, "Min", 2, numbers(f, 1, &edges[i]), numbers(f, 1, (int64_t[]){ INT64_MAX })),
            3, 1, &edges[i]);
        f = *state;
        graph_input_of(f->graph, "x", PITH_F32, "S");
        pith__node *fill =
            node(f, "ConstantOfShape", 21, 1, numbers(f, 1, (int64_t[]){ 1 }), NULL, NULL);
        pith__attr value = { .name = PITH_STR("value"), .kind = PITH_ATTR_TENSOR };
        value.tensor = numbers(f, 1, &edges[i])->type.data;
        fill->attrs = &value;
        fill->attr_count = 1;
        run_to_ints(state, fill->outputs[0], 3, 1, &edges[i]);
    }
}

static void ranges_at_the_edges(void **state) {
    static const struct {
        int64_t start, limit, delta, count;
    } ranges[] = { { INT64_MAX - 3, INT64_MAX, 1, 3 },
                   { INT64_MIN + 3, INT64_MIN, -1, 3 },
                   { INT64_MIN, INT64_MAX, INT64_C(1) << 62, 4 },
                   { (INT64_C(1) << 53) - 1, (INT64_C(1) << 53) + 3, 1, 4 },
                   { INT64_MAX, INT64_MIN, 1, 0 } };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        fixture *f = *state;
        int64_t wanted[4];
        for (int64_t k = 0; k < ranges[i].count; k++)
            wanted[k] =
                (int64_t)((uint64_t)ranges[i].start + (uint64_t)k * (uint64_t)ranges[i].delta);
        graph_input_of(f->graph, "x", PITH_F32, "S");
        pith__value *bounds[] = { constant(f, PITH_I64, &ranges[i].start, 0, NULL),
                                  constant(f, PITH_I64, &ranges[i].limit, 0, NULL),
                                  constant(f, PITH_I64, &ranges[i].delta, 0, NULL) };
        run_to_ints(state, node(f, "Range", 21, 3, bounds[0], bounds[1], bounds[2])->outputs[0], 3,
                    ranges[i].count, wanted);
    }
}

/* (S - 10) / 4 rounds toward zero, also where S is below 10; Mod with fmod has the sign of the
 * dividend. */
static void quotients_of_differences(void **state) {
    fixture *f = *state;
    pith__value *shape = apply(f, "Shape", 1, graph_input_of(f->graph, "x", PITH_F32, "S"), NULL);
    pith__value *less = apply(f, "Sub", 2, shape, numbers(f, 1, (int64_t[]){ 10 }));
    run_to_ints(state, apply(f, "Div", 2, less, numbers(f, 1, (int64_t[]){ 4 })), 3, 1,
                (int64_t[]){ -1 });
    f = *state;
    graph_input_of(f->graph, "x", PITH_F32, "S");
    pith__node *mod = node(f, "Mod", 21, 2, numbers(f, 1, (int64_t[]){ -7 }),
                           numbers(f, 1, (int64_t[]){ 3 }), NULL);
    assert_int_equal(pith__node_set_int(mod, "fmod", 1), PITH_OK);
    run_to_ints(state, mod->outputs[0], 3, 1, (int64_t[]){ -1 });
}

static void masks_of_shapes_are_followed(
    void **state) { /* Where(Equal(shape, -1), 1, shape), as exporters
                                                write Expand */
    fixture *f = *state;
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "B1"),
                *wanted = numbers(f, 2, (int64_t[]){ -1, 5 });
    pith__value *equal = apply(f, "Equal", 2, wanted, numbers(f, 1, (int64_t[]){ -1 }));
    pith__value *shape =
        node(f, "Where", 21, 3, equal, numbers(f, 1, (int64_t[]){ 1 }), wanted)->outputs[0];
    pith__value *y = apply(f, "Expand", 2, x, shape);
    char text[128];
    graph_output(f->graph, y);
    infer_ok(f);
    assert_string_equal(dims_of(f, y, text, sizeof text), "[B, 5]");
}

static void slices_of_symbols(void **state) {
    static const struct {
        int64_t start, end, step;
        const char *size;
    } cases[] = {
        { 0, INT64_MAX, 1, "[S]" },         { -1, INT64_MAX, 1, "[1]" },
        { 1, INT64_MAX, 1, "[S - 1]" },     { 0, -1, 1, "[S - 1]" },
        { INT64_MIN, INT64_MAX, 1, "[?]" }, { 3, 2, 1, "[?]" },
        { -1, INT64_MIN, -1, "[S]" },       { 0, 0, 0, NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture *f = *state;
        pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "S");
        pith__value *in[5] = { x, numbers(f, 1, &cases[i].start), numbers(f, 1, &cases[i].end),
                               numbers(f, 1, (int64_t[]){ 0 }), numbers(f, 1, &cases[i].step) };
        pith__node *slice = pith__graph_add_node(f->graph, NULL, "", "Slice", in, 5, NULL, 1);
        slice->opset = 13;
        graph_output(f->graph, slice->outputs[0]);
        char text[128];
        if (!cases[i].size) {
            assert_int_equal(infer(f), PITH_ERR_ARGUMENT);
            assert_non_null(strstr(f->err.message, "steps[0] is 0"));
        } else {
            infer_ok(f);
            const char *size = dims_of(f, slice->outputs[0], text, sizeof text);
            if (strcmp(cases[i].size, "[?]"))
                assert_string_equal(size, cases[i].size);
            else
                assert_true(!strcmp(size, "[?]") || strchr(size, 'm')); /* unknown, or a minimum */
        }
        fixture_teardown(state);
        fixture_setup(state);
    }
}

/* ---- older spellings ---- */

static void attributes_become_inputs(void **state) {
    fixture *f = *state;
    pith__node *squeeze =
        node(f, "Squeeze", 11, 1, graph_input_of(f->graph, "x", PITH_F32, "1S1"), NULL, NULL);
    pith__node *sum = node(f, "ReduceMean", 11, 1, squeeze->outputs[0], NULL, NULL);
    pith__node *clip = node(f, "Clip", 6, 1, sum->outputs[0], NULL, NULL);
    assert_int_equal(pith__node_set_ints(squeeze, "axes", (int64_t[]){ -1 }, 1), PITH_OK);
    assert_int_equal(pith__node_set_ints(sum, "axes", (int64_t[]){ 1 }, 1), PITH_OK);
    assert_int_equal(pith__node_set_float(clip, "max", 2.5f), PITH_OK);
    graph_output(f->graph, clip->outputs[0]);
    float x[4] = { 1, 2, 3, 6 };
    pith_tensor in = { .data = x,
                       .bytes = sizeof x,
                       .dtype = PITH_F32,
                       .rank = 3,
                       .dims = { 1, 4, 1 } },
                out[4];
    run_ok(f, out, &in, 1);
    assert_int_equal(out[0].rank, 2);
    assert_true(*(float *)out[0].data == 2.5f);
}

static void old_softmax_flattens(void **state) { /* opset 11, axis 1: all axes from 1 on are one
                                                    row */
    fixture *f = *state;
    pith__node *softmax =
        node(f, "Softmax", 11, 1, graph_input_of(f->graph, "x", PITH_F32, "A22"), NULL, NULL);
    graph_output(f->graph, softmax->outputs[0]);
    float x[4] = { 0 };
    pith_tensor in = { .data = x,
                       .bytes = sizeof x,
                       .dtype = PITH_F32,
                       .rank = 3,
                       .dims = { 1, 2, 2 } },
                out[4];
    run_ok(f, out, &in, 1);
    for (int i = 0; i < 4; i++) assert_true(((float *)out[0].data)[i] == 0.25f);
}

static void old_broadcast_has_an_axis(void **state) { /* opset 6: b lies along axis 0 of a */
    fixture *f = *state;
    pith__value *first = graph_input_of(f->graph, "a", PITH_F32, "23"),
                *second = graph_input_of(f->graph, "b", PITH_F32, "2");
    pith__node *add = node(f, "Add", 6, 2, first, second, NULL);
    assert_int_equal(pith__node_set_int(add, "broadcast", 1), PITH_OK);
    assert_int_equal(pith__node_set_int(add, "axis", 0), PITH_OK);
    graph_output(f->graph, add->outputs[0]);
    float a[6] = { 0, 1, 2, 3, 4, 5 }, b[2] = { 10, 20 }, want[6] = { 10, 11, 12, 23, 24, 25 };
    pith_tensor in[2] = { tensor(PITH_F32, a, 2, 2, 3), tensor(PITH_F32, b, 1, 2, 0) }, out[4];
    run_ok(f, out, in, 1);
    assert_memory_equal(out[0].data, want, sizeof want);
}

/* ---- impossible attributes ---- */

static void hostile_attributes_are_named(void **state) {
    static const struct {
        const char *op, *dims, *attribute;
        int64_t items[4];
        size_t count;
        const char *message;
    } cases[] = {
        { "Transpose", "AB", "perm", { 0, 0 }, 2, "names an axis twice" },
        { "Transpose", "AB", "perm", { 0, 1, 2 }, 3, "3 axes" },
        { "Flatten", "AB", "axis", { 7 }, 0, "axis 7" },
        { "Softmax", "AB", "axis", { -3 }, 0, "axis -3" },
        { "MaxPool",
          "1122",
          "kernel_shape",
          { 0, 2 },
          2,
          "attribute 'kernel_shape' is 0 at index 0, expected 1 to" },
        { "MaxPool",
          "1122",
          "kernel_shape",
          { -1, 2 },
          2,
          "attribute 'kernel_shape' is -1 at index 0" },
        { "MaxPool",
          "1122",
          "kernel_shape",
          { 5, INT64_MAX },
          2,
          "attribute 'kernel_shape' is 9223372036854775807 at index 1" },
        { "MaxPool", "1AB2", "kernel_shape", { 2, 2, 2 }, 3, "expected 2" },
        { "DepthToSpace",
          "1922",
          "blocksize",
          { 0 },
          0,
          "attribute 'blocksize' is 0, expected 1 to 32768" },
        { "DepthToSpace",
          "1922",
          "blocksize",
          { INT64_MIN },
          0,
          "attribute 'blocksize' is -9223372036854775808" },
        { "ArgMax", "AB", "axis", { 2 }, 0, "axis 2" },
        { "Cast", "A", "to", { 99 }, 0, "attribute 'to' is 99" },
        { "GatherBroken", "A", "axis", { 0 }, 0, "GatherBroken" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture *f = *state;
        pith__node *made = node(f, cases[i].op, 21, 1,
                                graph_input_of(f->graph, "x", PITH_F32, cases[i].dims), NULL, NULL);
        if (cases[i].count)
            assert_int_equal(
                pith__node_set_ints(made, cases[i].attribute, cases[i].items, cases[i].count),
                PITH_OK);
        else
            assert_int_equal(pith__node_set_int(made, cases[i].attribute, cases[i].items[0]),
                             PITH_OK);
        graph_output(f->graph, made->outputs[0]);
        pith_status status = infer(f);
        assert_true(status == PITH_ERR_ARGUMENT || status == PITH_ERR_UNSUPPORTED);
        if (!strstr(f->err.message, cases[i].message)) fail_msg("case %zu: %s", i, f->err.message);
        assert_non_null(strstr(f->err.message, cases[i].op)); /* the place */
        fixture_teardown(state);
        fixture_setup(state);
    }
}

static void every_wrong_dtype_is_named(void **state) { /* all at once, the nodes behind them too */
    fixture *f = *state;
    pith__value *text = graph_input_of(f->graph, "text", PITH_STRING, "A"),
                *number = graph_input_of(f->graph, "number", PITH_I64, "A");
    pith__value *real = graph_input_of(f->graph, "real", PITH_F32, "A");
    graph_output(f->graph, apply(f, "Sqrt", 1, apply(f, "Add", 2, text, text), NULL));
    graph_output(f->graph, apply(f, "Exp", 1, number, NULL));
    graph_output(f->graph, apply(f, "Not", 1, real, NULL));
    assert_int_equal(infer(f), PITH_ERR_UNSUPPORTED);
    static const char *const said[] = { "4 inputs", "(Add): input 0 is string",
                                        "(Add): input 1 is string",
                                        "(Exp): input 0 is int64; supported: floats",
                                        "(Not): input 0 is float32; supported: bool" };
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        if (!strstr(f->err.message, said[i]))
            fail_msg("'%s' is not in: %s", said[i], f->err.message);
    }
}

static void every_unknown_operator_and_opset_is_named(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "A");
    graph_output(f->graph, node(f, "Frobnicate", 21, 1, x, NULL, NULL)->outputs[0]);
    graph_output(f->graph, node(f, "Abs", 99, 1, x, NULL, NULL)->outputs[0]);
    graph_output(f->graph, node(f, "Grind", 21, 1, x, NULL, NULL)->outputs[0]);
    assert_int_equal(infer(f), PITH_ERR_UNSUPPORTED);
    static const char *const said[] = { "3 nodes", "ai.onnx.Frobnicate opset 21",
                                        "ai.onnx.Abs opset 99", "ai.onnx.Grind opset 21" };
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        if (!strstr(f->err.message, said[i]))
            fail_msg("'%s' is not in: %s", said[i], f->err.message);
    }
}

/* 5 parts of 7 elements take 2 each; 4 of them are 8 */
static void parts_of_a_split_lie_inside(void **state) {
    fixture *f = *state;
    static const float x[7];
    pith__value *whole = constant(f, PITH_F32, x, 1, (int64_t[]){ 7 });
    pith__node *split = pith__graph_add_node(f->graph, NULL, "", "Split", &whole, 1, NULL, 4);
    split->opset = 21;
    assert_int_equal(pith__node_set_int(split, "num_outputs", 5), PITH_OK);
    for (int i = 0; i < 4; i++) graph_output(f->graph, split->outputs[i]);
    assert_int_equal(infer(f), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(f->err.message, "parts add up to 8"));
}

static void scales_of_a_convolution_fit_its_maps(void **state) {
    fixture *f = *state;
    static const uint8_t bytes[9];
    static const float scales[2] = { 1, 1 };
    for (int64_t own = 0; own <= 3; own++) {
        const int64_t image[] = { 1, 1, 3, 3 }, kernel[] = { 3, 1, 1, 1 };
        pith__value *x = constant(f, PITH_U8, bytes, 4, image),
                    *w = constant(f, PITH_U8, bytes, 4, kernel);
        pith__value *one = constant(f, PITH_F32, scales, 0, NULL),
                    *zero = constant(f, PITH_U8, bytes, 0, NULL);
        pith__value *w_scale = constant(f, PITH_F32, scales, 1, (int64_t[]){ own == 3 ? 1 : own });
        pith__value *inputs[] = { x, one, zero, w, w_scale, zero, own == 3 ? w_scale : one, zero };
        pith__node *conv =
            pith__graph_add_node(f->graph, NULL, "", "QLinearConv", inputs, 8, NULL, 1);
        conv->opset = 21;
        graph_output(f->graph, conv->outputs[0]);
        pith_status status = infer(f);
        if (own == 0 || own == 2) {
            assert_int_equal(status, PITH_ERR_ARGUMENT);
            assert_non_null(strstr(f->err.message, "input 4"));
        } else {
            if (status) fail_msg("%s", f->err.message);
        }
        fixture_teardown(state);
        fixture_setup(state);
        f = *state;
    }
}

/* 2^31 outputs; shapes whose product overflows */
static void results_beyond_reason_are_errors(void **state) {
    fixture *f = *state;
    pith__node *split =
        node(f, "Split", 21, 1, graph_input_of(f->graph, "x", PITH_F32, "8"), NULL, NULL);
    assert_int_equal(pith__node_set_int(split, "num_outputs", (int64_t)1 << 31), PITH_OK);
    graph_output(f->graph, split->outputs[0]);
    assert_int_equal(infer(f), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(f->err.message, "(Split)"));
    static const int64_t shapes[][2] = { { (int64_t)1 << 31, (int64_t)1 << 33 },
                                         { INT64_MAX, 2 },
                                         { -1, 4 } };
    static const char *const made_by[] = { "ConstantOfShape", "Expand", "Tile" };
    for (size_t i = 0; i < 9; i++) {
        fixture_teardown(state);
        fixture_setup(state);
        f = *state;
        float one = 1;
        pith__value *shape = numbers(f, 2, shapes[i % 3]),
                    *x = constant(f, PITH_F32, &one, 2, (int64_t[]){ 1, 1 });
        graph_output(f->graph, i < 3 ? apply(f, made_by[0], 1, shape, NULL)
                                     : apply(f, made_by[i / 3], 2, x, shape));
        pith_status status = infer(f);
        if (!status) fail_msg("%s makes shape %zu", made_by[i / 3], i % 3);
        assert_non_null(strstr(f->err.message, made_by[i / 3]));
    }
}

static void indices_out_of_range_are_errors(void **state) {
    fixture *f = *state;
    pith__value *first = graph_input_of(f->graph, "x", PITH_F32, "A"),
                *second = graph_input_of(f->graph, "i", PITH_I64, "B");
    graph_output(f->graph, apply(f, "Gather", 2, first, second));
    float x[3] = { 1, 2, 3 };
    int64_t good[2] = { -3, 2 }, bad[2] = { 0, 3 };
    pith_tensor in[2] = { tensor(PITH_F32, x, 1, 3, 0), tensor(PITH_I64, good, 1, 2, 0) }, out[4];
    run_ok(f, out, in, 1);
    assert_true(((float *)out[0].data)[0] == 1 && ((float *)out[0].data)[1] == 3);
    in[1].data = bad;
    assert_int_equal(pith__executor_run(f->executor, out, in, 1, NULL, &f->err), PITH_ERR_RUN);
    assert_non_null(strstr(f->err.message, "index 3 is out of range for size 3"));
    in[1].data = good;
    run_ok(f, out, in, 1);
}

/* ---- numbers ---- */

static void integer_division_never_traps(void **state) {
    fixture *f = *state;
    pith__value *first = graph_input_of(f->graph, "a", PITH_I64, "A"),
                *second = graph_input_of(f->graph, "b", PITH_I64, "A");
    graph_output(f->graph, apply(f, "Div", 2, first, second));
    graph_output(f->graph, apply(f, "Mod", 2, f->graph->inputs[0], f->graph->inputs[1]));
    int64_t a[4] = { INT64_MIN, 7, -7, 5 }, b[4] = { -1, 0, 2, -3 },
            quotients[4] = { INT64_MIN, 0, -3, -1 }, rests[4] = { 0, 0, 1, -1 };
    pith_tensor in[2] = { tensor(PITH_I64, a, 1, 4, 0), tensor(PITH_I64, b, 1, 4, 0) }, out[4];
    run_ok(f, out, in, 1);
    assert_memory_equal(out[0].data, quotients, sizeof quotients);
    assert_memory_equal(out[1].data, rests, sizeof rests);
}

/* the largest sums of 8-bit products, k beyond a block */
static void integer_products_are_exact(void **state) {
    enum { K = 1000 };
    fixture *f = *state;
    static uint8_t a[2 * K], b[K * 2];
    for (int i = 0; i < K; i++) {
        a[i] = 255;
        a[K + i] = (uint8_t)(i * 37);
        b[2 * i] = 255;
        b[2 * i + 1] = (uint8_t)(i * 91);
    }
    pith__value *first = graph_input_of(f->graph, "a", PITH_U8, "MK"),
                *second = graph_input_of(f->graph, "b", PITH_U8, "KN");
    graph_output(f->graph, apply(f, "MatMulInteger", 2, first, second));
    pith_tensor in[2] = { tensor(PITH_U8, a, 2, 2, K), tensor(PITH_U8, b, 2, K, 2) }, out[4];
    run_ok(f, out, in, 2);
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            int32_t sum = 0;
            for (int k = 0; k < K; k++) sum += a[i * K + k] * b[2 * k + j];
            assert_int_equal(((int32_t *)out[0].data)[2 * i + j], sum);
        }
    }
}

/* the sums are exact on any number of threads */
static void few_integer_rows_are_cut_by_columns(void **state) {
    enum { M = 3, K = 1100, N = 1000 };
    fixture *f = *state;
    static uint8_t a[M * K], b[K * N];
    static int32_t expected[M * N];
    for (int i = 0; i < M * K; i++) a[i] = (uint8_t)(i * 2654435761u >> 16);
    for (int i = 0; i < K * N; i++) b[i] = (uint8_t)(i * 2246822519u >> 16);
    for (int i = 0; i < M; i++) {
        for (int k = 0; k < K; k++) {
            for (int j = 0; j < N; j++) expected[i * N + j] += a[i * K + k] * b[k * N + j];
        }
    }
    pith__value *first = graph_input_of(f->graph, "a", PITH_U8, "MK"),
                *second = graph_input_of(f->graph, "b", PITH_U8, "KN");
    graph_output(f->graph, apply(f, "MatMulInteger", 2, first, second));
    pith_tensor in[2] = { tensor(PITH_U8, a, 2, M, K), tensor(PITH_U8, b, 2, K, N) }, out[4];
    for (int threads = 1; threads <= 4; threads++) {
        run_ok(f, out, in, threads);
        assert_memory_equal(out[0].data, expected, sizeof expected);
    }
}

static void threads_change_no_bit(void **state) { /* a product, a reduction and an addition large
                                                     enough to be split */
    enum { M = 150, K = 130, N = 270 };
    fixture *f = *state;
    float *a = malloc(M * K * sizeof *a), *b = malloc(K * N * sizeof *b),
          *kept = malloc(M * N * sizeof *kept);
    assert_true(a && b && kept);
    for (int i = 0; i < M * K; i++) a[i] = (float)((i * 2654435761u >> 16) % 2001) / 1000 - 1;
    for (int i = 0; i < K * N; i++) b[i] = (float)((i * 2246822519u >> 16) % 2001) / 1000 - 1;
    pith__value *first = graph_input_of(f->graph, "a", PITH_F32, "MK"),
                *second = graph_input_of(f->graph, "b", PITH_F32, "KN");
    pith__value *product = apply(f, "MatMul", 2, first, second);
    pith__value *mean = apply(f, "ReduceMean", 2, product, numbers(f, 1, (int64_t[]){ 0 }));
    graph_output(f->graph, apply(f, "Sub", 2, product, mean));
    pith_tensor in[2] = { tensor(PITH_F32, a, 2, M, K), tensor(PITH_F32, b, 2, K, N) }, out[4];
    for (int threads = 1; threads <= 4; threads++) {
        run_ok(f, out, in, threads);
        if (threads == 1)
            memcpy(kept, out[0].data, M * N * sizeof *kept);
        else
            assert_memory_equal(out[0].data, kept, M * N * sizeof *kept);
    }
    free(a);
    free(b);
    free(kept);
}

/* f16 weights give what their f32 values give, rounded */
static void half_constants_are_packed_once(void **state) {
    fixture *f = *state;
    /* 1 2 -2 0.5; 1 3 */
    uint16_t weights[4] = { 0x3C00, 0x4000, 0xC000, 0x3800 }, x[2] = { 0x3C00, 0x4200 };
    pith__value *w = constant(f, PITH_F16, weights, 2, (int64_t[]){ 2, 2 });
    graph_output(f->graph, apply(f, "MatMul", 2, graph_input_of(f->graph, "x", PITH_F16, "M2"), w));
    pith_tensor in = tensor(PITH_F16, x, 2, 1, 2), out[4];
    run_ok(f, out, &in, 1);
    assert_int_equal(((uint16_t *)out[0].data)[0], 0xC500); /* 1 - 6 = -5 */
    assert_int_equal(((uint16_t *)out[0].data)[1], 0x4300); /* 2 + 1.5 = 3.5 */
}

/* ---- the tables ---- */

static void tables_are_sorted(void **state) {
    (void)state;
    for (size_t i = 1; i < pith__kernel_table_count; i++) {
        const pith__kernel_row *a = &pith__kernel_table[i - 1], *b = &pith__kernel_table[i];
        int order = strcmp(a->family, b->family);
        assert_true(order < 0 || (order == 0 && a->dtype < b->dtype));
        assert_ptr_equal(pith__kernel_find(b->family, b->dtype, PITH_ISA_scalar),
                         b->fn[PITH_ISA_scalar]);
    }
}

static void every_operator_is_complete(void **state) {
    (void)state;
    for (size_t i = 0; i < pith__op_table_count; i++) {
        const pith__op *op = pith__op_table[i];
        assert_non_null(op->infer);
        assert_true(op->run || op->flags & PITH_OP_VIEW || op->since == INT32_MAX);
        assert_true(op->max_inputs < 0 || op->min_inputs <= op->max_inputs);
        assert_ptr_equal(pith__op_find(pith__str_of(op->domain), pith__str_of(op->name)), op);
    }
}

/* Of operators that take any number of inputs; found by a model with one byte wrong. */
static void missing_inputs_are_named(void **state) {
    static const struct {
        const char *op, *number, *text, *body; /* attributes that must be there */
    } ops[] = { { .op = "Sum" },
                { .op = "Mean" },
                { .op = "Max" },
                { .op = "Min" },
                { .op = "Concat", .number = "axis" },
                { .op = "Einsum", .text = "equation" },
                { .op = "Scan", .number = "num_scan_inputs", .body = "body" },
                { .op = "SequenceConstruct" },
                { .op = "SequenceMap", .body = "body" } };
    static const float one = 1;
    fixture *f = *state;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        f->graph = graph_new(&f->arena, NULL, &f->err);
        pith__value *x = constant(f, PITH_F32, &one, 1, (int64_t[]){ 1 });
        pith__node *made = node(f, ops[i].op, 21, 3, x, NULL, x);
        if (ops[i].number) assert_int_equal(pith__node_set_int(made, ops[i].number, 1), PITH_OK);
        if (ops[i].text)
            assert_int_equal(pith__node_set_str(made, ops[i].text, PITH_STR("a,b,c")), PITH_OK);
        if (ops[i].body)
            assert_int_equal(
                pith__node_set_graph(made, ops[i].body, graph_new(&f->arena, f->graph, &f->err)),
                PITH_OK);
        assert_int_equal(infer(f), PITH_ERR_ARGUMENT);
        assert_non_null(strstr(f->err.message, "input 1 is missing"));
    }
    f->graph = graph_new(&f->arena, NULL, &f->err);
    pith__value *x = constant(f, PITH_F32, &one, 1, (int64_t[]){ 1 });
    pith__value *inputs[] = { x, constant(f, PITH_I64, &(int64_t){ 1 }, 0, NULL), x, NULL, x };
    pith__node *made = pith__graph_add_node(f->graph, NULL, "ai.onnx.preview.training", "Momentum",
                                            inputs, 5, NULL, 2);
    static const char *const floats[] = { "alpha", "beta", "norm_coefficient" };
    made->opset = 1;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pith__node_set_float(made, floats[i], 0.5f), PITH_OK);
    assert_int_equal(pith__node_set_str(made, "mode", PITH_STR("standard")), PITH_OK);
    assert_int_equal(infer(f), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(f->err.message, "input 3 is missing"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(numbers_at_the_edges_are_followed),
        TEST(ranges_at_the_edges),
        TEST(quotients_of_differences),
        TEST(shapes_are_followed),
        TEST(masks_of_shapes_are_followed),
        TEST(slices_of_symbols),
        TEST(attributes_become_inputs),
        TEST(old_softmax_flattens),
        TEST(old_broadcast_has_an_axis),
        TEST(hostile_attributes_are_named),
        TEST(missing_inputs_are_named),
        TEST(every_wrong_dtype_is_named),
        TEST(every_unknown_operator_and_opset_is_named),
        TEST(parts_of_a_split_lie_inside),
        TEST(scales_of_a_convolution_fit_its_maps),
        TEST(results_beyond_reason_are_errors),
        TEST(indices_out_of_range_are_errors),
        TEST(integer_division_never_traps),
        TEST(integer_products_are_exact),
        TEST(few_integer_rows_are_cut_by_columns),
        TEST(threads_change_no_bit),
        TEST(half_constants_are_packed_once),
        cmocka_unit_test(tables_are_sorted),
        cmocka_unit_test(every_operator_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
