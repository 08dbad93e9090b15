/* op_ms_quantized.c - com.microsoft's operators on quantised tensors, each written out at load as
 * DequantizeLinear, the plain operator, QuantizeLinear. Source: ONNX Runtime's
 * ContribOperators.md. */
#include <string.h>

#include "engine/kernels/convert.h"
#include "engine/ops/shared/compose_ops.h"

static pith__value *quantized_real(pith__node *at, pith__value *x, pith__value *scale,
                                   pith__value *zero) {
    return pith__compose(at, "", "DequantizeLinear", (pith__value *[]){ x, scale, zero }, 3, 1);
}

/* Real values of inputs i, i + 1, i + 2. */
static pith__value *quantized_real_at(pith__node *at, int i) {
    return quantized_real(at, pith__node_input(at, i), pith__node_input(at, i + 1),
                          pith__node_input(at, i + 2));
}

/* The real result v, quantised with the scale and zero point at input i on, becomes the node. */
static pith_status quantized_become(pith__node *node, pith__value *v, int i, pith_error *err) {
    pith__value *y = pith__compose(
        node, "", "QuantizeLinear",
        (pith__value *[]){ v, pith__node_input(node, i), pith__node_input(node, i + 1) }, 3, 1);
    return pith__compose_become(node, y, err);
}

static pith_status quantized_upgrade_two(pith__node *node,
                                         pith_error *err) { /* QLinearAdd, QLinearMul */
    PITH_TRY(pith__compose_require(node, 0x5B, 1, err));
    const char *plain = node->op_type.data[7] == 'A' ? "Add" : "Mul";
    return quantized_become(
        node, pith__compose2(node, plain, quantized_real_at(node, 0), quantized_real_at(node, 3)),
        6, err);
}

/* One input: x, scale, zero, then the result's scale and zero point. */
static pith_status quantized_upgrade_one(pith__node *node, pith_error *err) {
    static const char *const kept[] = {
        "alpha",    "axis",      "kernel_shape",      "strides", "pads",
        "auto_pad", "ceil_mode", "count_include_pad", "axes",    "keepdims",
        NULL
    };
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
    PITH_TRY(pith__compose_require(node, 0xB, 1, err));
    bool last = pith__node_int(node, "channels_last", 0) != 0;
    const char *plain = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (pith__str_is(node->op_type, names[i].name)) plain = names[i].plain;
    }
    pith__value *x = quantized_real_at(node, 0);
    if (last) x = pith__compose_move(node, x, -1, 1);
    pith__value *y = pith__with_attributes(pith__compose1(node, plain, x), node, kept);
    if (!y) return pith__fail_memory(err, 0);
    if (pith__str_is(node->op_type, "QLinearSoftmax"))
        y->producer->opset = pith__node_choice(node, "opset", 13);
    /* axes are an attribute */
    if (pith__str_is(node->op_type, "QLinearReduceMean")) y->producer->opset = 13;
    if (last) y = pith__compose_move(node, y, 1, -1);
    return quantized_become(node, y, 3, err);
}

/* ai.onnx's by the same name, of the channels at axis 1; NhwcMaxPool is MaxPool. */
static pith_status quantized_upgrade_windows(pith__node *node, pith_error *err) {
    static const char *const kept[] = { "auto_pad",     "ceil_mode", "dilations", "group",
                                        "kernel_shape", "pads",      "strides",   NULL };
    bool conv = pith__str_is(node->op_type, "QLinearConv"),
         last = !conv || pith__node_int(node, "channels_last", 0);
    pith__value *inputs[9] = { NULL };
    PITH_TRY(pith__compose_require(node, conv ? 0xFF : 1, 1, err));
    if (node->input_count > 9)
        return pith__fail(err, PITH_ERR_FORMAT, "has %d inputs, 9 are known", node->input_count);
    for (int i = 0; i < node->input_count; i++) inputs[i] = pith__node_input(node, i);
    if (last) inputs[0] = pith__compose_move(node, inputs[0], -1, 1);
    pith__value *y = pith__compose(node, "", conv ? "QLinearConv" : "MaxPool", inputs, 9, 1);
    y = pith__with_attributes(y, node, kept);
    return pith__compose_become(node, last ? pith__compose_move(node, y, 1, -1) : y, err);
}

static pith_status quantized_upgrade_where(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 0xB7, 1, err));
    pith__value *z = pith__compose3(node, "Where", pith__node_input(node, 0),
                                    quantized_real_at(node, 1), quantized_real_at(node, 4));
    return quantized_become(node, z, 7, err);
}

/* Inputs come in threes (tensor, scale, zero point) behind the output's scale and zero point. */
static pith_status quantized_upgrade_concat(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 0x1F, 1, err));
    int count = (node->input_count - 2) / 3;
    pith__value **items = pith__arena_array(node->graph->arena, (size_t)count, sizeof *items);
    if (!items) return pith__fail_memory(err, (size_t)count * sizeof *items);
    for (int i = 0; i < count; i++) {
        for (int k = 2 + 3 * i; k < 4 + 3 * i; k++)
            if (!pith__node_input(node, k))
                return pith__fail(err, PITH_ERR_FORMAT, "input %d is missing", k);
        items[i] = quantized_real_at(node, 2 + 3 * i);
        if (!items[i]) return pith__fail_memory(err, 0);
    }
    pith__value *y = pith__compose(node, "", "Concat", items, count, 1);
    return quantized_become(node, pith__with_int(y, "axis", pith__node_int(node, "axis", 0)), 0,
                            err);
}

/* a, its scale and zero point, b's three, c in units of both scales, the result's two or none. */
static pith_status quantized_upgrade_gemm(pith__node *node, pith_error *err) {
    static const char *const kept[] = { "alpha", "transA", "transB", NULL };
    PITH_TRY(pith__compose_require(node, 0x1B, 1, err));
    float alpha = pith__node_float(node, "alpha", 1.0f);
    pith__value *a = quantized_real_at(node, 0), *b = quantized_real_at(node, 3),
                *c = pith__node_input(node, 6);
    b = pith__with_int(b, "axis", pith__node_int(node, "transB", 0) ? 0 : 1);
    if (c) {
        c = pith__compose_cast(node, c, PITH_F32);
        c = pith__compose2(
            node, "Mul", c,
            pith__compose2(node, "Mul", pith__node_input(node, 1), pith__node_input(node, 4)));
        c = pith__compose2(node, "Mul", c, pith__graph_add_f32(node->graph, PITH_STR(""), alpha));
        if (!c) return pith__fail_memory(err, 0);
    }
    pith__value *y = b ? pith__compose(node, "", "Gemm", (pith__value *[]){ a, b, c }, 3, 1) : NULL;
    y = pith__with_attributes(y, node, kept);
    return pith__node_input(node, 7) ? quantized_become(node, y, 7, err)
                                     : pith__compose_become(node, y, err);
}

/* Constant weights [rows, columns] as real numbers, scaled as a whole or by columns; Attention
 * wants to see them. */
static pith_status quantized_real_weights(pith__node *node, pith__value **weights,
                                          pith_error *err) {
    const pith__value *w = pith__node_input(node, 1), *scale = pith__node_input(node, 4),
                      *zero = pith__node_input(node, 7);
    const pith_tensor *t = w->type.data, *s = scale->type.data, *z = zero ? zero->type.data : NULL;
    int64_t columns = t && t->rank == 2 ? t->dims[1] : 0, scales = s ? pith__tensor_count(s) : 0;
    bool known = t && s && (!zero || z) && columns > 0 && (scales == 1 || scales == columns) &&
                 (!z || pith__tensor_count(z) == 1 || pith__tensor_count(z) == columns) &&
                 pith__convert_known(t->dtype, PITH_F32) &&
                 pith__convert_known(s->dtype, PITH_F32) &&
                 (!z || pith__convert_known(z->dtype, PITH_F32));
    if (!known)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "weights and their scales must be constants");
    pith_tensor out = *t;
    int64_t n = pith__tensor_count(t);
    out.dtype = PITH_F32;
    if (!pith__dtype_bytes(PITH_F32, n, &out.bytes)) return pith__fail_memory(err, SIZE_MAX);
    float *y = out.data = pith__arena_alloc64(node->graph->arena, out.bytes), scale_item,
          zero_item = 0;
    if (!y) return pith__fail_memory(err, out.bytes);
    pith__convert(y, PITH_F32, 0, t->data, t->dtype, 0, n, true);
    for (int64_t i = 0; i < n; i++) {
        pith__convert(&scale_item, PITH_F32, 0, s->data, s->dtype, scales == 1 ? 0 : i % columns, 1,
                      true);
        if (z)
            pith__convert(&zero_item, PITH_F32, 0, z->data, z->dtype,
                          pith__tensor_count(z) == 1 ? 0 : i % columns, 1, true);
        y[i] = (y[i] - zero_item) * scale_item;
    }
    *weights = pith__graph_add_const(node->graph, PITH_STR(""), &out);
    return *weights ? PITH_OK : pith__fail_memory(err, sizeof out);
}

/* Becomes com.microsoft's Attention, which is written out in its turn. The mask is not quantised,
 * nor is the past. */
static pith_status quantized_upgrade_attention(pith__node *node, pith_error *err) {
    static const char *const kept[] = { "num_heads",         "unidirectional", "do_rotary",
                                        "mask_filter_value", "scale",          NULL };
    PITH_TRY(pith__compose_require(node, 0x1B, 2, err));
    pith__value *x = quantized_real(node, pith__node_input(node, 0), pith__node_input(node, 3),
                                    pith__node_input(node, 6)),
                *weights = NULL;
    PITH_TRY(quantized_real_weights(node, &weights, err));
    pith__value *inputs[] = { x, weights, pith__node_input(node, 2), pith__node_input(node, 5),
                              pith__node_input(node, 8) };
    pith__value *y =
        pith__compose(node, "com.microsoft", "Attention", inputs, 5, node->output_count);
    y = pith__with_attributes(y, node, kept);
    if (!y) return pith__fail_memory(err, 0);
    y->producer->opset = node->opset; /* itself one that is written out */
    if (pith__compose_wanted(node, 1))
        PITH_TRY(pith__compose_give(node, 1, pith__node_output(y->producer, 1), err));
    return pith__compose_become(node, y, err);
}

/* A constant of bytes that hold 8 / bits numbers each along the last axis, low bits first, as
 * numbers; last: how many there are along it. */
static pith__value *quantized_spread(pith__node *at, const pith_tensor *t, int bits, int64_t last) {
    pith_tensor out = *t;
    int64_t bytes = t->dims[t->rank - 1], rows = bytes ? pith__tensor_count(t) / bytes : 0;
    out.dims[out.rank - 1] = last;
    int64_t count = pith__dims_count(out.dims, out.rank);
    if (count < 0 || last > bytes * (8 / bits)) return NULL;
    out.bytes = (size_t)count;
    uint8_t *y = out.data = pith__arena_alloc(at->graph->arena, out.bytes);
    const uint8_t *x = t->data;
    if (y) {
        for (int64_t i = 0; i < rows * last; i++) {
            int64_t bit = i % last * bits;
            y[i] = (uint8_t)(x[i / last * bytes + bit / 8] >> bit % 8 & ((1 << bits) - 1));
        }
    }
    return y ? pith__graph_add_const(at->graph, PITH_STR(""), &out) : NULL;
}

/* The middle of the range for every scale. */
static pith__value *quantized_middle(pith__node *at, const pith_tensor *scales, int bits) {
    pith_tensor out = *scales;
    out.dtype = PITH_U8;
    out.bytes = (size_t)pith__tensor_count(scales);
    out.data = pith__arena_alloc(at->graph->arena, out.bytes);
    if (out.data) memset(out.data, 1 << (bits - 1), out.bytes);
    return out.data ? pith__graph_add_const(at->graph, PITH_STR(""), &out) : NULL;
}

/* Dequantised rows along blocks, then picked; constants are folded once. */
static pith_status quantized_upgrade_gather(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 0x7, 1, err));
    pith__value *data = pith__node_input(node, 0), *zeros = pith__node_input(node, 3);
    const pith_tensor *t = data->type.data, *scales = pith__node_input(node, 2)->type.data;
    int bits = pith__node_choice(node, "bits", 4);
    if (data->type.dtype == PITH_U8) {
        if (!t || !scales || t->rank < 1 || scales->rank != t->rank ||
            (bits != 2 && bits != 4 && bits != 8) ||
            (zeros && (!zeros->type.data || zeros->type.data->dtype != PITH_U8 ||
                       zeros->type.data->rank != t->rank)))
            return pith__fail(err, PITH_ERR_UNSUPPORTED,
                              "%d-bit data in uint8 must be constants that fit", bits);
        int64_t last = t->dims[t->rank - 1];
        if (bits < 8)
            data = last < INT64_MAX / 8 ? quantized_spread(node, t, bits, last * (8 / bits)) : NULL;
        if (bits < 8 && zeros)
            zeros = quantized_spread(node, zeros->type.data, bits, scales->dims[scales->rank - 1]);
        if (!pith__node_input(node, 3)) zeros = quantized_middle(node, scales, bits);
        if (!data || !zeros) return pith__fail_memory(err, 0);
    }
    pith__value *x = quantized_real(node, data, pith__node_input(node, 2), zeros);
    x = pith__with_int(x, "axis", pith__node_int(node, "quantize_axis", 1));
    x = pith__with_int(x, "block_size", pith__node_int(node, "block_size", 128));
    pith__value *y = pith__compose2(node, "Gather", x, pith__node_input(node, 1));
    return pith__compose_become(
        node, pith__with_int(y, "axis", pith__node_int(node, "gather_axis", 0)), err);
}

/* ---- QEmbedLayerNormalization ---- */

/* The real values of a table or vector, its scale and zero point. */
static pith__value *quantized_real_part(pith__node *at, int part) {
    return quantized_real(at, pith__node_input(at, part), pith__node_input(at, part + 6),
                          pith__node_input(at, part + 11));
}

/* All tables and weights are quantised, each with its own scale and zero point behind the plain
 * inputs. Segments may be absent. */
static pith_status quantized_upgrade_embed_norm(pith__node *node, pith_error *err) {
    enum { IDS, SEGMENTS, WORD, POSITION, SEGMENT, GAMMA, BETA, MASK };
    static const char *const kept[] = { "epsilon", NULL };
    PITH_TRY(pith__compose_require(
        node, 1u << IDS | 3u << WORD | 3u << GAMMA | 3u << 8 | 3u << 11 | 3u << 13 | 3u << 16, 2,
        err));
    bool segments = pith__node_input(node, SEGMENTS) != NULL;
    pith__value *inputs[] = { pith__node_input(node, IDS),
                              pith__node_input(node, SEGMENTS),
                              quantized_real_part(node, WORD),
                              quantized_real_part(node, POSITION),
                              segments ? quantized_real_part(node, SEGMENT) : NULL,
                              quantized_real_part(node, GAMMA),
                              quantized_real_part(node, BETA),
                              pith__node_input(node, MASK) };
    for (int i = WORD; i <= BETA; i++) {
        if (!inputs[i] && (i != SEGMENT || segments)) return pith__fail_memory(err, 0);
    }
    pith__value *y = pith__compose(node, "com.microsoft", "EmbedLayerNormalization", inputs, 8,
                                   node->output_count);
    y = pith__with_attributes(y, node, kept);
    if (!y) return pith__fail_memory(err, 0);
    y->producer->opset = node->opset;
    if (pith__compose_wanted(node, 1))
        PITH_TRY(pith__compose_give(node, 1, pith__node_output(y->producer, 1), err));
    return pith__compose_become(node, y, err);
}

PITH_OP_COMPOSED(GatherBlockQuantized_ms, "com.microsoft", "GatherBlockQuantized", 3, 4, 1,
                 quantized_upgrade_gather, "data of 2, 4 or 8 bits in uint8 must be constant",
                 .attrs = "bits int 2..8 = 4; block_size int 0.. = 128; gather_axis int = 0; "
                          "quantize_axis int = 1")
PITH_OP_COMPOSED(NhwcMaxPool_ms, "com.microsoft", "NhwcMaxPool", 1, 1, 1, quantized_upgrade_windows,
                 NULL,
                 .attrs = "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
                          "ceil_mode bool = 0; dilations ints 1..; kernel_shape ints! 1..; pads "
                          "ints; strides ints 1..")
PITH_OP_COMPOSED(QAttention_ms, "com.microsoft", "QAttention", 5, 9, 2, quantized_upgrade_attention,
                 "computed on dequantised weights",
                 .attrs = "do_rotary bool; mask_filter_value float; num_heads int! 1..; "
                          "past_present_share_buffer int 0; scale float; unidirectional bool = 0")
PITH_OP_COMPOSED(QEmbedLayerNormalization_ms, "com.microsoft", "QEmbedLayerNormalization", 18, 18,
                 2, quantized_upgrade_embed_norm, NULL, .attrs = "epsilon float = 1e-12")
PITH_OP_COMPOSED(QGemm_ms, "com.microsoft", "QGemm", 6, 9, 1, quantized_upgrade_gemm, NULL,
                 .attrs = "alpha float = 1; transA bool = 0; transB bool = 0")
PITH_OP_COMPOSED(QLinearAdd_ms, "com.microsoft", "QLinearAdd", 7, 8, 1, quantized_upgrade_two, NULL,
                 .attrs = "")
PITH_OP_COMPOSED(QLinearAveragePool_ms, "com.microsoft", "QLinearAveragePool", 4, 5, 1,
                 quantized_upgrade_one, NULL,
                 .attrs = "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
                          "ceil_mode bool = 0; channels_last bool = 0; count_include_pad bool = 0; "
                          "kernel_shape ints! 1..; pads ints; strides ints 1..")
PITH_OP_COMPOSED(QLinearConcat_ms, "com.microsoft", "QLinearConcat", 5, -1, 1,
                 quantized_upgrade_concat, NULL, .attrs = "axis int!")
PITH_OP_COMPOSED(
    QLinearConv_ms, "com.microsoft", "QLinearConv", 8, 9, 1, quantized_upgrade_windows, NULL,
    .attrs =
        "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
        "channels_last bool = 0; dilations ints 1..; group int 1.. = 1; kernel_shape ints 1..; "
        "pads ints; strides ints 1..")
PITH_OP_COMPOSED(QLinearGlobalAveragePool_ms, "com.microsoft", "QLinearGlobalAveragePool", 5, 5, 1,
                 quantized_upgrade_one, NULL, .attrs = "channels_last bool = 0")
PITH_OP_COMPOSED(QLinearLeakyRelu_ms, "com.microsoft", "QLinearLeakyRelu", 4, 5, 1,
                 quantized_upgrade_one, NULL, .attrs = "alpha float = 0.01")
PITH_OP_COMPOSED(QLinearMul_ms, "com.microsoft", "QLinearMul", 7, 8, 1, quantized_upgrade_two, NULL,
                 .attrs = "")
PITH_OP_COMPOSED(QLinearReduceMean_ms, "com.microsoft", "QLinearReduceMean", 4, 5, 1,
                 quantized_upgrade_one, NULL, .attrs = "axes ints!; keepdims bool!")
PITH_OP_COMPOSED(QLinearSigmoid_ms, "com.microsoft", "QLinearSigmoid", 4, 5, 1,
                 quantized_upgrade_one, NULL, .attrs = "")
PITH_OP_COMPOSED(QLinearSoftmax_ms, "com.microsoft", "QLinearSoftmax", 5, 5, 1,
                 quantized_upgrade_one, NULL, .attrs = "axis int = -1; opset int! 1..")
PITH_OP_COMPOSED(QLinearWhere_ms, "com.microsoft", "QLinearWhere", 9, 9, 1, quantized_upgrade_where,
                 NULL, .attrs = "")
