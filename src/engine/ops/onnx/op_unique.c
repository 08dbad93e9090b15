/* op_unique.c - Unique: the different elements of a tensor, or slices along an axis, and where they
 * are.
 *
 * Slices are gathered as rows and sorted element by element, the last element first; sorting is
 * stable, so equal rows end as neighbours. Source: ONNX Unique (opset 28). */
#include <string.h>

#include "engine/kernels/convert.h"
#include "engine/kernels/move.h"
#include "engine/kernels/sort_order.h"
#include "engine/ops/shared/elementwise.h"

/* How many there are is known in the run only. */
static pith_status unique_infer(pith__infer *c) {
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

/* Gathers the slices as rows, so that each is contiguous to compare and copy. */
static pith_status unique_slices(pith__run *r, unique *u) {
    const pith_tensor *x = r->in[0];
    u->flat = !pith__node_attr(r->node, "axis");
    if (!u->flat)
        PITH_TRY(
            pith__axis_normalize(pith__node_int(r->node, "axis", 0), x->rank, &u->axis, r->err));
    int64_t around[3] = { 1, pith__tensor_count(x), 1 };
    if (!u->flat) pith__axis_split(x->dims, x->rank, u->axis, around);
    u->outer = around[0], u->n = around[1], u->inner = around[2];
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
    if (pith__tensor_count(x)) pith__run_move(r, u->rows, to, x->data, from, dims, 3, u->size);
    return pith__run_look(r);
}

/* Sorts the rows by their elements (of complex ones: real, then imaginary part) from the last to
 * the first. */
static pith_status unique_sort(pith__run *r, unique *u) {
    pith__sort_fn *sort = *(pith__sort_fn *const *)r->state;
    int64_t n = u->n, *sorted = u->place; /* it has no places yet */
    int dtype = r->in[0]->dtype;
    char *column = r->exec->alloc(r->exec, (size_t)n * u->size + 1);
    bool half = dtype == PITH_F16 || dtype == PITH_BF16;
    float *wide = half ? r->exec->alloc(r->exec, (size_t)n * sizeof *wide + 1) : NULL;
    if (!column || (half && !wide)) return pith__fail_memory(r->err, (size_t)n * u->size);
    int64_t parts = pith__parts(dtype);
    size_t part = u->size / (size_t)parts;
    int64_t spent = 0;
    for (int64_t i = 0; i < n; i++) {
        PITH_TRY(pith__run_spend(r, &spent, 16));
        u->order[i] = i;
    }
    /* stable, so that earlier elements weigh more */
    for (int64_t e = u->length * parts - 1; e >= 0; e--) {
        for (int64_t i = 0; i < n; i++) {
            PITH_TRY(pith__run_spend(r, &spent, 32));
            memcpy(column + (size_t)i * part,
                   u->rows + (size_t)u->order[i] * u->row + (size_t)e * part, part);
        }
        if (wide) pith__convert(wide, PITH_F32, 0, column, dtype, 0, n, true);
        sort(sorted, u->spare, wide ? (const void *)wide : column, n, 1, false, r->exec->stop);
        PITH_TRY(pith__run_look(r));
        for (int64_t i = 0; i < n; i++) {
            PITH_TRY(pith__run_spend(r, &spent, 16));
            u->spare[i] = u->order[sorted[i]];
        }
        int64_t *const before = u->order;
        u->order = u->spare;
        u->spare = before;
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
static pith_status unique_group(const pith__run *r, unique *u, int dtype, bool sorted) {
    int64_t spent = 0;
    for (int64_t i = 0; i < u->n; i++) {
        PITH_TRY(pith__run_spend(r, &spent, 64 + (int64_t)(u->row / 16)));
        int64_t row = u->order[i];
        if (i == 0 || !unique_equal(u, dtype, row, u->order[i - 1]))
            u->first[u->groups++] = row;
        else if (row < u->first[u->groups - 1])
            u->first[u->groups - 1] = row;
        u->group[row] = u->groups - 1;
    }
    for (int64_t g = 0; g < u->groups; g++) {
        PITH_TRY(pith__run_spend(r, &spent, 16));
        u->place[g] = g;
    }
    int64_t next = 0;
    if (!sorted) {
        for (int64_t i = 0; i < u->n; i++) {
            PITH_TRY(pith__run_step(r, i));
            if (u->first[u->group[i]] == i) u->place[u->group[i]] = next++;
        }
    }
    return PITH_OK;
}

/* The rows go back into slices of the output, at the place of their group. */
static pith_status unique_put_rows(pith__run *r, const unique *u) {
    const pith_tensor *x = r->in[0];
    int64_t shape[PITH_MAX_RANK] = { u->groups };
    if (!u->flat) {
        for (int i = 0; i < x->rank; i++) shape[i] = i == u->axis ? u->groups : x->dims[i];
    }
    PITH_TRY(pith__run_alloc(r, 0, x->dtype, u->flat ? 1 : x->rank, shape));
    int64_t one[2] = { u->outer, u->inner }, in[2] = { u->inner, 1 },
            out[2] = { u->groups * u->inner, 1 };
    if (u->length) {
        int64_t spent = 0;
        for (int64_t g = 0; g < u->groups; g++) {
            PITH_TRY(pith__run_spend(r, &spent, 64 + u->length));
            pith__move((char *)r->out[0]->data + (size_t)(u->place[g] * u->inner) * u->size, out,
                       u->rows + (size_t)u->first[g] * u->row, in, one, 2, u->size, NULL);
        }
    }
    return PITH_OK;
}

/* Output 1: the first row of each group; 2: the group of each row; 3: how many rows each group has.
 */
static pith_status unique_put_numbers(pith__run *r, const unique *u, int output) {
    PITH_TRY(pith__run_alloc(r, output, PITH_I64, 1, output == 2 ? &u->n : &u->groups));
    int64_t *y = r->out[output]->data;
    if (output == 3) memset(y, 0, (size_t)u->groups * sizeof *y);
    if (output == 1) {
        for (int64_t g = 0; g < u->groups; g++) {
            PITH_TRY(pith__run_step(r, g));
            y[u->place[g]] = u->first[g];
        }
    }
    if (output > 1) {
        for (int64_t k = 0; k < u->n; k++) {
            PITH_TRY(pith__run_step(r, k));
            if (output == 2)
                y[k] = u->place[u->group[k]];
            else
                y[u->place[u->group[k]]]++;
        }
    }
    return PITH_OK;
}

static pith_status unique_prepare(pith__prepare *c) {
    pith__kernel_fn *fn;
    pith__sort_fn **sort = c->state = pith__arena_array(c->arena, 1, sizeof *sort);
    if (!sort) return pith__fail_memory(c->err, sizeof *sort);
    int dtype = pith__compute_dtype(pith__part_dtype(c->in[0]->dtype));
    PITH_TRY(pith__prepare_kernel(c, "sort", dtype, &fn));
    *sort = (pith__sort_fn *)fn;
    return PITH_OK;
}

static pith_status unique_run(pith__run *r) {
    unique u = { 0 };
    PITH_TRY(unique_slices(r, &u));
    PITH_TRY(unique_sort(r, &u));
    PITH_TRY(unique_group(r, &u, r->in[0]->dtype, pith__node_int(r->node, "sorted", 1) != 0));
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
                                   .infer = unique_infer,
                                   .prepare = unique_prepare,
                                   .run = unique_run };
