/* op_where.c - Where: elements of one of two operands, by a condition, for every type whose
 * elements are not packed. Elements are moved as integers of their size. Source: ONNX Where (opset
 * 16). */
#include "base/dtype.h"
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

static pith__dim where_elem(pith__dims *dims, const pith__dim *x, int count) {
    (void)dims;
    (void)count;
    if (pith__dim_known(x[0])) return x[0] ? x[1] : x[2];
    return pith__dim_equal(x[1], x[2]) ? x[1] : PITH_DIM_UNKNOWN;
}

/* Three shapes broadcast together. A known condition chooses between contents; else those that are
 * equal on both sides stay known. */
static pith_status where_infer(pith__infer *c) {
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
    return pith__infer_elems(c, where_elem);
}

static pith_status where_prepare(pith__prepare *c) {
    return pith__element_size(c->in[1]->dtype) ? PITH_OK
                                               : pith__fail_dtype(c->err, c->in[1]->dtype);
}

/* The loop needs the size of an element only, so one serves all dtypes of that size. */
static pith_status where_run(pith__run *r) {
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
                                  .infer = where_infer,
                                  .prepare = where_prepare,
                                  .run = where_run };
