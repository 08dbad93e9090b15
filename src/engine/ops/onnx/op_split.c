/* op_split.c - Split: a tensor cut into parts along an axis.
 *
 * Sizes of the parts are the second input, or equal parts of which the last may be smaller. Older
 * opsets had them as an attribute. Each part is one strided copy. Source: ONNX Split (opset 18). */
#include "engine/ops/shared/infer_shapes.h"

static pith_status split_upgrade(pith__node *node, pith_error *err) {
    if (node->opset < 13 && pith__upgrade_ints(node, "split", 1)) return pith__fail_memory(err, 0);
    if (pith__node_input(node, 1)) return PITH_OK;
    return pith__node_set_int(node, "num_outputs", node->output_count) ? pith__fail_memory(err, 0)
                                                                       : PITH_OK;
}

/* Equal parts are ceil(total / parts) with a smaller last one, also for symbols. Given sizes must
 * add up to the axis if everything is known. */
static pith_status split_infer(pith__infer *c) {
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
        pith__dim size = each;
        if (named) size = sizes.count >= 0 ? sizes.items[i] : PITH_DIM_UNKNOWN;
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

/* Each part is [rows, its columns] of [rows, all columns]; absent outputs only move the place. */
static pith_status split_run(pith__run *r) {
    const pith_tensor *x = r->in[0];
    const size_t element = pith__element_size(x->dtype);
    int axis;
    int64_t form[3], at = 0;
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", 0), x->rank, &axis, r->err));
    pith__axis_split(x->dims, x->rank, axis, form);
    const int64_t rows = form[0], unit = form[2], x_row = form[1] * unit;
    pith__numbers sizes;
    PITH_TRY(pith__run_numbers(r, 1, &sizes));
    int64_t parts = pith__node_int(r->node, "num_outputs", r->out_count),
            each = (x->dims[axis] + parts - 1) / parts;
    for (int i = 0; i < r->out_count; i++) {
        int64_t size = i < parts - 1 ? each : x->dims[axis] - each * (parts - 1);
        if (pith__has_input(r, 1)) size = sizes.items[i];
        const int64_t n = size * unit;
        if (r->out[i] && n && rows)
            pith__run_move(r, r->out[i]->data, (int64_t[]){ n, 1 },
                           (const char *)x->data + (size_t)at * element, (int64_t[]){ x_row, 1 },
                           (int64_t[]){ rows, n }, 2, element);
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
    .upgrade = split_upgrade,
    .flags = PITH_OP_FIRST_OPTIONAL,
    .shape_inputs = 1u << 1,
    .infer = split_infer,
    .prepare = pith__prepare_movable,
    .run = split_run
};
