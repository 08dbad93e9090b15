/* pass_qdq.c - a convolution of dequantised numbers whose result is quantised becomes QLinearConv,
 * whose sums are exact integers: the float form of the same rounds each product. It runs before
 * constants are folded, which would turn the weights into floats. A sum of two such numbers becomes
 * pith.QuantizedAdd, which computes the same bits in one step. A Relu or Clip before the
 * quantisation goes away where the limits of the quantised type already imply it. */
#include <math.h>

#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

/* v's producer if it is this operator between f32 and bytes, with constant scales. */
static pith__node *qdq_maker(const pith__value *v, const char *op_type) {
    pith__node *node = pith__match_maker(v, op_type);
    if (!node || !pith__match_const(node->inputs[1]) || !pith__match_f32(node->inputs[1]))
        return NULL;
    const pith__value *zero = pith__match_input(node, 2);
    if (pith__node_int(node, "block_size", 0) || (zero && !pith__match_const(zero))) return NULL;
    return node;
}

static bool qdq_is_byte(const pith__value *v) {
    return v->type.dtype == PITH_U8 || v->type.dtype == PITH_I8;
}

/* Scales between them have products and ratios that are finite and not 0. */
#define QDQ_LEAST 1e-12
#define QDQ_MOST 1e12

/* The scale and zero point of a pair that has one for all; the scale is a number above 0. */
static bool qdq_numbers(const pith__node *node, double *scale, double *zero) {
    const pith__value *point = pith__match_input(node, 2);
    *zero = 0;
    return pith__match_scalar(node->inputs[1], scale) && *scale > QDQ_LEAST && *scale < QDQ_MOST &&
           (!point || pith__match_scalar(point, zero));
}

static float qdq_scale(const pith__node *node, int64_t i) {
    const pith_tensor *t = node->inputs[1]->type.data;
    return ((const float *)t->data)[t->bytes == sizeof(float) ? 0 : i];
}

/* Scales of weights: one, or one for each map. */
static bool qdq_weights_fit(const pith__node *node) {
    const pith__value *w = node->inputs[0], *zero = pith__match_input(node, 2);
    const int rank = pith__match_const(w) ? w->type.data->rank : 0;
    if (!qdq_is_byte(w) || rank < 3 || rank > 4) return false; /* others have no loop in integers */
    const int64_t maps = w->type.data->dims[0], scales = pith__type_count(&node->inputs[1]->type);
    if (zero && pith__type_count(&zero->type) != scales) return false;
    if (scales != 1 && (scales != maps || pith__node_int(node, "axis", 1) != 0)) return false;
    for (int64_t i = 0; i < scales; i++) {
        /* may be tiny, of a map that is all zeros */
        const double scale = (double)qdq_scale(node, i);
        if (!(scale > 0 && scale < QDQ_MOST)) return false;
    }
    return true;
}

/* The zero points of a bias, one or one for each map, are zeros. */
static bool qdq_is_zero(const pith__value *zero) {
    const pith_tensor *t = zero ? zero->type.data : NULL;
    const size_t bytes = t ? t->bytes : 0;
    for (size_t i = 0; i < bytes; i++)
        if (((const char *)t->data)[i]) return false;
    return true;
}

/* Element i of a constant of 8 bits, or of its only one. */
static int64_t qdq_byte(const pith__value *v, int64_t i) {
    const pith_tensor *t = v ? v->type.data : NULL;
    if (!t) return 0;
    if (t->bytes == 1) i = 0;
    return t->dtype == PITH_I8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

/* True if the sum of a map with its bias fits 32 bits whatever x is, because sums of floats do not
 * wrap. A byte differs from its zero point by 255 at most. */
static bool qdq_sum_fits(int64_t bias, int64_t map, const pith__node *w) {
    const pith__value *numbers = w->inputs[0], *zero = pith__match_input(w, 2);
    const int64_t each = (int64_t)numbers->type.data->bytes / numbers->type.data->dims[0];
    int64_t most = bias < 0 ? -bias : bias;
    for (int64_t i = 0; i < each && most <= INT32_MAX; i++) {
        const int64_t weight = qdq_byte(numbers, map * each + i) - qdq_byte(zero, map);
        most += 255 * (weight < 0 ? -weight : weight);
    }
    return most <= INT32_MAX;
}

/* True if the bias can be added to the integer sums: it is quantised with the product of the scales
 * of x and w, zero point 0, so that its integers count in the same unit. The product was rounded to
 * f32 in the file, hence the tolerance. */
static bool qdq_bias_fits(const pith__node *bias, const pith__node *x, const pith__node *w) {
    const pith__value *q = bias->inputs[0];
    if (!pith__match_const(q) || q->type.dtype != PITH_I32 ||
        !qdq_is_zero(pith__match_input(bias, 2)))
        return false;
    const int64_t maps = w->inputs[0]->type.data->dims[0],
                  scales = pith__type_count(&bias->inputs[1]->type);
    if (pith__type_count(&q->type) != maps || (scales != 1 && scales != maps)) return false;
    for (int64_t i = 0; i < maps; i++) {
        const double want = (double)qdq_scale(x, 0) * (double)qdq_scale(w, i);
        if (!(fabs((double)qdq_scale(bias, i) - want) <= 1e-6 * want)) return false;
        if (!qdq_sum_fits(((const int32_t *)q->type.data->data)[i], i, w)) return false;
    }
    return true;
}

/* The QuantizeLinear of a result, perhaps behind a Relu or a Clip that it implies. A limit is
 * implied if it turns into the type's first or last number, or beyond: the quantisation saturates
 * there anyway. The margin of 0.499 instead of 0.5 keeps clear of ties, since the limit is scaled
 * here in double. */
static pith__node *qdq_quantize(const pith__node *conv) {
    pith__node *after = pith__match_user(conv->outputs[0]), *limit = NULL;
    if (pith__match_is(after, "Relu") || pith__match_is(after, "Clip")) {
        limit = after;
        after = pith__match_user(after->outputs[0]);
    }
    if (!pith__match_is(after, "QuantizeLinear") ||
        qdq_maker(after->outputs[0], "QuantizeLinear") != after || !qdq_is_byte(after->outputs[0]))
        return NULL;
    double scale, zero, low = 0, high = INFINITY;
    if (!qdq_numbers(after, &scale, &zero)) return NULL;
    if (!limit) return after;
    const pith__value *least = pith__match_input(limit, 1), *most = pith__match_input(limit, 2);
    if (pith__match_is(limit, "Clip")) {
        low = -INFINITY;
        if ((least && !pith__match_scalar(least, &low)) ||
            (most && !pith__match_scalar(most, &high)))
            return NULL;
    }
    const double begin = after->outputs[0]->type.dtype == PITH_I8 ? -128 : 0;
    /* What a limit turns into must be beyond the last number, or it. */
    return low / scale + zero <= begin + 0.499 && high / scale + zero >= begin + 255 - 0.499 ? after
                                                                                             : NULL;
}

/* The zero point of a node, or 0 of this type. */
static pith__value *qdq_zero(pith__opt *o, const pith__node *node, int dtype) {
    static const uint8_t nothing = 0;
    if (pith__match_input(node, 2)) return node->inputs[2];
    const pith_tensor t = { .data = (void *)(uintptr_t)&nothing, .bytes = 1, .dtype = dtype };
    return pith__graph_add_const(o->graph, PITH_STR(""), &t);
}

static pith_status qdq_copy_attributes(pith__node *made, const pith__node *conv) {
    static const char *const lists[] = { "dilations", "kernel_shape", "pads", "strides" };
    size_t count;
    pith_status status = pith__node_set_int(made, "group", pith__node_int(conv, "group", 1));
    if (!status)
        status = pith__node_set_str(made, "auto_pad", pith__node_str(conv, "auto_pad", "NOTSET"));
    for (size_t i = 0; !status && i < sizeof lists / sizeof *lists; i++) {
        const int64_t *items = pith__node_ints(conv, lists[i], &count);
        if (items) status = pith__node_set_ints(made, lists[i], items, count);
    }
    return status;
}

static pith_status qdq_conv_make(pith__opt *o, pith__node *conv, const pith__node *x,
                                 const pith__node *w, const pith__node *bias,
                                 pith__node *quantize) {
    pith__value *y = quantize->outputs[0];
    pith__value *inputs[9] = { x->inputs[0], x->inputs[1], qdq_zero(o, x, x->inputs[0]->type.dtype),
                               w->inputs[0], NULL,         NULL,
                               NULL,         NULL,         bias ? bias->inputs[0] : NULL };
    inputs[4] = w->inputs[1];
    inputs[5] = pith__match_input(w, 2);
    if (!inputs[5]) inputs[5] = qdq_zero(o, w, w->inputs[0]->type.dtype);
    inputs[6] = quantize->inputs[1];
    inputs[7] = qdq_zero(o, quantize, y->type.dtype);
    if (!inputs[2] || !inputs[5] || !inputs[7]) return pith__fail_memory(o->err, 0);
    pith__node *made =
        pith__graph_add_node(o->graph, quantize, "", "QLinearConv", inputs, bias ? 9 : 8, NULL, 1);
    if (!made || qdq_copy_attributes(made, conv)) return pith__fail_memory(o->err, sizeof *made);
    made->name = conv->name;
    made->outputs[0]->type = y->type;
    PITH_TRY(pith__op_bind_node(made, o->err));
    return pith__match_replace(y, made->outputs[0], o->err);
}

static pith_status qdq_add_make(pith__opt *o, const pith__node *a, const pith__node *b,
                                pith__node *quantize) {
    pith__value *y = quantize->outputs[0];
    pith__value *inputs[8] = { a->inputs[0], a->inputs[1], qdq_zero(o, a, a->inputs[0]->type.dtype),
                               b->inputs[0], b->inputs[1], qdq_zero(o, b, b->inputs[0]->type.dtype),
                               NULL,         NULL };
    inputs[6] = quantize->inputs[1];
    inputs[7] = qdq_zero(o, quantize, y->type.dtype);
    if (!inputs[2] || !inputs[5] || !inputs[7]) return pith__fail_memory(o->err, 0);
    pith__node *made;
    return pith__match_put(&made, y, quantize, "pith", "QuantizedAdd", inputs, 8, o->err);
}

/* The DequantizeLinear of bytes that v is, with one scale for all. */
static pith__node *qdq_term(const pith__value *v) {
    pith__node *node = qdq_maker(v, "DequantizeLinear");
    double scale, zero;
    return node && qdq_is_byte(node->inputs[0]) && pith__match_f32(v) &&
                   qdq_numbers(node, &scale, &zero)
               ? node
               : NULL;
}

/* The terms have one rank, and no axis that is known to be broadcast. */
static bool qdq_alike(const pith__type *a, const pith__type *b) {
    if (a->rank < 0 || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (pith__dim_known(a->dims[i]) && pith__dim_known(b->dims[i]) && a->dims[i] != b->dims[i])
            return false;
    return true;
}

static pith_status qdq_add(pith__opt *o, const pith__node *node, size_t *changes) {
    const pith__node *a = qdq_term(node->inputs[0]), *b = qdq_term(node->inputs[1]);
    pith__node *quantize = a && b ? qdq_quantize(node) : NULL;
    if (!quantize || !qdq_alike(&a->inputs[0]->type, &b->inputs[0]->type)) return PITH_OK;
    PITH_TRY(qdq_add_make(o, a, b, quantize));
    pith__report_add(o->report, true, "qdq", "bytes in '" PITH_STR_FMT "'",
                     PITH_STR_ARG(node->name));
    ++*changes;
    return PITH_OK;
}

static pith_status qdq_conv(pith__opt *o, pith__node *node, size_t *changes) {
    double scale, zero;
    const pith__node *x = qdq_maker(node->inputs[0], "DequantizeLinear");
    const pith__node *w = qdq_maker(node->inputs[1], "DequantizeLinear"), *bias = NULL;
    if (!x || !w || !qdq_is_byte(x->inputs[0]) || !qdq_numbers(x, &scale, &zero) ||
        !qdq_weights_fit(w))
        return PITH_OK;
    if (pith__match_input(node, 2)) {
        bias = qdq_maker(node->inputs[2], "DequantizeLinear");
        if (!bias || !qdq_bias_fits(bias, x, w)) return PITH_OK;
    }
    pith__node *quantize = qdq_quantize(node);
    if (!quantize) return PITH_OK;
    PITH_TRY(qdq_conv_make(o, node, x, w, bias, quantize));
    pith__report_add(o->report, true, "qdq", "integers in '" PITH_STR_FMT "'",
                     PITH_STR_ARG(node->name));
    ++*changes;
    return PITH_OK;
}

static pith_status qdq_run(pith__opt *o, size_t *changes) {
    const bool conv = pith__op_find(PITH_STR(""), PITH_STR("QLinearConv")),
               add = pith__op_find(PITH_STR("pith"), PITH_STR("QuantizedAdd"));
    for (pith__node *node = o->graph->first; node; node = node->next) {
        if (!pith__match_live(node) || !pith__match_f32(node->outputs[0])) continue;
        if (conv && pith__match_is(node, "Conv")) PITH_TRY(qdq_conv(o, node, changes));
        if (add && pith__match_is(node, "Add")) PITH_TRY(qdq_add(o, node, changes));
    }
    return PITH_OK;
}

const pith__pass pith__pass_qdq = { "qdq", 3, false, qdq_run };
