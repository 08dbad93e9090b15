/* op_eye_like.c - EyeLike: ones on the k-th diagonal of a matrix as large as the input, zeros
 * elsewhere. Source: ONNX EyeLike (opset 22). */
#include <string.h>

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/infer_shapes.h"

static pith_status eye_like_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->rank >= 0 && x->rank != 2)
        return pith__op_fail(c, "input has rank %d, expected 2", x->rank);
    int dtype = pith__node_choice(c->node, "dtype", x->dtype);
    if (dtype != PITH_UNDEFINED && !pith__convert_known(PITH_F64, dtype))
        return pith__fail_dtype(c->err, dtype);
    pith__infer_set(c, 0, dtype, x->rank, x->dims);
    return PITH_OK;
}

/* A diagonal that lies outside of the matrix sets nothing; i + k is computed with care, as k may be
 * any number. */
static pith_status eye_like_run(pith__run *r) {
    pith_tensor *y = r->out[0];
    double one = 1;
    int64_t k = pith__node_int(r->node, "k", 0);
    PITH_TRY(pith__run_bytes(r, y->data, NULL, y->bytes));
    for (int64_t i = 0; i < y->dims[0]; i++) {
        PITH_TRY(pith__run_step(r, i));
        int64_t j;
        if (pith__add_overflows(i, k, &j) || j < 0 || j >= y->dims[1]) continue;
        pith__convert(y->data, y->dtype, i * y->dims[1] + j, &one, PITH_F64, 0, 1, true);
    }
    return PITH_OK;
}

const pith__op pith__op_EyeLike = { .domain = "",
                                    .name = "EyeLike",
                                    .since = 9,
                                    .newest = 22,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .max_outputs = 1,
                                    .attrs = "dtype dtype; k int = 0",
                                    .flags = PITH_OP_SHAPE_ONLY,
                                    .infer = eye_like_infer,
                                    .run = eye_like_run };
