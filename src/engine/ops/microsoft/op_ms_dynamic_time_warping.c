/* op_ms_dynamic_time_warping.c - com.microsoft's DynamicTimeWarping: the cheapest way through a
 * matrix of costs, from corner to corner. One row of costs and one step per point are kept. Source:
 * ONNX Runtime's ContribOperators.md. */
#include <math.h>

#include "base/checked.h"
#include "engine/ops/shared/infer_shapes.h"

static pith_status warping_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->rank >= 0 && x->rank != 2 &&
        !(x->rank == 3 && (!pith__dim_known(x->dims[0]) || x->dims[0] == 1)))
        return pith__op_fail(c, "input must be [M, N] or [1, M, N]");
    pith__infer_set(c, 0, PITH_I32, 2, (pith__dim[]){ 2, PITH_DIM_UNKNOWN });
    return PITH_OK;
}

/* A row of costs, then for each point the step that led to it: 0 both, 1 a row, 2 a column. */
static pith_status warping_scratch(const pith__infer *c, const void *state, int threads,
                                   size_t *bytes) {
    const pith__type *x = c->in[0];
    size_t columns = (size_t)x->dims[x->rank - 1], rows = (size_t)x->dims[x->rank - 2];
    (void)state, (void)threads;
    if (pith__mul_overflows(rows, columns, bytes) ||
        pith__add_overflows(*bytes, columns * 8 + 128, bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    return PITH_OK;
}

/* A point's cost is added to that of the corner or of the point above if that one is less than both
 * others, else to that of the left one, as in ONNX Runtime. The way is walked back twice: once for
 * its length, which is the shape of the output, then to write it. */
static pith_status warping_run(pith__run *r) {
    const pith_tensor *t = r->in[0];
    int64_t rows = t->dims[t->rank - 2], columns = t->dims[t->rank - 1], count = 0;
    if (t->rank == 3 && t->dims[0] != 1)
        return pith__op_fail(r, "input must be [M, N] or [1, M, N]");
    if (rows < 1 || columns < 1) return pith__op_fail(r, "the matrix is empty");
    const float *x = t->data;
    float *above = r->scratch; /* above[j]: cost up to (i - 1, j - 1), of the row above the first
                                  one too */
    uint8_t *steps = (uint8_t *)(above + columns + 1);
    for (int64_t j = 0; j <= columns; j++) above[j] = j ? INFINITY : 0;
    for (int64_t i = 0; i < rows; i++) {
        PITH_TRY(pith__run_look(r));
        float corner = above[0], left = INFINITY;
        above[0] = INFINITY;
        for (int64_t j = 0; j < columns; j++) {
            float up = above[j + 1], least = left;
            uint8_t *step = &steps[i * columns + j];
            *step = 2;
            if (corner < up && corner < left) {
                *step = 0;
                least = corner;
            } else if (up < corner && up < left) {
                *step = 1;
                least = up;
            }
            corner = up;
            above[j + 1] = left = x[i * columns + j] + least;
        }
    }
    for (int pass = 0; pass < 2; pass++) { /* the length, then the way from its end */
        int64_t i = rows - 1, j = columns - 1, at = 0;
        if (pass) PITH_TRY(pith__run_alloc(r, 0, PITH_I32, 2, (int64_t[]){ 2, count }));
        for (;;) {
            int32_t *y = pass ? r->out[0]->data : NULL;
            if (pass) y[count - 1 - at] = (int32_t)i, y[2 * count - 1 - at] = (int32_t)j;
            at++;
            if (i == 0 && j == 0) break;
            uint8_t step = 2;
            if (i > 0) step = j == 0 ? 1 : steps[i * columns + j];
            i -= step != 2;
            j -= step != 1;
        }
        count = at;
    }
    return PITH_OK;
}

const pith__op pith__op_DynamicTimeWarping_ms = { .domain = "com.microsoft",
                                                  .name = "DynamicTimeWarping",
                                                  .since = 1,
                                                  .newest = 1,
                                                  .min_inputs = 1,
                                                  .max_inputs = 1,
                                                  .max_outputs = 1,
                                                  .types = "e",
                                                  .flags = PITH_OP_LATE,
                                                  .attrs = "",
                                                  .infer = warping_infer,
                                                  .scratch = warping_scratch,
                                                  .run = warping_run };
