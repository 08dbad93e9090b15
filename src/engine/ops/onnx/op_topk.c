/* op_topk.c - TopK: the k largest or smallest elements along an axis, in order, and their places.
 *
 * A few elements are selected with a heap; from an eighth of the axis on, all its indices are
 * sorted. Lines are shared among threads. Source: ONNX TopK (opset 24). */
#include <string.h>

#include "base/checked.h"
#include "engine/kernels/sort_order.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/widen_types.h"

/* sort: all indices of a line in order. best: the k best with a heap. */
typedef struct state {
    pith__sort_fn *sort;
    pith__best_fn *best; /* NULL: there is none for the dtype */
} state;

static pith_status topk_upgrade(pith__node *node, pith_error *err) {
    return pith__upgrade_int(node, "k", 1) ? pith__fail_memory(err, 0) : PITH_OK;
}

/* k must be known to be checked against the axis; else that happens when the step is bound. */
static pith_status topk_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__dim k = PITH_DIM_UNKNOWN, dims[PITH_MAX_RANK];
    int axis = 0;
    pith__infer_number(c, 1, &k);
    if (x->rank >= 0)
        PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", -1), x->rank, &axis, c->err));
    for (int i = 0; i < x->rank; i++) dims[i] = i == axis ? k : x->dims[i];
    if (pith__dim_known(k) &&
        (k < 0 || (x->rank > 0 && pith__dim_known(x->dims[axis]) && k > x->dims[axis]))) {
        return pith__op_fail(c, "k is %lld, but the axis has %lld elements", (long long)k,
                             (long long)(x->rank > 0 ? x->dims[axis] : 0));
    }
    pith__infer_set(c, 0, x->dtype, x->rank, dims);
    pith__infer_set(c, 1, PITH_I64, x->rank, dims);
    return PITH_OK;
}

static pith_status topk_prepare(pith__prepare *c) {
    pith__kernel_fn *fn;
    int dtype = pith__compute_dtype(pith__part_dtype(c->in[0]->dtype));
    state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    PITH_TRY(pith__prepare_kernel(c, "sort", dtype, &fn));
    s->sort = (pith__sort_fn *)fn;
    s->best = PITH_PREPARE_KERNEL(pith__best_fn, "best", dtype, c);
    c->state = s;
    return PITH_OK;
}

/* Indices that a worker needs for k of n elements; *select: they are selected. A heap of more than
 * an eighth of the axis is slower than sorting. */
static int64_t topk_indices(const state *s, int64_t n, int64_t k, bool *select) {
    *select = s->best && k <= n / 8;
    return (*select ? k : 2 * n) + 8;
}

static pith_status topk_scratch(const pith__infer *c, const void *state_, int threads,
                                size_t *bytes) {
    int axis;
    bool select;
    if (c->in[0]->rank == 0) return pith__op_fail(c, "input is a scalar");
    PITH_TRY(
        pith__axis_normalize(pith__node_int(c->node, "axis", -1), c->in[0]->rank, &axis, c->err));
    int64_t n = c->in[0]->dims[axis], k = c->out[c->out[0].dtype ? 0 : 1].dims[axis];
    if (n > INT64_MAX / 64 ||
        pith__mul_overflows((size_t)topk_indices(state_, n, k, &select), sizeof(int64_t), bytes) ||
        pith__mul_overflows(*bytes, (size_t)(threads > 0 ? threads : 1), bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    return pith__widen_scratch(c, 2, bytes);
}

typedef struct topk {
    const pith__run *r;
    pith_tensor *values, *places;
    int64_t n, k, inner, rows, per_part, per_worker;
    bool largest, select;
    size_t size;
} topk;

/* Lines [first, end), strided if the axis is not the last. The indices give both outputs. */
static void topk_run_part(void *context, size_t part, int worker) {
    const topk *t = context;
    const state *s = t->r->state;
    pith__stop *stop = t->r->exec->stop;
    int64_t *indices = (int64_t *)t->r->scratch + worker * t->per_worker;
    int64_t first = (int64_t)part * t->per_part,
            end = first + t->per_part < t->rows ? first + t->per_part : t->rows;
    for (int64_t i = first; i < end; i++) {
        int64_t o = i / t->inner, column = i % t->inner;
        const char *row =
            (const char *)t->r->in[0]->data + (size_t)(o * t->n * t->inner + column) * t->size;
        if (t->select)
            s->best(indices, row, t->n, t->inner, t->k, t->largest, stop);
        else
            s->sort(indices, indices + t->n, row, t->n, t->inner, t->largest, stop);
        for (int64_t e = 0; e < t->k; e++) {
            if (!(e & (PITH_LOOK_STEPS - 1)) && pith__stop_asked(stop)) return;
            int64_t to = (o * t->k + e) * t->inner + column;
            if (t->values)
                memcpy((char *)t->values->data + (size_t)to * t->size,
                       row + (size_t)(indices[e] * t->inner) * t->size, t->size);
            if (t->places) ((int64_t *)t->places->data)[to] = indices[e];
        }
    }
}

/* Either output may be absent. */
static pith_status topk_run_plain(pith__run *r) {
    enum { GRAIN = 16384 }; /* elements that are worth a thread */
    const pith_tensor *x = r->in[0];
    topk t = { .r = r,
               .values = r->out[0],
               .places = r->out_count > 1 ? r->out[1] : NULL,
               .inner = 1,
               .rows = 1,
               .largest = pith__node_int(r->node, "largest", 1) != 0,
               .size = pith__element_size(x->dtype) };
    const pith_tensor *y = t.values ? t.values : t.places;
    int axis;
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", -1), x->rank, &axis, r->err));
    if (!y || !pith__tensor_count(y)) return PITH_OK;
    t.n = x->dims[axis];
    t.k = y->dims[axis];
    for (int i = 0; i < x->rank; i++) {
        if (i != axis) t.rows *= x->dims[i];
        if (i > axis) t.inner *= x->dims[i];
    }
    t.per_worker = topk_indices(r->state, t.n, t.k, &t.select);
    t.per_part = pith__run_chunk(r, t.rows, t.n, GRAIN);
    pith__run_parallel(r, topk_run_part, &t, (size_t)((t.rows + t.per_part - 1) / t.per_part));
    return PITH_OK;
}

static pith_status topk_run(pith__run *r) { return pith__widen_run(r, 2, topk_run_plain); }

const pith__op pith__op_TopK = {
    .domain = "",
    .name = "TopK",
    .since = 10,
    .newest = 24,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 2,
    .types = "ni",
    .attrs = "axis int = -1; k int! 0.. @-9; largest bool = 1 @11; sorted bool = 1 @11",
    .upgrade = topk_upgrade,
    .shape_inputs = 1u << 1,
    .infer = topk_infer,
    .prepare = topk_prepare,
    .scratch = topk_scratch,
    .run = topk_run
};
