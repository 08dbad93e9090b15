/* op_ms_gates.c - com.microsoft's gates: GatedAdd, GatedRMSNorm, ScaledSiLU, LinearAttentionGate
 * and EngramGate, which newer decoders use. Written out at load as plain operators in float32
 * between casts. Source: ONNX Runtime's ContribOperators.md. */
#include "engine/ops/shared/compose_f32.h"
#include "engine/ops/shared/compose_ops.h"

/* z sigmoid(z) with z = x scale. Intermediate results are rounded to the type of x, as ONNX Runtime
 * does, so that half floats give its bits. */
static pith_status gates_upgrade_scaled_silu(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 1u, 1, err));
    pith__value *x = pith__node_input(node, 0), *scale = pith__node_input(node, 1);
    scale = scale ? pith__compose_f32(node, pith__compose1(node, "Squeeze", scale))
                  : pith__graph_add_f32(node->graph, PITH_STR(""),
                                        pith__node_float(node, "alpha", 1.0f));
    pith__value *z = pith__compose_f32(
        node, pith__compose_like(
                  node, pith__compose2(node, "Mul", pith__compose_f32(node, x), scale), x));
    pith__value *s =
        pith__compose_f32(node, pith__compose_like(node, pith__compose1(node, "Sigmoid", z), x));
    return pith__compose_become(
        node, pith__compose_like(node, pith__compose2(node, "Mul", z, s), x), err);
}

/* x + a b; the product is rounded to the type of x first. */
static pith_status gates_upgrade_gated_add(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 7u, 1, err));
    PITH_TRY(pith__compose_refuse(node, 3, err));
    pith__value *x = pith__node_input(node, 0);
    pith__value *product =
        pith__compose2(node, "Mul", pith__compose_f32(node, pith__node_input(node, 1)),
                       pith__compose_f32(node, pith__node_input(node, 2)));
    product = pith__compose_f32(node, pith__compose_like(node, product, x));
    pith__value *sum =
        product ? pith__compose2(node, "Add", pith__compose_f32(node, x), product) : NULL;
    return pith__compose_become(node, pith__compose_like(node, sum, x), err);
}

/* The rms norm of x in groups as wide as the scale, times the gate's activation. */
static pith_status gates_upgrade_gated_norm(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 7u, 1, err));
    bool sigmoid = pith__str_is(pith__node_str(node, "activation", "silu"), "sigmoid");
    pith__value *x = pith__node_input(node, 0),
                *scale = pith__compose_f32(node, pith__node_input(node, 1)),
                *gate = pith__compose_f32(node, pith__node_input(node, 2));
    pith__value *any = pith__compose_numbers(node, (int64_t[]){ -1 }, 1);
    pith__value *rows =
        any ? pith__compose_join(node, any, pith__compose1(node, "Shape", scale)) : NULL;
    pith__value *y = pith__compose2(node, "Reshape", pith__compose_f32(node, x), rows);
    y = pith__compose2(node, "Mul",
                       pith__compose_rms(node, y, pith__node_float(node, "epsilon", 1e-5f)), scale);
    pith__value *open = pith__compose1(node, "Sigmoid", gate);
    if (!sigmoid && gate) open = pith__compose2(node, "Mul", gate, open);
    y = pith__compose2(node, "Mul", pith__compose_shaped(node, y, x), open);
    return pith__compose_become(node, pith__compose_like(node, y, x), err);
}

/* softplus(a + input 1) times input 2; and sigmoid of input 3, the other gate, if it is read. */
static pith_status gates_upgrade_decay(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 7u, 2, err));
    pith__value *a = pith__node_input(node, 0), *b = pith__node_input(node, 3);
    if (pith__compose_wanted(node, 1)) {
        if (!b) return pith__fail(err, PITH_ERR_FORMAT, "beta is read, input 3 is missing");
        PITH_TRY(pith__compose_give(
            node, 1,
            pith__compose_like(node, pith__compose1(node, "Sigmoid", pith__compose_f32(node, b)),
                               b),
            err));
    }
    pith__value *y =
        pith__compose2(node, "Add", pith__compose_f32(node, a), pith__node_input(node, 1));
    y = pith__compose2(node, "Mul", pith__compose1(node, "Softplus", y), pith__node_input(node, 2));
    return pith__compose_become(node, pith__compose_like(node, y, a), err);
}

/* gate = sigmoid(sign(d) sqrt(max(|d|, 1e-6))), where d is the dot product of both normalised sides
 * over the root of their width; the value times that, and its norm if that is read. */
static pith_status gates_upgrade_engram(pith__node *node, pith_error *err) {
    enum { KEY, QUERY, VALUE, KEY_SCALE, QUERY_SCALE, NORM_SCALE };
    PITH_TRY(pith__compose_require(node, 31u, 2, err));
    float epsilon = pith__node_float(node, "epsilon", 1e-5f);
    pith__value *x = pith__node_input(node, KEY), *sides[2];
    for (int i = 0; i < 2; i++) {
        sides[i] = pith__compose_rms(node, pith__compose_f32(node, pith__node_input(node, KEY + i)),
                                     epsilon);
        sides[i] = pith__compose2(node, "Mul", sides[i],
                                  pith__compose_f32(node, pith__node_input(node, KEY_SCALE + i)));
    }
    pith__value *dot = sides[0] ? pith__compose2(node, "Mul", sides[0], sides[1]) : NULL;
    pith__value *width = pith__compose_f32(node, pith__compose_sizes(node, x, -1, INT64_MAX));
    dot = pith__compose_reduce(node, "ReduceSum", dot, -1, true);
    dot = dot ? pith__compose2(node, "Div", dot, pith__compose1(node, "Sqrt", width)) : NULL;
    pith__value *size = pith__compose_number(node, "Max", pith__compose1(node, "Abs", dot), 1e-6f);
    pith__value *gate = pith__compose2(node, "Mul", pith__compose1(node, "Sign", dot),
                                       pith__compose1(node, "Sqrt", size));
    pith__value *value = pith__compose_list(node, "Unsqueeze",
                                            pith__compose_f32(node, pith__node_input(node, VALUE)),
                                            (int64_t[]){ 2 }, 1);
    pith__value *y =
        gate ? pith__compose2(node, "Mul", pith__compose1(node, "Sigmoid", gate), value) : NULL;
    if (pith__compose_wanted(node, 1)) {
        if (!pith__node_input(node, NORM_SCALE))
            return pith__fail(err, PITH_ERR_FORMAT,
                              "gated_value_normed is read, input %d is missing", NORM_SCALE);
        pith__value *normed = pith__compose_rms(node, y, epsilon);
        normed = pith__compose2(node, "Mul", normed,
                                pith__compose_f32(node, pith__node_input(node, NORM_SCALE)));
        PITH_TRY(pith__compose_give(node, 1, pith__compose_like(node, normed, x), err));
    }
    return pith__compose_become(node, pith__compose_like(node, y, x), err);
}

#define GATES(symbol, name, min, max, outputs, upgrade, attrs_)                                    \
    PITH_OP_COMPOSED(symbol, "com.microsoft", name, min, max, outputs, upgrade, NULL,              \
                     .attrs = attrs_)
GATES(EngramGate_ms, "EngramGate", 5, 6, 2, gates_upgrade_engram, "epsilon float = 1e-05")
GATES(GatedRMSNorm_ms, "GatedRMSNorm", 3, 3, 1, gates_upgrade_gated_norm,
      "activation string silu|swish|sigmoid = silu; epsilon float = 1e-05")
GATES(LinearAttentionGate_ms, "LinearAttentionGate", 3, 4, 2, gates_upgrade_decay, "")
GATES(ScaledSiLU_ms, "ScaledSiLU", 1, 2, 1, gates_upgrade_scaled_silu, "alpha float = 1")
PITH_OP_COMPOSED(GatedAdd_ms, "com.microsoft", "GatedAdd", 3, 4, 1, gates_upgrade_gated_add,
                 "no gate_weight", .attrs = "")
