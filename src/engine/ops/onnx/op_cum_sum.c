/* op_cum_sum.c - CumSum and CumProd: running sums and products along an axis, one line after
 * another. Source: ONNX CumSum (opset 14) and CumProd (opset 26). */
#include "engine/kernels/axis_scan.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/widen_types.h"

static pith_status cumulate_find_kernel(pith__prepare *c, const char *family) {
    pith__kernel_fn **fn = pith__arena_array(c->arena, 1, sizeof *fn);
    if (!fn) return pith__fail_memory(c->err, sizeof *fn);
    c->state = fn;
    return pith__prepare_kernel(c, family, pith__compute_dtype(c->in[0]->dtype), fn);
}

static pith_status cumulate_infer(pith__infer *c) {
    pith__dim axis;
    int normal;
    if (c->in[0]->rank >= 0 && pith__infer_number(c, 1, &axis)) {
        PITH_TRY(pith__axis_normalize(axis, c->in[0]->rank, &normal, c->err));
    }
    pith__infer_set(c, 0, c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

static pith_status cumulate_prepare_cumsum(pith__prepare *c) {
    return cumulate_find_kernel(c, "scan_sum");
}
static pith_status cumulate_prepare_cumprod(pith__prepare *c) {
    return cumulate_find_kernel(c, "scan_prod");
}

/* Lines are independent, and the sum along each is sequential. exclusive shifts by one element,
 * reverse walks from the end. */
static pith_status cumulate_run(pith__run *r) {
    const pith_tensor *x = r->in[0];
    pith__scan_fn *fn = (pith__scan_fn *)*(pith__kernel_fn *const *)r->state;
    pith__numbers axes;
    int axis;
    int64_t form[3];
    PITH_TRY(pith__run_numbers(r, 1, &axes));
    if (axes.count != 1) return pith__op_fail(r, "axis is not a scalar");
    PITH_TRY(pith__axis_normalize(axes.items[0], x->rank, &axis, r->err));
    pith__axis_split(x->dims, x->rank, axis, form);
    bool exclusive = pith__node_int(r->node, "exclusive", 0) != 0,
         reverse = pith__node_int(r->node, "reverse", 0) != 0;
    size_t size = pith__element_size(x->dtype);
    int64_t spent = 0;
    for (int64_t o = 0; o < form[0]; o++) {
        for (int64_t i = 0; i < form[2]; i++) {
            PITH_TRY(pith__run_spend(r, &spent, 16 + 4 * form[1]));
            size_t at = (size_t)(o * form[1] * form[2] + i) * size;
            fn((const char *)x->data + at, (char *)r->out[0]->data + at, form[1], form[2],
               exclusive, reverse);
        }
    }
    return PITH_OK;
}

static pith_status cumulate_run_any(pith__run *r) { return pith__widen_run(r, 2, cumulate_run); }

const pith__op pith__op_CumSum = { .domain = "",
                                   .name = "CumSum",
                                   .since = 11,
                                   .newest = 14,
                                   .min_inputs = 2,
                                   .max_inputs = 2,
                                   .max_outputs = 1,
                                   .types = "ri",
                                   .attrs = "exclusive bool = 0; reverse bool = 0",
                                   .infer = cumulate_infer,
                                   .prepare = cumulate_prepare_cumsum,
                                   .scratch = pith__widen_scratch_only,
                                   .run = cumulate_run_any };
const pith__op pith__op_CumProd = { .domain = "",
                                    .name = "CumProd",
                                    .since = 26,
                                    .newest = 26,
                                    .min_inputs = 2,
                                    .max_inputs = 2,
                                    .max_outputs = 1,
                                    .types = "ri",
                                    .attrs = "exclusive bool = 0; reverse bool = 0",
                                    .infer = cumulate_infer,
                                    .prepare = cumulate_prepare_cumprod,
                                    .scratch = pith__widen_scratch_only,
                                    .run = cumulate_run_any };
