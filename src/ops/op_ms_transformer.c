/* op_ms_transformer.c - the fused transformer operators of the domain com.microsoft.
 *
 * They are written by other engines' optimisers and mean nothing that plain operators do not, so upgrade writes them
 * out at load and the passes meet them in the one form that every exporter's network takes. None of them is left to be
 * inferred or run. Source: ONNX Runtime's ContribOperators.md. */
#include <math.h>

#include "ops/op.h"

/* No opset of the domain is new enough: these are always written out. */
#define ALWAYS_UPGRADED INT32_MAX

static pith_value *input(const pith_node *node, int i) { return i < node->input_count ? node->inputs[i] : NULL; }

static bool wanted(const pith_node *node, int i) {
    return i < node->output_count && node->outputs[i] &&
           (node->outputs[i]->user_count || node->outputs[i]->output_uses);
}

/* A node before `at`; NULL inputs at the end are left out. Returns its output, or NULL if memory is out. */
static pith_value *add(pith_node *at, const char *domain, const char *op_type, pith_value *const *inputs, int count) {
    while (count > 0 && !inputs[count - 1]) count--;
    pith_node *node = pith_graph_add_node(at->graph, at, domain, op_type, inputs, count, NULL, 1);
    if (!node) return NULL;
    node->name = at->name;
    node->index = at->index;
    return node->outputs[0];
}

static pith_value *add2(pith_node *at, const char *op_type, pith_value *a, pith_value *b) {
    return a && b ? add(at, "", op_type, (pith_value *[]){ a, b }, 2) : NULL;
}

static pith_value *gather(pith_node *at, pith_value *table, pith_value *ids) { return add2(at, "Gather", table, ids); }

/* Moves the users of output i to v; true if memory is out. */
static bool give(pith_node *node, int i, pith_value *v) {
    if (!v) return true;
    v->name = node->outputs[i]->name;
    v->hint = node->outputs[i]->hint;
    node->outputs[i]->name = PITH_STR("");
    return pith_value_replace(node->outputs[i], v) != PITH_OK;
}

static pith_status finish(pith_node *node, bool out_of_memory, pith_error *err) {
    if (out_of_memory) return pith_fail_memory(err, 0);
    pith_node_remove(node);
    return PITH_OK;
}

/* upgrade comes before any check of counts: the inputs in the bit set `needed` and output 0 must be there. */
static pith_status require(const pith_node *node, unsigned needed, pith_error *err) {
    for (int i = 0; i < 32; i++) {
        if (needed >> i & 1 && !input(node, i)) return pith_fail(err, PITH_ERR_FORMAT, "input %d is missing", i);
    }
    if (node->output_count < 1 || !node->outputs[0]) return pith_fail(err, PITH_ERR_FORMAT, "output 0 is missing");
    return PITH_OK;
}

/* Refuses what is not written out here. */
static pith_status refuse(const pith_node *node, int input_index, pith_error *err) {
    if (!input(node, input_index)) return PITH_OK;
    return pith_fail(err, PITH_ERR_UNSUPPORTED, "input %d is not supported", input_index);
}

static pith_value *norm(pith_node *at, const char *op_type, pith_value *x, pith_value *gamma, pith_value *beta,
                        float epsilon) {
    pith_value *y = x ? add(at, "", op_type, (pith_value *[]){ x, gamma, beta }, 3) : NULL;
    return y && !pith_node_set_float(y->producer, "epsilon", epsilon) ? y : NULL;
}

/* ---- GELU ---- */

static pith_status upgrade_gelu(pith_node *node, pith_error *err) {
    PITH_TRY(require(node, 1u, err));
    pith_value *x = node->inputs[0], *bias = input(node, 1);
    bool tanh = pith_str_is(node->op_type, "FastGelu");
    if (bias) x = add2(node, "Add", x, bias);
    pith_value *y = x ? add(node, "", "Gelu", &x, 1) : NULL;
    if (y && pith_node_set_str(y->producer, "approximate", tanh ? PITH_STR("tanh") : PITH_STR("none"))) y = NULL;
    return finish(node, give(node, 0, y), err);
}

/* ---- normalisation ---- */

static pith_status upgrade_skip_norm(pith_node *node, pith_error *err) {
    PITH_TRY(require(node, 7u, err));
    bool rms = pith_str_is(node->op_type, "SkipSimplifiedLayerNormalization");
    pith_value *bias = input(node, rms ? 3 : 4), *x = node->inputs[0];
    if (wanted(node, 1) || wanted(node, 2)) return pith_fail(err, PITH_ERR_UNSUPPORTED, "its statistics are read");
    if (bias) x = add2(node, "Add", x, bias);
    pith_value *sum = add2(node, "Add", x, node->inputs[1]);
    float epsilon = pith_node_float(node, "epsilon", 1e-12f);
    pith_value *y = norm(node, rms ? "RMSNormalization" : "LayerNormalization", sum, node->inputs[2],
                         rms ? NULL : input(node, 3), epsilon);
    bool failed = give(node, 0, y);
    if (!failed && wanted(node, 3)) failed = give(node, 3, sum);
    return finish(node, failed, err);
}

/* 0, 1, … length of axis 1 of ids. */
static pith_value *positions(pith_node *at, pith_value *ids) {
    const pith_tensor scalar = { .bytes = sizeof(int64_t), .dtype = PITH_I64 };
    static int64_t zero = 0, one = 1;
    pith_tensor zero_tensor = scalar, one_tensor = scalar;
    zero_tensor.data = &zero;
    one_tensor.data = &one;
    pith_value *z = pith_graph_add_const(at->graph, PITH_STR(""), &zero_tensor);
    pith_value *o = pith_graph_add_const(at->graph, PITH_STR(""), &one_tensor);
    pith_value *shape = z && o ? add(at, "", "Shape", &ids, 1) : NULL;
    pith_value *length = shape ? gather(at, shape, o) : NULL;
    return length ? add(at, "", "Range", (pith_value *[]){ z, length, o }, 3) : NULL;
}

static pith_value *count_ones(pith_node *at, pith_value *mask) {
    pith_value *axis = pith_graph_add_i64s(at->graph, PITH_STR(""), (int64_t[]){ 1 }, 1);
    pith_value *count = mask ? add2(at, "ReduceSum", mask, axis) : NULL;
    return count && !pith_node_set_int(count->producer, "keepdims", 0) ? count : NULL;
}

static pith_status upgrade_embed_norm(pith_node *node, pith_error *err) {
    enum { IDS, TYPES, WORD, POSITION, TYPE, GAMMA, BETA, MASK, POSITION_IDS };
    PITH_TRY(require(node, 1u << IDS | 1u << WORD | 1u << POSITION | 1u << GAMMA | 1u << BETA, err));
    if (wanted(node, 1) && !input(node, MASK))
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "it counts a mask that is absent");
    pith_value *ids = node->inputs[IDS], *types = input(node, TYPES), *position_ids = input(node, POSITION_IDS);
    if (!position_ids) position_ids = positions(node, ids);
    pith_value *sum =
        add2(node, "Add", gather(node, node->inputs[WORD], ids), gather(node, node->inputs[POSITION], position_ids));
    if (types && input(node, TYPE)) sum = add2(node, "Add", sum, gather(node, node->inputs[TYPE], types));
    pith_value *y = norm(node, "LayerNormalization", sum, node->inputs[GAMMA], node->inputs[BETA],
                         pith_node_float(node, "epsilon", 1e-12f));
    bool failed = give(node, 0, y);
    if (!failed && wanted(node, 1)) failed = give(node, 1, count_ones(node, input(node, MASK)));
    if (!failed && wanted(node, 2)) failed = give(node, 2, sum);
    return finish(node, failed, err);
}

/* ---- attention ---- */

static bool set_attention(pith_node *node, int64_t heads, const int64_t sizes[3], float scale, bool causal) {
    const struct {
        const char *name;
        int64_t value;
    } ints[] = {
        { "heads", heads },
        { "kv_heads", heads },
        { "size", sizes[0] / heads },
        { "v_size", sizes[2] / heads },
        { "window_right", causal ? 0 : -1 },
        { "none_left", 1 },
    };
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
        if (pith_node_set_int(node, ints[i].name, ints[i].value)) return false;
    }
    return !pith_node_set_float(node, "scale", scale) &&
           !pith_node_set_ints(node, "columns", (int64_t[]){ 0, sizes[0], sizes[0] + sizes[1] }, 3);
}

static pith_value *cast(pith_node *at, pith_value *x, int dtype) {
    pith_value *y = x ? add(at, "", "Cast", &x, 1) : NULL;
    return y && !pith_node_set_int(y->producer, "to", dtype) ? y : NULL;
}

static pith_status upgrade_attention(pith_node *node, pith_error *err) {
    enum { X, WEIGHT, BIAS, MASK, PAST, ADDED, PAST_LENGTH };
    PITH_TRY(require(node, 1u << X | 1u << WEIGHT, err));
    const pith_value *weight = node->inputs[WEIGHT];
    int64_t heads = pith_node_int(node, "num_heads", 0);
    PITH_TRY(refuse(node, PAST, err));
    PITH_TRY(refuse(node, PAST_LENGTH, err));
    if (wanted(node, 1)) return pith_fail(err, PITH_ERR_UNSUPPORTED, "the present keys and values are read");
    if (!weight->type.data || weight->type.data->rank != 2 || heads < 1) {
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "the weight is not a constant matrix, or there are no heads");
    }
    int64_t third = weight->type.data->dims[1] / 3, sizes[3] = { third, third, third };
    size_t count;
    const int64_t *given = pith_node_ints(node, "qkv_hidden_sizes", &count);
    for (size_t i = 0; given && count == 3 && i < 3; i++) sizes[i] = given[i];
    for (int i = 0; i < 3; i++) {
        if (sizes[i] < heads || sizes[i] % heads || sizes[i] > weight->type.data->dims[1]) {
            return pith_fail(err, PITH_ERR_FORMAT, "the weight's columns do not divide into heads");
        }
    }
    if (sizes[0] != sizes[1]) return pith_fail(err, PITH_ERR_FORMAT, "queries and keys differ in size");
    float scale = pith_node_float(node, "scale", 0.0f);
    if (scale == 0.0f) scale = (float)(1.0 / sqrt((double)(sizes[0] / heads)));
    pith_value *rows = add2(node, "MatMul", node->inputs[X], node->inputs[WEIGHT]);
    if (rows && input(node, BIAS)) rows = add2(node, "Add", rows, node->inputs[BIAS]);
    int dtype = weight->type.data->dtype; /* scores and their sums are float32 whatever the rows are */
    pith_value *added = input(node, ADDED);
    if (dtype != PITH_F32) {
        rows = cast(node, rows, PITH_F32);
        if (added) added = cast(node, added, PITH_F32);
    }
    pith_value *inputs[] = { rows, rows, rows, added, input(node, MASK) };
    pith_value *y = rows ? add(node, "pith", "Attention", inputs, 5) : NULL;
    if (y && !set_attention(y->producer, heads, sizes, scale, pith_node_int(node, "unidirectional", 0) != 0)) y = NULL;
    if (y && dtype != PITH_F32) y = cast(node, y, dtype);
    return finish(node, give(node, 0, y), err);
}

static pith_status infer_never(pith_infer *c) { return pith_op_fail(c, "its opset is impossible"); }

#define FUSED(symbol, op_name, min_in, max_in, max_out, how)                                                           \
    const pith_op pith_op_##symbol##_ms = {                                                                            \
        .domain = "com.microsoft",                                                                                     \
        .name = op_name,                                                                                               \
        .since = ALWAYS_UPGRADED,                                                                                      \
        .min_inputs = min_in,                                                                                          \
        .max_inputs = max_in,                                                                                          \
        .max_outputs = max_out,                                                                                        \
        .upgrade = how,                                                                                                \
        .infer = infer_never,                                                                                          \
    };

FUSED(Attention, "Attention", 2, 7, 2, upgrade_attention)
FUSED(BiasGelu, "BiasGelu", 2, 2, 1, upgrade_gelu)
FUSED(EmbedLayerNormalization, "EmbedLayerNormalization", 7, 9, 3, upgrade_embed_norm)
FUSED(FastGelu, "FastGelu", 1, 2, 1, upgrade_gelu)
FUSED(SkipLayerNormalization, "SkipLayerNormalization", 3, 5, 4, upgrade_skip_norm)
FUSED(SkipSimplifiedLayerNormalization, "SkipSimplifiedLayerNormalization", 3, 4, 4, upgrade_skip_norm)
