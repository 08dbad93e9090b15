/* back_quantized.c - pith.QuantizedAdd and QLinearConv for other engines. ONNX Runtime's QLinearAdd wants all its
 * tensors with sign, or all without; its QLinearConv wants x and y of one type, and the weights with sign if those have
 * one. What does not fit becomes DequantizeLinear, the plain operator and QuantizeLinear.
 *
 * Source: ONNX Runtime's OperatorKernels.md and ContribOperators.md. */
#include "export/back.h"

#include "base/error.h"
#include "ops/op.h"

pith_value *pith_back_quantized_add(pith_back *b, pith_node *node) {
    pith_value **in = node->inputs;
    const int32_t dtype = node->outputs[0]->type.dtype;
    if (!b->how->standard && in[0]->type.dtype == dtype && in[3]->type.dtype == dtype)
        return pith_back_contrib(b, "QLinearAdd", in, 8, 1);
    pith_value *x = PITH_MAKE(&b->m, "DequantizeLinear", in[0], in[1], in[2]);
    pith_value *y = PITH_MAKE(&b->m, "DequantizeLinear", in[3], in[4], in[5]);
    return PITH_BACK(b, "QuantizeLinear", PITH_MAKE(&b->m, "Add", x, y), in[6], in[7]);
}

static bool back_is_f32(const pith_value *v) { return v->type.data && v->type.data->dtype == PITH_F32; }

bool pith_back_is_odd_conv(const pith_node *node) {
    if (node->domain.size || !pith_str_is(node->op_type, "QLinearConv")) return false;
    const int32_t x = node->inputs[0]->type.dtype, w = node->inputs[3]->type.dtype, y = node->outputs[0]->type.dtype;
    const bool odd = x != y || (x == PITH_I8 && w == PITH_U8);
    return odd && back_is_f32(node->inputs[1]) && back_is_f32(node->inputs[4]);
}

/* The scales of a bias: those of x times those of the weights. */
static pith_value *back_bias_scales(pith_back *b, const pith_tensor *x, const pith_tensor *w) {
    const int64_t count = pith_tensor_count(w);
    float *to = pith_arena_array(b->m.graph->arena, (size_t)count, sizeof *to);
    if (!to) {
        b->m.status = pith_fail_memory(b->m.err, (size_t)count * sizeof *to);
        return NULL;
    }
    for (int64_t i = 0; i < count; i++) to[i] = *(const float *)x->data * ((const float *)w->data)[i];
    return pith_make_constant(&b->m, to, w->rank, w->dims);
}

pith_value *pith_back_odd_conv(pith_back *b, pith_node *node) {
    pith_value **in = node->inputs, *bias = pith_node_input(node, 8), *numbers = NULL;
    pith_value *x = PITH_MAKE(&b->m, "DequantizeLinear", in[0], in[1], in[2]);
    pith_value *w = PITH_MAKE(&b->m, "DequantizeLinear", in[3], in[4], in[5]);
    pith_make_int(&b->m, w, "axis", 0);
    if (bias) {
        numbers = PITH_MAKE(&b->m, "DequantizeLinear", bias, back_bias_scales(b, in[1]->type.data, in[4]->type.data));
        pith_make_int(&b->m, numbers, "axis", 0);
    }
    pith_value *y = pith_make(&b->m, "Conv", (pith_value *[]){ x, w, numbers }, bias ? 3 : 2);
    if (y && pith_node_copy_attrs(y->producer, node)) b->m.status = pith_fail_memory(b->m.err, 0);
    return PITH_BACK(b, "QuantizeLinear", y, in[6], in[7]);
}
