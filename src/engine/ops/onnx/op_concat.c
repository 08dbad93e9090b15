/* op_concat.c - Concat and Split: joins tensors along an axis, and takes them apart. */
#include "engine/ops/shared/infer_shapes.h"

/* opset 1: the axis has a default */
static pith_status concat_upgrade_concat(pith__node *node, pith_error *err) {
    if (pith__node_attr(node, "axis")) return PITH_OK;
    return pith__node_set_int(node, "axis", 1) ? pith__fail_memory(err, 0) : PITH_OK;
}

static pith_status concat_infer_concat(pith__infer *c) {
    PITH_TRY(pith__infer_equal_dtypes(c, 0, c->in_count - 1));
    pith__type out = *c->in[0];
    for (int i = 1; i < c->in_count; i++) {
        if (c->in[i]->rank < 0 || out.rank < 0)
            out.rank = -1;
        else if (c->in[i]->rank != out.rank) {
            return pith__op_fail(c, "input %d has rank %d, the first has %d", i, c->in[i]->rank,
                                 out.rank);
        }
    }
    if (out.rank < 0) {
        pith__infer_set(c, 0, out.dtype, -1, NULL);
        return PITH_OK;
    }
    int axis;
    PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", 0), out.rank, &axis, c->err));
    for (int i = 1; i < c->in_count; i++) {
        for (int k = 0; k < out.rank; k++) {
            pith__dim d = c->in[i]->dims[k];
            if (k == axis)
                out.dims[k] = pith__dim_apply(c->dims, PITH_DIM_ADD, out.dims[k], d);
            else if (pith__dim_known(d) && pith__dim_known(out.dims[k]) && d != out.dims[k]) {
                return pith__op_fail(c, "input %d has size %lld at axis %d, the first has %lld", i,
                                     (long long)d, k, (long long)out.dims[k]);
            } else if (pith__dim_known(d) || out.dims[k] == PITH_DIM_UNKNOWN)
                out.dims[k] = d;
        }
    }
    pith__infer_set(c, 0, out.dtype, out.rank, out.dims);
    int64_t count, at = 0;
    pith__dim *elems = out.rank == 1 ? pith__infer_new_elems(c, &count) : NULL;
    if (!elems) return PITH_OK;
    for (int i = 0; i < c->in_count; i++) {
        int64_t own = pith__type_count(c->in[i]);
        for (int64_t k = 0; k < own; k++, at++) {
            if (!pith__type_elem(c->in[i], k, &elems[at])) elems[at] = PITH_DIM_UNKNOWN;
        }
    }
    c->out[0].elems = elems;
    return PITH_OK;
}

/* Rows before the axis, and elements of one row of t from the axis on. */
static int64_t concat_rows_of(const pith_tensor *t, int axis, int64_t *elements) {
    const int64_t rows = pith__dims_count(t->dims, axis);
    *elements = pith__dims_count(t->dims + axis, t->rank - axis);
    return rows;
}

/* Copies n elements of each row, on the run's threads; the others are the elements from row to row.
 */
static void concat_move(pith__run *r, char *to, int64_t to_row, const char *from, int64_t from_row,
                        int64_t rows, int64_t n, size_t size) {
    pith__run_move(r, to, (int64_t[]){ to_row, 1 }, from, (int64_t[]){ from_row, 1 },
                   (int64_t[]){ rows, n }, 2, size);
}

static pith_status concat_run_concat(pith__run *r) {
    pith_tensor *y = r->out[0];
    const size_t size = pith__element_size(y->dtype);
    int axis;
    int64_t y_row, x_row, at = 0;
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", 0), y->rank, &axis, r->err));
    const int64_t rows = concat_rows_of(y, axis, &y_row);
    for (int i = 0; i < r->in_count; i++, at += x_row) {
        concat_rows_of(r->in[i], axis, &x_row);
        if (x_row && rows)
            concat_move(r, (char *)y->data + (size_t)at * size, y_row, r->in[i]->data, x_row, rows,
                        x_row, size);
    }
    return PITH_OK;
}

const pith__op pith__op_Concat = { .domain = "",
                                   .name = "Concat",
                                   .since = 4,
                                   .newest = 13,
                                   .min_inputs = 1,
                                   .max_inputs = -1,
                                   .max_outputs = 1,
                                   .types = "m",
                                   .attrs = "axis int @-3; axis int! @4",
                                   .upgrade = concat_upgrade_concat,
                                   .infer = concat_infer_concat,
                                   .prepare = pith__prepare_movable,
                                   .run = concat_run_concat };

/* ---- Split ---- */

static pith_status upgrade_split(pith__node *node, pith_error *err) {
    if (node->opset < 13 && pith__upgrade_ints(node, "split", 1)) return pith__fail_memory(err, 0);
    if (pith__node_input(node, 1)) return PITH_OK;
    return pith__node_set_int(node, "num_outputs", node->output_count) ? pith__fail_memory(err, 0)
                                                                       : PITH_OK;
}

static pith_status concat_infer_split(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__numbers sizes;
    PITH_TRY(pith__infer_numbers(c, 1, &sizes));
    int axis = 0;
    if (x->rank >= 0)
        PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", 0), x->rank, &axis, c->err));
    pith__dim total = x->rank >= 0 ? x->dims[axis] : PITH_DIM_UNKNOWN, sum = 0;
    int64_t parts = pith__node_int(c->node, "num_outputs", c->out_count);
    bool named = pith__has_input(c, 1);
    if (!named && (parts < c->out_count || parts > 1 << 20)) {
        return pith__op_fail(c, "attribute num_outputs is %lld for %d outputs", (long long)parts,
                             c->out_count);
    }
    if (named && sizes.count >= 0 && sizes.count != c->out_count) {
        return pith__op_fail(c, "split has %d numbers for %d outputs", sizes.count, c->out_count);
    }
    pith__dim each = pith__dim_apply(c->dims, PITH_DIM_CEIL_DIV, total, parts);
    for (int i = 0; i < c->out_count; i++) {
        pith__dim size = named ? (sizes.count >= 0 ? sizes.items[i] : PITH_DIM_UNKNOWN) : each;
        if (!named && i == parts - 1) {
            size = pith__dim_apply(c->dims, PITH_DIM_SUB, total,
                                   pith__dim_apply(c->dims, PITH_DIM_MUL, each, parts - 1));
        }
        if (pith__dim_known(size) && size < 0)
            return pith__op_fail(c, "output %d would have size %lld", i, (long long)size);
        sum = pith__dim_apply(c->dims, PITH_DIM_ADD, sum, size);
        pith__dim dims[PITH_MAX_RANK];
        for (int k = 0; k < x->rank; k++) dims[k] = k == axis ? size : x->dims[k];
        pith__infer_set(c, i, x->dtype, x->rank, dims);
    }
    if (pith__dim_known(sum) && pith__dim_known(total) && (named ? sum != total : sum > total)) {
        return pith__op_fail(c, "parts add up to %lld, axis %d has size %lld", (long long)sum, axis,
                             (long long)total);
    }
    return PITH_OK;
}

static pith_status concat_run_split(pith__run *r) {
    const pith_tensor *x = r->in[0];
    const size_t element = pith__element_size(x->dtype);
    int axis;
    int64_t x_row, at = 0;
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", 0), x->rank, &axis, r->err));
    const int64_t rows = concat_rows_of(x, axis, &x_row),
                  unit = x->dims[axis] ? x_row / x->dims[axis] : 0;
    pith__numbers sizes;
    PITH_TRY(pith__run_numbers(r, 1, &sizes));
    int64_t parts = pith__node_int(r->node, "num_outputs", r->out_count),
            each = (x->dims[axis] + parts - 1) / parts;
    for (int i = 0; i < r->out_count; i++) {
        int64_t size = pith__has_input(r, 1) ? sizes.items[i]
                       : i < parts - 1       ? each
                                             : x->dims[axis] - each * (parts - 1);
        const int64_t n = size * unit;
        if (r->out[i] && n && rows)
            concat_move(r, r->out[i]->data, n, (const char *)x->data + (size_t)at * element, x_row,
                        rows, n, element);
        at += n;
    }
    return PITH_OK;
}

const pith__op pith__op_Split = {
    .domain = "",
    .name = "Split",
    .since = 18,
    .newest = 18,
    .min_inputs = 1,
    .max_inputs = 2,
    .max_outputs = -1,
    .types = "mn",
    .attrs = "axis int @-1; axis int = 0 @2; num_outputs int 1.. @18; split ints 0.. @-12",
    .upgrade = upgrade_split,
    .flags = PITH_OP_FIRST_OPTIONAL,
    .shape_inputs = 1u << 1,
    .infer = concat_infer_split,
    .prepare = pith__prepare_movable,
    .run = concat_run_split
};
