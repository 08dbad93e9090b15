/* op_clip.c - Clip: max with the lower bound first, then min with the upper one, so that an empty
 * interval gives the upper bound.
 *
 * Either bound may be absent. f32 with both has one kernel; other types run the loops of Max and
 * Min. Source: ONNX Clip (opset 13). */
#include <string.h>

#include "engine/kernels/maps.h"
#include "engine/ops/shared/elementwise.h"

typedef struct clip_state {
    pith__map_state low, high;
    pith__map_fn *both; /* in one pass; NULL: there is none for the type */
} clip_state;

static pith_status clip_upgrade(pith__node *node, pith_error *err) {
    if (node->opset >= 11) return PITH_OK;
    if (pith__upgrade_float(node, "min", 1) || pith__upgrade_float(node, "max", 2))
        return pith__fail_memory(err, 0);
    return PITH_OK;
}

static pith_status clip_infer(pith__infer *c) {
    for (int i = 1; i < c->in_count && i < 3; i++) {
        if (c->in[i] && c->in[i]->rank >= 0 && pith__type_count(c->in[i]) > 1) {
            return pith__op_fail(c, "input %d is not a scalar", i);
        }
    }
    pith__infer_set(c, 0, c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

/* Both loops are found even if a bound is absent now, since inputs may come and go between runs. */
static pith_status clip_prepare(pith__prepare *c) {
    clip_state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    PITH_TRY(pith__map_find(&s->low, "max", c->in[0]->dtype, c));
    PITH_TRY(pith__map_find(&s->high, "min", c->in[0]->dtype, c));
    if (s->low.compute == PITH_F32)
        s->both = PITH_PREPARE_KERNEL(pith__map_fn, "map_clip", PITH_F32, c);
    s->low.result = s->low.compute;
    s->high.result = s->high.compute;
    c->state = s;
    return PITH_OK;
}

static void clip_none(const void *context, void *y, const void *const *x, const int *strides,
                      int64_t n) {
    const clip_state *s = context;
    (void)strides;
    if (y != x[0]) memcpy(y, x[0], (size_t)n * pith__element_size(s->low.compute));
}

static void clip_low(const void *context, void *y, const void *const *x, const int *strides,
                     int64_t n) {
    const clip_state *s = context;
    ((pith__map2_fn *)s->low.fn)(y, x[0], x[1], n, strides[0], strides[1]);
}

static void clip_high(const void *context, void *y, const void *const *x, const int *strides,
                      int64_t n) {
    const clip_state *s = context;
    ((pith__map2_fn *)s->high.fn)(y, x[0], x[1], n, strides[0], strides[1]);
}

static void clip_both(const void *context, void *y, const void *const *x, const int *strides,
                      int64_t n) {
    const clip_state *s = context;
    if (s->both && strides[0]) {
        s->both(y, x[0], n,
                (double[]){ (double)*(const float *)x[1], (double)*(const float *)x[2] });
        return;
    }
    ((pith__map2_fn *)s->low.fn)(y, x[0], x[1], n, strides[0], strides[1]);
    ((pith__map2_fn *)s->high.fn)(y, y, x[2], n, 1, strides[2]);
}

/* A bound counts if it is one number: an empty tensor means no bound, as an absent input does. The
 * operands are packed so that the only bound present is operand 1. */
static bool clip_elementwise(const pith__run *r, pith__elementwise *e) {
    const clip_state *s = r->state;
    bool low = pith__has_input(r, 1) && pith__tensor_count(r->in[1]) == 1;
    bool high = pith__has_input(r, 2) && pith__tensor_count(r->in[2]) == 1;
    void (*loop)(const void *, void *, const void *const *, const int *, int64_t) = clip_none;
    if (low) loop = high ? clip_both : clip_low;
    if (!low && high) loop = clip_high;
    *e = (pith__elementwise){ .count = 1 + low + high,
                              .in = { r->in[0], r->in[low ? 1 : 2], r->in[2] },
                              .out = r->out[0],
                              .compute = { s->low.compute, s->low.compute, s->low.compute },
                              .result = s->low.compute,
                              .loop = loop,
                              .context = s };
    return true;
}

const pith__op pith__op_Clip = {
    .domain = "",
    .name = "Clip",
    .since = 11,
    .newest = 13,
    .min_inputs = 1,
    .max_inputs = 3,
    .max_outputs = 1,
    .types = "n",
    .attrs = "consumed_inputs ints @-5; max float @-5; max float = 3.4028235e+38 @6-10; "
             "min float @-5; min float = -3.4028235e+38 @6-10",
    .flags = PITH_OP_ELEMENTWISE | PITH_OP_IN_PLACE | PITH_OP_TAILS,
    .upgrade = clip_upgrade,
    .infer = clip_infer,
    .prepare = clip_prepare,
    .run = pith__elementwise_op_run,
    .elementwise = clip_elementwise
};
