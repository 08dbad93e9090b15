/* op_gather.c - Gather, GatherElements, GatherND: elements picked by indices.
 *
 * Indices are checked before anything is copied, so the copy itself cannot fail and may run in
 * parallel. */
#include <string.h>

#include "engine/kernels/move.h"
#include "engine/ops/shared/infer_shapes.h"

static int64_t gather_index_at(const pith_tensor *t, int64_t i) {
    return t->dtype == PITH_I64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
}

static pith_status gather_check_index_dtype(pith__infer *c, int input) {
    int dtype = c->in[input]->dtype;
    if (dtype == PITH_UNDEFINED || dtype == PITH_I64 || dtype == PITH_I32) return PITH_OK;
    return pith__op_fail(c, "indices have dtype %s, expected int64 or int32",
                         pith__dtype_name(dtype));
}

static pith_status gather_fail_index(pith__run *r, int64_t index, int64_t size) {
    return pith__fail(r->err, PITH_ERR_RUN, "index %lld is out of range for size %lld",
                      (long long)index, (long long)size);
}

/* ---- Gather ---- */

/* The axis is replaced by the shape of the indices. Elements of a known vector at known indices
 * stay known: exporters take single sizes of a shape this way. */
static pith_status gather_infer(pith__infer *c) {
    const pith__type *x = c->in[0], *indices = c->in[1];
    PITH_TRY(gather_check_index_dtype(c, 1));
    if (x->rank < 0 || indices->rank < 0) {
        pith__infer_set(c, 0, x->dtype, -1, NULL);
        return PITH_OK;
    }
    int axis, rank = x->rank + indices->rank - 1;
    PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", 0), x->rank, &axis, c->err));
    if (rank > PITH_MAX_RANK)
        return pith__op_fail(c, "rank %d is more than %d", rank, PITH_MAX_RANK);
    pith__dim dims[PITH_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        if (i < axis)
            dims[i] = x->dims[i];
        else if (i < axis + indices->rank)
            dims[i] = indices->dims[i - axis];
        else
            dims[i] = x->dims[i - indices->rank + 1];
    }
    pith__infer_set(c, 0, x->dtype, rank, dims);
    int64_t count;
    pith__dim *elems =
        x->rank == 1 && (x->data || x->elems) ? pith__infer_new_elems(c, &count) : NULL;
    if (!elems) return PITH_OK;
    int64_t n = pith__type_count(x);
    for (int64_t i = 0; i < count; i++) {
        pith__dim at;
        if (!pith__type_elem(indices, i, &at) || !pith__dim_known(at)) return PITH_OK;
        if (!pith__type_elem(x, at < 0 ? at + n : at, &elems[i])) return PITH_OK;
    }
    c->out[0].elems = elems;
    return PITH_OK;
}

typedef struct gather_job {
    const pith__run *r;
    const pith_tensor *indices;
    const char *x;
    char *y;
    int64_t n, count, per_part, total;
    size_t bytes;
} gather_job;

/* Bytes of a slice that is copied in pieces. */
enum { LONG = 4 << 20 };

static void gather_part(void *context, size_t part, int worker) {
    const gather_job *j = context;
    (void)worker;
    int64_t first = (int64_t)part * j->per_part,
            last = first + j->per_part < j->total ? first + j->per_part : j->total;
    for (int64_t i = first; i < last; i++) {
        int64_t at = gather_index_at(j->indices, i % j->count);
        if (at < 0) at += j->n;
        const char *from = j->x + (size_t)(i / j->count * j->n + at) * j->bytes;
        if (j->bytes > LONG)
            (void)pith__run_bytes(j->r, j->y + (size_t)i * j->bytes, from, j->bytes);
        else
            memcpy(j->y + (size_t)i * j->bytes, from, j->bytes);
    }
}

/* All indices are checked before the first copy. A slice is everything behind the axis and is
 * copied as one piece. */
static pith_status gather_run(pith__run *r) {
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    int axis;
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", 0), x->rank, &axis, r->err));
    gather_job j = { .r = r,
                     .indices = r->in[1],
                     .x = x->data,
                     .y = y->data,
                     .n = x->dims[axis],
                     .count = pith__tensor_count(r->in[1]),
                     .bytes = pith__element_size(x->dtype) };
    if (!pith__tensor_count(y)) return PITH_OK;
    for (int64_t i = 0; i < j.count; i++) {
        PITH_TRY(pith__run_step(r, i));
        int64_t at = gather_index_at(j.indices, i);
        if (at < -j.n || at >= j.n) return gather_fail_index(r, at, j.n);
    }
    for (int i = axis + 1; i < x->rank; i++) j.bytes *= (size_t)x->dims[i];
    j.total = j.count;
    for (int i = 0; i < axis; i++) j.total *= x->dims[i];
    j.per_part = pith__run_chunk(r, j.total, (int64_t)(j.bytes / 8 + 4), 8192);
    pith__run_parallel(r, gather_part, &j, (size_t)((j.total + j.per_part - 1) / j.per_part));
    return PITH_OK;
}

/* Of the table only what is picked is read. */
static void gather_cost(const pith__run *r, pith__cost *cost) {
    cost->operations = 0;
    cost->bytes = 2.0 * (double)r->out[0]->bytes + (double)r->in[1]->bytes;
}

const pith__op pith__op_Gather = { .domain = "",
                                   .name = "Gather",
                                   .since = 1,
                                   .newest = 13,
                                   .min_inputs = 2,
                                   .max_inputs = 2,
                                   .max_outputs = 1,
                                   .types = "mi",
                                   .attrs = "axis int = 0",
                                   .unaligned = 1u << 0,
                                   .infer = gather_infer,
                                   .prepare = pith__prepare_movable,
                                   .run = gather_run,
                                   .cost = gather_cost };

/* ---- GatherElements ---- */

/* The output has the shape of the indices. Along other axes these must not be longer than the data.
 */
static pith_status gather_infer_elements(pith__infer *c) {
    PITH_TRY(gather_check_index_dtype(c, 1));
    if (c->in[0]->rank >= 0 && c->in[1]->rank >= 0) {
        int axis;
        if (c->in[0]->rank != c->in[1]->rank) {
            return pith__op_fail(c, "indices have rank %d, data %d", c->in[1]->rank,
                                 c->in[0]->rank);
        }
        PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", 0), c->in[0]->rank, &axis,
                                      c->err));
        for (int i = 0; i < c->in[0]->rank; i++) {
            pith__dim own = c->in[1]->dims[i], of = c->in[0]->dims[i];
            if (i != axis && pith__dim_known(own) && pith__dim_known(of) && own > of) {
                return pith__op_fail(c, "indices have size %lld at axis %d, data %lld",
                                     (long long)own, i, (long long)of);
            }
        }
    }
    pith__infer_set(c, 0, c->in[0]->dtype, c->in[1]->rank, c->in[1]->dims);
    return PITH_OK;
}

/* Walks the output with an odometer of places; along the axis the index takes the place's part. */
static pith_status gather_run_elements(pith__run *r) {
    const pith_tensor *x = r->in[0], *indices = r->in[1];
    pith_tensor *y = r->out[0];
    int64_t strides[PITH_MAX_RANK], place[PITH_MAX_RANK] = { 0 }, total = pith__tensor_count(y);
    size_t size = pith__element_size(x->dtype);
    int axis;
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", 0), x->rank, &axis, r->err));
    pith__strides(strides, x->dims, x->rank);
    for (int64_t i = 0; i < total; i++) {
        PITH_TRY(pith__run_step(r, i));
        int64_t at = gather_index_at(indices, i), from = 0;
        if (at < -x->dims[axis] || at >= x->dims[axis])
            return gather_fail_index(r, at, x->dims[axis]);
        if (at < 0) at += x->dims[axis];
        for (int k = 0; k < x->rank; k++) from += (k == axis ? at : place[k]) * strides[k];
        memcpy((char *)y->data + (size_t)i * size, (const char *)x->data + (size_t)from * size,
               size);
        for (int k = x->rank - 1; k >= 0 && ++place[k] == y->dims[k]; k--) place[k] = 0;
    }
    return PITH_OK;
}

const pith__op pith__op_GatherElements = { .domain = "",
                                           .name = "GatherElements",
                                           .since = 11,
                                           .newest = 13,
                                           .min_inputs = 2,
                                           .max_inputs = 2,
                                           .max_outputs = 1,
                                           .types = "mi",
                                           .attrs = "axis int = 0",
                                           .infer = gather_infer_elements,
                                           .prepare = pith__prepare_movable,
                                           .run = gather_run_elements,
                                           .cost = gather_cost };

/* ---- GatherND ---- */

/* An index is the last axis of the indices and names the first axes of the data after the batch;
 * what it does not name is copied as a whole. */
static pith_status gather_infer_nd(pith__infer *c) {
    const pith__type *x = c->in[0], *indices = c->in[1];
    PITH_TRY(gather_check_index_dtype(c, 1));
    int64_t batch = pith__node_int(c->node, "batch_dims", 0);
    pith__dim last = indices->rank > 0 ? indices->dims[indices->rank - 1] : PITH_DIM_UNKNOWN;
    if (indices->rank == 0 || x->rank == 0)
        return pith__op_fail(c, "inputs must have rank 1 or more");
    if (x->rank < 0 || indices->rank < 0 || !pith__dim_known(last)) {
        pith__infer_set(c, 0, x->dtype, -1, NULL);
        return PITH_OK;
    }
    if (batch < 0 || batch >= x->rank || batch >= indices->rank || last < 1 ||
        last > x->rank - batch) {
        return pith__op_fail(c, "batch_dims %lld and index length %lld do not fit ranks %d and %d",
                             (long long)batch, (long long)last, x->rank, indices->rank);
    }
    for (int i = 0; i < batch; i++) {
        if (pith__dim_known(x->dims[i]) && pith__dim_known(indices->dims[i]) &&
            x->dims[i] != indices->dims[i]) {
            return pith__op_fail(c, "batch axis %d has different sizes", i);
        }
    }
    pith__dim dims[2 * PITH_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < indices->rank - 1; i++) dims[rank++] = indices->dims[i];
    for (int i = (int)(batch + last); i < x->rank; i++) dims[rank++] = x->dims[i];
    if (rank > PITH_MAX_RANK)
        return pith__op_fail(c, "rank %d is more than %d", rank, PITH_MAX_RANK);
    pith__infer_set(c, 0, x->dtype, rank, dims);
    return PITH_OK;
}

/* Rows of indices are numbered through all batches; each row finds the offset of one slice. */
static pith_status gather_run_nd(pith__run *r) {
    const pith_tensor *x = r->in[0], *indices = r->in[1];
    pith_tensor *y = r->out[0];
    int64_t batch = pith__node_int(r->node, "batch_dims", 0), strides[PITH_MAX_RANK], batches = 1,
            rows = 1;
    if (!pith__tensor_count(y)) return PITH_OK;
    int64_t length = indices->dims[indices->rank - 1];
    size_t bytes = pith__element_size(x->dtype);
    pith__strides(strides, x->dims, x->rank);
    for (int i = (int)(batch + length); i < x->rank; i++) bytes *= (size_t)x->dims[i];
    for (int i = 0; i < batch; i++) batches *= x->dims[i];
    for (int i = (int)batch; i < indices->rank - 1; i++) rows *= indices->dims[i];
    int64_t batch_stride = batch > 0 ? strides[batch - 1] : 0;
    size_t element = pith__element_size(x->dtype);
    int64_t spent = 0;
    for (int64_t i = 0; i < batches * rows; i++) {
        PITH_TRY(pith__run_spend(r, &spent, 32 + (int64_t)(bytes / 8)));
        int64_t from = i / rows * batch_stride;
        for (int64_t k = 0; k < length; k++) {
            int64_t at = gather_index_at(indices, i * length + k), n = x->dims[batch + k];
            if (at < -n || at >= n) return gather_fail_index(r, at, n);
            from += (at < 0 ? at + n : at) * strides[batch + k];
        }
        memcpy((char *)y->data + (size_t)i * bytes, (const char *)x->data + (size_t)from * element,
               bytes);
    }
    return PITH_OK;
}

const pith__op pith__op_GatherND = { .domain = "",
                                     .name = "GatherND",
                                     .since = 11,
                                     .newest = 13,
                                     .min_inputs = 2,
                                     .max_inputs = 2,
                                     .max_outputs = 1,
                                     .types = "ml",
                                     .attrs = "batch_dims int 0.. = 0 @12",
                                     .infer = gather_infer_nd,
                                     .prepare = pith__prepare_movable,
                                     .run = gather_run_nd,
                                     .cost = gather_cost };
