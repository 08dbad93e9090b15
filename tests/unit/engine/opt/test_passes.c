/* Passes on small graphs built here: what must be recognised in every spelling, and what only looks
 * like it. */
#include <math.h>
#include <string.h>

#include "support/graph_test.h"
#include "engine/opt/attention_mask.h"
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"
#include "engine/ragged/ragged.h"

typedef struct bench {
    pith__arena arena;
    pith__graph *graph;
    pith__report report;
    pith_error err;
    pith__opt opt;
} bench;

static bench *make_bench(void) {
    bench *b = calloc(1, sizeof *b);
    pith__arena_init(&b->arena, &pith__allocator_default);
    b->graph = graph_new(&b->arena, NULL, &b->err);
    b->report.arena = &b->arena;
    b->opt = (pith__opt){ .graph = b->graph,
                          .level = 3,
                          .allocator = &pith__allocator_default,
                          .report = &b->report,
                          .err = &b->err };
    return b;
}

static void drop_bench(bench *b) {
    pith__arena_free(&b->arena);
    free(b);
}

static pith__value *input(bench *b, const char *name, int dtype, int rank, const pith__dim *dims) {
    pith__value *v = graph_input(b->graph, name);
    v->hint = pith__arena_array(&b->arena, 1, sizeof *v->hint);
    pith__type_init(v->hint);
    pith__type_set(v->hint, dtype, rank, dims);
    return v;
}

static pith__value *token_input(bench *b, const char *name, int dtype) {
    pith__dim dims[] = { pith__dim_symbol(b->graph->dims, PITH_STR("batch")),
                         pith__dim_symbol(b->graph->dims, PITH_STR("sequence")) };
    return input(b, name, dtype, 2, dims);
}

static pith__value *op(bench *b, const char *op_type, pith__value *x, pith__value *y,
                       pith__value *z) {
    pith__value *inputs[] = { x, y, z };
    pith__node *node = pith__graph_add_node(b->graph, NULL, "", op_type, inputs,
                                            z   ? 3
                                            : y ? 2
                                                : 1,
                                            NULL, 1);
    node->name = pith__str_of(op_type);
    assert_int_equal(pith__op_bind_node(node, &b->err), PITH_OK);
    return node->outputs[0];
}

static pith__value *with_int(pith__value *v, const char *name, int64_t value) {
    assert_int_equal(pith__node_set_int(v->producer, name, value), PITH_OK);
    return v;
}

static pith__value *number(bench *b, float x) {
    return pith__graph_add_f32(b->graph, PITH_STR(""), x);
}
static pith__value *ints(bench *b, int64_t a) {
    return pith__graph_add_i64s(b->graph, PITH_STR(""), &a, 1);
}

static pith__value *scalar(bench *b, int64_t a) { return op(b, "Squeeze", ints(b, a), NULL, NULL); }

static void infer(bench *b) {
    if (pith__ops_infer(b->graph, false, &b->err)) fail_msg("%s", b->err.message);
}

static void optimise(bench *b) {
    infer(b);
    if (pith__opt_run(&b->opt, NULL)) fail_msg("%s", b->err.message);
    if (pith__graph_check(b->graph, &b->err)) fail_msg("%s", b->err.message);
}

static int count(const bench *b, const char *op_type) {
    int n = 0;
    for (const pith__node *node = b->graph->first; node; node = node->next)
        n += pith__str_is(node->op_type, op_type);
    return n;
}

/* ---- GELU ---- */

/* x * 0.5 * (1 + erf(x / sqrt 2)) in one of several orders; half: the factor that ought to be 0.5.
 */
static void build_gelu(bench *b, int order, float half, float root) {
    pith__value *x = token_input(b, "x", PITH_F32), *h = number(b, half), *one = number(b, 1.0f);
    pith__value *argument = order & 1 ? op(b, "Mul", number(b, 1.0f / root), x, NULL)
                                      : op(b, "Div", x, number(b, root), NULL);
    pith__value *erf = op(b, "Erf", argument, NULL, NULL);
    pith__value *sum = order & 2 ? op(b, "Add", one, erf, NULL) : op(b, "Add", erf, one, NULL);
    switch (order >> 2) {
    case 0: graph_output(b->graph, op(b, "Mul", op(b, "Mul", x, sum, NULL), h, NULL)); break;
    case 1: graph_output(b->graph, op(b, "Mul", x, op(b, "Mul", h, sum, NULL), NULL)); break;
    case 2: graph_output(b->graph, op(b, "Mul", op(b, "Mul", h, x, NULL), sum, NULL)); break;
    default: graph_output(b->graph, op(b, "Mul", sum, op(b, "Mul", x, h, NULL), NULL)); break;
    }
}

static void test_gelu_in_every_order(void **state) {
    (void)state;
    for (int order = 0; order < 16; order++) {
        bench *b = make_bench();
        build_gelu(b, order, 0.5f, 1.41421356f);
        optimise(b);
        assert_int_equal(count(b, "Gelu"), 1);
        assert_int_equal(b->graph->node_count, 1);
        drop_bench(b);
    }
}

static void test_what_is_not_gelu_stays(void **state) {
    (void)state;
    static const float wrong[][2] = { { 0.6f, 1.41421356f }, { 0.5f, 1.5f } };
    for (int i = 0; i < 2; i++) {
        bench *b = make_bench();
        build_gelu(b, 0, wrong[i][0], wrong[i][1]);
        optimise(b);
        assert_int_equal(count(b, "Gelu"), 0);
        assert_int_equal(b->report.count, 1);
        assert_false(b->report.lines[0].done);
        assert_string_equal(b->report.lines[0].what, "gelu");
        drop_bench(b);
    }
}

/* x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), the cube as a power or as products. */
static void test_gelu_tanh(void **state) {
    (void)state;
    for (int form = 0; form < 3; form++) {
        bench *b = make_bench();
        pith__value *x = token_input(b, "x", PITH_F32), *cube, *inner;
        if (form == 0)
            cube = op(b, "Pow", x, number(b, 3.0f), NULL);
        else
            cube = op(b, "Mul", x, op(b, "Mul", x, x, NULL), NULL);
        if (form < 2)
            inner = op(b, "Add", x, op(b, "Mul", number(b, 0.044715f), cube, NULL), NULL);
        else
            inner = op(b, "Mul", x,
                       op(b, "Add", number(b, 1.0f),
                          op(b, "Mul", op(b, "Mul", x, number(b, 0.044715f), NULL), x, NULL), NULL),
                       NULL);
        pith__value *tanh =
            op(b, "Tanh", op(b, "Mul", inner, number(b, 0.7978845608f), NULL), NULL, NULL);
        graph_output(b->graph, op(b, "Mul", op(b, "Mul", number(b, 0.5f), x, NULL),
                                  op(b, "Add", number(b, 1.0f), tanh, NULL), NULL));
        optimise(b);
        assert_int_equal(count(b, "Gelu"), 1);
        assert_true(pith__str_is(pith__node_str(b->graph->outputs[0]->producer, "approximate", ""),
                                 "tanh"));
        drop_bench(b);
    }
}

/* ---- Swish, HardSwish, Mish ---- */

/* x * sigmoid(factor * x); bit 0: operands swapped, bit 1: the factor stands behind x. */
static void build_swish(bench *b, int order, float factor, const char *gate, bool read_twice) {
    pith__value *x = token_input(b, "x", PITH_F32), *inner = x;
    if (factor != 1.0f)
        inner = order & 2 ? op(b, "Mul", x, number(b, factor), NULL)
                          : op(b, "Mul", number(b, factor), x, NULL);
    pith__value *sigmoid = op(b, gate, inner, NULL, NULL);
    graph_output(b->graph,
                 order & 1 ? op(b, "Mul", sigmoid, x, NULL) : op(b, "Mul", x, sigmoid, NULL));
    if (read_twice) graph_output(b->graph, sigmoid);
    optimise(b);
}

static void test_swish(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        bench *b = make_bench();
        build_swish(b, i & 3, i & 4 ? 1.5f : 1.0f, "Sigmoid", false);
        assert_int_equal(b->graph->node_count, 1);
        assert_int_equal(count(b, "Swish"), 1);
        assert_true(pith__node_float(b->graph->first, "alpha", 1.0f) == (i & 4 ? 1.5f : 1.0f));
        drop_bench(b);
        b = make_bench();
        build_swish(b, i & 3, i & 4 ? 1.5f : 1.0f, i & 1 ? "Sigmoid" : "Tanh", i & 1);
        assert_int_equal(count(b, "Swish"), 0);
        drop_bench(b);
    }
}

/* Spellings of x * clip(x + 3, low, high) / 6: where the division is, and whether it is one. */
static void build_hard_swish(bench *b, int form, float three, float high, float six) {
    pith__value *x = token_input(b, "x", PITH_F32);
    pith__value *sum = form & 1 ? op(b, "Add", number(b, three), x, NULL)
                                : op(b, "Add", x, number(b, three), NULL);
    pith__value *y = op(b, "Clip", sum, number(b, 0.0f), number(b, high));
    const char *divide = form & 2 ? "Mul" : "Div";
    pith__value *by = number(b, form & 2 ? 1.0f / six : six);
    if (form & 4) y = op(b, divide, y, by, NULL);
    y = form & 1 ? op(b, "Mul", y, x, NULL) : op(b, "Mul", x, y, NULL);
    if (!(form & 4)) y = op(b, divide, y, by, NULL);
    graph_output(b->graph, y);
    optimise(b);
}

static void test_hard_swish(void **state) {
    (void)state;
    static const float wrong[][3] = { { 2, 6, 6 }, { 3, 5, 6 }, { 3, 6, 5 } };
    for (int form = 0; form < 8; form++) {
        bench *b = make_bench();
        build_hard_swish(b, form, 3, 6, 6);
        assert_int_equal(b->graph->node_count, 1);
        assert_int_equal(count(b, "HardSwish"), 1);
        drop_bench(b);
        for (int i = 0; i < 3; i++) {
            b = make_bench();
            build_hard_swish(b, form, wrong[i][0], wrong[i][1], wrong[i][2]);
            assert_int_equal(count(b, "HardSwish"), 0);
            drop_bench(b);
        }
    }
}

static void test_hard_swish_by_operator(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        bench *b = make_bench();
        pith__value *x = token_input(b, "x", PITH_F32), *gate = op(b, "HardSigmoid", x, NULL, NULL);
        assert_int_equal(pith__node_set_float(gate->producer, "alpha", i & 1 ? 0.2f : 1.0f / 6.0f),
                         PITH_OK);
        graph_output(b->graph, op(b, "Mul", gate, i & 2 ? token_input(b, "y", PITH_F32) : x, NULL));
        optimise(b);
        assert_int_equal(count(b, "HardSwish"), i == 0);
        drop_bench(b);
    }
}

static void test_mish(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        bench *b = make_bench();
        pith__value *x = token_input(b, "x", PITH_F32),
                    *gate = op(b, i & 1 ? "Exp" : "Softplus", x, NULL, NULL);
        gate = op(b, "Tanh", gate, NULL, NULL);
        graph_output(b->graph, op(b, "Mul", gate, i & 2 ? token_input(b, "y", PITH_F32) : x, NULL));
        optimise(b);
        assert_int_equal(count(b, "Mish"), i == 0);
        drop_bench(b);
    }
}

/* ---- LayerNormalization ---- */

/* The spellings of d / sqrt(mean(d * d) + epsilon) * gamma, where d is x or x less its mean, and
 * near misses. */
enum { BY_POWER = 1, ROOT_BY_POWER = 2, SWAPPED = 4, CENTRED = 8, SPELLINGS = 16 };

static pith__value *mean_of(bench *b, pith__value *x, bool last) {
    return op(b, "ReduceMean", x, ints(b, last ? -1 : 0), NULL);
}

static pith__value *either(bench *b, const char *op_type, pith__value *x, pith__value *y,
                           int spelling) {
    return spelling & SWAPPED ? op(b, op_type, y, x, NULL) : op(b, op_type, x, y, NULL);
}

/* divide: 0 Div, 1 Reciprocal, 2 one over the root. */
static void build_norm(bench *b, int spelling, int divide, float power, float root_power,
                       bool last) {
    static float numbers[4] = { 1, 2, 3, 4 };
    const pith_tensor gamma = {
        .data = numbers, .bytes = sizeof numbers, .dtype = PITH_F32, .rank = 1, .dims = { 4 }
    };
    const pith__dim dims[] = { pith__dim_symbol(b->graph->dims, PITH_STR("batch")), 4 };
    pith__value *scale = pith__graph_add_const(b->graph, PITH_STR(""), &gamma);
    pith__value *x = op(b, "Mul", input(b, "x", PITH_F32, 2, dims), scale, NULL);
    pith__value *d = spelling & CENTRED ? op(b, "Sub", x, mean_of(b, x, true), NULL) : x;
    pith__value *square =
        spelling & BY_POWER ? op(b, "Pow", d, number(b, power), NULL) : op(b, "Mul", d, d, NULL);
    pith__value *sum = either(b, "Add", mean_of(b, square, last), number(b, 1e-3f), spelling);
    pith__value *root = spelling & ROOT_BY_POWER ? op(b, "Pow", sum, number(b, root_power), NULL)
                                                 : op(b, "Sqrt", sum, NULL, NULL);
    pith__value *inverse = divide == 1 ? op(b, "Reciprocal", root, NULL, NULL)
                                       : op(b, "Div", number(b, 1.0f), root, NULL);
    pith__value *y = divide ? either(b, "Mul", d, inverse, spelling) : op(b, "Div", d, root, NULL);
    graph_output(b->graph, either(b, "Mul", y, scale, spelling));
    optimise(b);
}

static void test_norms_in_every_spelling(void **state) {
    (void)state;
    for (int i = 0; i < 3 * SPELLINGS; i++) {
        bench *b = make_bench();
        build_norm(b, i % SPELLINGS, i / SPELLINGS, 2.0f, 0.5f, true);
        assert_int_equal(
            count(b, i % SPELLINGS & CENTRED ? "LayerNormalization" : "RMSNormalization"), 1);
        assert_int_equal(b->graph->node_count, 2);
        drop_bench(b);
    }
}

static void test_what_is_not_a_norm(void **state) {
    (void)state;
    static const struct {
        float power, root_power;
        bool last;
    } wrong[] = { { 3.0f, 0.5f, true }, { 2.0f, 0.4f, true }, { 2.0f, 0.5f, false } };
    for (int i = 0; i < 3; i++) {
        bench *b = make_bench();
        build_norm(b, BY_POWER | ROOT_BY_POWER, i, wrong[i].power, wrong[i].root_power,
                   wrong[i].last);
        assert_int_equal(count(b, "RMSNormalization"), 0);
        assert_int_equal(count(b, "ReduceMean"), 1);
        drop_bench(b);
    }
}

/* ---- nodes that go away ---- */

/* x through an If; the condition is a constant, a number that follows from a size, or not known. */
static void test_branches_of_known_conditions(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        bench *b = make_bench();
        const pith__dim dims[] = { pith__dim_symbol(b->graph->dims, PITH_STR("batch")), 4 };
        static float zeros[4 * 4];
        const pith_tensor weight = {
            .data = zeros, .bytes = sizeof zeros, .dtype = PITH_F32, .rank = 2, .dims = { 4, 4 }
        };
        pith__value *x = input(b, "x", PITH_F32, 2, dims),
                    *condition = token_input(b, "flag", PITH_BOOL);
        x = op(b, "MatMul", x, pith__graph_add_const(b->graph, PITH_STR(""), &weight), NULL);
        pith__value *sizes = op(b, "Shape", x, NULL, NULL);
        if (kind > 0)
            condition = op(b, "Equal", op(b, "Gather", sizes, scalar(b, kind > 1), NULL),
                           scalar(b, 4), NULL);
        if (kind == 3) condition = op(b, "Not", condition, NULL, NULL);
        pith__node *choice = pith__graph_add_node(b->graph, NULL, "", "If", &condition, 1, NULL, 1);
        for (int i = 0; i < 2; i++) {
            pith__graph *branch = graph_new(&b->arena, b->graph, &b->err);
            pith__value *inner = pith__graph_add_f32(branch, PITH_STR(""), (float)i);
            graph_output(branch, graph_apply(branch, i ? "Exp" : "Log", inner, NULL));
            assert_int_equal(
                pith__node_set_graph(choice, i ? "then_branch" : "else_branch", branch), PITH_OK);
        }
        assert_int_equal(pith__op_bind_node(choice, &b->err), PITH_OK);
        for (int i = 0; i < 2; i++) {
            pith__graph *branch = pith__node_graph(choice, i ? "then_branch" : "else_branch");
            assert_int_equal(pith__ops_bind(branch, &b->err), PITH_OK);
        }
        graph_output(b->graph, op(b, "Add", x, choice->outputs[0], NULL));
        b->opt.level = 1;
        infer(b);
        if (pith__opt_run(&b->opt, "branch")) fail_msg("%s", b->err.message);
        assert_int_equal(count(b, "If"), kind < 2);
        assert_int_equal(count(b, "Exp"), kind == 2);
        assert_int_equal(count(b, "Log"), kind == 3);
        drop_bench(b);
    }
}

/* A Dropout goes away unless somebody reads its mask; the mask's place may be empty. */
static void test_dropout(void **state) {
    (void)state;
    for (int outputs = 1; outputs < 4; outputs++) {
        bench *b = make_bench();
        pith__value *x = token_input(b, "x", PITH_F32);
        pith__node *node =
            pith__graph_add_node(b->graph, NULL, "", "Dropout", &x, 1, NULL, outputs == 1 ? 1 : 2);
        assert_int_equal(pith__op_bind_node(node, &b->err), PITH_OK);
        graph_output(b->graph, op(b, "Neg", node->outputs[0], NULL, NULL));
        if (outputs == 2) node->outputs[1] = NULL;
        if (outputs == 3) graph_output(b->graph, node->outputs[1]);
        optimise(b);
        assert_int_equal(count(b, "Dropout"), outputs == 3);
        drop_bench(b);
    }
}

/* Constants stay as they are where they make an output, texts, a sequence, or more bytes than
 * constants may. */
static void test_what_is_not_folded(void **state) {
    (void)state;
    enum { LARGE = 40 << 20 };
    bench *b = make_bench();
    pith_tensor large = { .bytes = LARGE, .dtype = PITH_F32, .rank = 1, .dims = { LARGE / 4 } };
    large.data = calloc(1, LARGE);
    assert_non_null(large.data);
    pith__value *one = number(b, 1.0f), *two = number(b, 2.0f), *x = token_input(b, "x", PITH_F32);
    pith__value *tiled =
        op(b, "Tile", pith__graph_add_const(b->graph, PITH_STR(""), &large), ints(b, 7), NULL);
    graph_output(b->graph, op(b, "Add", op(b, "ReduceMax", tiled, NULL, NULL), x, NULL));
    graph_output(
        b->graph,
        op(b, "Identity", with_int(op(b, "Cast", one, NULL, NULL), "to", PITH_STRING), NULL, NULL));
    graph_output(b->graph, op(b, "Add", one, two, NULL));
    pith__value *sequence = op(b, "SequenceConstruct", one, two, NULL),
                *first = op(b, "SequenceAt", sequence, scalar(b, 0), NULL);
    graph_output(b->graph, op(b, "Add", first, op(b, "Mul", one, two, NULL), NULL));
    optimise(b);
    assert_int_equal(count(b, "SequenceConstruct"), 1);
    assert_int_equal(count(b, "Tile"), 1);
    assert_int_equal(count(b, "Cast"), 1);
    assert_int_equal(count(b, "Add"), 3);
    assert_int_equal(b->graph->outputs[2]->kind, PITH_VALUE_NODE);
    assert_int_equal(count(b, "Mul"), 0);
    drop_bench(b);
    free(large.data);
}

/* ---- sums and their normalisation ---- */

/* Rows normalised: a sum of looked-up ones, looked up from what is no constant, added to computed
 * ones, or broadcast; what becomes of them, or why nothing does. */
static void test_sums_before_a_norm(void **state) {
    (void)state;
    static float zeros[8 * 4];
    static const struct {
        int rows;
        const char *other, *made, *what, *why;
    } cases[] = { { 3, NULL, "EmbedNorm", "embed_norm", "3 tables" },
                  { 0, "T4", "LayerNormalization", "embed_norm", "not a constant matrix" },
                  { 1, "BS4", "SkipNorm", "skip_norm", "residual" },
                  { 1, "S4", "LayerNormalization", "skip_norm", "broadcasts" } };
    const pith_tensor table = {
        .data = zeros, .bytes = sizeof zeros, .dtype = PITH_F32, .rank = 2, .dims = { 8, 4 }
    };
    const pith_tensor weight = {
        .data = zeros, .bytes = 64, .dtype = PITH_F32, .rank = 2, .dims = { 4, 4 }
    };
    const pith_tensor vector = {
        .data = zeros, .bytes = 16, .dtype = PITH_F32, .rank = 1, .dims = { 4 }
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench *b = make_bench();
        pith__value *ids = graph_input_of(b->graph, "ids", PITH_I64, "BS"), *sum = NULL;
        for (int k = 0; k < cases[i].rows; k++) {
            pith__value *rows =
                op(b, "Gather", pith__graph_add_const(b->graph, PITH_STR(""), &table),
                   op(b, k & 1 ? "Abs" : "Neg", ids, NULL, NULL), NULL);
            sum = sum ? op(b, "Add", sum, rows, NULL) : rows;
        }
        if (cases[i].other) {
            pith__value *other = graph_input_of(b->graph, "other", PITH_F32, cases[i].other);
            other = op(b, "MatMul", other, pith__graph_add_const(b->graph, PITH_STR(""), &weight),
                       NULL);
            sum = sum ? op(b, "Add", sum, other, NULL) : op(b, "Gather", other, ids, NULL);
        }
        pith__value *scale = pith__graph_add_const(b->graph, PITH_STR(""), &vector);
        graph_output(b->graph, op(b, "LayerNormalization", sum, scale, NULL));
        optimise(b);
        assert_int_equal(count(b, cases[i].made), 1);
        bool said = false;
        for (size_t k = 0; k < b->report.count; k++)
            said = said || (!strcmp(b->report.lines[k].what, cases[i].what) &&
                            strstr(b->report.lines[k].text.data, cases[i].why));
        if (!said) fail_msg("case %zu: the report does not say '%s'", i, cases[i].why);
        drop_bench(b);
    }
}

/* ---- activations of dense layers ---- */

/* x W, then x * sigmoid(factor * x); the Linear's activation. */
static int64_t activation_of(bench *b, float factor, bool as_operator) {
    static float weight[4 * 4];
    const pith_tensor t = {
        .data = weight, .bytes = sizeof weight, .dtype = PITH_F32, .rank = 2, .dims = { 4, 4 }
    };
    const pith__dim dims[] = { pith__dim_symbol(b->graph->dims, PITH_STR("batch")), 4 };
    pith__value *x = op(b, "MatMul", input(b, "x", PITH_F32, 2, dims),
                        pith__graph_add_const(b->graph, PITH_STR("weight"), &t), NULL);
    if (as_operator) {
        pith__node *node =
            pith__graph_add_node(b->graph, NULL, "com.microsoft", "QuickGelu", &x, 1, NULL, 1);
        assert_int_equal(pith__op_bind_node(node, &b->err), PITH_OK);
        assert_int_equal(pith__node_set_float(node, "alpha", factor), PITH_OK);
        graph_output(b->graph, op(b, "Neg", node->outputs[0], NULL, NULL));
    } else {
        pith__value *argument = factor == 1.0f ? x : op(b, "Mul", number(b, factor), x, NULL);
        graph_output(b->graph,
                     op(b, "Neg", op(b, "Mul", x, op(b, "Sigmoid", argument, NULL, NULL), NULL),
                        NULL, NULL));
    }
    optimise(b);
    for (const pith__node *node = b->graph->first; node; node = node->next)
        if (pith__str_is(node->op_type, "Linear")) return pith__node_int(node, "activation", -1);
    return -1;
}

static void test_activations_after_a_product(void **state) {
    (void)state;
    static const struct {
        float factor;
        pith__gemm_activation want;
    } cases[] = { { 1.0f, PITH_ACT_SILU },
                  { 1.702f, PITH_ACT_QUICK_GELU },
                  { 1.6f, PITH_ACT_NONE } };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        bench *b = make_bench();
        assert_int_equal(activation_of(b, cases[i / 2].factor, i % 2), cases[i / 2].want);
        drop_bench(b);
    }
}

/* ---- rows that come again ---- */

/* Does the linear know that rows of its input may come again? Rows are looked up, or are given. */
static bool linear_repeats(bench *b, bool looked_up) {
    static float table[6 * 4];
    const pith_tensor rows = {
        .data = table, .bytes = sizeof table, .dtype = PITH_F32, .rank = 2, .dims = { 6, 4 }
    };
    const pith_tensor weight = {
        .data = table, .bytes = 4 * 4 * 4, .dtype = PITH_F32, .rank = 2, .dims = { 4, 4 }
    };
    const pith__dim dims[] = { pith__dim_symbol(b->graph->dims, PITH_STR("tokens")), 4 };
    pith__value *x =
        looked_up ? op(b, "Gather", pith__graph_add_const(b->graph, PITH_STR("table"), &rows),
                       input(b, "ids", PITH_I64, 1, dims), NULL)
                  : input(b, "x", PITH_F32, 2, dims);
    graph_output(b->graph, op(b, "MatMul", x,
                              pith__graph_add_const(b->graph, PITH_STR("weight"), &weight), NULL));
    optimise(b);
    for (const pith__node *node = b->graph->first; node; node = node->next)
        if (pith__str_is(node->op_type, "Linear")) return pith__node_int(node, "repeats", 0);
    fail_msg("there is no linear");
    return false;
}

static void test_rows_that_come_again(void **state) {
    (void)state;
    for (int looked_up = 0; looked_up < 2; looked_up++) {
        bench *b = make_bench();
        assert_int_equal(linear_repeats(b, looked_up), looked_up);
        drop_bench(b);
    }
}

/* ---- quantised and dequantised again ---- */

static pith__value *byte(bench *b, int8_t x) {
    int8_t *data = pith__arena_alloc64(&b->arena, sizeof x);
    *data = x;
    const pith_tensor t = { .data = data, .bytes = sizeof x, .dtype = PITH_I8 };
    return pith__graph_add_const(b->graph, PITH_STR(""), &t);
}

/* A pair behind moves is gone if it goes between the same numbers. */
static void test_requantized_moves(void **state) {
    (void)state;
    static const struct {
        float scale;
        int8_t zero;
        bool computes; /* between the pairs */
        int left;
    } cases[] = {
        { 0.5f, 3, false, 1 }, { 0.25f, 3, false, 2 }, { 0.5f, 4, false, 2 }, { 0.5f, 3, true, 2 }
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench *b = make_bench();
        pith__value *x =
            op(b, "QuantizeLinear", token_input(b, "x", PITH_F32), number(b, 0.5f), byte(b, 3));
        x = op(b, "Transpose", op(b, "DequantizeLinear", x, number(b, 0.5f), byte(b, 3)), NULL,
               NULL);
        if (cases[i].computes) x = op(b, "Sqrt", x, NULL, NULL);
        x = op(b, "QuantizeLinear", x, number(b, cases[i].scale), byte(b, cases[i].zero));
        x = op(b, "DequantizeLinear", x, number(b, cases[i].scale), byte(b, cases[i].zero));
        graph_output(b->graph, op(b, "Neg", x, NULL, NULL));
        optimise(b);
        assert_int_equal(count(b, "QuantizeLinear"), cases[i].left);
        assert_int_equal(count(b, "DequantizeLinear"), cases[i].left);
        drop_bench(b);
    }
}

/* ---- masks ---- */

static pith__mask_kind recognize(bench *b, pith__value *v, pith__mask_form form, pith__mask *mask) {
    pith__mask_kind kind;
    const char *why;
    graph_output(b->graph, v);
    infer(b);
    assert_int_equal(pith__mask_recognize(&kind, mask, &why, v, form, &b->opt), PITH_OK);
    return kind;
}

static pith__value *four_axes(bench *b, pith__value *mask) {
    return op(b, "Unsqueeze", op(b, "Unsqueeze", mask, ints(b, 1), NULL), ints(b, 2), NULL);
}

static pith__value *as_float(bench *b, pith__value *v) {
    return with_int(op(b, "Cast", v, NULL, NULL), "to", PITH_F32);
}

static void test_added_mask(void **state) {
    (void)state;
    static const float fills[] = { -1e4f, -1e9f, -3.4028235e38f };
    pith__mask m;
    for (int i = 0; i < 3; i++) {
        bench *b = make_bench();
        pith__value *mask = token_input(b, "attention_mask", PITH_I64);
        pith__value *inverted =
            op(b, "Sub", number(b, 1.0f), as_float(b, four_axes(b, mask)), NULL);
        assert_int_equal(
            recognize(b, op(b, "Mul", inverted, number(b, fills[i]), NULL), PITH_MASK_ADDED, &m),
            PITH_MASK_YES);
        assert_ptr_equal(m.key_mask, mask);
        assert_true(isfinite(m.added[PITH_SKIP_PADDED]) && m.window_left == -1 &&
                    m.window_right == -1);
        drop_bench(b);
    }
}

/* |query - key| compared with limits beyond what a probe spells out; the causal half of it; and
 * what is none. */
static void test_large_windows(void **state) {
    (void)state;
    static const int limits[] = { 257, 513, 4096 };
    for (int i = 0; i < 9; i++) {
        bench *b = make_bench();
        pith__mask m;
        int limit = limits[i % 3], kind = i / 3;
        pith__value *ids = token_input(b, "input_ids", PITH_I64);
        pith__value *length = op(b, "Gather", op(b, "Shape", ids, NULL, NULL), scalar(b, 1), NULL);
        pith__value *at = op(b, "Range", scalar(b, 0), length, scalar(b, 1));
        pith__value *distance = op(b, "Sub", op(b, "Unsqueeze", at, ints(b, 1), NULL),
                                   op(b, "Unsqueeze", at, ints(b, 0), NULL), NULL);
        pith__value *near = op(b, "Less", kind == 0 ? op(b, "Abs", distance, NULL, NULL) : distance,
                               scalar(b, limit), NULL);
        pith__value *causal = op(b, "GreaterOrEqual", distance, scalar(b, 0), NULL);
        pith__value *square =
            op(b, "Less", op(b, "Mul", distance, distance, NULL), scalar(b, limit), NULL);
        pith__value *keeps = kind == 0   ? near
                             : kind == 1 ? op(b, "And", near, causal, NULL)
                                         : square;
        assert_int_equal(recognize(b, keeps, PITH_MASK_KEEPS, &m),
                         kind == 2 ? PITH_MASK_CONSTANT : PITH_MASK_YES);
        if (kind < 2) {
            assert_int_equal(m.window_left, limit - 1);
            assert_int_equal(m.window_right, kind ? 0 : limit - 1);
            assert_null(m.key_mask);
        }
        drop_bench(b);
    }
}

static void test_chosen_mask_with_infinity(void **state) {
    (void)state;
    pith__mask m;
    bench *b = make_bench();
    pith__value *mask = token_input(b, "attention_mask", PITH_BOOL);
    pith__value *added = op(b, "Where", four_axes(b, mask), number(b, 0.0f), number(b, -INFINITY));
    assert_int_equal(recognize(b, added, PITH_MASK_ADDED, &m), PITH_MASK_YES);
    assert_true(m.key_mask != NULL);
    drop_bench(b);
    b = make_bench();
    mask = token_input(b, "attention_mask", PITH_BOOL);
    assert_int_equal(
        recognize(b, op(b, "Not", four_axes(b, mask), NULL, NULL), PITH_MASK_SKIPS, &m),
        PITH_MASK_YES);
    assert_ptr_equal(m.key_mask, mask);
    drop_bench(b);
}

/* Things that depend on the mask, but do not skip padded keys. */
static void test_what_is_not_a_mask(void **state) {
    (void)state;
    pith__mask m;
    for (int form = 0; form < 4; form++) {
        bench *b = make_bench();
        pith__value *mask = as_float(b, four_axes(b, token_input(b, "attention_mask", PITH_I64))),
                    *v;
        if (form == 0)
            v = op(b, "Mul", mask, number(b, -1e9f), NULL); /* the wrong way round */
        else if (form == 1)
            /* too weak */
            v = op(b, "Mul", op(b, "Sub", number(b, 1.0f), mask, NULL), number(b, -3.0f), NULL);
        else if (form == 2)
            v = op(b, "ReduceMax", mask, ints(b, 3), NULL); /* one key decides for all */
        else
            v = op(b, "Mul",
                   op(b, "Sub", number(b, 1.0f), op(b, "Transpose", mask, NULL, NULL), NULL),
                   number(b, -1e9f), NULL);
        assert_int_equal(recognize(b, v, PITH_MASK_ADDED, &m), PITH_MASK_NO);
        drop_bench(b);
    }
}

/* k - q of all pairs, from the length of the mask. */
static pith__value *distances(bench *b, pith__value *mask) {
    static int64_t zero = 0, one = 1;
    const pith_tensor zero_tensor = { .data = &zero, .bytes = sizeof zero, .dtype = PITH_I64 };
    const pith_tensor one_tensor = { .data = &one, .bytes = sizeof one, .dtype = PITH_I64 };
    pith__value *z = pith__graph_add_const(b->graph, PITH_STR(""), &zero_tensor),
                *o = pith__graph_add_const(b->graph, PITH_STR(""), &one_tensor);
    pith__value *length = op(b, "Gather", op(b, "Shape", mask, NULL, NULL), o, NULL);
    pith__value *range = op(b, "Range", z, length, o);
    return op(b, "Sub", op(b, "Unsqueeze", range, ints(b, 0), NULL),
              op(b, "Unsqueeze", range, ints(b, 1), NULL), NULL);
}

static void test_causal_and_windows(void **state) {
    (void)state;
    static const struct {
        int64_t left, right;
    } windows[] = { { -1, 0 }, { 3, 3 }, { 0, -1 }, { 40, 2 } };
    pith__mask m;
    for (int i = 0; i < 4; i++) {
        for (int with_mask = 0; with_mask < 2; with_mask++) {
            bench *b = make_bench();
            pith__value *mask = token_input(b, "attention_mask", PITH_BOOL),
                        *k_minus_q = distances(b, mask);
            pith__value *keep = NULL;
            if (windows[i].right >= 0)
                keep = op(b, "LessOrEqual", k_minus_q, ints(b, windows[i].right), NULL);
            if (windows[i].left >= 0) {
                pith__value *left =
                    op(b, "GreaterOrEqual", k_minus_q, ints(b, -windows[i].left), NULL);
                keep = keep ? op(b, "And", keep, left, NULL) : left;
            }
            if (with_mask) keep = op(b, "And", four_axes(b, mask), keep, NULL);
            assert_int_equal(recognize(b, keep, PITH_MASK_KEEPS, &m), PITH_MASK_YES);
            assert_ptr_equal(m.key_mask, with_mask ? mask : NULL);
            assert_int_equal(m.window_left, windows[i].left);
            assert_int_equal(m.window_right, windows[i].right);
            drop_bench(b);
        }
    }
}

/* ---- ragged ---- */

/* ids looked up, and then something along the sequence. */
static pith__value *embedded(bench *b) {
    static float table[10 * 4];
    const pith_tensor t = {
        .data = table, .bytes = sizeof table, .dtype = PITH_F32, .rank = 2, .dims = { 10, 4 }
    };
    return op(b, "Gather", pith__graph_add_const(b->graph, PITH_STR("table"), &t),
              token_input(b, "input_ids", PITH_I64), NULL);
}

static void check_reason(bench *b, const char *node, const char *why) {
    pith__graph *ragged;
    pith_str reason = { "", 0 };
    optimise(b);
    assert_int_equal(pith__ragged_make(&ragged, &reason, NULL, 0, &b->opt, b->opt.graph->arena),
                     PITH_OK);
    assert_null(ragged);
    if (!strstr(reason.data, node) || !strstr(reason.data, why))
        fail_msg("reason: %s", reason.data);
}

/* What does not work row by row is in the body of one step, and the report says why. */
static void check_each_text(bench *b, const char *node, const char *why, const char *outside) {
    pith__graph *ragged;
    pith_str reason;
    bool said = false;
    optimise(b);
    assert_int_equal(pith__ragged_make(&ragged, &reason, NULL, 0, &b->opt, b->opt.graph->arena),
                     PITH_OK);
    if (!ragged) fail_msg("reason: %s", reason.data);
    assert_int_equal(pith__graph_check(ragged, &b->err), PITH_OK);
    int steps = 0, others = 0;
    for (const pith__node *n = ragged->first; n; n = n->next) {
        steps += pith__str_is(n->op_type, "EachText");
        others += pith__str_is(n->op_type, outside);
    }
    assert_int_equal(steps, 1);
    assert_int_equal(others, 1);
    for (size_t i = 0; i < b->report.count; i++) {
        const char *text = b->report.lines[i].text.data;
        said |= !strcmp(b->report.lines[i].what, "each_text") && strstr(text, node) &&
                strstr(text, why);
    }
    assert_true(said);
}

static void test_ragged_text_by_text(void **state) {
    (void)state;
    bench *b = make_bench();
    pith__value *x = op(b, "Sin", embedded(b), NULL, NULL);
    graph_output(b->graph, op(b, "Sub", x, op(b, "ReduceMean", x, ints(b, 1), NULL), NULL));
    check_each_text(b, "'Sub'", "it combines values per text with values per token", "Sin");
    drop_bench(b);
    b = make_bench();
    graph_output(
        b->graph,
        op(b, "Sqrt", with_int(op(b, "Softmax", embedded(b), NULL, NULL), "axis", 1), NULL, NULL));
    check_each_text(b, "'Softmax'", "last axis", "Sqrt");
    drop_bench(b);
}

static void test_ragged_names_the_node(void **state) {
    (void)state;
    bench *b = make_bench();
    graph_output(b->graph, op(b, "ReduceSum", embedded(b), ints(b, 0), NULL));
    check_reason(b, "'ReduceSum'", "batch");
    drop_bench(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gelu_in_every_order),
        cmocka_unit_test(test_what_is_not_gelu_stays),
        cmocka_unit_test(test_swish),
        cmocka_unit_test(test_hard_swish),
        cmocka_unit_test(test_hard_swish_by_operator),
        cmocka_unit_test(test_mish),
        cmocka_unit_test(test_gelu_tanh),
        cmocka_unit_test(test_norms_in_every_spelling),
        cmocka_unit_test(test_what_is_not_a_norm),
        cmocka_unit_test(test_branches_of_known_conditions),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_what_is_not_folded),
        cmocka_unit_test(test_sums_before_a_norm),
        cmocka_unit_test(test_added_mask),
        cmocka_unit_test(test_large_windows),
        cmocka_unit_test(test_chosen_mask_with_infinity),
        cmocka_unit_test(test_what_is_not_a_mask),
        cmocka_unit_test(test_causal_and_windows),
        cmocka_unit_test(test_activations_after_a_product),
        cmocka_unit_test(test_rows_that_come_again),
        cmocka_unit_test(test_requantized_moves),
        cmocka_unit_test(test_ragged_text_by_text),
        cmocka_unit_test(test_ragged_names_the_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
