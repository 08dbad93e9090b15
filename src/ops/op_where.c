/* op_where.c - Where and Clip: a choice between operands, for every type whose elements are not packed. */
#include <string.h>

#include "ops/elementwise.h"

typedef struct wide {
    uint64_t a, b;
} wide;

/* The address is chosen, not the value: no branch to be mispredicted. */
#define CHOOSE(T)                                                                                                      \
    do {                                                                                                               \
        const T *a = x[1], *b = x[2];                                                                                  \
        T *r = y;                                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const T *const from[2] = { b + i * strides[2], a + i * strides[1] };                                       \
            r[i] = *from[c[i * strides[0]] != 0];                                                                      \
        }                                                                                                              \
    } while (0)

static void where_loop(const void *context, void *y, const void *const *x, const int *strides, int64_t n) {
    const uint8_t *c = x[0];
    switch (*(const size_t *)context) {
    case 1: CHOOSE(uint8_t); break;
    case 2: CHOOSE(uint16_t); break;
    case 4: CHOOSE(uint32_t); break;
    case 8: CHOOSE(uint64_t); break;
    default: CHOOSE(wide); break;
    }
}

static pith_dim elem_where(pith_dims *dims, const pith_dim *x, int count) {
    (void)dims;
    (void)count;
    return pith_dim_known(x[0]) ? x[0] ? x[1] : x[2] : pith_dim_equal(x[1], x[2]) ? x[1] : PITH_DIM_UNKNOWN;
}

static pith_status infer_where(pith_infer *c) {
    PITH_TRY(pith_infer_equal_dtypes(c, 1, 2));
    if (c->in[0]->dtype != PITH_UNDEFINED && c->in[0]->dtype != PITH_BOOL) {
        return pith_op_fail(c, "condition has dtype %s, expected bool", pith_dtype_name(c->in[0]->dtype));
    }
    pith_type some, out;
    pith_type_init(&some);
    pith_type_init(&out);
    PITH_TRY(pith_infer_broadcast(c, c->in[0], c->in[1], &some));
    PITH_TRY(pith_infer_broadcast(c, &some, c->in[2], &out));
    pith_infer_set(c, 0, c->in[1]->dtype ? c->in[1]->dtype : c->in[2]->dtype, out.rank, out.dims);
    return pith_infer_elems(c, elem_where);
}

static pith_status prepare_where(pith_prepare *c) {
    return pith_element_size(c->in[1]->dtype) ? PITH_OK : pith_fail_dtype(c->err, c->in[1]->dtype);
}

static pith_status run_where(pith_run *r) {
    size_t size = pith_element_size(r->in[1]->dtype);
    int dtype = r->in[1]->dtype;
    pith_elementwise e = { .count = 3,
                           .in = { r->in[0], r->in[1], r->in[2] },
                           .out = r->out[0],
                           .compute = { PITH_BOOL, dtype, dtype },
                           .result = dtype,
                           .loop = where_loop,
                           .context = &size };
    pith_elementwise_run(r, &e);
    return PITH_OK;
}

const pith_op pith_op_Where = { .domain = "",
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
    pith_map_state low, high;
} clip_state;

static pith_status upgrade_clip(pith_node *node, pith_error *err) {
    if (node->opset >= 11) return PITH_OK;
    if (pith_upgrade_float(node, "min", 1) || pith_upgrade_float(node, "max", 2)) return pith_fail_memory(err, 0);
    return PITH_OK;
}

static pith_status infer_clip(pith_infer *c) {
    for (int i = 1; i < c->in_count && i < 3; i++) {
        if (c->in[i] && c->in[i]->rank >= 0 && pith_type_count(c->in[i]) > 1) {
            return pith_op_fail(c, "input %d is not a scalar", i);
        }
    }
    pith_infer_set(c, 0, c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

static pith_status prepare_clip(pith_prepare *c) {
    clip_state *s = pith_arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith_fail_memory(c->err, sizeof *s);
    PITH_TRY(pith_map_find(&s->low, "max", c->in[0]->dtype, c));
    PITH_TRY(pith_map_find(&s->high, "min", c->in[0]->dtype, c));
    s->low.result = s->low.compute;
    s->high.result = s->high.compute;
    c->state = s;
    return PITH_OK;
}

static pith_status run_clip(pith_run *r) {
    const clip_state *s = r->state;
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    for (int i = 1; i < 3; i++) {
        if (!pith_has_input(r, i) || pith_tensor_count(r->in[i]) != 1) continue;
        pith_tensor bound = *r->in[i];
        bound.rank = 0;
        pith_map2_apply(r, i == 1 ? &s->low : &s->high, y, x, &bound);
        x = y;
    }
    if (x != y && x->data != y->data && x->bytes) memcpy(y->data, x->data, x->bytes);
    return PITH_OK;
}

const pith_op pith_op_Clip = { .domain = "",
                               .name = "Clip",
                               .since = 11,
                               .newest = 13,
                               .min_inputs = 1,
                               .max_inputs = 3,
                               .max_outputs = 1,
                               .types = "n",
                               .attrs = "consumed_inputs ints @-5; max float @-5; max float = 3.4028235e+38 @6-10; "
                                        "min float @-5; min float = -3.4028235e+38 @6-10",
                               .flags = PITH_OP_ELEMENTWISE | PITH_OP_IN_PLACE,
                               .upgrade = upgrade_clip,
                               .infer = infer_clip,
                               .prepare = prepare_clip,
                               .run = run_clip };
