/* op_ms_gates.c - com.microsoft's gates, norms and mixtures of streams, which newer decoders use, written out at load
 * as plain operators in float32 between casts. Source: ONNX Runtime's ContribOperators.md. */
#include "engine/ops/shared/compose_ops.h"

static pith_value *gates_f32(pith_node *at, pith_value *x) { return pith_compose_cast(at, x, PITH_F32); }

static pith_value *gates_number(pith_node *at, const char *op_type, pith_value *x, float item) {
    return pith_compose2(at, op_type, x, pith_graph_add_f32(at->graph, PITH_STR(""), item));
}

/* Of x's dtype. */
static pith_value *gates_like(pith_node *at, pith_value *v, pith_value *x) {
    return pith_compose2(at, "CastLike", v, x);
}

static pith_value *gates_sum(pith_node *at, const char *op_type, pith_value *x, int64_t axis, bool keep) {
    return pith_with_int(pith_compose_list(at, op_type, x, &axis, 1), "keepdims", keep);
}

/* Rows along the last axis over their root mean square. */
static pith_value *gates_rms(pith_node *at, pith_value *x, float epsilon) {
    pith_value *mean = gates_sum(at, "ReduceMean", pith_compose2(at, "Mul", x, x), -1, true);
    return pith_compose2(at, "Div", x, pith_compose1(at, "Sqrt", gates_number(at, "Add", mean, epsilon)));
}

/* With the sizes of x but the last one, then `last` (a vector). */
static pith_value *gates_reshape(pith_node *at, pith_value *v, pith_value *x, pith_value *last) {
    return pith_compose2(at, "Reshape", v, pith_compose_join(at, pith_compose_sizes(at, x, 0, -1), last));
}

static pith_value *gates_list(pith_node *at, const int64_t *items, int64_t count) {
    return pith_graph_add_i64s(at->graph, PITH_STR(""), items, count);
}

/* Streams in groups [..., C, H]: as they are, or out of [..., C * H] if there is the attribute num_branches. */
static pith_value *gates_grouped(pith_node *node, pith_value *x) {
    int64_t branches = pith_node_int(node, "num_branches", 0);
    return branches < 1 ? x : gates_reshape(node, x, x, gates_list(node, (int64_t[]){ branches, -1 }, 2));
}

static pith_value *gates_shape_of(pith_node *at, pith_value *v, pith_value *x) {
    return pith_compose2(at, "Reshape", v, pith_compose1(at, "Shape", x));
}

static pith_status upgrade_scaled_silu(pith_node *node, pith_error *err) {
    PITH_TRY(pith_compose_require(node, 1u, 1, err));
    pith_value *x = pith_node_input(node, 0), *scale = pith_node_input(node, 1);
    scale = scale ? gates_f32(node, pith_compose1(node, "Squeeze", scale))
                  : pith_graph_add_f32(node->graph, PITH_STR(""), pith_node_float(node, "alpha", 1.0f));
    pith_value *z = gates_f32(node, gates_like(node, pith_compose2(node, "Mul", gates_f32(node, x), scale), x));
    pith_value *s = gates_f32(node, gates_like(node, pith_compose1(node, "Sigmoid", z), x));
    return pith_compose_become(node, gates_like(node, pith_compose2(node, "Mul", z, s), x), err);
}

static pith_status upgrade_gated_add(pith_node *node, pith_error *err) {
    PITH_TRY(pith_compose_require(node, 7u, 1, err));
    PITH_TRY(pith_compose_refuse(node, 3, err));
    pith_value *x = pith_node_input(node, 0);
    pith_value *product = pith_compose2(node, "Mul", gates_f32(node, pith_node_input(node, 1)),
                                        gates_f32(node, pith_node_input(node, 2)));
    product = gates_f32(node, gates_like(node, product, x));
    pith_value *sum = product ? pith_compose2(node, "Add", gates_f32(node, x), product) : NULL;
    return pith_compose_become(node, gates_like(node, sum, x), err);
}

static pith_status upgrade_gated_norm(pith_node *node, pith_error *err) {
    PITH_TRY(pith_compose_require(node, 7u, 1, err));
    bool sigmoid = pith_str_is(pith_node_str(node, "activation", "silu"), "sigmoid");
    pith_value *x = pith_node_input(node, 0), *scale = gates_f32(node, pith_node_input(node, 1)),
               *gate = gates_f32(node, pith_node_input(node, 2));
    pith_value *any = gates_list(node, (int64_t[]){ -1 }, 1);
    pith_value *rows = any ? pith_compose_join(node, any, pith_compose1(node, "Shape", scale)) : NULL;
    pith_value *y = pith_compose2(node, "Reshape", gates_f32(node, x), rows);
    y = pith_compose2(node, "Mul", gates_rms(node, y, pith_node_float(node, "epsilon", 1e-5f)), scale);
    pith_value *open = pith_compose1(node, "Sigmoid", gate);
    if (!sigmoid && gate) open = pith_compose2(node, "Mul", gate, open);
    y = pith_compose2(node, "Mul", gates_shape_of(node, y, x), open);
    return pith_compose_become(node, gates_like(node, y, x), err);
}

static pith_status upgrade_branch_norm(pith_node *node, pith_error *err) {
    PITH_TRY(pith_compose_require(node, 1u, 1, err));
    pith_value *x = pith_node_input(node, 0), *scale = pith_node_input(node, 1);
    pith_value *grouped = gates_f32(node, gates_grouped(node, x));
    pith_value *y = gates_rms(node, grouped, pith_node_float(node, "epsilon", 1e-5f));
    if (scale && y) { /* [C * H], [C, H] or [H], as rows of H */
        pith_value *any = gates_list(node, (int64_t[]){ -1 }, 1);
        pith_value *rows = any ? pith_compose_join(node, any, pith_compose_sizes(node, grouped, -1, INT64_MAX)) : NULL;
        y = pith_compose2(node, "Mul", y, pith_compose2(node, "Reshape", gates_f32(node, scale), rows));
    }
    return pith_compose_become(node, gates_like(node, gates_shape_of(node, y, x), x), err);
}

/* Gates of [..., C], [..., C, 1], [..., C, H] or [..., C * H] as [..., C, 1 or H]. */
static pith_value *gates_of_streams(pith_node *node, pith_value *gates, pith_value *grouped) {
    return gates_reshape(node, gates_f32(node, gates), grouped, gates_list(node, (int64_t[]){ -1 }, 1));
}

static pith_status upgrade_pre_mix(pith_node *node, pith_error *err) {
    PITH_TRY(pith_compose_require(node, 3u, 1, err));
    pith_value *x = pith_node_input(node, 0), *grouped = gates_f32(node, gates_grouped(node, x));
    pith_value *y =
        grouped ? pith_compose2(node, "Mul", grouped, gates_of_streams(node, pith_node_input(node, 1), grouped)) : NULL;
    y = gates_sum(node, "ReduceSum", y, -2, false);
    y = gates_number(node, "Mul", y, pith_node_float(node, "reduction_scale", 1.0f));
    return pith_compose_become(node, gates_like(node, y, x), err);
}

static pith_status upgrade_post_mix(pith_node *node, pith_error *err) {
    PITH_TRY(pith_compose_require(node, 7u, 1, err));
    pith_value *x = pith_node_input(node, 0), *grouped = gates_f32(node, gates_grouped(node, x)), *mixed = grouped;
    pith_value *block =
        pith_compose_list(node, "Unsqueeze", gates_f32(node, pith_node_input(node, 1)), (int64_t[]){ -2 }, 1);
    if (!grouped || !block) return pith_fail_memory(err, 0);
    if (pith_node_input(node, 3))
        mixed = pith_compose2(node, "MatMul",
                              pith_compose_move(node, gates_f32(node, pith_node_input(node, 3)), -1, -2), grouped);
    pith_value *added = pith_compose2(node, "Mul", gates_of_streams(node, pith_node_input(node, 2), grouped), block);
    pith_value *y = pith_compose2(node, "Add", mixed, added);
    return pith_compose_become(node, gates_like(node, gates_shape_of(node, y, x), x), err);
}

static pith_status upgrade_decay(pith_node *node, pith_error *err) {
    PITH_TRY(pith_compose_require(node, 7u, 2, err));
    pith_value *a = pith_node_input(node, 0), *b = pith_node_input(node, 3);
    if (pith_compose_wanted(node, 1)) {
        if (!b) return pith_fail(err, PITH_ERR_FORMAT, "beta is read, input 3 is missing");
        PITH_TRY(
            pith_compose_give(node, 1, gates_like(node, pith_compose1(node, "Sigmoid", gates_f32(node, b)), b), err));
    }
    pith_value *y = pith_compose2(node, "Add", gates_f32(node, a), pith_node_input(node, 1));
    y = pith_compose2(node, "Mul", pith_compose1(node, "Softplus", y), pith_node_input(node, 2));
    return pith_compose_become(node, gates_like(node, y, a), err);
}

static pith_status upgrade_engram(pith_node *node, pith_error *err) {
    enum { KEY, QUERY, VALUE, KEY_SCALE, QUERY_SCALE, NORM_SCALE };
    PITH_TRY(pith_compose_require(node, 31u, 2, err));
    float epsilon = pith_node_float(node, "epsilon", 1e-5f);
    pith_value *x = pith_node_input(node, KEY), *sides[2];
    for (int i = 0; i < 2; i++) {
        sides[i] = gates_rms(node, gates_f32(node, pith_node_input(node, KEY + i)), epsilon);
        sides[i] = pith_compose2(node, "Mul", sides[i], gates_f32(node, pith_node_input(node, KEY_SCALE + i)));
    }
    pith_value *dot = sides[0] ? pith_compose2(node, "Mul", sides[0], sides[1]) : NULL;
    pith_value *width = gates_f32(node, pith_compose_sizes(node, x, -1, INT64_MAX));
    dot = gates_sum(node, "ReduceSum", dot, -1, true);
    dot = dot ? pith_compose2(node, "Div", dot, pith_compose1(node, "Sqrt", width)) : NULL;
    pith_value *size = gates_number(node, "Max", pith_compose1(node, "Abs", dot), 1e-6f);
    pith_value *gate = pith_compose2(node, "Mul", pith_compose1(node, "Sign", dot), pith_compose1(node, "Sqrt", size));
    pith_value *value =
        pith_compose_list(node, "Unsqueeze", gates_f32(node, pith_node_input(node, VALUE)), (int64_t[]){ 2 }, 1);
    pith_value *y = gate ? pith_compose2(node, "Mul", pith_compose1(node, "Sigmoid", gate), value) : NULL;
    if (pith_compose_wanted(node, 1)) {
        if (!pith_node_input(node, NORM_SCALE))
            return pith_fail(err, PITH_ERR_FORMAT, "gated_value_normed is read, input %d is missing", NORM_SCALE);
        pith_value *normed = gates_rms(node, y, epsilon);
        normed = pith_compose2(node, "Mul", normed, gates_f32(node, pith_node_input(node, NORM_SCALE)));
        PITH_TRY(pith_compose_give(node, 1, gates_like(node, normed, x), err));
    }
    return pith_compose_become(node, gates_like(node, y, x), err);
}

#define GATES(name, min, max, outputs, upgrade, attrs_)                                                                \
    PITH_OP_COMPOSED(name##_ms, "com.microsoft", #name, min, max, outputs, upgrade, NULL, .attrs = attrs_)
GATES(BranchwiseRMSNorm, 1, 2, 1, upgrade_branch_norm, "epsilon float = 1e-05; num_branches int 0.. = 0")
GATES(EngramGate, 5, 6, 2, upgrade_engram, "epsilon float = 1e-05")
GATES(GatedRMSNorm, 3, 3, 1, upgrade_gated_norm, "activation string silu|swish|sigmoid = silu; epsilon float = 1e-05")
GATES(HyperConnectionPostMix, 3, 4, 1, upgrade_post_mix, "num_branches int 0.. = 0")
GATES(HyperConnectionPreMix, 2, 2, 1, upgrade_pre_mix, "num_branches int 0.. = 0; reduction_scale float = 1")
GATES(LinearAttentionGate, 3, 4, 2, upgrade_decay, "")
GATES(ScaledSiLU, 1, 2, 1, upgrade_scaled_silu, "alpha float = 1")
PITH_OP_COMPOSED(GatedAdd_ms, "com.microsoft", "GatedAdd", 3, 4, 1, upgrade_gated_add, "no gate_weight", .attrs = "")
