/* Graphs: editing keeps the invariants, order, inlining, functions, text; hostile ones are named
 * errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/error.h"
#include "support/graph_test.h"

static void check(fixture *f) {
    if (pith__graph_check(f->graph, &f->err)) fail_msg("%s", f->err.message);
}

static void collect(void *context, const char *text, size_t size) {
    char *buffer = context;
    size_t used = strlen(buffer);
    assert_true(used + size < 8192);
    memcpy(buffer + used, text, size);
    buffer[used + size] = 0;
}

/* Types of the nodes in order: "Add Neg". */
static const char *order(const pith__graph *graph) {
    static char text[256];
    text[0] = 0;
    for (const pith__node *n = graph->first; n; n = n->next) {
        if (text[0]) strcat(text, " ");
        strncat(text, n->op_type.data, n->op_type.size);
    }
    return text;
}

/* ---- editing ---- */

static void editing_keeps_the_invariants(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input(f->graph, "x"), *y = graph_input(f->graph, "y");
    pith__value *sum = graph_apply(f->graph, "Add", x, y),
                *same = graph_apply(f->graph, "Identity", sum, NULL);
    same->name = PITH_STR("result");
    graph_output(f->graph, same);
    graph_output(f->graph, graph_apply(f->graph, "Mul", same, same));
    check(f);
    assert_int_equal(same->user_count, 2);
    assert_int_equal(pith__value_replace(same, sum), PITH_OK);
    check(f);
    assert_int_equal(same->user_count + (size_t)same->output_uses, 0);
    assert_true(
        /* the value took the name of the output it became */
        pith__str_is(f->graph->outputs[0]->name, "result"));
    pith__node_remove(same->producer);
    check(f);
    assert_string_equal(order(f->graph), "Add Mul");

    pith__node *add = sum->producer;
    assert_int_equal(pith__node_set_input(add, 1, x), PITH_OK);
    check(f);
    assert_int_equal(x->user_count, 2);
    assert_int_equal(y->user_count, 0);
    assert_int_equal(pith__node_set_input_count(add, 4), PITH_OK);
    assert_null(add->inputs[3]);
    assert_int_equal(pith__node_set_input(add, 3, y), PITH_OK);
    assert_int_equal(pith__node_set_input_count(add, 1), PITH_OK);
    check(f);
    assert_int_equal(x->user_count, 1);
    assert_int_equal(y->user_count, 0);
}

static void sweep_takes_what_nobody_uses(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input(f->graph, "x"), *dead = x;
    for (int i = 0; i < 100; i++) dead = graph_apply(f->graph, "Neg", dead, dead);
    graph_output(f->graph, graph_apply(f->graph, "Abs", x, NULL));
    assert_int_equal(pith__graph_sweep(f->graph), 100);
    check(f);
    assert_string_equal(order(f->graph), "Abs");
    assert_int_equal(x->user_count, 1);
}

static void order_is_kept_where_it_can_be(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input(f->graph, "x");
    pith__value *a = graph_apply(f->graph, "A", x, NULL), *b = graph_apply(f->graph, "B", x, NULL),
                *c = graph_apply(f->graph, "C", a, b);
    pith__node_move_before(c->producer, a->producer);
    assert_string_equal(order(f->graph), "C A B");
    assert_int_equal(pith__graph_check(f->graph, &f->err), PITH_ERR_FORMAT);
    assert_int_equal(pith__graph_sort(f->graph, &f->err), PITH_OK);
    assert_string_equal(order(f->graph), "A B C");
    check(f);
    pith__node_set_input(a->producer, 0, c);
    a->producer->index = 3;
    assert_int_equal(pith__graph_sort(f->graph, &f->err), PITH_ERR_FORMAT);
    assert_string_equal(f->err.message, "node 3 (A): is part of a cycle");
    assert_string_equal(order(f->graph), "A B C");
    pith__node_set_input(a->producer, 0, a); /* a cycle of one */
    assert_int_equal(pith__graph_sort(f->graph, &f->err), PITH_ERR_FORMAT);
}

static void long_chains_need_no_stack(void **state) {
    fixture *f = *state;
    enum { LENGTH = 200000 };
    pith__value *value = graph_input(f->graph, "x");
    for (int i = 0; i < LENGTH; i++) value = graph_apply(f->graph, "Neg", value, NULL);
    pith__node *next = f->graph->last->prev;
    for (int i = 0; i + 1 < LENGTH; i++) { /* the other way round */
        pith__node *node = next;
        next = node->prev;
        pith__node_move_before(node, NULL);
    }
    assert_int_equal(pith__graph_sort(f->graph, &f->err), PITH_OK);
    check(f);
    assert_int_equal(pith__graph_sweep(f->graph), LENGTH);
}

static void two_producers_are_found(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input(f->graph, "x"), *y = graph_apply(f->graph, "Neg", x, NULL);
    pith__graph_add_node(f->graph, NULL, "", "Abs", &x, 1, &y, 1);
    assert_int_equal(pith__graph_check(f->graph, &f->err), PITH_ERR_FORMAT);
    assert_string_equal(f->err.message, "node (Neg): an output has another producer");
}

static void attributes(void **state) {
    fixture *f = *state;
    pith__node *node = graph_apply(f->graph, "Conv", graph_input(f->graph, "x"), NULL)->producer;
    size_t count;
    assert_int_equal(pith__node_int(node, "group", 7), 7);
    assert_int_equal(pith__node_set_int(node, "group", 2), PITH_OK);
    assert_int_equal(pith__node_set_ints(node, "pads", (int64_t[]){ 1, 2 }, 2), PITH_OK);
    assert_int_equal(pith__node_set_float(node, "alpha", 0.5f), PITH_OK);
    assert_int_equal(pith__node_set_str(node, "mode", PITH_STR("x")), PITH_OK);
    assert_int_equal(pith__node_set_int(node, "group", 3), PITH_OK);
    assert_int_equal(node->attr_count, 4);
    assert_int_equal(pith__node_int(node, "group", 7), 3);
    assert_int_equal(pith__node_ints(node, "pads", &count)[1], 2);
    assert_int_equal(count, 2);
    assert_true(pith__node_float(node, "alpha", 0) == 0.5f);
    assert_true(pith__node_float(node, "group", 9) == 9); /* another kind */
    assert_true(pith__str_is(pith__node_str(node, "mode", ""), "x"));
    pith__node_unset(node, "group");
    assert_int_equal(pith__node_int(node, "group", 7), 7);
    assert_true(pith__str_is(pith__node_str(node, "mode", ""), "x"));
    assert_null(pith__node_ints(node, "none", &count));
    assert_int_equal(count, 0);
}

static void elements_of_types(void **state) {
    (void)state;
    uint64_t huge[2] = { UINT64_MAX, 5 };
    int64_t low[1] = { INT64_MIN };
    pith_tensor t = { .data = huge, .bytes = 16, .dtype = PITH_U64, .rank = 1, .dims = { 2 } };
    pith__type type;
    pith__dim d;
    pith__type_of_tensor(&type, &t);
    assert_true(pith__type_elem(&type, 0, &d));
    assert_int_equal(d, PITH_DIM_UNKNOWN); /* no pith__dim says it */
    assert_true(pith__type_elem(&type, 1, &d));
    assert_int_equal(d, 5);
    assert_false(pith__type_elem(&type, 2, &d));
    assert_false(pith__type_elem(&type, -1, &d));
    t = (pith_tensor){ .data = low, .bytes = 8, .dtype = PITH_I64 };
    pith__type_of_tensor(&type, &t);
    for (int i = 0; i < 3; i++) {
        /* where the handles are */
        low[0] = (int64_t[]){ INT64_MIN, INT64_MIN + 1, PITH_DIM_LIMIT }[i];
        assert_true(pith__type_elem(&type, 0, &d));
        assert_int_equal(d, PITH_DIM_UNKNOWN);
    }
    low[0] = PITH_DIM_LIMIT + 1;
    assert_true(pith__type_elem(&type, 0, &d));
    assert_int_equal(d, low[0]);
    t.dtype = PITH_F32;
    pith__type_of_tensor(&type, &t);
    assert_false(pith__type_elem(&type, 0, &d));
    pith__type_set(&type, PITH_I64, 2, (pith__dim[]){ INT64_C(1) << 40, INT64_C(1) << 40 });
    assert_int_equal(pith__type_count(&type), -1);
}

/* ---- functions and subgraphs ---- */

/* name(a, b) with one node: type(a, b), attribute value = @k. */
static pith__function make_function(fixture *f, const char *name, const char *type) {
    pith__graph *body = graph_new(&f->arena, NULL, &f->err);
    pith__value *a = graph_input(body, "a"), *b = graph_input(body, "b");
    pith__node *node = graph_apply(body, type, a, b)->producer;
    node->attrs = pith__arena_array(&f->arena, 1, sizeof *node->attrs);
    node->attrs[0] = (pith__attr){ .name = PITH_STR("value"),
                                   .kind = PITH_ATTR_INT,
                                   .reference = PITH_STR("k") };
    node->attr_count = 1;
    graph_output(body, node->outputs[0]);
    graph_output(body, a); /* passes through */
    return (pith__function){ .domain = PITH_STR("own"),
                             .name = pith__str_of(name),
                             .overload = PITH_STR(""),
                             .body = body };
}

static pith__node *call(fixture *f, const char *name, pith__value *a, pith__value *b, int outputs) {
    return pith__graph_add_node(f->graph, NULL, "own", name, (pith__value *[]){ a, b }, 2, NULL,
                                outputs);
}

static void functions_are_put_in_place(void **state) {
    fixture *f = *state;
    pith__function fn = make_function(f, "Twice", "Add");
    pith__attr fallback = { .name = PITH_STR("k"), .kind = PITH_ATTR_INT, .integer = 5 };
    fn.defaults = &fallback;
    fn.default_count = 1;
    pith__value *x = graph_input(f->graph, "x"), *y = graph_input(f->graph, "y");
    pith__node *first = call(f, "Twice", x, y, 2);
    assert_int_equal(pith__node_set_int(first, "k", 9), PITH_OK);
    pith__value *sum = first->outputs[0], *through = first->outputs[1];
    pith__node *second = call(f, "Twice", sum, NULL, 1);
    pith__value *last = second->outputs[0];
    graph_output(f->graph, last);
    graph_output(f->graph, through);
    assert_int_equal(pith__graph_inline(first, fn.body, (pith__value *[]){ x, y }, &fn, &f->err),
                     PITH_OK);
    assert_int_equal(
        pith__graph_inline(second, fn.body, (pith__value *[]){ sum, NULL }, &fn, &f->err), PITH_OK);
    check(f);
    assert_string_equal(order(f->graph), "Add Add");
    assert_ptr_equal(f->graph->first->outputs[0], sum);
    assert_ptr_equal(f->graph->outputs[0], last);
    assert_ptr_equal(f->graph->outputs[1], x);
    assert_null(f->graph->last->inputs[1]);
    assert_int_equal(pith__node_int(f->graph->first, "value", 0), 9);
    assert_int_equal(pith__node_int(f->graph->last, "value", 0), 5);
}

static void a_missing_input_cannot_be_an_output(void **state) {
    fixture *f = *state;
    pith__function fn = make_function(f, "Twice", "Add");
    pith__node *node = call(f, "Twice", NULL, NULL, 2);
    assert_int_equal(
        pith__graph_inline(node, fn.body, (pith__value *[]){ NULL, NULL }, &fn, &f->err),
        PITH_ERR_FORMAT);
}

static void functions_that_call_themselves(void **state) {
    fixture *f = *state;
    pith__function fns[2] = { make_function(f, "Ping", "Pong"), make_function(f, "Pong", "Ping") };
    for (int i = 0; i < 2; i++) fns[i].body->first->domain = PITH_STR("own");
    f->graph->functions = fns;
    f->graph->function_count = 2;
    pith__value *x = graph_input(f->graph, "x");
    graph_output(f->graph, call(f, "Ping", x, x, 1)->outputs[0]);
    assert_int_equal(pith__ops_bind(f->graph, &f->err), PITH_ERR_FORMAT);
    assert_string_equal(f->err.message, "function 'Ping' calls itself");
}

/* Each function calls the next one twice: 2^40 nodes. */
static void functions_that_explode(void **state) {
    fixture *f = *state;
    enum { COUNT = 40 };
    static char names[COUNT + 1][8];
    pith__function fns[COUNT];
    for (int i = 0; i <= COUNT; i++) snprintf(names[i], sizeof names[i], "F%d", i);
    for (int i = 0; i < COUNT; i++) {
        fns[i] = make_function(f, names[i], names[i + 1]);
        pith__graph *body = fns[i].body;
        body->outputs[0]->output_uses--;
        body->outputs[0] = graph_apply(body, names[i + 1], body->outputs[0], body->inputs[1]);
        body->outputs[0]->output_uses++;
        for (pith__node *n = body->first; n; n = n->next) n->domain = PITH_STR("own");
    }
    f->graph->functions = fns;
    f->graph->function_count = COUNT;
    pith__value *x = graph_input(f->graph, "x");
    graph_output(f->graph, call(f, "F0", x, x, 1)->outputs[0]);
    assert_int_equal(pith__ops_bind(f->graph, &f->err), PITH_ERR_FORMAT);
    assert_non_null(strstr(f->err.message, "expand to more than"));
}

static void a_branch_is_put_in_place(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input(f->graph, "x"), *condition = graph_input(f->graph, "condition");
    pith__graph *branch;
    assert_int_equal(pith__graph_create(&branch, &f->arena, f->graph, &f->err), PITH_OK);
    pith__value *captured = pith__graph_add_value(branch, PITH_STR("x"), PITH_VALUE_CAPTURE),
                *made[1];
    pith__value *constant = pith__graph_add_f32(branch, PITH_STR("c"), 2);
    branch->captures = &captured;
    branch->capture_count = 1;
    branch->outputs = made;
    graph_output(branch, graph_apply(branch, "Mul", captured, constant));
    pith__node *node = pith__graph_add_node(f->graph, NULL, "", "If",
                                            (pith__value *[]){ condition, x }, 2, NULL, 1);
    node->capture_count = 1;
    node->attrs = pith__arena_array(&f->arena, 1, sizeof *node->attrs);
    node->attrs[0] =
        (pith__attr){ .name = PITH_STR("then_branch"), .kind = PITH_ATTR_GRAPH, .graph = branch };
    node->attr_count = 1;
    graph_output(f->graph, node->outputs[0]);
    check(f);
    assert_int_equal(pith__graph_inline(node, branch, NULL, NULL, &f->err), PITH_OK);
    check(f);
    assert_string_equal(order(f->graph), "Mul");
    assert_ptr_equal(f->graph->first->inputs[0], x);
    assert_int_equal(f->graph->first->inputs[1]->kind, PITH_VALUE_CONST);
}

/* ---- binding and inference ---- */

static void every_unknown_operator_is_listed(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input(f->graph, "x");
    for (int i = 0; i < 3; i++) x = graph_apply(f->graph, "NoSuchThing", x, NULL);
    pith__node *other =
        pith__graph_add_node(f->graph, NULL, "com.example", "Frobnicate", &x, 1, NULL, 1);
    other->opset = 3;
    other->index = 4;
    other->name = PITH_STR("blk/frob");
    graph_output(f->graph, other->outputs[0]);
    f->graph->first->opset = f->graph->first->next->opset = 17;
    assert_int_equal(pith__ops_bind(f->graph, &f->err), PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(f->err.message, "4 nodes"));
    assert_non_null(
        strstr(f->err.message, "ai.onnx.NoSuchThing opset 17 (node (NoSuchThing) and 1 more)"));
    assert_non_null(
        strstr(f->err.message, "com.example.Frobnicate opset 3 (node 4 'blk/frob' (Frobnicate))"));
}

static pith_status grow_infer(pith__infer *c) {
    pith__type_set(&c->out[0], PITH_F32, 2,
                   (pith__dim[]){ INT64_C(1) << 31, pith__node_int(c->node, "n", 0) });
    return PITH_OK;
}
static const pith__op op_grow = {
    .name = "Grow", .min_inputs = 1, .max_inputs = 2, .max_outputs = 2, .infer = grow_infer
};

static pith_status infer_grow(fixture *f, pith__node *node, int64_t n) {
    assert_int_equal(pith__node_set_int(node, "n", n), PITH_OK);
    node->op = &op_grow;
    return pith__ops_infer(f->graph, false, &f->err);
}

static void impossible_shapes_are_errors(void **state) {
    fixture *f = *state;
    pith__node *node = graph_apply(f->graph, "Grow", graph_input(f->graph, "x"), NULL)->producer;
    assert_int_equal(infer_grow(f, node, 4), PITH_OK);
    assert_int_equal(infer_grow(f, node, -1), PITH_ERR_ARGUMENT);
    assert_string_equal(
        f->err.message,
        "node (Grow): output 0 would have a negative size: float32[2147483648, -1]");
    assert_int_equal(infer_grow(f, node, INT64_C(1) << 33), PITH_ERR_ARGUMENT);
    assert_string_equal(f->err.message,
                        "node (Grow): output 0 of shape [2147483648, 8589934592] is too large");
    assert_int_equal(pith__node_set_input(node, 0, NULL), PITH_OK);
    assert_int_equal(infer_grow(f, node, 4), PITH_ERR_ARGUMENT);
    assert_string_equal(f->err.message, "node (Grow): input 0 is missing");
    pith__value *x = f->graph->inputs[0];
    node =
        pith__graph_add_node(f->graph, NULL, "", "Grow", (pith__value *[]){ x, x, x }, 3, NULL, 1);
    pith__node_detach(f->graph->first);
    assert_int_equal(infer_grow(f, node, 4), PITH_ERR_ARGUMENT);
    assert_string_equal(f->err.message, "node (Grow): has 3 inputs, at most 2 are allowed");
    assert_int_equal(pith__node_set_input_count(node, 1), PITH_OK);
    node =
        pith__graph_add_node(f->graph, NULL, "", "Grow", (pith__value *[]){ x }, 1, NULL, 100000);
    assert_int_equal(infer_grow(f, node, 4), PITH_ERR_ARGUMENT);
    assert_string_equal(f->err.message, "node (Grow): has 100000 outputs, at most 2 are allowed");
}

static void remember(void *user, pith_log_level level, const char *message) {
    assert_int_equal(level, PITH_LOG_WARNING);
    strcat(user, message);
}

static void declared_shapes_that_are_wrong(void **state) {
    fixture *f = *state;
    char text[1024] = "";
    pith_log log = { remember, text };
    f->graph->log = &log;
    pith__value *made = graph_apply(f->graph, "Grow", graph_input(f->graph, "x"), NULL);
    made->name = PITH_STR("made");
    made->hint = pith__arena_array(&f->arena, 1, sizeof *made->hint);
    pith__type_set(made->hint, PITH_F32, 2, (pith__dim[]){ 7, 4 });
    assert_int_equal(infer_grow(f, made->producer, 4), PITH_OK);
    assert_int_equal(infer_grow(f, made->producer, 4), PITH_OK);
    assert_string_equal(text, "'made' is declared as float32[7, 4] but is float32[2147483648, 4]; "
                              "the declaration is ignored");
    made->warned = false;
    assert_int_equal(pith__ops_infer(f->graph, true, &f->err), PITH_ERR_FORMAT);
    assert_string_equal(f->err.message,
                        "'made' is declared as float32[7, 4] but is float32[2147483648, 4]");
}

/* ---- text ---- */

static void names_cannot_break_the_text(void **state) {
    fixture *f = *state;
    pith__value *x = graph_input(f->graph, "a\"\n\\b");
    pith__type_set(&x->type, PITH_F32, 1,
                   (pith__dim[]){ pith__dim_symbol(f->graph->dims, PITH_STR("S\n")) });
    pith__node *node = graph_apply(f->graph, "Neg", x, NULL)->producer;
    pith__node_set_ints(node, "axes", (int64_t[]){ 1, -1 }, 2);
    graph_output(f->graph, node->outputs[0]);
    char text[8192] = "";
    pith__graph_dump(f->graph, collect, text);
    assert_string_equal(text, "in a\\x22\\x0A\\x5Cb float32[S\\x0A]\n%1 ?[...] = "
                              "Neg(a\\x22\\x0A\\x5Cb) {axes=[1, -1]}\nout %1\n");
    text[0] = 0;
    pith__graph_dump_dot(f->graph, collect, text);
    assert_non_null(strstr(text, "n0 [label=\"Neg\"];\n  v0 -> n0;\n"));
    assert_null(strstr(text, "\n\\b"));
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = { TEST(editing_keeps_the_invariants),
                                        TEST(sweep_takes_what_nobody_uses),
                                        TEST(order_is_kept_where_it_can_be),
                                        TEST(long_chains_need_no_stack),
                                        TEST(two_producers_are_found),
                                        TEST(attributes),
                                        TEST(elements_of_types),
                                        TEST(functions_are_put_in_place),
                                        TEST(a_missing_input_cannot_be_an_output),
                                        TEST(functions_that_call_themselves),
                                        TEST(functions_that_explode),
                                        TEST(a_branch_is_put_in_place),
                                        TEST(every_unknown_operator_is_listed),
                                        TEST(impossible_shapes_are_errors),
                                        TEST(declared_shapes_that_are_wrong),
                                        TEST(names_cannot_break_the_text) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
