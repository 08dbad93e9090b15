/* op_ms_gates.c - com.microsoft's gates, norms and mixtures of streams, which newer decoders use,
 * written out at load as plain operators in float32 between casts. Source: ONNX Runtime's
 * ContribOperators.md. */
#include "engine/ops/shared/compose_ops.h"

static pith__value *gates_f32(pith__node *at, pith__value *x) {
    return pith__compose_cast(at, x, PITH_F32);
}

static pith__value *gates_number(pith__node *at, const char *op_type, pith__value *x, float item) {
    return pith__compose2(at, op_type, x, pith__graph_add_f32(at->graph, PITH_STR(""), item));
}

/* Of x's dtype. */
static pith__value *gates_like(pith__node *at, pith__value *v, pith__value *x) {
    return pith__compose2(at, "CastLike", v, x);
}

static pith__value *gates_sum(pith__node *at, const char *op_type, pith__value *x, int64_t axis,
                              bool keep) {
    return pith__with_int(pith__compose_list(at, op_type, x, &axis, 1), "keepdims", keep);
}

/* Rows along the last axis over their root mean square. */
static pith__value *gates_rms(pith__node *at, pith__value *x, float epsilon) {
    pith__value *mean = gates_sum(at, "ReduceMean", pith__compose2(at, "Mul", x, x), -1, true);
    return pith__compose2(at, "Div", x,
                          pith__compose1(at, "Sqrt", gates_number(at, "Add", mean, epsilon)));
}

/* With the sizes of x but the last one, then `last` (a vector). */
static pith__value *gates_reshape(pith__node *at, pith__value *v, pith__value *x,
                                  pith__value *last) {
    return pith__compose2(at, "Reshape", v,
                          pith__compose_join(at, pith__compose_sizes(at, x, 0, -1), last));
}

static pith__value *gates_list(pith__node *at, const int64_t *items, int64_t count) {
    return pith__graph_add_i64s(at->graph, PITH_STR(""), items, count);
}

/* Streams in groups [..., C, H]: as they are, or out of [..., C * H] if there is the attribute
 * num_branches. */
static pith__value *gates_grouped(pith__node *node, pith__value *x) {
    int64_t branches = pith__node_int(node, "num_branches", 0);
    return branches < 1
               ? x
               : gates_reshape(node, x, x, gates_list(node, (int64_t[]){ branches, -1 }, 2));
}

static pith__value *gates_shape_of(pith__node *at, pith__value *v, pith__value *x) {
    return pith__compose2(at, "Reshape", v, pith__compose1(at, "Shape", x));
}

static pith_status upgrade_scaled_silu(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 1u, 1, err));
    pith__value *x = pith__node_input(node, 0), *scale = pith__node_input(node, 1);
    scale = scale ? gates_f32(node, pith__compose1(node, "Squeeze", scale))
                  : pith__graph_add_f32(node->graph, PITH_STR(""),
                                        pith__node_float(node, "alpha", 1.0f));
    pith__value *z = gates_f32(
        node, gates_like(node, pith__compose2(node, "Mul", gates_f32(node, x), scale), x));
    pith__value *s = gates_f32(node, gates_like(node, pith__compose1(node, "Sigmoid", z), x));
    return pith__compose_become(node, gates_like(node, pith__compose2(node, "Mul", z, s), x), err);
}

static pith_status upgrade_gated_add(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 7u, 1, err));
    PITH_TRY(pith__compose_refuse(node, 3, err));
    pith__value *x = pith__node_input(node, 0);
    pith__value *product = pith__compose2(node, "Mul", gates_f32(node, pith__node_input(node, 1)),
                                          gates_f32(node, pith__node_input(node, 2)));
    product = gates_f32(node, gates_like(node, product, x));
    pith__value *sum = product ? pith__compose2(node, "Add", gates_f32(node, x), product) : NULL;
    return pith__compose_become(node, gates_like(node, sum, x), err);
}

static pith_status upgrade_gated_norm(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 7u, 1, err));
    bool sigmoid = pith__str_is(pith__node_str(node, "activation", "silu"), "sigmoid");
    pith__value *x = pith__node_input(node, 0), *scale = gates_f32(node, pith__node_input(node, 1)),
                *gate = gates_f32(node, pith__node_input(node, 2));
    pith__value *any = gates_list(node, (int64_t[]){ -1 }, 1);
    pith__value *rows =
        any ? pith__compose_join(node, any, pith__compose1(node, "Shape", scale)) : NULL;
    pith__value *y = pith__compose2(node, "Reshape", gates_f32(node, x), rows);
    y = pith__compose2(node, "Mul", gates_rms(node, y, pith__node_float(node, "epsilon", 1e-5f)),
                       scale);
    pith__value *open = pith__compose1(node, "Sigmoid", gate);
    if (!sigmoid && gate) open = pith__compose2(node, "Mul", gate, open);
    y = pith__compose2(node, "Mul", gates_shape_of(node, y, x), open);
    return pith__compose_become(node, gates_like(node, y, x), err);
}

static pith_status upgrade_branch_norm(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 1u, 1, err));
    pith__value *x = pith__node_input(node, 0), *scale = pith__node_input(node, 1);
    pith__value *grouped = gates_f32(node, gates_grouped(node, x));
    pith__value *y = gates_rms(node, grouped, pith__node_float(node, "epsilon", 1e-5f));
    if (scale && y) { /* [C * H], [C, H] or [H], as rows of H */
        pith__value *any = gates_list(node, (int64_t[]){ -1 }, 1);
        pith__value *rows =
            any ? pith__compose_join(node, any, pith__compose_sizes(node, grouped, -1, INT64_MAX))
                : NULL;
        y = pith__compose2(node, "Mul", y,
                           pith__compose2(node, "Reshape", gates_f32(node, scale), rows));
    }
    return pith__compose_become(node, gates_like(node, gates_shape_of(node, y, x), x), err);
}

/* Gates of [..., C], [..., C, 1], [..., C, H] or [..., C * H] as [..., C, 1 or H]. */
static pith__value *gates_of_streams(pith__node *node, pith__value *gates, pith__value *grouped) {
    return gates_reshape(node, gates_f32(node, gates), grouped,
                         gates_list(node, (int64_t[]){ -1 }, 1));
}

static pith_status upgrade_pre_mix(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 3u, 1, err));
    pith__value *x = pith__node_input(node, 0), *grouped = gates_f32(node, gates_grouped(node, x));
    pith__value *y =
        grouped ? pith__compose2(node, "Mul", grouped,
                                 gates_of_streams(node, pith__node_input(node, 1), grouped))
                : NULL;
    y = gates_sum(node, "ReduceSum", y, -2, false);
    y = gates_number(node, "Mul", y, pith__node_float(node, "reduction_scale", 1.0f));
    return pith__compose_become(node, gates_like(node, y, x), err);
}

static pith_status upgrade_post_mix(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 7u, 1, err));
    pith__value *x = pith__node_input(node, 0), *grouped = gates_f32(node, gates_grouped(node, x)),
                *mixed = grouped;
    pith__value *block = pith__compose_list(
        node, "Unsqueeze", gates_f32(node, pith__node_input(node, 1)), (int64_t[]){ -2 }, 1);
    if (!grouped || !block) return pith__fail_memory(err, 0);
    if (pith__node_input(node, 3))
        mixed = pith__compose2(
            node, "MatMul",
            pith__compose_move(node, gates_f32(node, pith__node_input(node, 3)), -1, -2), grouped);
    pith__value *added = pith__compose2(
        node, "Mul", gates_of_streams(node, pith__node_input(node, 2), grouped), block);
    pith__value *y = pith__compose2(node, "Add", mixed, added);
    return pith__compose_become(node, gates_like(node, gates_shape_of(node, y, x), x), err);
}

static pith_status upgrade_decay(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 7u, 2, err));
    pith__value *a = pith__node_input(node, 0), *b = pith__node_input(node, 3);
    if (pith__compose_wanted(node, 1)) {
        if (!b) return pith__fail(err, PITH_ERR_FORMAT, "beta is read, input 3 is missing");
        PITH_TRY(pith__compose_give(
            node, 1, gates_like(node, pith__compose1(node, "Sigmoid", gates_f32(node, b)), b),
            err));
    }
    pith__value *y = pith__compose2(node, "Add", gates_f32(node, a), pith__node_input(node, 1));
    y = pith__compose2(node, "Mul", pith__compose1(node, "Softplus", y), pith__node_input(node, 2));
    return pith__compose_become(node, gates_like(node, y, a), err);
}

static pith_status upgrade_engram(pith__node *node, pith_error *err) {
    enum { KEY, QUERY, VALUE, KEY_SCALE, QUERY_SCALE, NORM_SCALE };
    PITH_TRY(pith__compose_require(node, 31u, 2, err));
    float epsilon = pith__node_float(node, "epsilon", 1e-5f);
    pith__value *x = pith__node_input(node, KEY), *sides[2];
    for (int i = 0; i < 2; i++) {
        sides[i] = gates_rms(node, gates_f32(node, pith__node_input(node, KEY + i)), epsilon);
        sides[i] = pith__compose2(node, "Mul", sides[i],
                                  gates_f32(node, pith__node_input(node, KEY_SCALE + i)));
    }
    pith__value *dot = sides[0] ? pith__compose2(node, "Mul", sides[0], sides[1]) : NULL;
    pith__value *width = gates_f32(node, pith__compose_sizes(node, x, -1, INT64_MAX));
    dot = gates_sum(node, "ReduceSum", dot, -1, true);
    dot = dot ? pith__compose2(node, "Div", dot, pith__compose1(node, "Sqrt", width)) : NULL;
    pith__value *size = gates_number(node, "Max", pith__compose1(node, "Abs", dot), 1e-6f);
    pith__value *gate = pith__compose2(node, "Mul", pith__compose1(node, "Sign", dot),
                                       pith__compose1(node, "Sqrt", size));
    pith__value *value = pith__compose_list(
        node, "Unsqueeze", gates_f32(node, pith__node_input(node, VALUE)), (int64_t[]){ 2 }, 1);
    pith__value *y =
        gate ? pith__compose2(node, "Mul", pith__compose1(node, "Sigmoid", gate), value) : NULL;
    if (pith__compose_wanted(node, 1)) {
        if (!pith__node_input(node, NORM_SCALE))
            return pith__fail(err, PITH_ERR_FORMAT,
                              "gated_value_normed is read, input %d is missing", NORM_SCALE);
        pith__value *normed = gates_rms(node, y, epsilon);
        normed = pith__compose2(node, "Mul", normed,
                                gates_f32(node, pith__node_input(node, NORM_SCALE)));
        PITH_TRY(pith__compose_give(node, 1, gates_like(node, normed, x), err));
    }
    return pith__compose_become(node, gates_like(node, y, x), err);
}

#define GATES(symbol, name, min, max, outputs, upgrade, attrs_)                                    \
    PITH_OP_COMPOSED(symbol, "com.microsoft", name, min, max, outputs, upgrade, NULL,              \
                     .attrs = attrs_)
GATES(BranchwiseRMSNorm_ms, "BranchwiseRMSNorm", 1, 2, 1, upgrade_branch_norm,
      "epsilon float = 1e-05; num_branches int 0.. = 0")
GATES(EngramGate_ms, "EngramGate", 5, 6, 2, upgrade_engram, "epsilon float = 1e-05")
GATES(GatedRMSNorm_ms, "GatedRMSNorm", 3, 3, 1, upgrade_gated_norm,
      "activation string silu|swish|sigmoid = silu; epsilon float = 1e-05")
GATES(HyperConnectionPostMix_ms, "HyperConnectionPostMix", 3, 4, 1, upgrade_post_mix,
      "num_branches int 0.. = 0")
GATES(HyperConnectionPreMix_ms, "HyperConnectionPreMix", 2, 2, 1, upgrade_pre_mix,
      "num_branches int 0.. = 0; reduction_scale float = 1")
GATES(LinearAttentionGate_ms, "LinearAttentionGate", 3, 4, 2, upgrade_decay, "")
GATES(ScaledSiLU_ms, "ScaledSiLU", 1, 2, 1, upgrade_scaled_silu, "alpha float = 1")
PITH_OP_COMPOSED(GatedAdd_ms, "com.microsoft", "GatedAdd", 3, 4, 1, upgrade_gated_add,
                 "no gate_weight", .attrs = "")
