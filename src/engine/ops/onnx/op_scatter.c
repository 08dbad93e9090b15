/* op_scatter.c - ScatterElements (and Scatter), ScatterND, TensorScatter: a copy of a tensor in
 * which some elements are replaced by others, or added to, multiplied with, or bounded by them.
 * Updates go in ascending order, so the last of equal indices wins. */
#include <string.h>

#include "engine/kernels/maps.h"
#include "engine/kernels/move.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/widen_types.h"

typedef struct state {
    pith__map_state reduce; /* fn NULL: plain replacement */
} state;

static int64_t scatter_index_at(const pith_tensor *t, int64_t i) {
    return t->dtype == PITH_I64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
}

/* Data and updates agree in dtype; the output is like the data. */
static pith_status scatter_infer_same_shape(pith__infer *c) {
    PITH_TRY(pith__infer_equal_dtypes(c, 2, 2));
    const pith__type *indices = c->in[1];
    if (indices->dtype && indices->dtype != PITH_I64 && indices->dtype != PITH_I32) {
        return pith__op_fail(c, "indices have dtype %s, expected int64 or int32",
                             pith__dtype_name(indices->dtype));
    }
    if (c->in[0]->dtype && c->in[2]->dtype && c->in[0]->dtype != c->in[2]->dtype) {
        return pith__op_fail(c, "data have dtype %s, updates %s", pith__dtype_name(c->in[0]->dtype),
                             pith__dtype_name(c->in[2]->dtype));
    }
    pith__infer_set(c, 0, c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

/* A reduction is the loop of the elementwise operator of its name, applied to one place at a time.
 */
static pith_status scatter_prepare(pith__prepare *c) {
    static const struct {
        const char *reduction, *family;
    } names[] = {
        { "add", "add" },
        { "mul", "mul" },
        { "max", "max" },
        { "min", "min" },
    };
    PITH_TRY(pith__prepare_movable(c));
    state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    c->state = s;
    pith_str reduction = pith__node_str(c->node, "reduction", "none");
    if (pith__str_is(reduction, "none")) return PITH_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!pith__str_is(reduction, names[i].reduction)) continue;
        PITH_TRY(pith__map_find(&s->reduce, names[i].family, c->in[0]->dtype, c));
        return PITH_OK;
    }
    return pith__op_fail(c, "unknown reduction '" PITH_STR_FMT "'", PITH_STR_ARG(reduction));
}

static pith_status scatter_scratch(const pith__infer *c, const void *state_, int threads,
                                   size_t *bytes) {
    const state *s = state_;
    (void)threads;
    *bytes = 0;
    return s->reduce.fn ? pith__widen_scratch(c, 0, bytes) : PITH_OK;
}

/* y[at …] = or op= updates[from …], n elements. */
static void scatter_put(const pith__run *r, int64_t at, int64_t from, int64_t n) {
    const state *s = r->state;
    size_t size = pith__element_size(r->out[0]->dtype);
    char *y = (char *)r->out[0]->data + (size_t)at * size;
    const char *u = (const char *)r->in[2]->data + (size_t)from * size;
    if (s->reduce.fn)
        ((pith__map2_fn *)s->reduce.fn)(y, y, u, n, 1, 1);
    else
        memcpy(y, u, (size_t)n * size);
}

static pith_status scatter_copy_data(const pith__run *r) {
    if (r->in[0]->data == r->out[0]->data) return PITH_OK;
    return pith__run_bytes(r, r->out[0]->data, r->in[0]->data, r->in[0]->bytes);
}

/* ---- ScatterElements ---- */

/* Indices and updates have one shape, which does not exceed the data's along other axes. */
static pith_status scatter_infer_elements(pith__infer *c) {
    const pith__type *x = c->in[0], *indices = c->in[1], *updates = c->in[2];
    int axis;
    PITH_TRY(scatter_infer_same_shape(c));
    if (x->rank < 0 || indices->rank < 0 || updates->rank < 0) return PITH_OK;
    if (x->rank != indices->rank || x->rank != updates->rank || x->rank == 0) {
        return pith__op_fail(c, "data, indices and updates have ranks %d, %d and %d", x->rank,
                             indices->rank, updates->rank);
    }
    PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", 0), x->rank, &axis, c->err));
    for (int i = 0; i < x->rank; i++) {
        pith__dim d = indices->dims[i], of = x->dims[i], u = updates->dims[i];
        if ((pith__dim_known(d) && pith__dim_known(u) && d != u) ||
            (i != axis && pith__dim_known(d) && pith__dim_known(of) && d > of)) {
            return pith__op_fail(c, "indices do not fit at axis %d", i);
        }
    }
    return PITH_OK;
}

/* An odometer walks the indices; along the axis the index takes the place's part. Sequential, since
 * later updates of one place must win. */
static pith_status scatter_run_elements_plain(pith__run *r) {
    const pith_tensor *x = r->in[0], *indices = r->in[1];
    int64_t strides[PITH_MAX_RANK], place[PITH_MAX_RANK] = { 0 },
                                    total = pith__tensor_count(indices);
    int axis;
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", 0), x->rank, &axis, r->err));
    pith__strides(strides, x->dims, x->rank);
    PITH_TRY(scatter_copy_data(r));
    for (int64_t i = 0; i < total; i++) {
        PITH_TRY(pith__run_step(r, i));
        int64_t at = scatter_index_at(indices, i), n = x->dims[axis], to = 0;
        if (at < -n || at >= n) {
            return pith__fail(r->err, PITH_ERR_RUN, "index %lld is out of range for size %lld",
                              (long long)at, (long long)n);
        }
        if (at < 0) at += n;
        for (int k = 0; k < x->rank; k++) to += (k == axis ? at : place[k]) * strides[k];
        scatter_put(r, to, i, 1);
        for (int k = x->rank - 1; k >= 0 && ++place[k] == indices->dims[k]; k--) place[k] = 0;
    }
    return PITH_OK;
}

static pith_status scatter_run_elements(pith__run *r) {
    const state *s = r->state;
    return s->reduce.fn ? pith__widen_run(r, 0, scatter_run_elements_plain)
                        : scatter_run_elements_plain(r);
}

#define ELEMENTS(symbol, since_, newest_, attrs_)                                                  \
    const pith__op pith__op_##symbol = { .domain = "",                                             \
                                         .name = #symbol,                                          \
                                         .since = since_,                                          \
                                         .min_inputs = 3,                                          \
                                         .max_inputs = 3,                                          \
                                         .max_outputs = 1,                                         \
                                         .newest = newest_,                                        \
                                         .attrs = attrs_,                                          \
                                         .flags = PITH_OP_IN_PLACE,                                \
                                         .infer = scatter_infer_elements,                          \
                                         .prepare = scatter_prepare,                               \
                                         .scratch = scatter_scratch,                               \
                                         .run = scatter_run_elements };
ELEMENTS(Scatter, 9, 11, "axis int = 0")
ELEMENTS(ScatterElements, 11, 18,
         "axis int = 0; reduction string none|add|mul = none @16-17; "
         "reduction string none|add|mul|max|min = none @18")

/* ---- ScatterND ---- */

/* Updates have the shape of the indices without their last axis, followed by what an index leaves
 * of the data. */
static pith_status scatter_infer_nd(pith__infer *c) {
    const pith__type *x = c->in[0], *indices = c->in[1], *updates = c->in[2];
    PITH_TRY(scatter_infer_same_shape(c));
    if (x->rank < 0 || indices->rank < 0 || updates->rank < 0) return PITH_OK;
    if (x->rank == 0 || indices->rank == 0)
        return pith__op_fail(c, "inputs must have rank 1 or more");
    pith__dim length = indices->dims[indices->rank - 1];
    if (!pith__dim_known(length)) return PITH_OK;
    if (length < 0 || length > x->rank ||
        updates->rank != indices->rank - 1 + x->rank - (int)length) {
        return pith__op_fail(c, "an index has %lld numbers, data have rank %d and updates %d",
                             (long long)length, x->rank, updates->rank);
    }
    for (int i = 0; i < updates->rank; i++) {
        pith__dim want = i < indices->rank - 1 ? indices->dims[i]
                                               : x->dims[i - (indices->rank - 1) + (int)length];
        if (pith__dim_known(want) && pith__dim_known(updates->dims[i]) &&
            want != updates->dims[i]) {
            return pith__op_fail(c, "updates have size %lld at axis %d, expected %lld",
                                 (long long)updates->dims[i], i, (long long)want);
        }
    }
    return PITH_OK;
}

/* Every index names a slice of n elements, which lies in one piece in data and updates. */
static pith_status scatter_run_nd_plain(pith__run *r) {
    const pith_tensor *x = r->in[0], *indices = r->in[1];
    int64_t length = indices->dims[indices->rank - 1], strides[PITH_MAX_RANK], rows = 1, n = 1;
    pith__strides(strides, x->dims, x->rank);
    for (int i = 0; i < indices->rank - 1; i++) rows *= indices->dims[i];
    for (int i = (int)length; i < x->rank; i++) n *= x->dims[i];
    PITH_TRY(scatter_copy_data(r));
    if (n > 0) {
        int64_t spent = 0;
        for (int64_t i = 0; i < rows; i++) {
            PITH_TRY(pith__run_spend(r, &spent, 32 + n));
            int64_t to = 0;
            for (int64_t k = 0; k < length; k++) {
                int64_t at = scatter_index_at(indices, i * length + k), of = x->dims[k];
                if (at < -of || at >= of) {
                    return pith__fail(r->err, PITH_ERR_RUN,
                                      "index %lld is out of range for size %lld", (long long)at,
                                      (long long)of);
                }
                to += (at < 0 ? at + of : at) * strides[k];
            }
            scatter_put(r, to, i * n, n);
        }
    }
    return PITH_OK;
}

static pith_status scatter_run_nd(pith__run *r) {
    const state *s = r->state;
    return s->reduce.fn ? pith__widen_run(r, 0, scatter_run_nd_plain) : scatter_run_nd_plain(r);
}

const pith__op pith__op_ScatterND = { .domain = "",
                                      .name = "ScatterND",
                                      .since = 11,
                                      .newest = 18,
                                      .min_inputs = 3,
                                      .max_inputs = 3,
                                      .max_outputs = 1,
                                      .types = "mlm",
                                      .attrs = "reduction string none|add|mul = none @16-17; "
                                               "reduction string none|add|mul|max|min = none @18",
                                      .flags = PITH_OP_IN_PLACE,
                                      .infer = scatter_infer_nd,
                                      .prepare = scatter_prepare,
                                      .scratch = scatter_scratch,
                                      .run = scatter_run_nd };

/* ---- TensorScatter: new rows of a cache, from a place per batch on ---- */

/* The cache may be longer than the update along the axis only. */
static pith_status scatter_infer_cache(pith__infer *c) {
    const pith__type *x = c->in[0], *u = c->in[1];
    PITH_TRY(pith__infer_equal_dtypes(c, 0, 1));
    if (x->rank >= 0 && u->rank >= 0) {
        int axis;
        if (x->rank != u->rank || x->rank < 2)
            return pith__op_fail(c, "cache and update have ranks %d and %d", x->rank, u->rank);
        PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", -2), x->rank, &axis, c->err));
        if (axis == 0) return pith__op_fail(c, "axis is the batch");
        for (int i = 0; i < x->rank; i++) {
            if (!pith__dim_known(x->dims[i]) || !pith__dim_known(u->dims[i])) continue;
            if (i == axis ? u->dims[i] > x->dims[i] : u->dims[i] != x->dims[i])
                return pith__op_fail(c, "update does not fit at axis %d", i);
        }
        if (pith__has_input(c, 2) && c->in[2]->rank >= 0 &&
            (c->in[2]->rank != 1 ||
             (pith__dim_known(c->in[2]->dims[0]) && pith__dim_known(x->dims[0]) &&
              c->in[2]->dims[0] != x->dims[0])))
            return pith__op_fail(c, "write_indices is not [batch]");
    }
    if (pith__has_input(c, 2) && c->in[2]->dtype && c->in[2]->dtype != PITH_I64)
        return pith__op_fail(c, "write_indices is not int64");
    pith__infer_set(c, 0, x->dtype, x->rank, x->dims);
    return PITH_OK;
}

/* Rows of the update follow each other from the batch element's own place on; in circular mode they
 * wrap. */
static pith_status scatter_run_cache_plain(pith__run *r) {
    const pith_tensor *x = r->in[0], *u = r->in[1],
                      *first = pith__has_input(r, 2) ? r->in[2] : NULL;
    bool circular = pith__str_is(pith__node_str(r->node, "mode", "linear"), "circular");
    int axis;
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", -2), x->rank, &axis, r->err));
    int64_t outer = 1, n = x->dims[axis], m = u->dims[axis];
    size_t bytes = pith__element_size(x->dtype);
    for (int i = 0; i < axis; i++) outer *= x->dims[i];
    for (int i = axis + 1; i < x->rank; i++) bytes *= (size_t)x->dims[i];
    PITH_TRY(scatter_copy_data(r));
    if (bytes == 0) return PITH_OK;
    int64_t spent = 0;
    for (int64_t o = 0; o < outer; o++) {
        int64_t begin = first ? ((const int64_t *)first->data)[o / (outer / x->dims[0])] : 0;
        for (int64_t i = 0; i < m; i++) {
            PITH_TRY(pith__run_spend(r, &spent, 32 + (int64_t)(bytes / 8)));
            int64_t at = begin < 0 || begin > n ? -1 : begin + i;
            if (circular && at >= n) at %= n;
            if (at < 0 || at >= n) {
                return pith__fail(r->err, PITH_ERR_RUN, "row %lld is out of range for size %lld",
                                  (long long)(begin + i), (long long)n);
            }
            memcpy((char *)r->out[0]->data + (size_t)(o * n + at) * bytes,
                   (const char *)u->data + (size_t)(o * m + i) * bytes, bytes);
        }
    }
    return PITH_OK;
}

static pith_status scatter_run_cache(pith__run *r) {
    return pith__unpack_run(r, scatter_run_cache_plain);
}

static pith_status scatter_scratch_cache(const pith__infer *c, const void *state_, int threads,
                                         size_t *bytes) {
    (void)state_, (void)threads;
    *bytes = 0;
    return pith__unpack_scratch(c, bytes);
}

const pith__op pith__op_TensorScatter = { .domain = "",
                                          .name = "TensorScatter",
                                          .since = 24,
                                          .newest = 24,
                                          .min_inputs = 2,
                                          .max_inputs = 3,
                                          .max_outputs = 1,
                                          .types = "aal",
                                          .attrs =
                                              "axis int = -2; mode string linear|circular = linear",
                                          .flags = PITH_OP_IN_PLACE,
                                          .infer = scatter_infer_cache,
                                          .scratch = scatter_scratch_cache,
                                          .run = scatter_run_cache };
