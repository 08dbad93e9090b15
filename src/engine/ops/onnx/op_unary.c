/* op_unary.c - operators of one input that are one loop: y[i] = f(x[i]).
 *
 * The function is a family of engine/kernels/unary.h or maps_unary.c. This file adds a row per
 * operator: the family, and the attributes that are its parameters. */
#include "engine/kernels/unary.h"
#include "engine/ops/shared/elementwise.h"

typedef struct row {
    const char *name, *family;
    const char *p0, *p1; /* attributes */
    double d0, d1;       /* and their defaults */
} row;

/* One row per operator; Gelu has its own prepare for its attribute and needs none of the
 * parameters. */
static const row rows[] = {
    { "Abs", "abs", NULL, NULL, 0, 0 },
    { "Acos", "acos", NULL, NULL, 0, 0 },
    { "Acosh", "acosh", NULL, NULL, 0, 0 },
    { "Asin", "asin", NULL, NULL, 0, 0 },
    { "Asinh", "asinh", NULL, NULL, 0, 0 },
    { "Atan", "atan", NULL, NULL, 0, 0 },
    { "Atanh", "atanh", NULL, NULL, 0, 0 },
    { "BitwiseNot", "bit_not", NULL, NULL, 0, 0 },
    { "Ceil", "ceil", NULL, NULL, 0, 0 },
    { "Celu", "celu", "alpha", NULL, 1, 0 },
    { "Cos", "cos", NULL, NULL, 0, 0 },
    { "Cosh", "cosh", NULL, NULL, 0, 0 },
    { "Elu", "elu", "alpha", NULL, 1, 0 },
    { "Erf", "erf", NULL, NULL, 0, 0 },
    { "Exp", "exp", NULL, NULL, 0, 0 },
    { "Floor", "floor", NULL, NULL, 0, 0 },
    { "Gelu", "gelu", NULL, NULL, 0, 0 },
    { "HardSigmoid", "hard_sigmoid", "alpha", "beta", 0.2f, 0.5 },
    { "HardSwish", "hard_swish", NULL, NULL, 0, 0 },
    { "IsInf", "is_inf", "detect_positive", "detect_negative", 1, 1 },
    { "IsNaN", "is_nan", NULL, NULL, 0, 0 },
    { "LeakyRelu", "leaky_relu", "alpha", NULL, 0.01f, 0 },
    { "Log", "log", NULL, NULL, 0, 0 },
    { "Mish", "mish", NULL, NULL, 0, 0 },
    { "Neg", "neg", NULL, NULL, 0, 0 },
    { "Not", "not", NULL, NULL, 0, 0 },
    { "QuickGelu", "swish", "alpha", NULL, 1.702f, 0 },
    { "Reciprocal", "reciprocal", NULL, NULL, 0, 0 },
    { "Relu", "relu", NULL, NULL, 0, 0 },
    { "Round", "round", NULL, NULL, 0, 0 },
    { "Selu", "selu", "alpha", "gamma", 1.67326319217681884765625, 1.05070102214813232421875 },
    { "Shrink", "shrink", "lambd", "bias", 0.5, 0 },
    { "Sigmoid", "sigmoid", NULL, NULL, 0, 0 },
    { "Sign", "sign", NULL, NULL, 0, 0 },
    { "Sin", "sin", NULL, NULL, 0, 0 },
    { "Sinh", "sinh", NULL, NULL, 0, 0 },
    { "Softplus", "softplus", NULL, NULL, 0, 0 },
    { "Softsign", "softsign", NULL, NULL, 0, 0 },
    { "Sqrt", "sqrt", NULL, NULL, 0, 0 },
    { "Swish", "swish", "alpha", NULL, 1, 0 },
    { "Tan", "tan", NULL, NULL, 0, 0 },
    { "Tanh", "tanh", NULL, NULL, 0, 0 },
    { "ThresholdedRelu", "thresholded_relu", "alpha", NULL, 1, 0 },
};

static double unary_parameter(const pith__node *node, const char *name, double fallback) {
    const pith__attr *attr = name ? pith__node_attr(node, name) : NULL;
    if (!attr) return fallback;
    return attr->kind == PITH_ATTR_INT ? (double)attr->integer
                                       : (double)pith__node_float(node, name, (float)fallback);
}

static pith_status unary_prepare_as(pith__prepare *c, const char *family, int dtype, int result) {
    pith__map_state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    PITH_TRY(pith__map_find(s, family, dtype, c));
    s->result = result ? result : s->compute;
    c->state = s;
    return PITH_OK;
}

/* Looks the operator up and reads its parameters. result: the dtype of the output if it is not that
 * of the computation. */
static pith_status unary_prepare_result(pith__prepare *c, int dtype, int result) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!pith__str_is(c->node->op_type, rows[i].name)) continue;
        PITH_TRY(unary_prepare_as(c, rows[i].family, dtype, result));
        pith__map_state *s = c->state;
        s->parameters[0] = unary_parameter(c->node, rows[i].p0, rows[i].d0);
        s->parameters[1] = unary_parameter(c->node, rows[i].p1, rows[i].d1);
        return PITH_OK;
    }
    return pith__op_fail(c, "no loop for this operator");
}

static pith_status unary_prepare(pith__prepare *c) {
    return unary_prepare_result(c, c->in[0]->dtype, 0);
}
static pith_status unary_prepare_test(pith__prepare *c) {
    int dtype = c->in[0]->dtype;
    bool bits_8 = pith__dtype_is_float(dtype) && pith__dtype_bits(dtype) == 8;
    return unary_prepare_result(c, bits_8 ? PITH_F32 : dtype, PITH_BOOL);
}

/* Patterns of bits have no sign. */
static pith_status unary_prepare_bits(pith__prepare *c) {
    static const uint8_t unsigned_of[PITH_DTYPE_COUNT] = {
        [PITH_U8] = PITH_U8,   [PITH_I8] = PITH_U8,   [PITH_U16] = PITH_U16, [PITH_I16] = PITH_U16,
        [PITH_U32] = PITH_U32, [PITH_I32] = PITH_U32, [PITH_U64] = PITH_U64, [PITH_I64] = PITH_U64
    };
    int dtype = c->in[0]->dtype;
    if (dtype < 0 || dtype >= PITH_DTYPE_COUNT || !unsigned_of[dtype])
        return pith__fail_dtype(c->err, dtype);
    PITH_TRY(unary_prepare_result(c, unsigned_of[dtype], dtype));
    ((pith__map_state *)c->state)->compute = dtype;
    return PITH_OK;
}

static pith_status unary_prepare_gelu(pith__prepare *c) {
    bool tanh = pith__str_is(pith__node_str(c->node, "approximate", "none"), "tanh");
    return unary_prepare_as(c, tanh ? "gelu_tanh" : "gelu", c->in[0]->dtype, 0);
}

static pith_status unary_infer_test(pith__infer *c) {
    pith__infer_set(c, 0, PITH_BOOL, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

static pith_status unary_infer_plain(pith__infer *c) {
    pith__infer_set(c, 0, c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

static pith__dim unary_elem_neg(pith__dims *dims, const pith__dim *x, int count) {
    (void)count;
    return pith__dim_apply(dims, PITH_DIM_SUB, 0, x[0]);
}
static pith__dim unary_elem_abs(pith__dims *dims, const pith__dim *x, int count) {
    (void)count;
    if (pith__dim_known(x[0])) return x[0] < 0 ? -x[0] : x[0];
    pith__dim negative = pith__dim_apply(dims, PITH_DIM_SUB, 0, x[0]);
    return pith__dim_apply(dims, PITH_DIM_MAX, x[0], negative);
}
static pith__dim unary_elem_not(pith__dims *dims, const pith__dim *x, int count) {
    (void)dims;
    (void)count;
    return pith__dim_known(x[0]) ? x[0] == 0 : PITH_DIM_UNKNOWN;
}
static pith_status unary_infer_neg(pith__infer *c) {
    PITH_TRY(unary_infer_plain(c));
    return pith__infer_elems(c, unary_elem_neg);
}
static pith_status unary_infer_abs(pith__infer *c) {
    PITH_TRY(unary_infer_plain(c));
    return pith__infer_elems(c, unary_elem_abs);
}
static pith_status unary_infer_not(pith__infer *c) {
    PITH_TRY(unary_infer_plain(c));
    return pith__infer_elems(c, unary_elem_not);
}

/* Opsets with attributes that mean nothing ("consumed_inputs"), and no other difference. */
#define MAP_FLAGS (PITH_OP_ELEMENTWISE | PITH_OP_IN_PLACE | PITH_OP_TAILS)

/* An operator of one operand. Most are UNARY(name, dtypes, newest version, attributes); UNARY_SINCE
 * has the first opset of its present form as well. */
#define UNARY_AS(symbol, types_, domain_, name_, since_, newest_, attrs_, flags_, infer_,          \
                 prepare_)                                                                         \
    const pith__op pith__op_##symbol = { .domain = domain_,                                        \
                                         .name = name_,                                            \
                                         .since = since_,                                          \
                                         .min_inputs = 1,                                          \
                                         .max_inputs = 1,                                          \
                                         .max_outputs = 1,                                         \
                                         .types = types_,                                          \
                                         .newest = newest_,                                        \
                                         .attrs = attrs_,                                          \
                                         .flags = flags_,                                          \
                                         .infer = infer_,                                          \
                                         .prepare = prepare_,                                      \
                                         .run = pith__elementwise_op_run,                          \
                                         .elementwise = pith__map1_elementwise };
#define UNARY_SINCE(name, types_, since_, newest_, attrs_)                                         \
    UNARY_AS(name, types_, "", #name, since_, newest_, attrs_, MAP_FLAGS, unary_infer_plain,       \
             unary_prepare)
#define UNARY(name, types_, newest_, attrs_) UNARY_SINCE(name, types_, 1, newest_, attrs_)
UNARY_AS(Abs, "n", "", "Abs", 1, 13, "consumed_inputs ints @-5", MAP_FLAGS, unary_infer_abs,
         unary_prepare)
UNARY(Acos, "f", 22, "")
UNARY(Acosh, "f", 22, "")
UNARY(Asin, "f", 22, "")
UNARY(Asinh, "f", 22, "")
UNARY(Atan, "f", 22, "")
UNARY(Atanh, "f", 22, "")
UNARY_AS(BitwiseNot, "z", "", "BitwiseNot", 18, 18, "", MAP_FLAGS, unary_infer_plain,
         unary_prepare_bits)
UNARY(Ceil, "f", 13, "consumed_inputs ints @-5")
UNARY(Celu, "f", 28, "alpha float = 1")
UNARY(Cos, "f", 22, "")
UNARY(Cosh, "f", 22, "")
UNARY(Elu, "f", 22, "alpha float = 1; consumed_inputs ints @-5")
UNARY(Erf, "n", 13, "")
UNARY(Exp, "f", 13, "consumed_inputs ints @-5")
UNARY(Floor, "f", 13, "consumed_inputs ints @-5")
UNARY_AS(Gelu, "f", "", "Gelu", 20, 20, "approximate string none|tanh = none", MAP_FLAGS,
         unary_infer_plain, unary_prepare_gelu)
UNARY_AS(Gelu_ms, "f", "com.microsoft", "Gelu", 1, 1, "", MAP_FLAGS, unary_infer_plain,
         unary_prepare_gelu)
UNARY(HardSigmoid, "f", 22, "alpha float = 0.2; beta float = 0.5; consumed_inputs ints @-5")
UNARY_SINCE(HardSwish, "f", 14, 22, "")
UNARY_AS(IsInf, "x", "", "IsInf", 10, 20, "detect_negative bool = 1; detect_positive bool = 1",
         PITH_OP_ELEMENTWISE, unary_infer_test, unary_prepare_test)
UNARY_AS(IsNaN, "x", "", "IsNaN", 9, 20, "", PITH_OP_ELEMENTWISE, unary_infer_test,
         unary_prepare_test)
UNARY(LeakyRelu, "f", 16, "alpha float = 0.01; consumed_inputs ints @-5")
UNARY(Log, "f", 13, "consumed_inputs ints @-5")
UNARY_SINCE(Mish, "f", 18, 22, "")
UNARY_AS(Neg, "o", "", "Neg", 1, 13, "consumed_inputs ints @-5", MAP_FLAGS, unary_infer_neg,
         unary_prepare)
UNARY_AS(Not, "b", "", "Not", 1, 1, "", MAP_FLAGS, unary_infer_not, unary_prepare)
UNARY_AS(QuickGelu_ms, "f", "com.microsoft", "QuickGelu", 1, 1, "alpha float = 1.702", MAP_FLAGS,
         unary_infer_plain, unary_prepare)
UNARY(Reciprocal, "f", 13, "consumed_inputs ints @-5")
UNARY(Relu, "o", 14, "consumed_inputs ints @-5")
UNARY(Round, "f", 22, "")
UNARY(Selu, "f", 22,
      "alpha float = 1.6732 @-5; alpha float = 1.6732632 @6; "
      "consumed_inputs ints @-5; gamma float = 1.0507 @-5; "
      "gamma float = 1.050701 @6")
UNARY(Shrink, "n", 9, "bias float = 0; lambd float = 0.5")
UNARY(Sigmoid, "f", 13, "consumed_inputs ints @-5")
UNARY(Sign, "n", 13, "")
UNARY(Sin, "f", 22, "")
UNARY(Sinh, "f", 22, "")
UNARY(Softplus, "f", 22, "")
UNARY(Softsign, "f", 22, "")
UNARY(Sqrt, "f", 13, "consumed_inputs ints @-5")
UNARY_SINCE(Swish, "f", 24, 24, "alpha float = 1")
UNARY(Tan, "f", 22, "")
UNARY(Tanh, "f", 13, "consumed_inputs ints @-5")
UNARY(ThresholdedRelu, "f", 22, "alpha float = 1")
