/* op_topk.c - TopK along an axis, and Unique. A few elements of an axis are selected; for many, and
 * for Unique, indices are sorted. */
#include <string.h>

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/maps.h"
#include "engine/kernels/move.h"
#include "engine/kernels/sort_order.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/widen_types.h"

typedef struct state {
    pith__sort_fn *sort;
    pith__best_fn *best; /* NULL: there is none for the dtype */
} state;

static pith_status upgrade_topk(pith__node *node, pith_error *err) {
    return pith__upgrade_int(node, "k", 1) ? pith__fail_memory(err, 0) : PITH_OK;
}

static pith_status infer_topk(pith__infer *c) {
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

static pith_status scratch_topk(const pith__infer *c, const void *state_, int threads,
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

static void topk_run_part(void *context, size_t part, int worker) {
    const topk *t = context;
    const state *s = t->r->state;
    int64_t *indices = (int64_t *)t->r->scratch + worker * t->per_worker;
    int64_t first = (int64_t)part * t->per_part,
            end = first + t->per_part < t->rows ? first + t->per_part : t->rows;
    for (int64_t i = first; i < end; i++) {
        int64_t o = i / t->inner, column = i % t->inner;
        const char *row =
            (const char *)t->r->in[0]->data + (size_t)(o * t->n * t->inner + column) * t->size;
        if (t->select)
            s->best(indices, row, t->n, t->inner, t->k, t->largest);
        else
            s->sort(indices, indices + t->n, row, t->n, t->inner, t->largest);
        for (int64_t e = 0; e < t->k; e++) {
            int64_t to = (o * t->k + e) * t->inner + column;
            if (t->values)
                memcpy((char *)t->values->data + (size_t)to * t->size,
                       row + (size_t)(indices[e] * t->inner) * t->size, t->size);
            if (t->places) ((int64_t *)t->places->data)[to] = indices[e];
        }
    }
}

static pith_status run_topk_plain(pith__run *r) {
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

static pith_status run_topk(pith__run *r) { return pith__widen_run(r, 2, run_topk_plain); }

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
    .upgrade = upgrade_topk,
    .shape_inputs = 1u << 1,
    .infer = infer_topk,
    .prepare = topk_prepare,
    .scratch = scratch_topk,
    .run = run_topk
};

/* ---- Unique: along an axis, slices are what is compared ---- */

static pith_status infer_unique(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__dim dims[PITH_MAX_RANK], unknown = PITH_DIM_UNKNOWN;
    int axis = 0, rank = 1;
    dims[0] = unknown;
    if (pith__node_attr(c->node, "axis")) {
        rank = x->rank;
        if (rank >= 0)
            PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", 0), rank, &axis, c->err));
        for (int i = 0; i < rank; i++) dims[i] = i == axis ? unknown : x->dims[i];
    }
    pith__infer_set(c, 0, x->dtype, rank, dims);
    for (int i = 1; i < c->out_count; i++) pith__infer_set(c, i, PITH_I64, 1, &unknown);
    return PITH_OK;
}

/* The slices as rows, and which of them are equal. */
typedef struct unique {
    bool flat; /* no axis: slices are single elements */
    int axis;
    int64_t n, outer, inner, length; /* slices; sizes before and behind the axis; elements per
                                        slice */
    size_t size, row;                /* bytes of an element, of a slice */
    char *rows;                      /* n slices, each in one piece */
    int64_t *order, *spare;          /* rows in ascending order; memory for n more */
    int64_t groups, *group, *first;  /* of equal rows; the group of each row; the first row of each
                                        group */
    int64_t *place;                  /* of a group in the output */
} unique;

static pith_status unique_slices(pith__run *r, unique *u) {
    const pith_tensor *x = r->in[0];
    u->flat = !pith__node_attr(r->node, "axis");
    if (!u->flat)
        PITH_TRY(
            pith__axis_normalize(pith__node_int(r->node, "axis", 0), x->rank, &u->axis, r->err));
    u->outer = u->inner = 1;
    u->n = u->flat ? pith__tensor_count(x) : x->dims[u->axis];
    for (int i = 0; !u->flat && i < x->rank; i++)
        *(i < u->axis ? &u->outer : i > u->axis ? &u->inner : &(int64_t){ 1 }) *= x->dims[i];
    u->length = u->outer * u->inner;
    u->size = pith__element_size(x->dtype);
    u->row = (size_t)u->length * u->size;
    int64_t n = u->n;
    u->order = r->exec->alloc(r->exec, (size_t)(n + 1) * 5 * sizeof(int64_t));
    if (!u->order) return pith__fail_memory(r->err, (size_t)n * 5 * sizeof(int64_t));
    u->place = u->order + n, u->spare = u->place + n, u->group = u->spare + n,
    u->first = u->group + n;
    u->rows = r->exec->alloc(r->exec, x->bytes + 1);
    if (!u->rows) return pith__fail_memory(r->err, x->bytes);
    int64_t dims[3] = { n, u->outer, u->inner }, from[3] = { u->inner, n * u->inner, 1 },
            to[3] = { u->length, u->inner, 1 };
    if (pith__tensor_count(x)) pith__move(u->rows, to, x->data, from, dims, 3, u->size, NULL);
    return PITH_OK;
}

/* Sorts the rows by their elements (of complex ones: real, then imaginary part) from the last to
 * the first. */
static pith_status unique_sort(pith__run *r, unique *u) {
    const state *s = r->state;
    int64_t n = u->n, *sorted = u->place; /* it has no places yet */
    int dtype = r->in[0]->dtype;
    char *column = r->exec->alloc(r->exec, (size_t)n * u->size + 1);
    bool half = dtype == PITH_F16 || dtype == PITH_BF16;
    float *wide = half ? r->exec->alloc(r->exec, (size_t)n * sizeof *wide + 1) : NULL;
    if (!column || (half && !wide)) return pith__fail_memory(r->err, (size_t)n * u->size);
    int64_t parts = pith__parts(dtype);
    size_t part = u->size / (size_t)parts;
    for (int64_t i = 0; i < n; i++) u->order[i] = i;
    /* stable, so that earlier elements weigh more */
    for (int64_t e = u->length * parts - 1; e >= 0; e--) {
        for (int64_t i = 0; i < n; i++)
            memcpy(column + (size_t)i * part,
                   u->rows + (size_t)u->order[i] * u->row + (size_t)e * part, part);
        if (wide) pith__convert(wide, PITH_F32, 0, column, dtype, 0, n, true);
        s->sort(sorted, u->spare, wide ? (const void *)wide : column, n, 1, false);
        for (int64_t i = 0; i < n; i++) u->spare[i] = u->order[sorted[i]];
        memcpy(u->order, u->spare, (size_t)n * sizeof *u->order);
    }
    return PITH_OK;
}

static bool unique_equal(const unique *u, int dtype, int64_t a, int64_t b) {
    if (dtype != PITH_STRING)
        return memcmp(u->rows + (size_t)a * u->row, u->rows + (size_t)b * u->row, u->row) == 0;
    const pith_str *strings = (const pith_str *)(const void *)u->rows;
    for (int64_t e = 0; e < u->length; e++) {
        if (!pith__str_eq(strings[a * u->length + e], strings[b * u->length + e])) return false;
    }
    return true;
}

/* Walks equal neighbours. */
static void unique_group(unique *u, int dtype, bool sorted) {
    for (int64_t i = 0; i < u->n; i++) {
        int64_t row = u->order[i];
        if (i == 0 || !unique_equal(u, dtype, row, u->order[i - 1]))
            u->first[u->groups++] = row;
        else if (row < u->first[u->groups - 1])
            u->first[u->groups - 1] = row;
        u->group[row] = u->groups - 1;
    }
    for (int64_t g = 0; g < u->groups; g++) u->place[g] = g;
    int64_t next = 0;
    for (int64_t i = 0; !sorted && i < u->n; i++) {
        if (u->first[u->group[i]] == i) u->place[u->group[i]] = next++;
    }
}

static pith_status unique_put_rows(pith__run *r, const unique *u) {
    const pith_tensor *x = r->in[0];
    int64_t shape[PITH_MAX_RANK] = { u->groups };
    for (int i = 0; !u->flat && i < x->rank; i++) shape[i] = i == u->axis ? u->groups : x->dims[i];
    PITH_TRY(pith__run_alloc(r, 0, x->dtype, u->flat ? 1 : x->rank, shape));
    int64_t one[2] = { u->outer, u->inner }, in[2] = { u->inner, 1 },
            out[2] = { u->groups * u->inner, 1 };
    for (int64_t g = 0; g < u->groups && u->length; g++) {
        pith__move((char *)r->out[0]->data + (size_t)(u->place[g] * u->inner) * u->size, out,
                   u->rows + (size_t)u->first[g] * u->row, in, one, 2, u->size, NULL);
    }
    return PITH_OK;
}

/* Output 1: the first row of each group; 2: the group of each row; 3: how many rows each group has.
 */
static pith_status unique_put_numbers(pith__run *r, const unique *u, int output) {
    PITH_TRY(pith__run_alloc(r, output, PITH_I64, 1, output == 2 ? &u->n : &u->groups));
    int64_t *y = r->out[output]->data;
    if (output == 3) memset(y, 0, (size_t)u->groups * sizeof *y);
    for (int64_t g = 0; output == 1 && g < u->groups; g++) y[u->place[g]] = u->first[g];
    for (int64_t k = 0; output > 1 && k < u->n; k++) {
        if (output == 2)
            y[k] = u->place[u->group[k]];
        else
            y[u->place[u->group[k]]]++;
    }
    return PITH_OK;
}

static pith_status run_unique(pith__run *r) {
    unique u = { 0 };
    PITH_TRY(unique_slices(r, &u));
    PITH_TRY(unique_sort(r, &u));
    unique_group(&u, r->in[0]->dtype, pith__node_int(r->node, "sorted", 1) != 0);
    if (r->out[0]) PITH_TRY(unique_put_rows(r, &u));
    for (int i = 1; i < r->out_count; i++) {
        if (r->out[i]) PITH_TRY(unique_put_numbers(r, &u, i));
    }
    return PITH_OK;
}

const pith__op pith__op_Unique = { .domain = "",
                                   .name = "Unique",
                                   .since = 11,
                                   .newest = 28,
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .max_outputs = 4,
                                   .types = "Z",
                                   .attrs = "axis int; sorted bool = 1",
                                   .flags = PITH_OP_LATE,
                                   .infer = infer_unique,
                                   .prepare = topk_prepare,
                                   .run = run_unique };
