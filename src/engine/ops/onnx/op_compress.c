/* op_compress.c - Compress: the slices along an axis (or elements of the flat tensor) whose
 * condition is true. Their number is known in the run only. Source: ONNX Compress (opset 28). */
#include <string.h>

#include "engine/ops/shared/infer_shapes.h"

static pith_status compress_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__dim dims[PITH_MAX_RANK] = { PITH_DIM_UNKNOWN };
    int axis = 0;
    if (c->in[1]->dtype && c->in[1]->dtype != PITH_BOOL)
        return pith__op_fail(c, "condition has dtype %s", pith__dtype_name(c->in[1]->dtype));
    if (!pith__node_attr(c->node, "axis")) {
        pith__infer_set(c, 0, x->dtype, 1, dims);
        return PITH_OK;
    }
    if (x->rank >= 0)
        PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", 0), x->rank, &axis, c->err));
    for (int i = 0; i < x->rank; i++) dims[i] = i == axis ? PITH_DIM_UNKNOWN : x->dims[i];
    pith__infer_set(c, 0, x->dtype, x->rank, dims);
    return PITH_OK;
}

/* A condition that is shorter than the axis selects nothing behind its end; a longer one is cut.
 * Kept slices are counted first, for the output's shape. */
static pith_status compress_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *condition = r->in[1];
    bool flat = !pith__node_attr(r->node, "axis");
    int axis = 0;
    if (!flat)
        PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", 0), x->rank, &axis, r->err));
    int64_t outer = 1, n = flat ? pith__tensor_count(x) : x->dims[axis],
            given = pith__tensor_count(condition), found = 0;
    size_t bytes = pith__element_size(x->dtype);
    int64_t shape[PITH_MAX_RANK] = { 0 };
    if (!flat) {
        for (int i = 0; i < x->rank; i++) {
            shape[i] = x->dims[i];
            if (i < axis) outer *= x->dims[i];
            if (i > axis) bytes *= (size_t)x->dims[i];
        }
    }
    const uint8_t *keep = condition->data;
    if (given > n) given = n;
    for (int64_t i = 0; i < given; i++) {
        PITH_TRY(pith__run_step(r, i));
        found += keep[i] != 0;
    }
    shape[flat ? 0 : axis] = found;
    PITH_TRY(pith__run_alloc(r, 0, x->dtype, flat ? 1 : x->rank, shape));
    char *y = r->out[0]->data;
    if (bytes) {
        int64_t spent = 0;
        for (int64_t o = 0; o < outer; o++) {
            for (int64_t i = 0; i < given; i++) {
                PITH_TRY(pith__run_spend(r, &spent, keep[i] ? 8 + (int64_t)(bytes / 8) : 2));
                if (!keep[i]) continue;
                memcpy(y, (const char *)x->data + (size_t)(o * n + i) * bytes, bytes);
                y += bytes;
            }
        }
    }
    return PITH_OK;
}

const pith__op pith__op_Compress = { .domain = "",
                                     .name = "Compress",
                                     .since = 9,
                                     .newest = 28,
                                     .min_inputs = 2,
                                     .max_inputs = 2,
                                     .max_outputs = 1,
                                     .types = "mb",
                                     .attrs = "axis int",
                                     .flags = PITH_OP_LATE,
                                     .infer = compress_infer,
                                     .prepare = pith__prepare_movable,
                                     .run = compress_run };
