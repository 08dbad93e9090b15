/* op_soft_threshold.c - example.SoftThreshold: y = x - limit above the limit, x + limit below
 * -limit, and 0 between. */
#include <pith/op.h>
#include <pith/tensor.h>

enum { PART = 4096 }; /* elements that a thread takes at a time */

static pith_status soft_threshold_infer(pith_op_infer *c) {
    c->out[0] = *c->in[0];
    return PITH_OK;
}

static pith_status soft_threshold_prepare(pith_op_prepare *c) {
    float *limit = pith_op_state(c, sizeof *limit);
    if (!limit) return PITH_ERR_MEMORY;
    *limit = pith_op_float(c->node, "limit");
    c->state = limit;
    return PITH_OK;
}

static void soft_threshold_part(void *context, size_t part, int worker) {
    const pith_op_run *r = context;
    const float *x = r->in[0]->data, limit = *(const float *)r->state;
    float *y = r->out[0]->data;
    const size_t count = (size_t)pith_shape_count(r->in[0]->dims, r->in[0]->rank),
                 begin = part * PART;
    (void)worker;
    const size_t end = count - begin < PART ? count : begin + PART;
    for (size_t i = begin; i < end; i++) {
        const float value = x[i]; /* y may be x */
        y[i] = 0;
        if (value > limit) y[i] = value - limit;
        if (value < -limit) y[i] = value + limit;
    }
}

static pith_status soft_threshold_run(pith_op_run *r) {
    const size_t count = (size_t)pith_shape_count(r->in[0]->dims, r->in[0]->rank);
    pith_op_parallel(r, soft_threshold_part, r, (count + PART - 1) / PART);
    return PITH_OK;
}

const pith_operator pith_operator_SoftThreshold = {
    PITH_OPERATOR_BEGIN,
    .domain = "example",
    .name = "SoftThreshold",
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .flags = PITH_OPERATOR_ELEMENTWISE | PITH_OPERATOR_IN_PLACE,
    .types = "f32",
    .attributes = "limit float = 0.5",
    .infer = soft_threshold_infer,
    .prepare = soft_threshold_prepare,
    .run = soft_threshold_run,
};
