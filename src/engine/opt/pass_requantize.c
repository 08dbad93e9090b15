/* pass_requantize.c - removes a second quantisation of values that are already quantised and
 * dequantised.
 *
 * Tools that quantise put QuantizeLinear and DequantizeLinear around every operator, also around
 * those that only move elements. For (q - zero) * scale, moved or not, a second pair with the same
 * scale and zero point gives the same bits: the division by the scale is off by less than 2^-22 of
 * at most 2^16, so rounding finds q again. */
#include <math.h>

#include "base/dtype.h"
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"
#include "engine/opt/tensor_view.h"

/* The longest chain of moves between two quantisations that is followed; the bound only limits the
 * work. */
#define CHAIN_MAX 16

/* v's producer if it is this operator with one scale for all. */
static pith__node *maker(const pith__value *v, const char *op_type) {
    pith__node *node = pith__match_maker(v, op_type);
    double scale;
    if (!node || !pith__match_scalar(node->inputs[1], &scale) || !(scale > 1e-30 && scale < 1e30))
        return NULL;
    bool plain =
        pith__match_f32(node->inputs[1]) && !pith__node_int(node, "block_size", 0) &&
        pith__match_f32(pith__str_is(node->op_type, "QuantizeLinear") ? node->inputs[0] : v);
    return plain ? node : NULL;
}

static bool same_constant(const pith__value *a, const pith__value *b) {
    if (!a || !b) return a == b;
    if (!pith__match_const(a) || !pith__match_const(b)) return false;
    const pith_tensor *x = a->type.data, *y = b->type.data;
    return x->dtype == y->dtype && x->bytes == y->bytes && pith__type_count(&a->type) == 1 &&
           pith__type_count(&b->type) == 1 && memcmp(x->data, y->data, x->bytes) == 0;
}

/* Do they go between the same numbers, of at most 16 bits? */
static bool same_numbers(const pith__node *a, const pith__value *a_numbers, const pith__node *b,
                         const pith__value *b_numbers) {
    int dtype = a_numbers->type.dtype;
    return same_constant(a->inputs[1], b->inputs[1]) &&
           same_constant(pith__match_input(a, 2), pith__match_input(b, 2)) &&
           dtype == b_numbers->type.dtype && pith__dtype_is_int(dtype) &&
           pith__dtype_bits(dtype) <= 16;
}

/* The DequantizeLinear that v comes from by moves alone. */
static pith__node *origin(const pith__value *v) {
    for (int i = 0; i < CHAIN_MAX && v; i++) {
        pith__node *node = maker(v, "DequantizeLinear");
        if (node) return node;
        if (!v->producer || !pith__view_moves(v->producer)) return NULL;
        v = v->producer->inputs[0];
    }
    return NULL;
}

static pith_status requantize_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node; node = node->next) {
        if (!pith__match_is(node, "DequantizeLinear") || !pith__match_live(node) ||
            maker(node->outputs[0], "DequantizeLinear") != node)
            continue;
        pith__node *quantize = maker(node->inputs[0], "QuantizeLinear");
        pith__node *first = quantize ? origin(quantize->inputs[0]) : NULL;
        if (!first || !same_numbers(node, node->inputs[0], quantize, quantize->outputs[0]) ||
            !same_numbers(node, node->inputs[0], first, first->inputs[0]) ||
            !pith__match_replaceable(node->outputs[0], quantize->inputs[0]))
            continue;
        PITH_TRY(pith__match_replace(node->outputs[0], quantize->inputs[0], o->err));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_requantize = { "requantize", 2, false, requantize_run };
