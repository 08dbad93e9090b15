/* op_select.c - NonZero and Compress, whose conditions pick elements, so that their sizes are
 * dynamic. OneHot and ReverseSequence. */
#include <string.h>

#include "engine/kernels/convert.h"
#include "engine/kernels/move.h"
#include "engine/ops/shared/infer_shapes.h"

/* ---- NonZero ---- */

static pith_status infer_nonzero(pith__infer *c) {
    pith__dim dims[2] = { c->in[0]->rank >= 0 ? c->in[0]->rank : PITH_DIM_UNKNOWN,
                          PITH_DIM_UNKNOWN };
    pith__infer_set(c, 0, PITH_I64, 2, dims);
    return PITH_OK;
}

/* Numbers but 0, strings but "". */
static bool select_is_set(const pith_tensor *x, int64_t i) {
    int part = pith__part_dtype(x->dtype), parts = pith__parts(x->dtype);
    uint8_t set[2] = { 0 };
    if (x->dtype == PITH_STRING) return ((const pith_str *)x->data)[i].size > 0;
    pith__convert(set, PITH_BOOL, 0, x->data, part, i * parts, parts, true);
    return set[0] || set[1];
}

enum { SELECTED = 256 }; /* elements that are looked at together */

/* set[i] = select_is_set of element first + i, for i < n. */
static void select_block(uint8_t *set, const pith_tensor *x, int64_t first, int64_t n) {
    if (x->dtype != PITH_STRING && pith__parts(x->dtype) == 1) {
        pith__convert(set, PITH_BOOL, 0, x->data, x->dtype, first, n, true);
        return;
    }
    for (int64_t i = 0; i < n; i++) set[i] = select_is_set(x, first + i);
}

static pith_status run_nonzero(pith__run *r) {
    const pith_tensor *x = r->in[0];
    const int last = x->rank - 1;
    const int64_t total = pith__tensor_count(x), row = x->rank ? x->dims[last] : 1;
    int64_t found = 0, at = 0, row_begin = 0, place[PITH_MAX_RANK] = { 0 };
    uint8_t set[SELECTED];
    for (int64_t i = 0, n; i < total; i += n) {
        n = total - i < SELECTED ? total - i : SELECTED;
        select_block(set, x, i, n);
        for (int64_t k = 0; k < n; k++) found += set[k];
    }
    PITH_TRY(pith__run_alloc(r, 0, PITH_I64, 2, (int64_t[]){ x->rank, found }));
    int64_t *y = r->out[0]->data;
    for (int64_t i = 0, n; i < total && x->rank; i += n) {
        n = total - i < SELECTED ? total - i : SELECTED;
        select_block(set, x, i, n);
        for (int64_t k = 0; k < n; k++) {
            if (!set[k]) continue;
            for (; i + k >= row_begin + row; row_begin += row)
                for (int d = last - 1; d >= 0 && ++place[d] == x->dims[d]; d--) place[d] = 0;
            for (int d = 0; d < last; d++) y[d * found + at] = place[d];
            y[last * found + at++] = i + k - row_begin;
        }
    }
    return PITH_OK;
}

const pith__op pith__op_NonZero = { .domain = "",
                                    .name = "NonZero",
                                    .since = 9,
                                    .newest = 13,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .max_outputs = 1,
                                    .types = "Z",
                                    .attrs = "",
                                    .flags = PITH_OP_LATE,
                                    .infer = infer_nonzero,
                                    .run = run_nonzero };

/* ---- Compress ---- */

static pith_status infer_compress(pith__infer *c) {
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

static pith_status run_compress(pith__run *r) {
    const pith_tensor *x = r->in[0], *condition = r->in[1];
    bool flat = !pith__node_attr(r->node, "axis");
    int axis = 0;
    if (!flat)
        PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", 0), x->rank, &axis, r->err));
    int64_t outer = 1, n = flat ? pith__tensor_count(x) : x->dims[axis],
            given = pith__tensor_count(condition), found = 0;
    size_t bytes = pith__element_size(x->dtype);
    int64_t shape[PITH_MAX_RANK] = { 0 };
    for (int i = 0; !flat && i < x->rank; i++) {
        shape[i] = x->dims[i];
        if (i < axis) outer *= x->dims[i];
        if (i > axis) bytes *= (size_t)x->dims[i];
    }
    const uint8_t *keep = condition->data;
    if (given > n) given = n;
    for (int64_t i = 0; i < given; i++) found += keep[i] != 0;
    shape[flat ? 0 : axis] = found;
    PITH_TRY(pith__run_alloc(r, 0, x->dtype, flat ? 1 : x->rank, shape));
    char *y = r->out[0]->data;
    for (int64_t o = 0; o < outer && bytes; o++) {
        for (int64_t i = 0; i < given; i++) {
            if (!keep[i]) continue;
            memcpy(y, (const char *)x->data + (size_t)(o * n + i) * bytes, bytes);
            y += bytes;
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
                                     .infer = infer_compress,
                                     .prepare = pith__prepare_movable,
                                     .run = run_compress };

/* ---- OneHot ---- */

static pith_status infer_onehot(pith__infer *c) {
    const pith__type *x = c->in[0];
    double depth;
    pith__dim n = PITH_DIM_UNKNOWN, dims[PITH_MAX_RANK];
    if (pith__infer_scalar(c, 1, &depth)) {
        if (!(depth >= 0 && depth < 4503599627370496.0))
            return pith__op_fail(c, "depth is %g", depth);
        n = (pith__dim)depth;
    }
    int rank = x->rank >= 0 ? x->rank + 1 : -1, axis = 0;
    if (rank > PITH_MAX_RANK)
        return pith__op_fail(c, "rank %d is more than %d", rank, PITH_MAX_RANK);
    if (rank > 0)
        PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", -1), rank, &axis, c->err));
    for (int i = 0; i < rank; i++) dims[i] = i < axis ? x->dims[i] : i == axis ? n : x->dims[i - 1];
    if (pith__type_count(c->in[2]) >= 0 && pith__type_count(c->in[2]) != 2)
        return pith__op_fail(c, "values are not two");
    pith__infer_set(c, 0, c->in[2]->dtype, rank, dims);
    return PITH_OK;
}

static pith_status prepare_onehot(pith__prepare *c) {
    int dtype = c->in[0]->dtype;
    if (!pith__convert_known(dtype, PITH_F64)) return pith__fail_dtype(c->err, dtype);
    return pith__element_size(c->in[2]->dtype) ? PITH_OK
                                               : pith__fail_dtype(c->err, c->in[2]->dtype);
}

static pith_status run_onehot(pith__run *r) {
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    int axis;
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", -1), y->rank, &axis, r->err));
    int64_t outer = 1, n = y->dims[axis], inner = 1;
    size_t size = pith__element_size(y->dtype);
    for (int i = 0; i < axis; i++) outer *= y->dims[i];
    for (int i = axis + 1; i < y->rank; i++) inner *= y->dims[i];
    pith__fill(y->data, r->in[2]->data, outer * n * inner, size);
    const char *on = (const char *)r->in[2]->data + size;
    for (int64_t i = 0; i < outer * inner && n; i++) {
        int64_t at;
        pith__convert(&at, PITH_I64, 0, x->data, x->dtype, i, 1, true);
        if (at < 0) at += n;
        if (at >= 0 && at < n)
            memcpy((char *)y->data + (size_t)((i / inner * n + at) * inner + i % inner) * size, on,
                   size);
    }
    return PITH_OK;
}

const pith__op pith__op_OneHot = { .domain = "",
                                   .name = "OneHot",
                                   .since = 9,
                                   .newest = 28,
                                   .min_inputs = 3,
                                   .max_inputs = 3,
                                   .max_outputs = 1,
                                   .types = "nnm",
                                   .attrs = "axis int = -1",
                                   .shape_inputs = 1u << 1,
                                   .infer = infer_onehot,
                                   .prepare = prepare_onehot,
                                   .run = run_onehot };

/* ---- ReverseSequence: the first lengths[b] elements of each batch along the time axis, backwards
 * ---- */

static pith_status infer_reverse(pith__infer *c) {
    int64_t batch = pith__node_int(c->node, "batch_axis", 1),
            time = pith__node_int(c->node, "time_axis", 0);
    if (batch < 0 || batch > 1 || time < 0 || time > 1 || batch == time)
        return pith__op_fail(c, "axes are not 0 and 1");
    if (c->in[0]->rank >= 0 && c->in[0]->rank < 2)
        return pith__op_fail(c, "input has rank %d", c->in[0]->rank);
    if (c->in[1]->dtype && c->in[1]->dtype != PITH_I64)
        return pith__op_fail(c, "sequence_lens is not int64");
    int64_t lengths = pith__type_count(c->in[1]);
    if (c->in[0]->rank > 1 && lengths >= 0 && pith__dim_known(c->in[0]->dims[batch]) &&
        lengths != c->in[0]->dims[batch]) {
        return pith__op_fail(c, "%lld lengths for %lld sequences", (long long)lengths,
                             (long long)c->in[0]->dims[batch]);
    }
    pith__infer_set(c, 0, c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

static pith_status run_reverse(pith__run *r) {
    const pith_tensor *x = r->in[0];
    int batch = pith__node_choice(r->node, "batch_axis", 1);
    int64_t n = x->dims[1 - batch], rows = x->dims[batch], at[2];
    size_t bytes = pith__element_size(x->dtype);
    for (int i = 2; i < x->rank; i++) bytes *= (size_t)x->dims[i];
    for (int64_t b = 0; b < rows && bytes; b++) {
        int64_t length = ((const int64_t *)r->in[1]->data)[b];
        if (length < 0 || length > n) {
            return pith__fail(r->err, PITH_ERR_RUN, "length %lld is out of range for %lld",
                              (long long)length, (long long)n);
        }
        for (int64_t t = 0; t < n; t++) {
            for (int k = 0; k < 2; k++) {
                int64_t step = k && t < length ? length - 1 - t : t;
                at[k] = batch ? step * rows + b : b * n + step;
            }
            memcpy((char *)r->out[0]->data + (size_t)at[0] * bytes,
                   (const char *)x->data + (size_t)at[1] * bytes, bytes);
        }
    }
    return PITH_OK;
}

const pith__op pith__op_ReverseSequence = { .domain = "",
                                            .name = "ReverseSequence",
                                            .since = 10,
                                            .newest = 28,
                                            .min_inputs = 2,
                                            .max_inputs = 2,
                                            .max_outputs = 1,
                                            .types = "ml",
                                            .attrs =
                                                "batch_axis int 0|1 = 1; time_axis int 0|1 = 0",
                                            .infer = infer_reverse,
                                            .prepare = pith__prepare_movable,
                                            .run = run_reverse };
