/* op_range.c - Range: start, start + delta, … up to limit.
 *
 * The number of elements is computed exactly for integers of 64 bits, where a double would round,
 * and symbolically for a delta of 1, which exporters use for positions. Source: ONNX Range (opset
 * 27). */
#include <math.h>

#include "engine/kernels/convert.h"
#include "engine/ops/shared/infer_shapes.h"

/* Start, limit and delta as the exact integers they are: 64 bits of contents, or a followed number.
 */
static bool range_exact_bounds(const pith__infer *c, int64_t bounds[3]) {
    for (int i = 0; i < 3; i++) {
        const pith__type *t = c->in[i];
        if (!pith__dtype_is_int(t->dtype) || t->dtype == PITH_U64 || pith__type_count(t) != 1)
            return false;
        if (t->data && t->data->data)
            pith__convert(&bounds[i], PITH_I64, 0, t->data->data, t->dtype, 0, 1, true);
        else if (!pith__infer_number(c, i, &bounds[i]) || !pith__dim_known(bounds[i]))
            return false;
    }
    return true;
}

/* How many elements there are, if that is known. */
static pith_status range_count(pith__infer *c, pith__dim *n) {
    const double most = 4503599627370496.0; /* that many have no address */
    int64_t bounds[3];
    double first, last, step, count;
    if (range_exact_bounds(c, bounds)) {
        step = (double)bounds[2];
        __int128 span = (__int128)bounds[1] - bounds[0], delta = bounds[2] ? bounds[2] : 1,
                 whole = span / delta;
        count = (double)(whole + (span % delta && (span > 0) == (delta > 0)));
    } else if (pith__infer_scalar(c, 0, &first) && pith__infer_scalar(c, 1, &last) &&
               pith__infer_scalar(c, 2, &step)) {
        count = ceil((last - first) / step);
    } else {
        return PITH_OK;
    }
    if (step == 0) return pith__op_fail(c, "delta is 0");
    if (!(count < most))
        return pith__op_fail(c, "the result has more elements than memory can hold");
    *n = count > 0 ? (pith__dim)count : 0;
    return PITH_OK;
}

/* A number of elements that is not known as such may still be a symbol: limit - start for a delta
 * of 1, which is what positions of a sequence are. */
static pith_status range_infer(pith__infer *c) {
    PITH_TRY(pith__infer_equal_dtypes(c, 0, 2));
    int dtype = c->in[0]->dtype;
    pith__dim n = PITH_DIM_UNKNOWN, start, limit, delta;
    bool numbers = pith__infer_number(c, 0, &start) && pith__infer_number(c, 1, &limit) &&
                   pith__infer_number(c, 2, &delta);
    PITH_TRY(range_count(c, &n));
    if (n == PITH_DIM_UNKNOWN && numbers && delta == 1)
        n = pith__dim_apply(c->dims, PITH_DIM_MAX,
                            pith__dim_apply(c->dims, PITH_DIM_SUB, limit, start), 0);
    pith__infer_set(c, 0, dtype, 1, &n);
    int64_t count;
    pith__dim *elems = numbers && pith__dim_known(delta) ? pith__infer_new_elems(c, &count) : NULL;
    if (!elems) return PITH_OK;
    for (int64_t i = 0; i < count; i++) {
        elems[i] = pith__dim_apply(c->dims, PITH_DIM_ADD, start,
                                   pith__dim_apply(c->dims, PITH_DIM_MUL, delta, i));
    }
    c->out[0].elems = elems;
    return PITH_OK;
}

/* Element i is start + i * delta, not a running sum, so that errors do not add up. Integers wrap as
 * the reference's do. */
static pith_status range_run(pith__run *r) {
    pith_tensor *y = r->out[0];
    int dtype = y->dtype;
    int64_t n = pith__tensor_count(y);
    if (dtype == PITH_I64 || dtype == PITH_I32 || dtype == PITH_I16) {
        int64_t start, delta;
        pith__convert(&start, PITH_I64, 0, r->in[0]->data, dtype, 0, 1, true);
        pith__convert(&delta, PITH_I64, 0, r->in[2]->data, dtype, 0, 1, true);
        for (int64_t i = 0; i < n; i++) {
            PITH_TRY(pith__run_step(r, i));
            int64_t item = (int64_t)((uint64_t)start + (uint64_t)i * (uint64_t)delta);
            pith__convert(y->data, dtype, i, &item, PITH_I64, 0, 1, true);
        }
        return PITH_OK;
    }
    double start, delta;
    pith__convert(&start, PITH_F64, 0, r->in[0]->data, dtype, 0, 1, true);
    pith__convert(&delta, PITH_F64, 0, r->in[2]->data, dtype, 0, 1, true);
    for (int64_t i = 0; i < n; i++) {
        PITH_TRY(pith__run_step(r, i));
        double item = start + (double)i * delta;
        pith__convert(y->data, dtype, i, &item, PITH_F64, 0, 1, true);
    }
    return PITH_OK;
}

static pith_status range_prepare(pith__prepare *c) {
    int dtype = c->in[0]->dtype;
    return pith__convert_known(dtype, PITH_F64) ? PITH_OK : pith__fail_dtype(c->err, dtype);
}

const pith__op pith__op_Range = { .domain = "",
                                  .name = "Range",
                                  .since = 11,
                                  .newest = 27,
                                  .min_inputs = 3,
                                  .max_inputs = 3,
                                  .max_outputs = 1,
                                  .types = "n",
                                  .attrs = "stash_type dtype = 1 @27",
                                  .shape_inputs = 1u << 0 | 1u << 1 | 1u << 2,
                                  .infer = range_infer,
                                  .prepare = range_prepare,
                                  .run = range_run };
