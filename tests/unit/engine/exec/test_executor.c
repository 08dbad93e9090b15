/* Plan and executor with operators made for the test: life times, views, in place, late shapes,
 * subgraphs, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/memory/account.h"
#include "engine/exec/executor.h"
#include "support/graph_test.h"

/* ---- operators ---- */

static int runs; /* of any operator */

static pith_status same_infer(pith__infer *c) {
    c->out[0] = *c->in[0];
    c->out[0].data = NULL;
    c->out[0].elems = NULL;
    return PITH_OK;
}

static pith_status add_infer(pith__infer *c) {
    c->out[0].dtype = c->in[0]->dtype;
    return pith__infer_broadcast(c, c->in[0], c->in[1], &c->out[0]);
}

static pith_status add_run(pith__run *r) {
    const float *a = r->in[0]->data, *b = r->in[1]->data;
    float *out = r->out[0]->data;
    int64_t count = pith__tensor_count(r->out[0]), na = pith__tensor_count(r->in[0]),
            nb = pith__tensor_count(r->in[1]);
    for (int64_t i = 0; i < count; i++) out[i] = a[i % na] + b[i % nb];
    runs++;
    return PITH_OK;
}

static pith_status negate_run(pith__run *r) {
    const float *x = r->in[0]->data;
    float *out = r->out[0]->data;
    for (int64_t i = 0; i < pith__tensor_count(r->out[0]); i++) out[i] = -x[i];
    runs++;
    return PITH_OK;
}

static pith_status reverse_scratch(const pith__infer *c, const void *state, int threads,
                                   size_t *bytes) {
    (void)state, (void)threads;
    *bytes = (size_t)pith__type_count(c->in[0]) * sizeof(float);
    return PITH_OK;
}

static pith_status reverse_run(pith__run *r) {
    int64_t count = pith__tensor_count(r->in[0]);
    float *copy = r->scratch, *out = r->out[0]->data;
    runs++;
    if (!count) return PITH_OK; /* there may be no memory then */
    memcpy(copy, r->in[0]->data, (size_t)count * sizeof *copy);
    memset(out, 0xFF, (size_t)count * sizeof *out);
    for (int64_t i = 0; i < count; i++) out[i] = copy[count - 1 - i];
    return PITH_OK;
}

/* [a, b, …] as [a * b * …]. */
static pith_status flatten_infer(pith__infer *c) {
    pith__type_set(&c->out[0], c->in[0]->dtype, 1,
                   (pith__dim[]){ pith__dim_product(c->dims, c->in[0]->dims, c->in[0]->rank) });
    return PITH_OK;
}

static pith_status positive_infer(pith__infer *c) {
    pith__type_set(&c->out[0], c->in[0]->dtype, 1, (pith__dim[]){ PITH_DIM_UNKNOWN });
    return PITH_OK;
}

static pith_status positive_run(pith__run *r) {
    const float *x = r->in[0]->data;
    int64_t count = pith__tensor_count(r->in[0]), found = 0;
    for (int64_t i = 0; i < count; i++) found += x[i] > 0;
    PITH_TRY(pith__run_alloc(r, 0, PITH_F32, 1, &found));
    float *out = r->out[0]->data;
    for (int64_t i = 0; i < count; i++)
        if (x[i] > 0) *out++ = x[i];
    runs++;
    return PITH_OK;
}

/* Zeros of the shape that the input holds. */
static pith_status zeros_infer(pith__infer *c) {
    int64_t rank = pith__type_count(c->in[0]);
    c->out[0].dtype = PITH_F32;
    if (rank < 0) return PITH_OK;
    if (rank > PITH_MAX_RANK) return pith__op_fail(c, "rank");
    c->out[0].rank = (int32_t)rank;
    for (int64_t i = 0; i < rank; i++)
        if (!pith__type_elem(c->in[0], i, &c->out[0].dims[i])) c->out[0].dims[i] = PITH_DIM_UNKNOWN;
    return PITH_OK;
}

static pith_status zeros_run(pith__run *r) {
    memset(r->out[0]->data, 0, r->out[0]->bytes);
    runs++;
    return PITH_OK;
}

static pith_status shape_infer(pith__infer *c) {
    const pith__type *in = c->in[0];
    pith__type_set(&c->out[0], PITH_I64, 1,
                   (pith__dim[]){ in->rank < 0 ? PITH_DIM_UNKNOWN : in->rank });
    if (in->rank < 0) return PITH_OK;
    pith__dim *elems = pith__arena_array(c->arena, (size_t)in->rank, sizeof *elems);
    if (!elems) return pith__fail_memory(c->err, 0);
    for (int i = 0; i < in->rank; i++) elems[i] = in->dims[i];
    c->out[0].elems = elems;
    return PITH_OK;
}

static pith_status shape_run(pith__run *r) {
    memcpy(r->out[0]->data, r->in[0]->dims, r->out[0]->bytes);
    runs++;
    return PITH_OK;
}

/* x, n → body applied n times. */
static pith_status repeat_infer(pith__infer *c) {
    pith__type in = *c->in[0], out;
    PITH_TRY(pith__infer_subgraph(c, "body", &in, 1, &out, 1));
    c->out[0].dtype = out.dtype;
    return PITH_OK;
}

static pith_status repeat_run(pith__run *r) {
    pith_tensor state = *r->in[0];
    for (int64_t n = *(const int64_t *)r->in[1]->data; n > 0; n--) {
        pith_tensor next;
        PITH_TRY(r->exec->subgraph(r->exec, r, "body", &state, 1, &next, 1));
        state = next;
    }
    *r->out[0] = state;
    return PITH_OK;
}

static pith_status fail_run(pith__run *r) {
    return pith__fail(r->err, PITH_ERR_RUN, "is in a bad mood");
}

static const pith__op op_add = { .name = "Add",
                                 .min_inputs = 2,
                                 .max_inputs = 2,
                                 .max_outputs = 1,
                                 .flags = PITH_OP_ELEMENTWISE | PITH_OP_IN_PLACE,
                                 .infer = add_infer,
                                 .run = add_run };
static const pith__op op_negate = { .name = "Negate",
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .max_outputs = 1,
                                    .flags = PITH_OP_ELEMENTWISE | PITH_OP_IN_PLACE,
                                    .infer = same_infer,
                                    .run = negate_run };
static const pith__op op_reverse = { .name = "Reverse",
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .max_outputs = 1,
                                     .infer = same_infer,
                                     .scratch = reverse_scratch,
                                     .run = reverse_run };
static const pith__op op_flatten = { .name = "Flatten",
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .max_outputs = 1,
                                     .flags = PITH_OP_VIEW,
                                     .infer = flatten_infer };
static const pith__op op_positive = { .name = "Positive",
                                      .min_inputs = 1,
                                      .max_inputs = 1,
                                      .max_outputs = 1,
                                      .flags = PITH_OP_LATE,
                                      .infer = positive_infer,
                                      .run = positive_run };
static const pith__op op_zeros = { .name = "Zeros",
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .max_outputs = 1,
                                   .infer = zeros_infer,
                                   .run = zeros_run };
static const pith__op op_shape = { .name = "Shape",
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .max_outputs = 1,
                                   .flags = PITH_OP_SHAPE_ONLY,
                                   .infer = shape_infer,
                                   .run = shape_run };
static const pith__op op_repeat = { .name = "Repeat",
                                    .min_inputs = 2,
                                    .max_inputs = 2,
                                    .max_outputs = 1,
                                    .flags = PITH_OP_LATE,
                                    .infer = repeat_infer,
                                    .run = repeat_run };
static const pith__op op_fail = { .name = "Fail",
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .max_outputs = 1,
                                  .infer = same_infer,
                                  .run = fail_run };

/* ---- a graph under test ---- */

static pith__value *apply_in(pith__graph *graph, const pith__op *op, pith__value *a,
                             pith__value *b) {
    pith__node *node = pith__graph_add_node(graph, NULL, "", op->name, (pith__value *[]){ a, b },
                                            b ? 2 : 1, NULL, 1);
    node->op = op;
    return node->outputs[0];
}

static pith__value *apply(fixture *f, const pith__op *op, pith__value *a, pith__value *b) {
    return apply_in(f->graph, op, a, b);
}

static pith_status build(fixture *f) {
    PITH_TRY(pith__graph_check(f->graph, &f->err));
    PITH_TRY(pith__ops_infer(f->graph, false, &f->err));
    PITH_TRY(pith__plan_build(&f->plan, f->graph, NULL, &f->arena, &f->err));
    return pith__executor_create(&f->executor, f->plan, &f->options, &f->err);
}

static pith_tensor floats(float *data, int rank, int64_t a, int64_t b) {
    pith_tensor t = { .data = data, .dtype = PITH_F32, .rank = rank, .dims = { a, b } };
    t.bytes = (size_t)(a * (rank > 1 ? b : 1)) * sizeof *data;
    return t;
}

static pith_tensor ints(int64_t *data, int64_t count) {
    return (pith_tensor){ .data = data,
                          .bytes = (size_t)count * sizeof *data,
                          .dtype = PITH_I64,
                          .rank = 1,
                          .dims = { count } };
}

static void run_ok(fixture *f, pith_tensor *out, const pith_tensor *in) {
    if (pith__executor_run(f->executor, out, in, 1, NULL, &f->err)) fail_msg("%s", f->err.message);
}

static void fill(float *data, int count) {
    for (int i = 0; i < count; i++) data[i] = (float)(i - count / 3);
}

/* ---- tests ---- */

static void steady_state_allocates_nothing(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "AB");
    pith__value *n = apply(f, &op_negate, x, NULL);
    pith__value *r = apply(f, &op_reverse, n, NULL);
    graph_output(f->graph, apply(f, &op_add, r, n));
    assert_int_equal(build(f), PITH_OK);
    static float data[600];
    fill(data, 600);
    pith_tensor out[1], shapes[] = { floats(data, 2, 20, 30), floats(data, 2, 3, 5) };
    for (int round = 0; round < 6; round++) {
        size_t before = f->count.calls;
        const pith_tensor *in = &shapes[round & 1];
        run_ok(f, out, in);
        if (round >= 2) assert_int_equal(f->count.calls, before);
        int64_t count = pith__tensor_count(in);
        assert_int_equal(out[0].rank, 2);
        assert_int_equal(pith__tensor_count(&out[0]), count);
        for (int64_t i = 0; i < count; i++)
            assert_true(((float *)out[0].data)[i] == -data[count - 1 - i] - data[i]);
    }
    /* n, r + sum in place, scratch */
    assert_int_equal(pith__executor_bytes(f->executor), 3 * 2432);
}

static void dead_values_give_their_memory(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "A");
    for (int i = 0; i < 20; i++) x = apply(f, &op_reverse, x, NULL);
    graph_output(f->graph, x);
    assert_int_equal(build(f), PITH_OK);
    float data[64];
    fill(data, 64);
    pith_tensor out[1], in = floats(data, 1, 64, 0);
    run_ok(f, out, &in);
    assert_memory_equal(out[0].data, data, sizeof data);
    assert_int_equal(pith__executor_bytes(f->executor), 3 * sizeof data);
}

static void views_keep_what_they_show(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "AB");
    pith__value *n = apply(f, &op_negate, x, NULL);
    pith__value *view = apply(f, &op_flatten, n, NULL);
    pith__value *other = apply(f, &op_flatten, x, NULL); /* of the caller's memory */
    for (int i = 0; i < 3; i++) other = apply(f, &op_reverse, other, NULL);
    graph_output(f->graph, apply(f, &op_add, other, view));
    graph_output(f->graph, apply(f, &op_flatten, apply(f, &op_flatten, x, NULL), NULL));
    assert_int_equal(build(f), PITH_OK);
    for (int round = 0; round < 2; round++) {
        float data[12];
        fill(data, 12);
        data[0] += (float)round;
        pith_tensor out[2], in = floats(data, 2, 3, 4);
        run_ok(f, out, &in);
        for (int i = 0; i < 12; i++)
            assert_true(((float *)out[0].data)[i] == data[11 - i] - data[i]);
        assert_int_equal(out[1].rank, 1);
        assert_memory_equal(out[1].data, data, sizeof data);
        assert_ptr_not_equal(out[1].data, data);
    }
}

static void the_same_input_twice(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "A");
    pith__value *n = apply(f, &op_negate, x, NULL);
    pith__value *sum = apply(f, &op_add, n, n);
    graph_output(f->graph, apply(f, &op_add, apply(f, &op_reverse, sum, NULL), sum));
    graph_output(f->graph, x);
    assert_int_equal(build(f), PITH_OK);
    float data[5] = { 1, 2, 3, 4, 5 };
    pith_tensor out[2], in = floats(data, 1, 5, 0);
    run_ok(f, out, &in);
    for (int i = 0; i < 5; i++) assert_true(((float *)out[0].data)[i] == -12);
    assert_memory_equal(out[1].data, data, sizeof data);
}

static void late_shapes(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "AB");
    pith__value *p = apply(f, &op_positive, x, NULL);
    pith__value *view = apply(f, &op_flatten, p, NULL);
    pith__value *n = apply(f, &op_negate, view, NULL);
    graph_output(f->graph, apply(f, &op_reverse, n, NULL));
    graph_output(f->graph, apply(f, &op_shape, p, NULL));
    assert_int_equal(build(f), PITH_OK);
    static float data[3000];
    fill(data, 3000);
    pith_tensor out[2], in = floats(data, 2, 60, 50);
    for (int round = 0; round < 5; round++) {
        size_t before = f->count.calls;
        run_ok(f, out, &in);
        if (round >= 2) assert_int_equal(f->count.calls, before);
        assert_int_equal(out[0].dims[0], 1999);
        assert_true(((float *)out[0].data)[0] == -1999 && ((float *)out[0].data)[1998] == -1);
        assert_int_equal(*(int64_t *)out[1].data, 1999);
    }
    float none[2] = { -1, -2 };
    in = floats(none, 2, 1, 2);
    run_ok(f, out, &in);
    assert_int_equal(out[0].dims[0], 0);
    assert_int_equal(*(int64_t *)out[1].data, 0);
}

static void shapes_from_contents(void **state) {
    fixture *f = *state;
    graph_output(f->graph,
                 apply(f, &op_zeros, graph_input_of(f->graph, "shape", PITH_I64, "R"), NULL));
    assert_int_equal(build(f), PITH_OK);
    int64_t shape[3] = { 2, 3, 4 };
    pith_tensor out[1], in = ints(shape, 3);
    run_ok(f, out, &in);
    assert_int_equal(out[0].rank, 3);
    shape[1] = 7;
    run_ok(f, out, &in);
    assert_int_equal(out[0].dims[1], 7);
    shape[1] = -1;
    assert_int_equal(pith__executor_run(f->executor, out, &in, 1, NULL, &f->err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(
        strstr(f->err.message, "(Zeros): output 0 would have a negative size: float32[2, -1, 4]"));
    shape[0] = shape[1] = shape[2] = INT64_C(1) << 40;
    assert_int_equal(pith__executor_run(f->executor, out, &in, 1, NULL, &f->err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(f->err.message, "too large"));
    shape[0] = 1, shape[1] = 1, shape[2] = 1;
    run_ok(f, out, &in);
    assert_int_equal(pith__tensor_count(&out[0]), 1);
}

static void shape_arithmetic_leaves_the_plan(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "AB");
    pith__value *shape = apply(f, &op_shape, apply(f, &op_negate, x, NULL), NULL);
    pith__value *zeros = apply(f, &op_zeros, shape, NULL);
    graph_output(f->graph, apply(f, &op_add, zeros, x));
    graph_output(f->graph, shape);
    assert_int_equal(build(f), PITH_OK);
    assert_int_equal(f->plan->step_count, 2);
    runs = 0;
    float data[6] = { 1, 2, 3, 4, 5, 6 };
    pith_tensor out[2], in = floats(data, 2, 2, 3);
    run_ok(f, out, &in);
    assert_memory_equal(out[0].data, data, sizeof data);
    assert_int_equal(((int64_t *)out[1].data)[0], 2);
    assert_int_equal(((int64_t *)out[1].data)[1], 3);
    assert_int_equal(runs, 2);
    run_ok(f, out, &in);
    assert_int_equal(runs, 3); /* zeros are kept with the binding */
}

static void inputs_that_contradict(void **state) {
    fixture *f = *state;
    pith__value *a = graph_input_of(f->graph, "ids", PITH_F32, "AS"),
                *b = graph_input_of(f->graph, "mask", PITH_F32, "AS");
    graph_output(f->graph, apply(f, &op_add, a, b));
    assert_int_equal(build(f), PITH_OK);
    float data[8] = { 0 };
    pith_tensor out[1], in[2] = { floats(data, 2, 2, 4), floats(data, 2, 2, 3) };
    assert_int_equal(pith__executor_run(f->executor, out, in, 1, NULL, &f->err), PITH_ERR_ARGUMENT);
    assert_string_equal(f->err.message,
                        "input 'mask' has size 3 at axis 1, but input 'ids' sets S to 4");
    in[1] = floats(data, 1, 4, 0);
    assert_int_equal(pith__executor_run(f->executor, out, in, 1, NULL, &f->err), PITH_ERR_ARGUMENT);
    assert_string_equal(f->err.message, "input 'mask' has shape [4]; the model needs rank 2");
    in[1] = (pith_tensor){ 0 };
    assert_int_equal(pith__executor_run(f->executor, out, in, 1, NULL, &f->err), PITH_ERR_ARGUMENT);
    assert_string_equal(f->err.message, "input 'mask' is missing");
    in[1] = floats(data, 2, 2, 4);
    in[1].dtype = PITH_I32;
    assert_int_equal(pith__executor_run(f->executor, out, in, 1, NULL, &f->err), PITH_ERR_ARGUMENT);
    assert_string_equal(f->err.message, "input 'mask' is int32; the model needs float32");
    in[1] = floats(data, 2, 2, 4);
    in[1].bytes = 31;
    assert_int_equal(pith__executor_run(f->executor, out, in, 1, NULL, &f->err), PITH_ERR_ARGUMENT);
    in[1] = floats(data, 2, 2, -4);
    assert_int_equal(pith__executor_run(f->executor, out, in, 1, NULL, &f->err), PITH_ERR_ARGUMENT);
    in[1] = floats(data, 2, 2, 4);
    run_ok(f, out, in);
}

/* Declared numbers are hints; the same number at the same axis of two inputs still binds them
 * together. */
static void declared_sizes_are_hints(void **state) {
    fixture *f = *state;
    pith__value *a = graph_input_of(f->graph, "a", PITH_F32, "14"),
                *b = graph_input_of(f->graph, "b", PITH_F32, "14");
    graph_output(f->graph, apply(f, &op_add, a, b));
    assert_int_equal(build(f), PITH_OK);
    assert_false(pith__dim_known(f->graph->outputs[0]->type.dims[1]));
    float data[30] = { 0 };
    pith_tensor out[1], in[2] = { floats(data, 2, 5, 6), floats(data, 2, 5, 6) };
    run_ok(f, out, in);
    assert_int_equal(out[0].dims[0], 5);
    in[1] = floats(data, 2, 5, 4);
    assert_int_equal(pith__executor_run(f->executor, out, in, 1, NULL, &f->err), PITH_ERR_ARGUMENT);
}

/* The executor of a model with a memory limit: an account refuses, the buffer never stays larger
 * than a run wants. */
static void memory_limit(void **state) {
    fixture *f = *state;
    pith__account account;
    pith__executor *limited;
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "A");
    graph_output(f->graph, apply(f, &op_reverse, x, NULL));
    graph_output(f->graph, apply(f, &op_positive, x, NULL));
    assert_int_equal(build(f), PITH_OK);
    pith__account_init(&account, &pith__allocator_default, 1 << 18, 0);
    pith__executor_options options = { .allocator = &account.allocator, .tight = true };
    assert_int_equal(pith__executor_create(&limited, f->plan, &options, &f->err), PITH_OK);
    static float data[40000];
    fill(data, 40000);
    pith_tensor out[2], in = floats(data, 1, 40000, 0);
    assert_int_equal(pith__executor_run(limited, out, &in, 1, NULL, &f->err), PITH_ERR_MEMORY);
    pith__account_explain(&account, PITH_ERR_MEMORY, &f->err);
    assert_string_equal(f->err.message, "raise pith_open_options.memory_limit: the memory limit is "
                                        "262144 bytes: out of memory: the "
                                        "activations need 320000 bytes");
    in = floats(data, 1, 12000, 0);
    for (int i = 0; i < 2; i++)
        if (pith__executor_run(limited, out, &in, 1, NULL, &f->err)) fail_msg("%s", f->err.message);
    assert_in_range(pith__executor_peak_bytes(limited), 96000, 262144);
    in = floats(data, 1, 100, 0);
    if (pith__executor_run(limited, out, &in, 1, NULL, &f->err)) fail_msg("%s", f->err.message);
    assert_in_range(pith__executor_bytes(limited), 800, 8192);
    pith__executor_destroy(limited);
    assert_in_range(atomic_load(&account.peak), 96000, 262144);
    assert_int_equal(atomic_load(&account.held), 0);
}

static void cancel_and_failure_leave_it_usable(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "A");
    graph_output(f->graph, apply(f, &op_negate, x, NULL));
    pith__value *bad = apply(f, &op_fail, x, NULL);
    bad->producer->name = PITH_STR("grumpy");
    bad->producer->index = 7;
    graph_output(f->graph, bad);
    assert_int_equal(build(f), PITH_OK);
    float data[4] = { 0 };
    const volatile int cancelled = 1;
    pith_call call = PITH_CALL_INIT;
    pith__stop own;
    call.cancel = &cancelled;
    pith_tensor out[2], in = floats(data, 1, 4, 0);
    runs = 0;
    assert_int_equal(
        pith__executor_run(f->executor, out, &in, 1, pith__stop_begin(&own, &call), &f->err),
        PITH_ERR_CANCELLED);
    assert_int_equal(runs, 0);
    assert_int_equal(pith__executor_run(f->executor, out, &in, 1, NULL, &f->err), PITH_ERR_RUN);
    assert_string_equal(f->err.message, "node 7 'grumpy' (Fail): is in a bad mood");
    assert_int_equal(runs, 1);
}

static void inputs_may_lie_anywhere(void **state) {
    fixture *f = *state;
    graph_output(f->graph,
                 apply(f, &op_negate, graph_input_of(f->graph, "x", PITH_F32, "A"), NULL));
    assert_int_equal(build(f), PITH_OK);
    char bytes[4 * sizeof(float) + 1];
    float data[4] = { 1, 2, 3, 4 };
    memcpy(bytes + 1, data, sizeof data);
    pith_tensor out[1], in = floats((float *)(void *)(bytes + 1), 1, 4, 0);
    run_ok(f, out, &in);
    for (int i = 0; i < 4; i++) assert_true(((float *)out[0].data)[i] == -data[i]);
    in = floats(NULL, 1, 0, 0);
    run_ok(f, out, &in);
    assert_int_equal(out[0].dims[0], 0);
    assert_non_null(out[0].data);
}

static void constants_and_defaults(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "A");
    static float one[4] = { 1, 1, 1, 1 };
    pith_tensor tensor = floats(one, 1, 4, 0);
    pith__value *d = graph_input_of(f->graph, "default", PITH_F32, "4");
    pith__type_of_tensor(&d->type, &tensor);
    char odd[17];
    memcpy(odd + 1, one, 16);
    pith_tensor unaligned = floats((float *)(void *)(odd + 1), 1, 4, 0);
    pith__value *c = pith__graph_add_const(f->graph, PITH_STR("c"), &unaligned);
    graph_output(f->graph, apply(f, &op_add, apply(f, &op_add, x, d), c));
    graph_output(f->graph, c);
    assert_int_equal(build(f), PITH_OK);
    float data[4] = { 1, 2, 3, 4 };
    pith_tensor out[2], in[2] = { floats(data, 1, 4, 0), { 0 } };
    run_ok(f, out, in);
    for (int i = 0; i < 4; i++) assert_true(((float *)out[0].data)[i] == data[i] + 2);
    assert_memory_equal(out[1].data, one, sizeof one);
    in[1] = tensor;
    run_ok(f, out, in);
    in[1] = floats(data, 1, 4, 0);
    assert_int_equal(pith__executor_run(f->executor, out, in, 1, NULL, &f->err),
                     PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(f->err.message, "'default'"));
}

/* x, n → n times: body(s) = reverse(s) + captured, where captured is a value of the outer graph. */
static void add_repeat(fixture *f) {
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "AB"),
                *n = graph_input_of(f->graph, "n", PITH_I64, "1");
    pith__value *outer = apply(f, &op_negate, x, NULL);
    pith__graph *body;
    assert_int_equal(pith__graph_create(&body, &f->arena, f->graph, &f->err), PITH_OK);
    pith__value **ports = pith__arena_array(&f->arena, 3, sizeof *ports);
    ports[0] = pith__graph_add_value(body, PITH_STR("s"), PITH_VALUE_INPUT);
    ports[1] = pith__graph_add_value(body, PITH_STR("captured"), PITH_VALUE_CAPTURE);
    pith__value *zeros = apply_in(body, &op_zeros, apply_in(body, &op_shape, ports[1], NULL), NULL);
    pith__value *sum =
        apply_in(body, &op_add, apply_in(body, &op_reverse, ports[0], NULL), ports[1]);
    ports[2] = apply_in(body, &op_add, sum, zeros);
    ports[2]->output_uses++;
    body->inputs = &ports[0], body->captures = &ports[1], body->outputs = &ports[2];
    body->input_count = body->capture_count = body->output_count = 1;
    pith__node *node = pith__graph_add_node(f->graph, NULL, "", "Repeat",
                                            (pith__value *[]){ x, n, outer }, 3, NULL, 1);
    node->op = &op_repeat;
    node->capture_count = 1;
    node->attrs = pith__arena_array(&f->arena, 1, sizeof *node->attrs);
    node->attrs[0] =
        (pith__attr){ .name = PITH_STR("body"), .kind = PITH_ATTR_GRAPH, .graph = body };
    node->attr_count = 1;
    graph_output(f->graph, apply(f, &op_negate, node->outputs[0], NULL));
}

static void subgraphs(void **state) {
    fixture *f = *state;
    add_repeat(f);
    assert_int_equal(build(f), PITH_OK);
    assert_int_equal(f->plan->steps[1].subplan_count, 1);
    assert_int_equal(f->plan->steps[1].subplans[0].plan->step_count, 4); /* Shape is known */
    static float data[600];
    fill(data, 600);
    int64_t times = 5;
    pith_tensor out[1], in[2] = { floats(data, 2, 20, 30), ints(&times, 1) };
    for (int round = 0; round < 5; round++) {
        size_t before = f->count.calls;
        run_ok(f, out, in);
        if (round >= 3) assert_int_equal(f->count.calls, before);
        float want[600], next[600];
        memcpy(want, data, sizeof want);
        for (int k = 0; k < 5; k++) {
            for (int i = 0; i < 600; i++) next[i] = want[599 - i] - data[i];
            memcpy(want, next, sizeof want);
        }
        for (int i = 0; i < 600; i++) assert_true(((float *)out[0].data)[i] == -want[i]);
    }
    times = 0;
    in[0] = floats(data, 2, 2, 2);
    run_ok(f, out, in);
    for (int i = 0; i < 4; i++) assert_true(((float *)out[0].data)[i] == -data[i]);
    for (int i = 1; i < 30; i++) { /* more shapes than are remembered */
        times = i & 3;
        in[0] = floats(data, 2, i, 3);
        run_ok(f, out, in);
    }
}

/* Each shape has a binding, and each binding an executor of the subgraph; these share one buffer.
 */
static void subgraphs_share_memory(void **state) {
    fixture *f = *state;
    add_repeat(f);
    assert_int_equal(build(f), PITH_OK);
    static float data[20000];
    fill(data, 20000);
    int64_t times = 3;
    pith_tensor out[1], in[2] = { floats(data, 2, 400, 50), ints(&times, 1) };
    for (int round = 0; round < 3; round++) run_ok(f, out, in);
    size_t peak = pith__executor_peak_bytes(f->executor), held = pith__executor_bytes(f->executor);
    for (int rows = 399; rows > 393; rows--) {
        in[0] = floats(data, 2, rows, 50);
        run_ok(f, out, in);
    }
    assert_in_range(pith__executor_peak_bytes(f->executor), peak, peak + 4096);
    assert_in_range(pith__executor_bytes(f->executor), 80000, held + 4096);
}

static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    add_repeat(f);
    graph_output(f->graph, apply(f, &op_positive, f->graph->inputs[0], NULL));
    assert_int_equal(pith__ops_infer(f->graph, false, &f->err), PITH_OK);
    assert_int_equal(pith__plan_build(&f->plan, f->graph, NULL, &f->arena, &f->err), PITH_OK);
    static float data[2000];
    fill(data, 2000);
    int64_t times = 3;
    pith_tensor out[2], in[2] = { floats(data, 2, 40, 50), ints(&times, 1) };
    size_t live = f->count.live, n = 1;
    for (;; n++) {
        f->count.calls = 0;
        f->count.fail_at = n;
        pith__executor *e = NULL;
        pith_status status = pith__executor_create(&e, f->plan, &f->options, &f->err);
        if (!status) status = pith__executor_run(e, out, in, 1, NULL, &f->err);
        f->count.fail_at = 0;
        if (status) {
            assert_int_equal(status, PITH_ERR_MEMORY);
            /* still usable */
            if (e) assert_int_equal(pith__executor_run(e, out, in, 1, NULL, &f->err), PITH_OK);
        }
        pith__executor_destroy(e);
        assert_int_equal(f->count.live, live);
        if (!status) break;
    }
    assert_in_range(n, 10, 200);
}

static void planning_may_run_out_of_memory(void **state) {
    (void)state;
    for (size_t n = 1;; n++) {
        fixture *f;
        fixture_setup((void **)&f);
        add_repeat(f);
        f->count.fail_at = f->count.calls + n;
        pith_status status = pith__ops_infer(f->graph, false, &f->err);
        if (!status) status = pith__plan_build(&f->plan, f->graph, NULL, &f->arena, &f->err);
        f->count.fail_at = 0;
        if (status) assert_int_equal(status, PITH_ERR_MEMORY);
        fixture_teardown((void **)&f);
        if (!status) break;
        assert_in_range(n, 1, 500);
    }
}

static void record(void *context, const pith__trace_event *event) {
    assert_true(event->end_ns >= event->begin_ns);
    assert_int_equal(event->depth, 0);
    if (event->step) assert_int_equal(event->run->out[0]->dims[0], 4);
    strcat(context, event->step ? event->step->node->op->name : "Bind");
}

static void trace(void **state) {
    fixture *f = *state;
    char text[100] = "";
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "A");
    graph_output(f->graph, apply(f, &op_reverse, apply(f, &op_negate, x, NULL), NULL));
    assert_int_equal(build(f), PITH_OK);
    pith__executor_trace(f->executor, record, text);
    float data[4] = { 1, 2, 3, 4 };
    pith_tensor out[1], in = floats(data, 1, 4, 0);
    run_ok(f, out, &in);
    run_ok(f, out, &in);
    assert_string_equal(text, "BindNegateReverseNegateReverse");
    pith__executor_trace(f->executor, NULL, NULL);
    run_ok(f, out, &in);
    assert_string_equal(text, "BindNegateReverseNegateReverse");
}

/* ---- counts ---- */

static void expect_counts(pith__counters *c, uint64_t runs_made, uint64_t plans, uint64_t buffers,
                          uint64_t bound, uint64_t copied) {
    assert_int_equal(pith__counted(c, PITH_COUNT_runs), runs_made);
    assert_int_equal(pith__counted(c, PITH_COUNT_plans_made), plans);
    assert_int_equal(pith__counted(c, PITH_COUNT_plans_reused), runs_made - plans);
    assert_int_equal(pith__counted(c, PITH_COUNT_buffers_made), buffers);
    assert_int_equal(pith__counted(c, PITH_COUNT_buffers_reused), runs_made - buffers);
    assert_int_equal(pith__counted(c, PITH_COUNT_tensors_bound), bound);
    assert_int_equal(pith__counted(c, PITH_COUNT_tensors_copied), copied);
}

static void count_binds(void *context, const pith__trace_event *event) {
    *(uint64_t *)context += !event->step;
}

/* Outputs: a computed one, and one that shows the input and so is copied. */
static void counts_are_what_happened(void **state) {
    fixture *f = *state;
    pith__counters counters = { 0 };
    uint64_t binds = 0;
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "A");
    graph_output(f->graph, apply(f, &op_reverse, x, NULL));
    graph_output(f->graph, x);
    f->options.counters = &counters;
    assert_int_equal(build(f), PITH_OK);
    pith__executor_trace(f->executor, count_binds, &binds);
    char bytes[65 * sizeof(float)] __attribute__((aligned(64))) = { 0 };
    pith_tensor out[2], in = floats((float *)(void *)bytes, 1, 16, 0);
    run_ok(f, out, &in); /* makes plan and buffer; the input and output 0 lie where they are, output
                            1 is copied */
    expect_counts(&counters, 1, 1, 1, 2, 1);
    assert_true(pith__counted(&counters, PITH_COUNT_plan_ns) > 0);
    run_ok(f, out, &in);
    expect_counts(&counters, 2, 1, 1, 4, 2);
    in = floats((float *)(void *)bytes, 1, 8, 0); /* smaller: another plan, the same buffer */
    run_ok(f, out, &in);
    expect_counts(&counters, 3, 2, 1, 6, 3);
    in = floats((float *)(void *)bytes, 1, 64, 0); /* larger */
    run_ok(f, out, &in);
    expect_counts(&counters, 4, 3, 2, 8, 4);
    /* not aligned: the input is copied as well */
    in = floats((float *)(void *)(bytes + 1), 1, 64, 0);
    run_ok(f, out, &in);
    expect_counts(&counters, 5, 3, 2, 9, 6);
    assert_int_equal(binds, 3);
    in = floats(NULL, 1, 3, 0); /* refused */
    assert_int_equal(pith__executor_run(f->executor, out, &in, 1, NULL, &f->err),
                     PITH_ERR_ARGUMENT);
    assert_int_equal(pith__counted(&counters, PITH_COUNT_runs), 5);
    assert_int_equal(pith__counted(&counters, PITH_COUNT_plans_made), 3);
}

/* A chain of 20 values: two of them and the scratch are alive at a time; the output alone remains.
 */
static void separate_values_are_freed_after_their_last_use(void **state) {
    fixture *f = *state;
    pith__counters counters = { 0 };
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "A");
    for (int i = 0; i < 20; i++) x = apply(f, &op_reverse, x, NULL);
    graph_output(f->graph, x);
    f->options.counters = &counters;
    f->options.separate = f->options.fresh_plans = true;
    assert_int_equal(build(f), PITH_OK);
    float data[64];
    fill(data, 64);
    pith_tensor out[1], in = floats(data, 1, 64, 0);
    for (int round = 1; round <= 3; round++) {
        size_t before = f->count.calls;
        run_ok(f, out, &in);
        assert_memory_equal(out[0].data, data, sizeof data);
        assert_true(f->count.calls - before >= 40); /* a value and its scratch for each step */
        assert_int_equal(pith__executor_bytes(f->executor), sizeof data);
        assert_int_equal(pith__executor_peak_bytes(f->executor), 3 * sizeof data);
        assert_int_equal(pith__counted(&counters, PITH_COUNT_plans_made), round);
        assert_int_equal(pith__counted(&counters, PITH_COUNT_plans_reused), 0);
        assert_int_equal(pith__counted(&counters, PITH_COUNT_buffers_made), round);
        assert_int_equal(pith__counted(&counters, PITH_COUNT_buffers_reused), 0);
    }
}

/* Outputs are written where the caller says: in place, or by a copy where the shape is known at the
 * end only. */
static void outputs_go_to_targets(void **state) {
    fixture *f = *state;
    pith__counters counters = { 0 };
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "A");
    pith__value *n = apply(f, &op_negate, x, NULL);
    graph_output(f->graph, n);
    graph_output(f->graph, apply(f, &op_flatten, n, NULL)); /* the same memory */
    graph_output(f->graph, apply(f, &op_positive, x, NULL));
    graph_output(f->graph, apply(f, &op_flatten, x, NULL)); /* the caller's memory */
    for (int i = 0; i < 4; i++)
        f->graph->outputs[i]->name = pith__str_of((const char *[]){ "n", "f", "p", "x" }[i]);
    f->options.counters = &counters;
    assert_int_equal(build(f), PITH_OK);
    float data[5] = { 1, -2, 3, -4, 5 }, places[4][5];
    pith_tensor out[4], in = floats(data, 1, 5, 0), targets[4];
    for (int i = 0; i < 4; i++) targets[i] = floats(places[i], 1, i == 2 ? 3 : 5, 0);
    pith__executor_set_targets(f->executor, targets);
    for (int round = 1; round <= 2; round++) {
        memset(places, 0, sizeof places);
        run_ok(f, out, &in);
        for (int i = 0; i < 4; i++) assert_ptr_equal(out[i].data, places[i]);
        for (int i = 0; i < 5; i++)
            assert_true(places[0][i] == -data[i] && places[1][i] == -data[i]);
        assert_true(places[2][0] == 1 && places[2][1] == 3 && places[2][2] == 5);
        assert_memory_equal(places[3], data, sizeof data);
        /* x and n */
        assert_int_equal(pith__counted(&counters, PITH_COUNT_tensors_bound), 2 * round);
        assert_int_equal(pith__counted(&counters, PITH_COUNT_tensors_copied), 3 * round);
    }
    /* Too small: found before anything runs, or, of p, at the end. */
    runs = 0;
    targets[0].bytes = 19, targets[0].rank = -1;
    assert_int_equal(pith__executor_run(f->executor, out, &in, 1, NULL, &f->err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(
        strstr(f->err.message,
               "output 'n' is float32 [5] and needs 20 bytes; the memory bound to it has 19"));
    assert_int_equal(runs, 0);
    targets[0] = floats(places[0], 1, 4, 0);
    assert_int_equal(pith__executor_run(f->executor, out, &in, 1, NULL, &f->err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(
        strstr(f->err.message, "output 'n' has shape [5]; the tensor bound to it has [4]"));
    targets[0] = floats(places[0], 1, 5, 0);
    targets[2].bytes = 8, targets[2].rank = -1;
    assert_int_equal(pith__executor_run(f->executor, out, &in, 1, NULL, &f->err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(f->err.message, "output 'p' is float32 [3] and needs 12 bytes"));
    targets[2].dtype = PITH_I32;
    assert_int_equal(pith__executor_run(f->executor, out, &in, 1, NULL, &f->err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(
        strstr(f->err.message, "output 'p' is float32; the memory bound to it is for int32"));
    pith__executor_set_targets(f->executor, NULL);
    run_ok(f, out, &in);
    assert_memory_equal(out[3].data, data, sizeof data);
    assert_ptr_not_equal(out[0].data, places[0]);
}

/* ---- random graphs ---- */

enum { NODES = 40, ROWS = 3, COLUMNS = 4, COUNT = ROWS * COLUMNS };

/* What a value must be; values of one class have one shape, known or not. */
typedef struct known {
    pith__value *value;
    int class, count;
    float data[COUNT];
} known;

static uint32_t next_random(uint32_t *seed) {
    return (*seed = *seed * 1664525u + 1013904223u) >> 8;
}

/* One node more, computed here as well, every value in memory of its own. */
static void grow(fixture *f, known *all, int made, uint32_t *seed) {
    known *to = &all[made];
    const known *a = &all[next_random(seed) % (uint32_t)made],
                *b = &all[next_random(seed) % (uint32_t)made];
    const pith__op *op = (const pith__op *[]){
        &op_negate, &op_reverse, &op_flatten, &op_add, &op_add, &op_positive
    }[next_random(seed) % 6];
    if (op == &op_add && a->class != b->class) b = a;
    to->class = op == &op_flatten && a->class == 0 ? 1 : op == &op_positive ? 2 + made : a->class;
    to->count = 0;
    for (int i = 0; i < a->count; i++) {
        if (op == &op_positive && !(a->data[i] > 0)) continue;
        to->data[to->count++] = op == &op_negate    ? -a->data[i]
                                : op == &op_reverse ? a->data[a->count - 1 - i]
                                : op == &op_add     ? a->data[i] + b->data[i]
                                                    : a->data[i];
    }
    to->value = apply(f, op, a->value, op == &op_add ? b->value : NULL);
}

/* Memory for the outputs: none, of the right size, with room to spare, not aligned, or that of the
 * input. */
static void run_into_targets(fixture *f, const known *const wanted[4], uint32_t *seed) {
    enum { NONE, RIGHT, WIDE, UNALIGNED, INPUT };
    static char memory[4][4 * COUNT * COUNT + 64];
    float x[COUNT];
    for (int i = 0; i < COUNT; i++) x[i] = (float)(i * 7 % 5) - 2;
    pith_tensor in = floats(x, 2, ROWS, COLUMNS), targets[4] = { 0 }, out[4];
    bool input_taken = false;
    memset(memory, 0x77, sizeof memory);
    for (int i = 0; i < 4; i++) {
        int kind = (int)(next_random(seed) % 5);
        size_t bytes = (size_t)wanted[i]->count * sizeof(float);
        if (kind == NONE || (kind == INPUT && (input_taken || bytes > sizeof x))) continue;
        input_taken = input_taken || kind == INPUT;
        char *data =
            kind == INPUT ? (char *)x : memory[i] + 4 * (kind == WIDE) + (kind == UNALIGNED);
        targets[i] = (pith_tensor){
            .data = data, .bytes = bytes + 8 * (kind == WIDE), .dtype = PITH_F32, .rank = -1
        };
    }
    pith__executor_set_targets(f->executor, targets);
    run_ok(f, out, &in);
    for (int i = 0; i < 4; i++) {
        size_t bytes = (size_t)wanted[i]->count * sizeof(float),
               at = (size_t)((char *)targets[i].data - memory[i]);
        if (targets[i].data) assert_ptr_equal(out[i].data, targets[i].data);
        assert_memory_equal(out[i].data, wanted[i]->data, bytes);
        if (!targets[i].data || targets[i].data == x) continue;
        for (size_t k = 0; k < at; k++) assert_int_equal(memory[i][k], 0x77);
        for (size_t k = at + bytes; k < sizeof memory[i]; k++) assert_int_equal(memory[i][k], 0x77);
    }
    pith__executor_set_targets(f->executor, NULL);
}

static void check_random(uint32_t seed, bool separate, bool fresh) {
    fixture *f;
    known all[NODES + 1] = { 0 };
    pith_tensor out[4], in;
    fixture_setup((void **)&f);
    f->options.separate = separate;
    f->options.fresh_plans = fresh;
    all[0].value = graph_input_of(f->graph, "x", PITH_F32, "AB");
    all[0].count = COUNT;
    for (int i = 0; i < COUNT; i++) all[0].data[i] = (float)(i * 7 % 5) - 2;
    in = floats(all[0].data, 2, ROWS, COLUMNS);
    for (int i = 1; i <= NODES; i++) grow(f, all, i, &seed);
    const known *wanted[4] = { &all[NODES], &all[next_random(&seed) % NODES],
                               &all[next_random(&seed) % NODES], &all[NODES / 2] };
    for (int i = 0; i < 4; i++) graph_output(f->graph, wanted[i]->value);
    if (build(f)) fail_msg("%s", f->err.message);
    for (int round = 0; round < 2; round++) {
        run_ok(f, out, &in);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(pith__tensor_count(&out[i]), wanted[i]->count);
            for (int k = 0; k < wanted[i]->count; k++)
                assert_true(((float *)out[i].data)[k] == wanted[i]->data[k]);
        }
        run_into_targets(f, wanted, &seed);
    }
    fixture_teardown((void **)&f);
}

static void random_graphs(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 1000; seed++) check_random(seed, false, false);
    for (uint32_t seed = 1; seed <= 300; seed++)
        check_random(seed, seed & 1, !(seed & 1) || seed % 3 == 0);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = { TEST(steady_state_allocates_nothing),
                                        TEST(dead_values_give_their_memory),
                                        TEST(views_keep_what_they_show),
                                        TEST(the_same_input_twice),
                                        TEST(late_shapes),
                                        TEST(shapes_from_contents),
                                        TEST(shape_arithmetic_leaves_the_plan),
                                        TEST(inputs_that_contradict),
                                        TEST(declared_sizes_are_hints),
                                        TEST(memory_limit),
                                        TEST(cancel_and_failure_leave_it_usable),
                                        TEST(inputs_may_lie_anywhere),
                                        TEST(constants_and_defaults),
                                        TEST(subgraphs),
                                        TEST(subgraphs_share_memory),
                                        TEST(every_allocation_may_fail),
                                        cmocka_unit_test(planning_may_run_out_of_memory),
                                        cmocka_unit_test(random_graphs),
                                        TEST(counts_are_what_happened),
                                        TEST(outputs_go_to_targets),
                                        TEST(separate_values_are_freed_after_their_last_use),
                                        TEST(trace) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
