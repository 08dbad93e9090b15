/* The attribute lists of descriptors: every operator has one, and nodes are held to it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/graph_test.h"

#include "engine/ops/shared/attrs.h"

static pith__node *node(fixture *f, const char *domain, const char *op_type, int opset) {
    pith__node *made = pith__graph_add_node(f->graph, NULL, domain, op_type, NULL, 0, NULL, 1);
    made->name = PITH_STR("here");
    made->opset = opset;
    made->index = 7;
    return made;
}

static void refused(fixture *f, const pith__node *made, const char *message) {
    const pith__op *op = pith__op_find(made->domain, made->op_type);
    assert_non_null(op);
    assert_int_equal(pith__attrs_check(made, op, false, &f->err), PITH_ERR_ARGUMENT);
    if (!strstr(f->err.message, message)) fail_msg("%s, not %s", f->err.message, message);
    char place[256];
    assert_non_null(strstr(f->err.message, pith__node_place(made, place, sizeof place)));
}

static void accepted(fixture *f, const pith__node *made) {
    const pith__op *op = pith__op_find(made->domain, made->op_type);
    if (pith__attrs_check(made, op, false, &f->err)) fail_msg("%s", f->err.message);
    assert_int_equal(f->warnings, 0);
}

/* ---- the lists ---- */

static bool opsets_meet(const pith__attr_rule *a, const pith__attr_rule *b) {
    return a->since <= b->until && b->since <= a->until;
}

static void check_list(const pith__op *op) {
    pith__attr_rule rules[PITH_ATTR_RULES_MAX];
    const char *text = op->attrs;
    size_t count = 0;
    if (!text) fail_msg("%s.%s has no list of attributes", op->domain, op->name);
    if (op->newest < 1)
        fail_msg("%s.%s does not say which version it follows", op->domain, op->name);
    while (count < PITH_ATTR_RULES_MAX && pith__attr_rule_next(&text, &rules[count])) count++;
    if (*text) fail_msg("%s.%s: no rule, or too many: %s", op->domain, op->name, text);
    for (size_t i = 0; i < count; i++) {
        assert_true(rules[i].since <= rules[i].until && rules[i].low <= rules[i].high);
        for (size_t k = 0; k < i; k++)
            if (pith__str_eq(rules[i].name, rules[k].name) && opsets_meet(&rules[i], &rules[k]))
                fail_msg("%s: two rules for " PITH_STR_FMT, op->name, PITH_STR_ARG(rules[i].name));
    }
}

static void every_operator_has_a_list(void **state) {
    (void)state;
    for (size_t i = 0; i < pith__op_table_count; i++) check_list(pith__op_table[i]);
}

static void rules_are_read(void **state) {
    (void)state;
    const char *text =
        "axis int! = -1; mode string linear|cubic = linear @11-18;  k int 0..5 @-9; n ints 1.. "
        "@18; "
        "to dtype; wide int any; x float ..7 = 1e-05; inner bool = 0 @own; delimiter string = ";
    pith__attr_rule r[9];
    for (size_t i = 0; i < 9; i++)
        if (!pith__attr_rule_next(&text, &r[i])) fail_msg("rule %zu: %s", i, text);
    assert_string_equal(text, "");
    assert_true(r[0].required && pith__str_is(r[0].fallback, "-1") && r[0].low == INT32_MIN &&
                r[0].since == 0);
    assert_true(pith__str_is(r[1].allowed, "linear|cubic") && r[1].since == 11 && r[1].until == 18);
    assert_true(r[2].low == 0 && r[2].high == 5 && r[2].since == 0 && r[2].until == 9 &&
                !r[2].fallback.data);
    assert_true(r[3].kind == PITH_ATTR_INTS && r[3].low == 1 && r[3].high == INT32_MAX &&
                r[3].since == 18);
    assert_true(r[4].kind == PITH_ATTR_INT && r[4].low == 0 && r[4].high == PITH_DTYPE_COUNT - 1);
    assert_true(r[5].low == INT64_MIN && r[5].high == INT64_MAX);
    assert_true(r[6].ranged && r[6].high == 7 && pith__str_is(r[6].fallback, "1e-05"));
    assert_true(r[7].own && r[7].high == 1);
    assert_true(r[8].fallback.data && r[8].fallback.size == 0);
    static const char *const wrong[] = { "axis",          "axis integer", "axis int 1...2",
                                         "axis int 1..x", "axis int @x",  "axis int = 1 @3-x",
                                         "axis int @3 4" };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        text = wrong[i];
        if (pith__attr_rule_next(&text, &r[0])) fail_msg("%s is a rule", wrong[i]);
        assert_ptr_equal(text, wrong[i]);
    }
}

/* ---- nodes ---- */

static void unknown_attributes_are_refused_by_every_operator(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < pith__op_table_count; i++) {
        const pith__op *op = pith__op_table[i];
        int32_t opsets[] = { 1, op->newest, PITH_OPSET_NEWEST };
        for (size_t k = 0; k < 3; k++) {
            char message[128];
            pith__node *made = node(f, op->domain, op->name, opsets[k]);
            assert_int_equal(pith__node_set_int(made, "frobnication", 0), PITH_OK);
            snprintf(message, sizeof message, "has no attribute 'frobnication'");
            refused(f, made, message);
            assert_non_null(strstr(f->err.message, op->name));
            pith__node_remove(made);
        }
    }
    pith__node *made = node(f, "", "Relu", 14);
    /* as the standard's own checker does */
    assert_int_equal(pith__node_set_int(made, "__internal", 0), PITH_OK);
    accepted(f, made);
}

/* What the graph says when it is bound, subgraphs included. */
static void binding_names_the_node(void **state) {
    fixture *f = *state;
    pith__node *made = node(f, "", "SpaceToDepth", 13);
    assert_int_equal(pith__node_set_int(made, "blocksize", 2), PITH_OK);
    assert_int_equal(pith__node_set_str(made, "mode", PITH_STR("CRD")), PITH_OK);
    assert_int_equal(pith__ops_bind(f->graph, &f->err), PITH_ERR_ARGUMENT);
    assert_string_equal(
        f->err.message,
        "node 7 'here' (SpaceToDepth): SpaceToDepth of opset 13 has no attribute 'mode'; "
        "it has blocksize");
    made->opset = 28;
    assert_int_equal(pith__ops_bind(f->graph, &f->err), PITH_OK);
}

static void defaults_of_other_opsets_are_warnings(void **state) {
    fixture *f = *state;
    pith__node *made = node(f, "", "SpaceToDepth", 13);
    assert_int_equal(pith__node_set_int(made, "blocksize", 2), PITH_OK);
    assert_int_equal(pith__node_set_str(made, "mode", PITH_STR("DCR")), PITH_OK);
    assert_int_equal(
        pith__attrs_check(made, pith__op_find(made->domain, made->op_type), false, &f->err),
        PITH_OK);
    assert_int_equal(f->warnings, 1);
    assert_string_equal(
        f->warning,
        "node 7 'here' (SpaceToDepth): attribute 'mode' is not one of SpaceToDepth of opset 13; "
        "it is ignored, since its value is the default");
    pith__node *clip = node(f, "", "Clip", 13);
    assert_int_equal(pith__node_set_float(clip, "max", 3.4028235e38f), PITH_OK);
    assert_int_equal(
        pith__attrs_check(clip, pith__op_find(clip->domain, clip->op_type), false, &f->err),
        PITH_OK);
    assert_int_equal(f->warnings, 2);
    assert_int_equal(pith__node_set_float(clip, "max", 6), PITH_OK);
    refused(f, clip, "Clip of opset 13 has no attribute 'max'; it has none");
}

static void numbers_of_lists_are_those_of_the_c_library(void **state) {
    (void)state;
    static const char *const texts[] = { "0",
                                         "1",
                                         "-1",
                                         "0.5",
                                         "2.5",
                                         "1e-05",
                                         "1e-5",
                                         "1e-12",
                                         "0.01",
                                         "-0.2",
                                         "1e+10",
                                         "16777217",
                                         "0.1",
                                         "3.4028234663852886e+38",
                                         "-3.4028234663852886e+38",
                                         "3.4028235e38",
                                         "1.67326319217681884765625",
                                         "1.05070102214813232421875",
                                         "1.1754944e-38",
                                         "123456.789e3" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (pith__attr_number(texts[i]) != strtof(texts[i], NULL)) fail_msg("%s", texts[i]);
}

static void old_spellings_have_rules(void **state) {
    fixture *f = *state;
    pith__node *add = node(f, "", "Add", 1), *norm = node(f, "", "BatchNormalization", 7);
    assert_int_equal(pith__node_set_ints(add, "consumed_inputs", (int64_t[]){ 0, 0 }, 2), PITH_OK);
    assert_int_equal(pith__node_set_int(add, "broadcast", 1), PITH_OK);
    assert_int_equal(pith__node_set_int(norm, "spatial", 1), PITH_OK);
    accepted(f, add);
    accepted(f, norm);
    add->opset = 7;
    refused(f, add, "Add of opset 7 has no attribute 'consumed_inputs'; it has none");
}

static void values_are_held_to_their_rules(void **state) {
    fixture *f = *state;
    static const struct {
        const char *op, *attribute;
        int64_t value;
        const char *message;
    } ints[] = {
        { "EyeLike", "k", INT64_MIN,
          "attribute 'k' is -9223372036854775808, expected -2147483648 to 2147483647" },
        { "EyeLike", "dtype", 27, "attribute 'dtype' is 27, expected 0 to 26" },
        { "LpNormalization", "p", 3, "attribute 'p' is 3, expected 1 or 2" },
        { "CumSum", "reverse", 2, "attribute 'reverse' is 2, expected 0 to 1" },
        { "CumSum", "reverse", -1, "attribute 'reverse' is -1, expected 0 to 1" },
        { "Gelu", "approximate", 0, "attribute 'approximate' is of type int, expected string" },
        { "Transpose", "perm", 0, "attribute 'perm' is of type int, expected ints" },
        { "Elu", "alpha", 1, "attribute 'alpha' is of type int, expected float" },
        { "If", "then_branch", 1, "attribute 'then_branch' is of type int, expected graph" },
    };
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
        pith__node *made = node(f, "", ints[i].op, 21);
        assert_int_equal(pith__node_set_int(made, ints[i].attribute, ints[i].value), PITH_OK);
        refused(f, made, ints[i].message);
    }
    pith__node *gelu = node(f, "", "Gelu", 20), *conv = node(f, "", "Conv", 11);
    assert_int_equal(pith__node_set_str(gelu, "approximate", PITH_STR("Tanh")), PITH_OK);
    refused(f, gelu, "attribute 'approximate' is 'Tanh', expected none or tanh");
    assert_int_equal(pith__node_set_str(conv, "auto_pad", PITH_STR("SAME")), PITH_OK);
    refused(f, conv,
            "attribute 'auto_pad' is 'SAME', expected NOTSET, SAME_UPPER, SAME_LOWER, VALID or ''");
    assert_int_equal(pith__node_set_str(conv, "auto_pad", PITH_STR("")), PITH_OK);
    accepted(f, conv);
    assert_int_equal(pith__node_set_ints(conv, "strides", (int64_t[]){ 1, 0 }, 2), PITH_OK);
    refused(f, conv, "attribute 'strides' is 0 at index 1, expected 1 to 2147483647");
    pith__node *encoder = node(f, "ai.onnx.ml", "CategoryMapper", 1);
    /* a label, not a size */
    assert_int_equal(pith__node_set_int(encoder, "default_int64", INT64_MIN), PITH_OK);
    accepted(f, encoder);
}

static void lists_of_names_and_floats_are_held_to_their_rules(void **state) {
    fixture *f = *state;
    static const pith__op op = { .name = "Relu",
                                 .attrs = "rate float 0..1; rates floats ..2; names strings a|b" };
    pith__attr attr = { .name = PITH_STR("rate"), .kind = PITH_ATTR_FLOAT, .real = 1 };
    pith__node *made = node(f, "", "Relu", 14);
    made->attrs = &attr;
    made->attr_count = 1;
    assert_int_equal(pith__attrs_check(made, &op, false, &f->err), PITH_OK);
    attr.real = NAN;
    assert_int_equal(pith__attrs_check(made, &op, false, &f->err), PITH_ERR_ARGUMENT);
    attr.real = 1.5f;
    assert_int_equal(pith__attrs_check(made, &op, false, &f->err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(f->err.message, "attribute 'rate' is 1.5, expected 0 to 1"));
    attr = (pith__attr){ PITH_STR("rates"), PITH_ATTR_FLOATS, .count = 2,
                         .floats = (float[]){ -9, 3 } };
    assert_int_equal(pith__attrs_check(made, &op, false, &f->err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(f->err.message, "attribute 'rates' is 3 at index 1, expected up to 2"));
    attr = (pith__attr){ PITH_STR("names"), PITH_ATTR_STRINGS, .count = 1,
                         .strings = &PITH_STR("ab") };
    assert_int_equal(pith__attrs_check(made, &op, false, &f->err), PITH_ERR_ARGUMENT);
    assert_non_null(
        strstr(f->err.message, "attribute 'names' is 'ab' at index 0, expected a or b"));
}

static void missing_and_double_attributes_are_refused(void **state) {
    fixture *f = *state;
    pith__node *concat = node(f, "", "Concat", 13);
    refused(f, concat, "attribute 'axis' is missing");
    concat->opset = 1; /* when it had a default */
    accepted(f, concat);
    pith__attr twice[] = { { .name = PITH_STR("axis"), .kind = PITH_ATTR_INT },
                           { .name = PITH_STR("axis"), .kind = PITH_ATTR_INT, .integer = 1 } };
    concat->attrs = twice;
    concat->attr_count = 2;
    refused(f, concat, "attribute 'axis' is given twice");
}

/* Softmax before opset 13 took rows of several axes, which upgrade notes in an attribute of its
 * own. */
static void own_attributes_are_not_taken_from_models(void **state) {
    fixture *f = *state;
    pith__node *softmax = node(f, "", "Softmax", 13);
    assert_int_equal(pith__node_set_int(softmax, "flatten", 1), PITH_OK);
    refused(f, softmax, "Softmax of opset 13 has no attribute 'flatten'; it has axis");
    assert_int_equal(
        pith__attrs_check(softmax, pith__op_find(softmax->domain, softmax->op_type), true, &f->err),
        PITH_OK);
    f->graph->compiled = true;
    assert_int_equal(pith__ops_bind(f->graph, &f->err), PITH_OK);
}

/* A reader leaves the value empty: a graph that is none, a list without items. */
static void references_belong_into_functions(void **state) {
    fixture *f = *state;
    pith__attr attr = { .name = PITH_STR("then_branch"),
                        .kind = PITH_ATTR_GRAPH,
                        .reference = PITH_STR("outer") };
    pith__node *made = node(f, "", "If", 21);
    made->attrs = &attr;
    made->attr_count = 1;
    assert_int_equal(pith__ops_bind(f->graph, &f->err), PITH_ERR_FORMAT);
    assert_string_equal(
        f->err.message,
        "node 7 'here' (If): attribute 'then_branch' refers to 'outer', the attribute of "
        "a function, but the node is in none");
}

/* In the opset after the newest that all operators were compared with, only those are known that
 * say so themselves. */
static void later_opsets_are_refused_by_operator(void **state) {
    fixture *f = *state;
    static const struct {
        const char *domain, *op, *message;
        int opset;
    } cases[] = {
        { "", "Relu", "ai.onnx.Relu opset 29 (node 7 'here' (Relu))", 29 },
        { "ai.onnx.ml", "Scaler", "ai.onnx.ml.Scaler opset 6 (node 7 'here' (Scaler))", 6 },
        { "ai.onnx.preview.training", "Adam",
          "ai.onnx.preview.training.Adam opset 2 (node 7 'here' (Adam))", 2 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pith__node *made = node(f, cases[i].domain, cases[i].op, cases[i].opset);
        assert_int_equal(pith__ops_bind(f->graph, &f->err), PITH_ERR_UNSUPPORTED);
        if (!strstr(f->err.message, cases[i].message)) fail_msg("%s", f->err.message);
        made->opset--;
        assert_int_equal(pith__ops_bind(f->graph, &f->err), PITH_OK);
        pith__node_remove(made);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_has_a_list),
        cmocka_unit_test(rules_are_read),
        TEST(unknown_attributes_are_refused_by_every_operator),
        TEST(binding_names_the_node),
        TEST(defaults_of_other_opsets_are_warnings),
        TEST(numbers_of_lists_are_those_of_the_c_library),
        TEST(old_spellings_have_rules),
        TEST(values_are_held_to_their_rules),
        TEST(lists_of_names_and_floats_are_held_to_their_rules),
        TEST(missing_and_double_attributes_are_refused),
        TEST(own_attributes_are_not_taken_from_models),
        TEST(references_belong_into_functions),
        TEST(later_opsets_are_refused_by_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
