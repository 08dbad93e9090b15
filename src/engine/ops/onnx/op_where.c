/* op_where.c - Where and Clip: a choice between operands, for every type whose elements are not
 * packed. */
#include <string.h>

#include "base/dtype.h"
#include "engine/kernels/maps.h"
#include "engine/ops/shared/elementwise.h"

typedef struct wide {
    uint64_t a, b;
} wide;

/* The address is chosen, not the value: no branch to be mispredicted. */
#define CHOOSE(T)                                                                                  \
    do {                                                                                           \
        const T *a = x[1], *b = x[2];                                                              \
        T *r = y;                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T *const from[2] = { b + i * strides[2], a + i * strides[1] };                   \
            r[i] = *from[c[i * strides[0]] != 0];                                                  \
        }                                                                                          \
    } while (0)

static void where_loop(const void *context, void *y, const void *const *x, const int *strides,
                       int64_t n) {
    const uint8_t *c = x[0];
    switch (*(const size_t *)context) {
    case 1: CHOOSE(uint8_t); break;
    case 2: CHOOSE(uint16_t); break;
    case 4: CHOOSE(uint32_t); break;
    case 8: CHOOSE(uint64_t); break;
    default: CHOOSE(wide); break;
    }
}

static pith__dim elem_where(pith__dims *dims, const pith__dim *x, int count) {
    (void)dims;
    (void)count;
    return pith__dim_known(x[0])         ? x[0] ? x[1] : x[2]
                   : pith__dim_equal(x[1], x[2]) ? x[1]
                                         : PITH_DIM_UNKNOWN;
}

static pith_status infer_where(pith__infer *c) {
    PITH_TRY(pith__infer_equal_dtypes(c, 1, 2));
    if (c->in[0]->dtype != PITH_UNDEFINED && c->in[0]->dtype != PITH_BOOL) {
        return pith__op_fail(c, "condition has dtype %s, expected bool",
                             pith__dtype_name(c->in[0]->dtype));
    }
    pith__type some, out;
    pith__type_init(&some);
    pith__type_init(&out);
    PITH_TRY(pith__infer_broadcast(c, c->in[0], c->in[1], &some));
    PITH_TRY(pith__infer_broadcast(c, &some, c->in[2], &out));
    pith__infer_set(c, 0, c->in[1]->dtype ? c->in[1]->dtype : c->in[2]->dtype, out.rank, out.dims);
    return pith__infer_elems(c, elem_where);
}

static pith_status prepare_where(pith__prepare *c) {
    return pith__element_size(c->in[1]->dtype) ? PITH_OK
                                               : pith__fail_dtype(c->err, c->in[1]->dtype);
}

static pith_status run_where(pith__run *r) {
    size_t size = pith__element_size(r->in[1]->dtype);
    int dtype = r->in[1]->dtype;
    pith__elementwise e = { .count = 3,
                            .in = { r->in[0], r->in[1], r->in[2] },
                            .out = r->out[0],
                            .compute = { PITH_BOOL, dtype, dtype },
                            .result = dtype,
                            .loop = where_loop,
                            .context = &size };
    pith__elementwise_run(r, &e);
    return PITH_OK;
}

const pith__op pith__op_Where = { .domain = "",
                                  .name = "Where",
                                  .since = 9,
                                  .newest = 16,
                                  .min_inputs = 3,
                                  .max_inputs = 3,
                                  .max_outputs = 1,
                                  .types = "bm",
                                  .attrs = "",
                                  .flags = PITH_OP_ELEMENTWISE,
                                  .infer = infer_where,
                                  .prepare = prepare_where,
                                  .run = run_where };

/* ---- Clip: max first, then min, so that an empty interval gives the upper bound ---- */

typedef struct clip_state {
    pith__map_state low, high;
    pith__map_fn *both; /* in one pass; NULL: there is none for the type */
} clip_state;

static pith_status upgrade_clip(pith__node *node, pith_error *err) {
    if (node->opset >= 11) return PITH_OK;
    if (pith__upgrade_float(node, "min", 1) || pith__upgrade_float(node, "max", 2))
        return pith__fail_memory(err, 0);
    return PITH_OK;
}

static pith_status infer_clip(pith__infer *c) {
    for (int i = 1; i < c->in_count && i < 3; i++) {
        if (c->in[i] && c->in[i]->rank >= 0 && pith__type_count(c->in[i]) > 1) {
            return pith__op_fail(c, "input %d is not a scalar", i);
        }
    }
    pith__infer_set(c, 0, c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

static pith_status prepare_clip(pith__prepare *c) {
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

static bool clip_elementwise(const pith__run *r, pith__elementwise *e) {
    const clip_state *s = r->state;
    bool low = pith__has_input(r, 1) && pith__tensor_count(r->in[1]) == 1;
    bool high = pith__has_input(r, 2) && pith__tensor_count(r->in[2]) == 1;
    *e = (pith__elementwise){ .count = 1 + low + high,
                              .in = { r->in[0], r->in[low ? 1 : 2], r->in[2] },
                              .out = r->out[0],
                              .compute = { s->low.compute, s->low.compute, s->low.compute },
                              .result = s->low.compute,
                              .loop = low && high ? clip_both
                                      : low       ? clip_low
                                      : high      ? clip_high
                                                  : clip_none,
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
    .upgrade = upgrade_clip,
    .infer = infer_clip,
    .prepare = prepare_clip,
    .run = pith__elementwise_op_run,
    .elementwise = clip_elementwise
};
