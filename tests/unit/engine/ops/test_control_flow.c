/* Loops and branches with real operators: what the conformance files do not try. */
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
#include "engine/opt/pass.h"

static pith__value *input(pith__graph *graph, const char *name, int dtype, int rank) {
    pith__value *value = graph_input(graph, name);
    value->type.dtype = dtype;
    value->type.rank = rank;
    for (int i = 0; i < rank; i++) value->type.dims[i] = PITH_DIM_UNKNOWN;
    return value;
}

static pith__value *capture(pith__graph *graph, const char *name) {
    return graph->captures[graph->capture_count++] =
               pith__graph_add_value(graph, pith__str_of(name), PITH_VALUE_CAPTURE);
}

/* inputs end with the captures. */
static pith__node *own(fixture *f, pith__graph *graph, const char *type, pith__value *const *inputs,
                       int count, int captures, int outputs, pith__graph *a, const char *a_name,
                       pith__graph *b, const char *b_name) {
    pith__node *node = pith__graph_add_node(graph, NULL, "", type, inputs, count, NULL, outputs);
    node->capture_count = captures;
    node->attrs = pith__arena_array(&f->arena, 2, sizeof *node->attrs);
    node->attrs[0] =
        (pith__attr){ .name = pith__str_of(a_name), .kind = PITH_ATTR_GRAPH, .graph = a };
    if (b)
        node->attrs[1] =
            (pith__attr){ .name = pith__str_of(b_name), .kind = PITH_ATTR_GRAPH, .graph = b };
    node->attr_count = b ? 2 : 1;
    return node;
}

static void build(fixture *f) {
    pith_status status = pith__graph_check(f->graph, &f->err);
    if (!status) status = pith__ops_bind(f->graph, &f->err);
    if (!status) status = pith__ops_infer(f->graph, false, &f->err);
    if (!status) status = pith__plan_build(&f->plan, f->graph, NULL, &f->arena, &f->err);
    if (!status) status = pith__executor_create(&f->executor, f->plan, &f->options, &f->err);
    if (status) fail_msg("%s", f->err.message);
}

static pith_tensor floats(float *data, int64_t count) {
    return (pith_tensor){ .data = data,
                          .bytes = (size_t)count * sizeof *data,
                          .dtype = PITH_F32,
                          .rank = 1,
                          .dims = { count } };
}

static pith_tensor scalar(int dtype, void *data, size_t bytes) {
    return (pith_tensor){ .data = data, .bytes = bytes, .dtype = dtype };
}

/* while (true) x = x + x; */
static pith__node *endless_loop(fixture *f, pith__value *x) {
    pith__graph *body = graph_new(&f->arena, f->graph, &f->err);
    input(body, "i", PITH_I64, 0);
    pith__value *going = input(body, "going", PITH_BOOL, 0), *v = input(body, "v", 0, -1);
    graph_output(body, graph_apply(body, "Identity", going, NULL));
    graph_output(body, graph_apply(body, "Add", v, v));
    return own(f, f->graph, "Loop", (pith__value *[]){ NULL, NULL, x }, 3, 0, 1, body, "body", NULL,
               NULL);
}

static void a_loop_without_end_is_stopped(void **state) {
    fixture *f = *state;
    graph_output(f->graph, endless_loop(f, input(f->graph, "x", PITH_F32, 1))->outputs[0]);
    f->options.loop_limit = 1000;
    build(f);
    float data[2] = { 0, 0 };
    pith_tensor out[1], in = floats(data, 2);
    assert_int_equal(pith__executor_run(f->executor, out, &in, 1, NULL, &f->err), PITH_ERR_RUN);
    assert_string_equal(f->err.message,
                        "node (Loop): has not ended after 1000 iterations, the limit; a higher "
                        "pith_open_options.loop_limit lets it run longer");
}

typedef struct canceller {
    volatile int flag;
    int steps;
} canceller;

static void cancel_later(void *context, const pith__trace_event *event) {
    canceller *c = context;
    if (event->step) c->flag = ++c->steps == 40;
}

static void a_loop_can_be_cancelled(void **state) {
    fixture *f = *state;
    canceller c = { 0 };
    graph_output(f->graph, endless_loop(f, input(f->graph, "x", PITH_F32, 1))->outputs[0]);
    build(f);
    pith__executor_trace(f->executor, cancel_later, &c);
    float data[2] = { 0, 0 };
    pith_tensor out[1], in = floats(data, 2);
    pith_call call = PITH_CALL_INIT;
    pith__stop own;
    call.cancel = &c.flag;
    assert_int_equal(
        pith__executor_run(f->executor, out, &in, 1, pith__stop_begin(&own, &call), &f->err),
        PITH_ERR_CANCELLED);
    assert_int_equal(c.steps, 40);
}

/* for i < n: v = concat(v, v); scan: i */
static void shapes_may_grow(void **state) {
    fixture *f = *state;
    pith__value *n = input(f->graph, "n", PITH_I64, 0), *x = input(f->graph, "x", PITH_F32, 1);
    pith__graph *body = graph_new(&f->arena, f->graph, &f->err);
    pith__value *i = input(body, "i", PITH_I64, 0), *going = input(body, "going", PITH_BOOL, 0),
                *v = input(body, "v", 0, -1);
    pith__value *joined = graph_apply(body, "Concat", v, v);
    assert_int_equal(pith__node_set_int(joined->producer, "axis", 0), PITH_OK);
    graph_output(body, graph_apply(body, "Identity", going, NULL));
    graph_output(body, joined);
    graph_output(body, graph_apply(body, "Identity", i, NULL));
    pith__node *loop = own(f, f->graph, "Loop", (pith__value *[]){ n, NULL, x }, 3, 0, 2, body,
                           "body", NULL, NULL);
    graph_output(f->graph, loop->outputs[0]);
    graph_output(f->graph, loop->outputs[1]);
    build(f);
    float data[3] = { 1, 2, 3 };
    for (int64_t times = 0; times < 12; times += 5) {
        pith_tensor out[2], in[2] = { scalar(PITH_I64, &times, sizeof times), floats(data, 3) };
        if (pith__executor_run(f->executor, out, in, 1, NULL, &f->err))
            fail_msg("%s", f->err.message);
        assert_int_equal(out[0].dims[0], 3 << times);
        for (int64_t k = 0; k < out[0].dims[0]; k++)
            assert_true(((float *)out[0].data)[k] == data[k % 3]);
        assert_int_equal(out[1].rank, 1);
        assert_int_equal(out[1].dims[0], times);
        for (int64_t k = 0; k < times; k++) assert_int_equal(((int64_t *)out[1].data)[k], k);
    }
    pith__account account;
    pith__executor *small;
    pith__account_init(&account, &pith__allocator_default, 1 << 20, 0);
    pith__executor_options options = { .allocator = &account.allocator, .tight = true };
    assert_int_equal(pith__executor_create(&small, f->plan, &options, &f->err), PITH_OK);
    int64_t times = 60;
    pith_tensor out[2], in[2] = { scalar(PITH_I64, &times, sizeof times), floats(data, 3) };
    assert_int_equal(pith__executor_run(small, out, in, 1, NULL, &f->err), PITH_ERR_MEMORY);
    assert_true(atomic_load(&account.peak) <= 1 << 20);
    times = 2;
    assert_int_equal(pith__executor_run(small, out, in, 1, NULL, &f->err), PITH_OK);
    pith__executor_destroy(small);
}

/* if c: x (as it is) else: -x; then other work that would reuse the memory of x */
static void a_branch_may_give_back_what_it_captured(void **state) {
    fixture *f = *state;
    pith__value *c = input(f->graph, "c", PITH_BOOL, 0), *x = input(f->graph, "x", PITH_F32, 1);
    pith__value *doubled = graph_apply(f->graph, "Add", x, x);
    pith__graph *yes = graph_new(&f->arena, f->graph, &f->err),
                *no = graph_new(&f->arena, f->graph, &f->err);
    graph_output(yes, capture(yes, "doubled"));
    graph_output(no, graph_apply(no, "Neg", capture(no, "doubled"), NULL));
    pith__node *node = own(f, f->graph, "If", (pith__value *[]){ c, doubled }, 2, 1, 1, yes,
                           "then_branch", no, "else_branch");
    pith__value *other = x;
    for (int i = 0; i < 6; i++)
        other = graph_apply(f->graph, "Mul", graph_apply(f->graph, "Neg", other, NULL), x);
    graph_output(f->graph, graph_apply(f->graph, "Sub", node->outputs[0], other));
    graph_output(f->graph, other);
    build(f);
    float data[4] = { 1, -1, 1, -1 };
    for (int i = 0; i < 4; i++) {
        uint8_t condition = i & 1;
        pith_tensor out[2], in[2] = { scalar(PITH_BOOL, &condition, 1), floats(data, 4) };
        if (pith__executor_run(f->executor, out, in, 1, NULL, &f->err))
            fail_msg("%s", f->err.message);
        for (int k = 0; k < 4; k++) {
            float branch = condition ? 2 * data[k] : -2 * data[k];
            assert_true(((float *)out[0].data)[k] == branch - ((float *)out[1].data)[k]);
        }
    }
    uint8_t two[2] = { 1, 1 };
    pith_tensor out[2],
        in[2] = { { .data = two, .bytes = 2, .dtype = PITH_BOOL, .rank = 1, .dims = { 2 } },
                  floats(data, 4) };
    assert_int_equal(pith__executor_run(f->executor, out, in, 1, NULL, &f->err), PITH_ERR_ARGUMENT);
}

/* for i < 3: for j < 4: v = v + x, where x belongs to the outermost graph */
static void loops_in_loops(void **state) {
    fixture *f = *state;
    pith__value *x = input(f->graph, "x", PITH_F32, 1);
    int64_t three = 3, four = 4;
    pith_tensor t3 = scalar(PITH_I64, &three, sizeof three),
                t4 = scalar(PITH_I64, &four, sizeof four);
    pith__graph *outer = graph_new(&f->arena, f->graph, &f->err),
                *inner = graph_new(&f->arena, outer, &f->err);
    pith__value *going[2], *v[2], *captured[2];
    pith__graph *graphs[2] = { outer, inner };
    for (int i = 0; i < 2; i++) {
        input(graphs[i], "i", PITH_I64, 0);
        going[i] = input(graphs[i], "going", PITH_BOOL, 0);
        v[i] = input(graphs[i], "v", 0, -1);
        captured[i] = capture(graphs[i], "x");
        graph_output(graphs[i], graph_apply(graphs[i], "Identity", going[i], NULL));
    }
    graph_output(inner, graph_apply(inner, "Add", v[1], captured[1]));
    pith__value *count = pith__graph_add_const(outer, PITH_STR("four"), &t4);
    graph_output(outer, own(f, outer, "Loop", (pith__value *[]){ count, NULL, v[0], captured[0] },
                            4, 1, 1, inner, "body", NULL, NULL)
                            ->outputs[0]);
    count = pith__graph_add_const(f->graph, PITH_STR("three"), &t3);
    graph_output(f->graph, own(f, f->graph, "Loop", (pith__value *[]){ count, NULL, x, x }, 4, 1, 1,
                               outer, "body", NULL, NULL)
                               ->outputs[0]);
    build(f);
    float data[2] = { 1, 10 };
    for (int round = 0; round < 3; round++) {
        pith_tensor out[1], in = floats(data, 2);
        if (pith__executor_run(f->executor, out, &in, 1, NULL, &f->err))
            fail_msg("%s", f->err.message);
        assert_true(((float *)out[0].data)[0] == 13 && ((float *)out[0].data)[1] == 130);
    }
}

static void positions_outside_of_a_sequence(void **state) {
    fixture *f = *state;
    pith__value *x = input(f->graph, "x", PITH_F32, 1), *at = input(f->graph, "at", PITH_I64, 0);
    pith__value *sequence = graph_apply(f->graph, "SequenceConstruct", x, x);
    graph_output(f->graph, graph_apply(f->graph, "SequenceAt", sequence, at));
    build(f);
    float data[2] = { 1, 2 };
    for (int64_t i = -4; i < 4; i++) {
        pith_tensor out[1], in[2] = { floats(data, 2), scalar(PITH_I64, &i, sizeof i) };
        pith_status status = pith__executor_run(f->executor, out, in, 1, NULL, &f->err);
        if (i >= -2 && i < 2)
            assert_int_equal(status, PITH_OK);
        else
            assert_int_equal(status, PITH_ERR_RUN);
    }
    assert_string_equal(f->err.message,
                        "node (SequenceAt): position 3 is outside of a sequence of 2");
}

/* if true: { if false: x else: -x } else: x */
static void a_known_branch_replaces_its_if(void **state) {
    fixture *f = *state;
    pith__value *x = input(f->graph, "x", PITH_F32, 1);
    uint8_t truth[2] = { 0, 1 };
    pith_tensor t[2] = { scalar(PITH_BOOL, &truth[0], 1), scalar(PITH_BOOL, &truth[1], 1) };
    pith__graph *yes = graph_new(&f->arena, f->graph, &f->err),
                *no = graph_new(&f->arena, f->graph, &f->err), *inner[2];
    pith__value *seen[2] = { capture(yes, "x"), capture(no, "x") };
    graph_output(no, seen[1]);
    for (int i = 0; i < 2; i++) {
        inner[i] = graph_new(&f->arena, yes, &f->err);
        pith__value *v = capture(inner[i], "x");
        graph_output(inner[i], i ? graph_apply(inner[i], "Neg", v, NULL) : v);
    }
    pith__value *inputs[2] = { pith__graph_add_const(yes, PITH_STR("false"), &t[0]), seen[0] };
    graph_output(
        yes, own(f, yes, "If", inputs, 2, 1, 1, inner[0], "then_branch", inner[1], "else_branch")
                 ->outputs[0]);
    inputs[0] = pith__graph_add_const(f->graph, PITH_STR("true"), &t[1]);
    inputs[1] = x;
    graph_output(
        f->graph,
        own(f, f->graph, "If", inputs, 2, 1, 1, yes, "then_branch", no, "else_branch")->outputs[0]);
    f->graph->outputs[0]->name = PITH_STR("y");
    assert_int_equal(pith__ops_bind(f->graph, &f->err), PITH_OK);
    assert_int_equal(pith__ops_infer(f->graph, false, &f->err), PITH_OK);
    pith__opt o = { .graph = f->graph, .level = 1, .err = &f->err };
    assert_int_equal(pith__opt_run(&o, NULL), PITH_OK);
    assert_int_equal(f->graph->node_count, 1);
    assert_true(pith__str_is(f->graph->first->op_type, "Neg"));
    assert_ptr_equal(f->graph->first->inputs[0], x);
    assert_true(pith__str_is(f->graph->outputs[0]->name, "y"));
    assert_int_equal(pith__graph_check(f->graph, &f->err), PITH_OK);
}

static void optimise(fixture *f) {
    pith_status status = pith__ops_bind(f->graph, &f->err);
    if (!status) status = pith__ops_infer(f->graph, false, &f->err);
    pith__opt o = { .graph = f->graph, .level = 3, .err = &f->err };
    if (!status) status = pith__opt_run(&o, NULL);
    if (status) fail_msg("%s", f->err.message);
}

enum { STEPS = 3, INPUTS = 4, HIDDEN = 8, GATES = 4 * HIDDEN };

static pith_tensor weights(float *data, int64_t width, bool flat) {
    return (pith_tensor){ .data = data,
                          .bytes = (size_t)(GATES * width) * sizeof *data,
                          .dtype = PITH_F32,
                          .rank = flat ? 2 : 3,
                          .dims = { flat ? GATES : 1, flat ? width : GATES, width } };
}

static pith__value *lstm(pith__graph *graph, pith__value *x, pith__value *w, pith__value *r) {
    return pith__graph_add_node(graph, NULL, "", "LSTM", (pith__value *[]){ x, w, r }, 3, NULL, 1)
        ->outputs[0];
}

/* An LSTM outside of the If, and one in its branch, whose W is folded from what the branch captures
 * and whose R is captured: both are packed, and their results have the same bits. */
static void weights_of_a_branch_are_constants(void **state) {
    fixture *f = *state;
    float w[GATES * INPUTS], r[GATES * HIDDEN], data[STEPS * INPUTS];
    for (int i = 0; i < GATES * INPUTS; i++) w[i] = 0.1F * (float)(i * 7 % 19 - 9);
    for (int i = 0; i < GATES * HIDDEN; i++) r[i] = 0.07F * (float)(i * 5 % 23 - 11);
    for (int i = 0; i < STEPS * INPUTS; i++) data[i] = 0.3F * (float)(i * 3 % 7 - 3);
    pith_tensor t[3] = { weights(w, INPUTS, true), weights(w, INPUTS, false),
                         weights(r, HIDDEN, false) };
    pith__value *x = input(f->graph, "x", PITH_F32, 3),
                *flag = input(f->graph, "flag", PITH_BOOL, 0), *c[3];
    for (int i = 0; i < 3; i++) c[i] = pith__graph_add_const(f->graph, PITH_STR("weights"), &t[i]);
    pith__graph *yes = graph_new(&f->arena, f->graph, &f->err),
                *no = graph_new(&f->arena, f->graph, &f->err);
    pith__value *seen[] = { capture(yes, "x"), capture(yes, "W"), capture(yes, "R") };
    int64_t axis = 0;
    pith__value *axes = pith__graph_add_i64s(yes, PITH_STR(""), &axis, 1);
    graph_output(yes, lstm(yes, seen[0], graph_apply(yes, "Unsqueeze", seen[1], axes), seen[2]));
    graph_output(no, graph_apply(no, "Neg", capture(no, "x"), NULL));
    capture(no, "W"), capture(no, "R");
    graph_output(f->graph, lstm(f->graph, x, c[1], c[2]));
    pith__value *inputs[] = { flag, x, c[0], c[2] };
    graph_output(
        f->graph,
        own(f, f->graph, "If", inputs, 4, 3, 1, yes, "then_branch", no, "else_branch")->outputs[0]);
    optimise(f);
    assert_null(f->graph->last->inputs[2]); /* nobody reads the capture of W any longer */
    assert_ptr_equal(f->graph->last->inputs[3], c[2]);
    build(f);
    const pith__step *step = &f->plan->steps[f->plan->step_count - 1];
    assert_int_equal(step->subplan_count, 2);
    assert_int_equal(step->subplans[0].plan->step_count, 1);
    assert_int_equal(step->subplans[0].plan->packed_count, 2);
    uint8_t truth = 1;
    pith_tensor out[2], in[2] = { { .data = data,
                                    .bytes = sizeof data,
                                    .dtype = PITH_F32,
                                    .rank = 3,
                                    .dims = { STEPS, 1, INPUTS } },
                                  scalar(PITH_BOOL, &truth, 1) };
    assert_int_equal(pith__executor_run(f->executor, out, in, 1, NULL, &f->err), PITH_OK);
    assert_int_equal(out[0].bytes, STEPS * HIDDEN * sizeof(float));
    assert_int_equal(out[1].bytes, out[0].bytes);
    assert_memory_equal(out[1].data, out[0].data, out[0].bytes);
}

/* A branch for inputs of another rank is an error only when it is taken. */
static void an_impossible_branch_fails_when_taken(void **state) {
    fixture *f = *state;
    pith__value *x = input(f->graph, "x", PITH_F32, 1),
                *flag = input(f->graph, "flag", PITH_BOOL, 0);
    pith__graph *branch[2];
    for (int i = 0; i < 2; i++) {
        branch[i] = graph_new(&f->arena, f->graph, &f->err);
        pith__value *seen = capture(branch[i], "x");
        pith__node *node =
            pith__graph_add_node(branch[i], NULL, "", i ? "Transpose" : "Neg", &seen, 1, NULL, 1);
        if (i) pith__node_set_ints(node, "perm", (int64_t[]){ 1, 0 }, 2);
        graph_output(branch[i], node->outputs[0]);
    }
    pith__value *inputs[] = { flag, x };
    graph_output(f->graph, own(f, f->graph, "If", inputs, 2, 1, 1, branch[1], "then_branch",
                               branch[0], "else_branch")
                               ->outputs[0]);
    optimise(f);
    assert_true(branch[1]->fault.size > 0);
    assert_int_equal(branch[0]->fault.size, 0);
    assert_int_equal(f->graph->outputs[0]->type.rank, 1);
    build(f);
    uint8_t taken = 0;
    float data[2] = { 3, -4 };
    pith_tensor out[1], in[2] = { floats(data, 2), scalar(PITH_BOOL, &taken, 1) };
    assert_int_equal(pith__executor_run(f->executor, out, in, 1, NULL, &f->err), PITH_OK);
    assert_float_equal(((float *)out[0].data)[1], 4, 0);
    taken = 1;
    assert_int_equal(pith__executor_run(f->executor, out, in, 1, NULL, &f->err), PITH_ERR_RUN);
    assert_non_null(strstr(f->err.message, "then_branch: node (Transpose): "));
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = { TEST(a_loop_without_end_is_stopped),
                                        TEST(a_loop_can_be_cancelled),
                                        TEST(shapes_may_grow),
                                        TEST(a_branch_may_give_back_what_it_captured),
                                        TEST(a_known_branch_replaces_its_if),
                                        TEST(loops_in_loops),
                                        TEST(positions_outside_of_a_sequence),
                                        TEST(weights_of_a_branch_are_constants),
                                        TEST(an_impossible_branch_fails_when_taken) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
