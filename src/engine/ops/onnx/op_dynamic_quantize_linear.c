/* op_dynamic_quantize_linear.c - DynamicQuantizeLinear: a tensor in 8 bits, with a scale and a zero
 * point from its own range, which always holds 0. Finding the range is one pass, quantising
 * another, whose parts are shared among threads. Source: ONNX DynamicQuantizeLinear (opset 11). */
#include "engine/kernels/small_floats.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/quantize_loops.h"

static pith_status dynamic_quantize_infer(pith__infer *c) {
    pith__infer_set(c, 0, PITH_U8, c->in[0]->rank, c->in[0]->dims);
    pith__infer_set(c, 1, PITH_F32, 0, NULL);
    pith__infer_set(c, 2, PITH_U8, 0, NULL);
    return PITH_OK;
}

typedef struct dynamic_job {
    const pith__quantize_loops *s;
    const float *x;
    uint8_t *y;
    int64_t n, per_part;
    float scale, zero;
} dynamic_job;

static void dynamic_quantize_part(void *context, size_t part, int worker) {
    const dynamic_job *j = context;
    (void)worker;
    int64_t first = (int64_t)part * j->per_part,
            n = j->n - first < j->per_part ? j->n - first : j->per_part;
    j->s->quantize(j->x + first, j->y + first, (size_t)n, j->scale, 0.0f - j->zero,
                   255.0f - j->zero, (int32_t)j->zero);
}

/* Scale and zero point are needed even if y is not read. The range is found by one thread: it is
 * bound by memory, and the maximum of all parts would need a second meeting. */
static pith_status dynamic_quantize_run(pith__run *r) {
    const float *x = r->in[0]->data;
    int64_t n = pith__tensor_count(r->in[0]);
    float scale, zero;
    const pith__quantize_loops *s = r->state;
    pith__dynamic_scale(&scale, &zero, x, (size_t)n, s->range);
    if (r->out_count > 1 && r->out[1]) *(float *)r->out[1]->data = scale;
    if (r->out_count > 2 && r->out[2]) *(uint8_t *)r->out[2]->data = (uint8_t)zero;
    if (!r->out[0]) return PITH_OK;
    dynamic_job j = { s, x, r->out[0]->data, n, pith__run_chunk(r, n, 1, 16384), scale, zero };
    if (n)
        pith__run_parallel(r, dynamic_quantize_part, &j,
                           (size_t)((n + j.per_part - 1) / j.per_part));
    return PITH_OK;
}

const pith__op pith__op_DynamicQuantizeLinear = { .domain = "",
                                                  .name = "DynamicQuantizeLinear",
                                                  .since = 11,
                                                  .newest = 11,
                                                  .min_inputs = 1,
                                                  .max_inputs = 1,
                                                  .max_outputs = 3,
                                                  .types = "e",
                                                  .attrs = "",
                                                  .infer = dynamic_quantize_infer,
                                                  .prepare = pith__quantize_loops_prepare,
                                                  .run = dynamic_quantize_run };
