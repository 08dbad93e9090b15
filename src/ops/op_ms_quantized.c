/* op_ms_quantized.c - com.microsoft's operators on quantised tensors, and its convolutions and products with an
 * activation.
 *
 * Each is written out at load as what it means: DequantizeLinear, the plain operator, QuantizeLinear. None of them is
 * left to be inferred or run. Source: ONNX Runtime's ContribOperators.md. */
#include "kernels/convert.h"
#include "ops/op.h"

/* No opset of the domain is new enough: these are always written out. */
#define ALWAYS_UPGRADED INT32_MAX

static pith_value *input(const pith_node *node, int i) { return i < node->input_count ? node->inputs[i] : NULL; }

/* A node before `at`; NULL inputs at the end are left out. Returns its output, or NULL if memory is out or the first
 * input is NULL, so that calls may be nested. */
static pith_value *add(pith_node *at, const char *domain, const char *op_type, pith_value *const *inputs, int count) {
    if (!inputs[0]) return NULL;
    while (count > 0 && !inputs[count - 1]) count--;
    pith_node *node = pith_graph_add_node(at->graph, at, domain, op_type, inputs, count, NULL, 1);
    if (!node) return NULL;
    node->name = at->name;
    node->index = at->index;
    return node->outputs[0];
}

static pith_value *add1(pith_node *at, const char *op_type, pith_value *x) { return add(at, "", op_type, &x, 1); }

static pith_value *add2(pith_node *at, const char *op_type, pith_value *a, pith_value *b) {
    return b ? add(at, "", op_type, (pith_value *[]){ a, b }, 2) : NULL;
}

static pith_value *real(pith_node *at, pith_value *x, pith_value *scale, pith_value *zero) {
    return add(at, "", "DequantizeLinear", (pith_value *[]){ x, scale, zero }, 3);
}

/* Real values of inputs i, i + 1, i + 2. */
static pith_value *real_at(pith_node *at, int i) { return real(at, input(at, i), input(at, i + 1), input(at, i + 2)); }

static bool set_int(pith_value *v, const char *name, int64_t item) {
    return !v || pith_node_set_int(v->producer, name, item) != PITH_OK;
}

/* The attributes of `from` that are named, on v's producer; true if memory is out. */
static bool copy_attributes(pith_value *v, const pith_node *from, const char *const *names) {
    if (!v) return true;
    for (; *names; names++) {
        const pith_attr *a = pith_node_attr(from, *names);
        pith_status status = PITH_OK;
        if (!a) continue;
        if (a->kind == PITH_ATTR_INT)
            status = pith_node_set_int(v->producer, *names, a->i);
        else if (a->kind == PITH_ATTR_FLOAT)
            status = pith_node_set_float(v->producer, *names, a->f);
        else if (a->kind == PITH_ATTR_STRING)
            status = pith_node_set_str(v->producer, *names, a->s);
        else if (a->kind == PITH_ATTR_INTS)
            status = pith_node_set_ints(v->producer, *names, a->ints, a->count);
        if (status) return true;
    }
    return false;
}

/* v takes the place of the node. */
static pith_status become(pith_node *node, pith_value *v, pith_error *err) {
    if (!v) return pith_fail_memory(err, 0);
    v->name = node->outputs[0]->name;
    v->hint = node->outputs[0]->hint;
    node->outputs[0]->name = PITH_STR("");
    if (pith_value_replace(node->outputs[0], v)) return pith_fail_memory(err, 0);
    pith_node_remove(node);
    return PITH_OK;
}

/* The real result v, quantised with the scale and zero point at input i on. */
static pith_status become_quantized(pith_node *node, pith_value *v, int i, pith_error *err) {
    return become(node, add(node, "", "QuantizeLinear", (pith_value *[]){ v, input(node, i), input(node, i + 1) }, 3),
                  err);
}

/* upgrade comes before any check of counts: the inputs in the bit set `needed` and output 0 must be there. */
static pith_status require(const pith_node *node, unsigned needed, pith_error *err) {
    for (int i = 0; i < 32; i++) {
        if (needed >> i & 1 && !input(node, i)) return pith_fail(err, PITH_ERR_FORMAT, "input %d is missing", i);
    }
    if (node->output_count != 1 || !node->outputs[0]) return pith_fail(err, PITH_ERR_FORMAT, "one output is expected");
    return PITH_OK;
}

static pith_status upgrade_two(pith_node *node, pith_error *err) { /* QLinearAdd, QLinearMul */
    PITH_TRY(require(node, 0x5B, err));
    const char *plain = node->op_type.data[7] == 'A' ? "Add" : "Mul";
    return become_quantized(node, add2(node, plain, real_at(node, 0), real_at(node, 3)), 6, err);
}

/* One input: x, scale, zero, then the result's scale and zero point. */
static pith_status upgrade_one(pith_node *node, pith_error *err) {
    static const char *const kept[] = { "alpha",    "axis",      "kernel_shape",      "strides", "pads",
                                        "auto_pad", "ceil_mode", "count_include_pad", "axes",    "keepdims",
                                        NULL };
    static const struct {
        const char *name, *plain;
    } names[] = {
        { "QLinearSigmoid", "Sigmoid" },
        { "QLinearLeakyRelu", "LeakyRelu" },
        { "QLinearSoftmax", "Softmax" },
        { "QLinearAveragePool", "AveragePool" },
        { "QLinearGlobalAveragePool", "GlobalAveragePool" },
        { "QLinearReduceMean", "ReduceMean" },
    };
    PITH_TRY(require(node, 0xB, err));
    if (pith_node_int(node, "channels_last", 0))
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "channels_last is not supported");
    const char *plain = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (pith_str_is(node->op_type, names[i].name)) plain = names[i].plain;
    }
    pith_value *y = add1(node, plain, real_at(node, 0));
    if (copy_attributes(y, node, kept)) return pith_fail_memory(err, 0);
    if (pith_str_is(node->op_type, "QLinearSoftmax")) y->producer->opset = (int32_t)pith_node_int(node, "opset", 13);
    if (pith_str_is(node->op_type, "QLinearReduceMean")) y->producer->opset = 13; /* axes are an attribute */
    return become_quantized(node, y, 3, err);
}

static pith_status upgrade_where(pith_node *node, pith_error *err) {
    PITH_TRY(require(node, 0xB7, err));
    pith_value *x = real_at(node, 1), *y = real_at(node, 4);
    pith_value *z = x && y ? add(node, "", "Where", (pith_value *[]){ node->inputs[0], x, y }, 3) : NULL;
    return become_quantized(node, z, 7, err);
}

static pith_status upgrade_concat(pith_node *node, pith_error *err) {
    PITH_TRY(require(node, 0x1F, err));
    int count = (node->input_count - 2) / 3;
    pith_value **items = pith_arena_array(node->graph->arena, (size_t)count, sizeof *items);
    if (!items) return pith_fail_memory(err, (size_t)count * sizeof *items);
    for (int i = 0; i < count; i++) {
        if (!input(node, 2 + 3 * i) || !input(node, 3 + 3 * i))
            return pith_fail(err, PITH_ERR_FORMAT, "input %d is missing", 2 + 3 * i);
        items[i] = real_at(node, 2 + 3 * i);
        if (!items[i]) return pith_fail_memory(err, 0);
    }
    pith_value *y = add(node, "", "Concat", items, count);
    if (set_int(y, "axis", pith_node_int(node, "axis", 0))) return pith_fail_memory(err, 0);
    return become_quantized(node, y, 0, err);
}

/* a, its scale and zero point, b's three, c in units of both scales, the result's two or none. */
static pith_status upgrade_gemm(pith_node *node, pith_error *err) {
    static const char *const kept[] = { "alpha", "transA", "transB", NULL };
    PITH_TRY(require(node, 0x1B, err));
    float alpha = pith_node_float(node, "alpha", 1.0f);
    pith_value *a = real_at(node, 0), *b = real_at(node, 3), *c = input(node, 6);
    if (set_int(b, "axis", pith_node_int(node, "transB", 0) ? 0 : 1)) return pith_fail_memory(err, 0);
    if (c) {
        c = add1(node, "Cast", c);
        if (set_int(c, "to", PITH_F32)) return pith_fail_memory(err, 0);
        c = add2(node, "Mul", c, add2(node, "Mul", input(node, 1), input(node, 4)));
        c = add2(node, "Mul", c, pith_graph_add_f32(node->graph, PITH_STR(""), alpha));
        if (!c) return pith_fail_memory(err, 0);
    }
    pith_value *y = add(node, "", "Gemm", (pith_value *[]){ a, b, c }, 3);
    if (copy_attributes(y, node, kept)) return pith_fail_memory(err, 0);
    return input(node, 7) ? become_quantized(node, y, 7, err) : become(node, y, err);
}

/* Constant weights [rows, columns] as real numbers, scaled as a whole or by columns; Attention wants to see them. */
static pith_status real_weights(pith_node *node, pith_value **weights, pith_error *err) {
    const pith_value *w = input(node, 1), *scale = input(node, 4), *zero = input(node, 7);
    const pith_tensor *t = w->type.data, *s = scale->type.data, *z = zero ? zero->type.data : NULL;
    int64_t columns = t && t->rank == 2 ? t->dims[1] : 0, scales = s ? pith_tensor_count(s) : 0;
    bool known = t && s && (!zero || z) && columns > 0 && (scales == 1 || scales == columns) &&
                 (!z || pith_tensor_count(z) == 1 || pith_tensor_count(z) == columns) &&
                 pith_convert_known(t->dtype, PITH_F32) && pith_convert_known(s->dtype, PITH_F32) &&
                 (!z || pith_convert_known(z->dtype, PITH_F32));
    if (!known) return pith_fail(err, PITH_ERR_UNSUPPORTED, "weights and their scales must be constants");
    pith_tensor out = *t;
    int64_t n = pith_tensor_count(t);
    out.dtype = PITH_F32;
    if (!pith_dtype_bytes(PITH_F32, n, &out.bytes)) return pith_fail_memory(err, SIZE_MAX);
    float *y = out.data = pith_arena_alloc64(node->graph->arena, out.bytes), scale_item, zero_item = 0;
    if (!y) return pith_fail_memory(err, out.bytes);
    pith_convert(y, PITH_F32, 0, t->data, t->dtype, 0, n, true);
    for (int64_t i = 0; i < n; i++) {
        pith_convert(&scale_item, PITH_F32, 0, s->data, s->dtype, scales == 1 ? 0 : i % columns, 1, true);
        if (z)
            pith_convert(&zero_item, PITH_F32, 0, z->data, z->dtype, pith_tensor_count(z) == 1 ? 0 : i % columns, 1,
                         true);
        y[i] = (y[i] - zero_item) * scale_item;
    }
    *weights = pith_graph_add_const(node->graph, PITH_STR(""), &out);
    return *weights ? PITH_OK : pith_fail_memory(err, sizeof out);
}

static pith_status upgrade_attention(pith_node *node, pith_error *err) {
    static const char *const kept[] = {
        "num_heads", "unidirectional", "do_rotary", "mask_filter_value", "scale", NULL
    };
    PITH_TRY(require(node, 0x1B, err));
    pith_value *x = real(node, input(node, 0), input(node, 3), input(node, 6));
    pith_value *weights = NULL;
    PITH_TRY(real_weights(node, &weights, err));
    pith_value *y = x ? add(node, "com.microsoft", "Attention",
                            (pith_value *[]){ x, weights, input(node, 2), input(node, 5), input(node, 8) }, 5)
                      : NULL;
    if (copy_attributes(y, node, kept)) return pith_fail_memory(err, 0);
    y->producer->opset = node->opset; /* itself one that is written out */
    return become(node, y, err);
}

/* Dequantised rows along blocks, then picked; constants are folded once. */
static pith_status upgrade_gather(pith_node *node, pith_error *err) {
    PITH_TRY(require(node, 0x7, err));
    const pith_type *data = &node->inputs[0]->type;
    if (data->dtype == PITH_U8 && pith_node_int(node, "bits", 4) != 8) {
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "4-bit data in uint8 are not supported");
    }
    pith_value *x = real(node, input(node, 0), input(node, 2), input(node, 3));
    if (set_int(x, "axis", pith_node_int(node, "quantize_axis", 1)) ||
        set_int(x, "block_size", pith_node_int(node, "block_size", 128)))
        return pith_fail_memory(err, 0);
    pith_value *y = add2(node, "Gather", x, input(node, 1));
    return set_int(y, "axis", pith_node_int(node, "gather_axis", 0)) ? pith_fail_memory(err, 0) : become(node, y, err);
}

/* ---- FusedConv, FusedGemm: an activation behind ---- */

static pith_status activate(pith_node *node, pith_value **y, pith_error *err) {
    pith_str name = pith_node_str(node, "activation", "");
    static const struct {
        const char *name, *p0, *p1;
    } known[] = {
        { "Relu", NULL, NULL },
        { "Tanh", NULL, NULL },
        { "Sigmoid", NULL, NULL },
        { "LeakyRelu", "alpha", NULL },
        { "HardSigmoid", "alpha", "beta" },
    };
    size_t count;
    const float *p = pith_node_floats(node, "activation_params", &count);
    if (!*y) return pith_fail_memory(err, 0);
    if (name.size == 0) return PITH_OK;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!pith_str_is(name, known[i].name)) continue;
        *y = add1(node, known[i].name, *y);
        if (!*y) return pith_fail_memory(err, 0);
        float alpha = p && count > 0 ? p[0] : pith_node_float(node, "activation_alpha", 0.01f);
        if (known[i].p0 && pith_node_set_float((*y)->producer, known[i].p0, alpha)) return pith_fail_memory(err, 0);
        if (known[i].p1 && p && count > 1 && pith_node_set_float((*y)->producer, known[i].p1, p[1]))
            return pith_fail_memory(err, 0);
        return PITH_OK;
    }
    return pith_fail(err, PITH_ERR_UNSUPPORTED, "activation '" PITH_STR_FMT "' is not supported", PITH_STR_ARG(name));
}

static pith_status upgrade_fused_conv(pith_node *node, pith_error *err) {
    static const char *const kept[] = { "auto_pad", "dilations", "group", "kernel_shape", "pads", "strides", NULL };
    PITH_TRY(require(node, 0x3, err));
    pith_value *y = add(node, "", "Conv", (pith_value *[]){ node->inputs[0], node->inputs[1], input(node, 2) }, 3);
    if (copy_attributes(y, node, kept)) return pith_fail_memory(err, 0);
    if (input(node, 3)) y = add2(node, "Add", y, input(node, 3));
    PITH_TRY(activate(node, &y, err));
    return become(node, y, err);
}

static pith_status upgrade_fused_gemm(pith_node *node, pith_error *err) {
    static const char *const kept[] = { "alpha", "beta", "transA", "transB", NULL };
    PITH_TRY(require(node, 0x3, err));
    pith_value *y = add(node, "", "Gemm", (pith_value *[]){ node->inputs[0], node->inputs[1], input(node, 2) }, 3);
    if (copy_attributes(y, node, kept)) return pith_fail_memory(err, 0);
    PITH_TRY(activate(node, &y, err));
    return become(node, y, err);
}

static pith_status infer_never(pith_infer *c) { return pith_op_fail(c, "is not a form of any opset"); }

#define WRITTEN_OUT(name_, upgrade_, note_)                                                                            \
    const pith_op pith_op_##name_##_ms = { .domain = "com.microsoft",                                                  \
                                           .name = #name_,                                                             \
                                           .since = ALWAYS_UPGRADED,                                                   \
                                           .min_inputs = 1,                                                            \
                                           .max_inputs = -1,                                                           \
                                           .max_outputs = 1,                                                           \
                                           .upgrade = upgrade_,                                                        \
                                           .infer = infer_never,                                                       \
                                           .note = note_ };
WRITTEN_OUT(FusedConv, upgrade_fused_conv, NULL)
WRITTEN_OUT(FusedGemm, upgrade_fused_gemm, NULL)
WRITTEN_OUT(GatherBlockQuantized, upgrade_gather, "4-bit data must have a 4-bit type")
WRITTEN_OUT(QAttention, upgrade_attention, "computed on dequantised weights")
WRITTEN_OUT(QGemm, upgrade_gemm, NULL)
WRITTEN_OUT(QLinearAdd, upgrade_two, NULL)
WRITTEN_OUT(QLinearAveragePool, upgrade_one, "channels_last is not supported")
WRITTEN_OUT(QLinearConcat, upgrade_concat, NULL)
WRITTEN_OUT(QLinearGlobalAveragePool, upgrade_one, "channels_last is not supported")
WRITTEN_OUT(QLinearLeakyRelu, upgrade_one, NULL)
WRITTEN_OUT(QLinearMul, upgrade_two, NULL)
WRITTEN_OUT(QLinearReduceMean, upgrade_one, NULL)
WRITTEN_OUT(QLinearSigmoid, upgrade_one, NULL)
WRITTEN_OUT(QLinearSoftmax, upgrade_one, NULL)
WRITTEN_OUT(QLinearWhere, upgrade_where, NULL)
