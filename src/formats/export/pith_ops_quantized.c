/* pith_ops_quantized.c - pith.QuantizedAdd and QLinearConv for other engines. ONNX Runtime's
 * QLinearAdd wants all its tensors with sign, or all without; its QLinearConv wants x and y of one
 * type, and the weights with sign if those have one. What does not fit becomes DequantizeLinear,
 * the plain operator and QuantizeLinear.
 *
 * Source: ONNX Runtime's OperatorKernels.md and ContribOperators.md. */
#include "formats/export/pith_ops.h"

#include <string.h>

#include "base/error.h"
#include "engine/ops/op.h"

pith__value *pith__replace_quantized_add(pith__replace *b, pith__node *node) {
    pith__value **in = node->inputs;
    const int32_t dtype = node->outputs[0]->type.dtype;
    if (!b->how->standard && in[0]->type.dtype == dtype && in[3]->type.dtype == dtype)
        return pith__replace_contrib(b, "QLinearAdd", in, 8, 1);
    pith__value *x = PITH_NEW_NODE(&b->nodes, "DequantizeLinear", in[0], in[1], in[2]);
    pith__value *y = PITH_NEW_NODE(&b->nodes, "DequantizeLinear", in[3], in[4], in[5]);
    return PITH_REPLACE(b, "QuantizeLinear", PITH_NEW_NODE(&b->nodes, "Add", x, y), in[6], in[7]);
}

static bool replace_is_f32(const pith__value *v) {
    return v->type.data && v->type.data->dtype == PITH_F32;
}

bool pith__replace_is_odd_conv(const pith__node *node) {
    if (node->domain.size || !pith__str_is(node->op_type, "QLinearConv")) return false;
    const int32_t x = node->inputs[0]->type.dtype, w = node->inputs[3]->type.dtype,
                  y = node->outputs[0]->type.dtype;
    const bool odd = x != y || (x == PITH_I8 && w == PITH_U8);
    return odd && replace_is_f32(node->inputs[1]) && replace_is_f32(node->inputs[4]);
}

/* The scales of a bias: those of x times those of the weights. */
static pith__value *replace_bias_scales(pith__replace *b, const pith_tensor *x,
                                        const pith_tensor *w) {
    const int64_t count = pith__tensor_count(w);
    float *to = pith__arena_array(b->nodes.graph->arena, (size_t)count, sizeof *to);
    if (!to) {
        b->nodes.status = pith__fail_memory(b->nodes.err, (size_t)count * sizeof *to);
        return NULL;
    }
    for (int64_t i = 0; i < count; i++)
        to[i] = *(const float *)x->data * ((const float *)w->data)[i];
    return pith__new_node_constant(&b->nodes, to, w->rank, w->dims);
}

pith__value *pith__replace_odd_conv(pith__replace *b, pith__node *node) {
    pith__value **in = node->inputs, *bias = pith__node_input(node, 8), *numbers = NULL;
    pith__value *x = PITH_NEW_NODE(&b->nodes, "DequantizeLinear", in[0], in[1], in[2]);
    pith__value *w = PITH_NEW_NODE(&b->nodes, "DequantizeLinear", in[3], in[4], in[5]);
    pith__new_node_set_int(&b->nodes, w, "axis", 0);
    if (bias) {
        numbers = PITH_NEW_NODE(&b->nodes, "DequantizeLinear", bias,
                                replace_bias_scales(b, in[1]->type.data, in[4]->type.data));
        pith__new_node_set_int(&b->nodes, numbers, "axis", 0);
    }
    pith__value *y =
        pith__new_node(&b->nodes, "Conv", (pith__value *[]){ x, w, numbers }, bias ? 3 : 2);
    if (y && pith__node_copy_attrs(y->producer, node))
        b->nodes.status = pith__fail_memory(b->nodes.err, 0);
    return PITH_REPLACE(b, "QuantizeLinear", y, in[6], in[7]);
}

/* ---- pith.QuantizedLSTM ---- */

/* Inputs of a direction, as in engine/ops/microsoft/op_ms_dynamic_quantize_lstm.c; all but these
 * two have an axis of directions in the file. */
enum { LSTM_X = 0, LSTM_LENGTHS = 4, LSTM_INPUTS = 12 };

/* Constants of one shape as one constant, with an axis for them in front; NULL: they are none. */
static pith__value *replace_stack_constants(pith__replace *b, pith__value *const *parts,
                                            int count) {
    const pith_tensor *first = parts[0]->type.data;
    if (!first || first->rank >= PITH_MAX_RANK) return NULL;
    for (int i = 0; i < count; i++) {
        const pith_tensor *t = parts[i]->type.data;
        if (!t || t->dtype != first->dtype || t->bytes != first->bytes || t->rank != first->rank)
            return NULL;
    }
    pith_tensor made = { .dtype = first->dtype,
                         .rank = first->rank + 1,
                         .bytes = first->bytes * (size_t)count };
    char *data = pith__arena_alloc64(b->nodes.graph->arena, made.bytes);
    made.dims[0] = count;
    memcpy(made.dims + 1, first->dims, (size_t)first->rank * sizeof *first->dims);
    if (data)
        for (int i = 0; i < count; i++)
            memcpy(data + (size_t)i * first->bytes, parts[i]->type.data->data, first->bytes);
    made.data = data;
    pith__value *v = data ? pith__graph_add_const(b->nodes.graph, parts[0]->name, &made) : NULL;
    if (!v) b->nodes.status = pith__fail_memory(b->nodes.err, made.bytes);
    return v;
}

/* An input of both directions, or of the only one. */
static pith__value *replace_stack(pith__replace *b, pith__value *const *parts, int count) {
    pith__value *joined[2];
    for (int i = 0; i < count; i++)
        if (!parts[i]) return NULL;
    pith__value *v = replace_stack_constants(b, parts, count);
    if (v || b->nodes.status) return v;
    for (int i = 0; i < count; i++) {
        joined[i] = PITH_NEW_NODE(&b->nodes, "Unsqueeze", parts[i],
                                  pith__replace_numbers(b, (const int64_t[]){ 0 }, 1));
        if (joined[i]) joined[i]->type = (pith__type){ .dtype = parts[i]->type.dtype, .rank = -1 };
    }
    if (count == 1) return joined[0];
    v = pith__new_node(&b->nodes, "Concat", joined, count);
    pith__new_node_set_int(&b->nodes, v, "axis", 0);
    if (v) v->type = joined[0]->type;
    return v;
}

/* pith.QuantizedLSTM has the inputs of each direction by themselves, all of the first one and then
 * all of the second; DynamicQuantizeLSTM has them with an axis of directions. Constants are joined
 * here, and parts that are computed get Unsqueeze and Concat. Outputs behind the first are replaced
 * here; the caller replaces the first. */
pith__value *pith__replace_quantized_lstm(pith__replace *b, pith__node *node) {
    const int count =
        pith__str_is(pith__node_str(node, "direction", "forward"), "bidirectional") ? 2 : 1;
    pith__value *inputs[LSTM_INPUTS];
    for (int i = 0; i < LSTM_INPUTS; i++) {
        pith__value *parts[2] = { pith__node_input(node, i),
                                  pith__node_input(node, LSTM_INPUTS + i) };
        inputs[i] = i == LSTM_X || i == LSTM_LENGTHS ? parts[0] : replace_stack(b, parts, count);
    }
    pith__value *y = b->nodes.status
                         ? NULL
                         : pith__replace_contrib(b, "DynamicQuantizeLSTM", inputs, LSTM_INPUTS, 3);
    if (!y) return NULL;
    if (pith__node_copy_attrs(y->producer, node))
        b->nodes.status = pith__fail_memory(b->nodes.err, 0);
    for (int i = 1; i < node->output_count; i++) {
        pith__value *made = y->producer->outputs[i];
        if (!node->outputs[i]) continue;
        made->type = node->outputs[i]->type;
        if (pith__value_replace(node->outputs[i], made))
            b->nodes.status = pith__fail_memory(b->nodes.err, 0);
    }
    return y;
}
