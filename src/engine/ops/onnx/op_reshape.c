/* op_reshape.c - the same elements in another shape: Reshape, Flatten, Squeeze, Unsqueeze,
 * Identity. All are views; nothing is copied. */
#include "engine/ops/shared/infer_shapes.h"

static pith_status upgrade_reshape(pith__node *node, pith_error *err) {
    return pith__upgrade_ints(node, "shape", 1) ? pith__fail_memory(err, 0) : PITH_OK;
}

static pith_status infer_reshape(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__numbers shape;
    PITH_TRY(pith__infer_numbers(c, 1, &shape));
    if (shape.count > PITH_MAX_RANK) {
        return pith__op_fail(c, "rank %d is more than %d", shape.count, PITH_MAX_RANK);
    }
    bool allow_zero = pith__node_int(c->node, "allowzero", 0) != 0;
    int rest = -1;
    pith__dim product = 1;
    bool concrete = x->rank >= 0;
    for (int i = 0; i < shape.count; i++) {
        pith__dim d = shape.items[i];
        if (d == 0 && !allow_zero) {
            if (x->rank >= 0 && i >= x->rank)
                return pith__op_fail(c, "shape[%d] is 0, but the input has rank %d", i, x->rank);
            d = x->rank >= 0 ? x->dims[i] : PITH_DIM_UNKNOWN;
        }
        if (d == -1) {
            if (rest >= 0) return pith__op_fail(c, "shape has -1 twice, at %d and %d", rest, i);
            rest = i;
            continue;
        }
        if (pith__dim_known(d) && d < 0)
            return pith__op_fail(c, "shape[%d] is %lld; it must be at least -1", i, (long long)d);
        shape.items[i] = d;
        concrete &= pith__dim_known(d);
        product = pith__dim_apply(c->dims, PITH_DIM_MUL, product, d);
    }
    pith__dim total =
        x->rank >= 0 ? pith__dim_product(c->dims, x->dims, x->rank) : PITH_DIM_UNKNOWN;
    if (rest >= 0) {
        bool empty = pith__dim_known(product) && product == 0;
        shape.items[rest] =
            empty ? 0 : pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, total, product);
        product = pith__dim_apply(c->dims, PITH_DIM_MUL, product, shape.items[rest]);
    }
    if (concrete && pith__dim_known(total) && pith__dim_known(product) && total != product) {
        char from[128], to[128];
        return pith__op_fail(c, "shape %s cannot be reshaped to %s",
                             pith__dims_text(x->dims, x->rank, from, sizeof from),
                             pith__dims_text(shape.items, shape.count, to, sizeof to));
    }
    pith__infer_set(c, 0, x->dtype, shape.count, shape.items);
    pith__infer_keep_elems(c);
    return PITH_OK;
}

const pith__op pith__op_Reshape = {
    .domain = "",
    .name = "Reshape",
    .since = 5,
    .newest = 25,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "al",
    .attrs = "allowzero bool = 0 @14; consumed_inputs ints @-4; shape ints @-4",
    .flags = PITH_OP_VIEW,
    .upgrade = upgrade_reshape,
    .shape_inputs = 1u << 1,
    .infer = infer_reshape
};

static pith_status infer_flatten(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__dim dims[2] = { PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN };
    if (x->rank >= 0) {
        int64_t axis = pith__node_int(c->node, "axis", 1);
        if (axis < 0) axis += x->rank;
        if (axis < 0 || axis > x->rank)
            return pith__op_fail(c, "axis %lld is out of range for rank %d", (long long)axis,
                                 x->rank);
        dims[0] = pith__dim_product(c->dims, x->dims, (int)axis);
        dims[1] = pith__dim_product(c->dims, x->dims + axis, x->rank - (int)axis);
    }
    pith__infer_set(c, 0, x->dtype, 2, dims);
    pith__infer_keep_elems(c);
    return PITH_OK;
}

const pith__op pith__op_Flatten = { .domain = "",
                                    .name = "Flatten",
                                    .since = 1,
                                    .newest = 25,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .max_outputs = 1,
                                    .types = "a",
                                    .attrs = "axis int = 1",
                                    .flags = PITH_OP_VIEW,
                                    .infer = infer_flatten };

static pith_status upgrade_axes(pith__node *node, pith_error *err) {
    return pith__upgrade_ints(node, "axes", 1) ? pith__fail_memory(err, 0) : PITH_OK;
}

static pith_status infer_squeeze(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__numbers axes;
    PITH_TRY(pith__infer_numbers(c, 1, &axes));
    bool named = pith__has_input(c, 1), known = x->rank >= 0 && axes.count >= 0;
    for (int i = 0; i < axes.count; i++) known &= axes.items[i] != PITH_DIM_UNKNOWN;
    for (int i = 0; !named && i < x->rank; i++) known &= pith__dim_known(x->dims[i]);
    if (!known) {
        int rank = named && x->rank >= 0 && axes.count >= 0 && axes.count <= x->rank
                       ? x->rank - axes.count
                       : -1;
        pith__dim unknown[PITH_MAX_RANK];
        for (int i = 0; i < rank; i++) unknown[i] = PITH_DIM_UNKNOWN;
        pith__infer_set(c, 0, x->dtype, rank, unknown);
        return PITH_OK;
    }
    PITH_TRY(pith__axes_normalize(axes.items, axes.count, x->rank, c->err));
    pith__dim dims[PITH_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        bool gone = !named && x->dims[i] == 1;
        for (int k = 0; k < axes.count; k++) gone |= axes.items[k] == i;
        if (gone && pith__dim_known(x->dims[i]) && x->dims[i] != 1) {
            return pith__op_fail(c, "axis %d has size %lld, not 1", i, (long long)x->dims[i]);
        }
        if (!gone) dims[rank++] = x->dims[i];
    }
    pith__infer_set(c, 0, x->dtype, rank, dims);
    pith__infer_keep_elems(c);
    return PITH_OK;
}

const pith__op pith__op_Squeeze = { .domain = "",
                                    .name = "Squeeze",
                                    .since = 13,
                                    .newest = 25,
                                    .min_inputs = 1,
                                    .max_inputs = 2,
                                    .max_outputs = 1,
                                    .types = "al",
                                    .attrs = "axes ints @-12",
                                    .flags = PITH_OP_VIEW,
                                    .upgrade = upgrade_axes,
                                    .shape_inputs = 1u << 1,
                                    .infer = infer_squeeze };

static pith_status infer_unsqueeze(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__numbers axes;
    PITH_TRY(pith__infer_numbers(c, 1, &axes));
    int rank = x->rank >= 0 && axes.count >= 0 ? x->rank + axes.count : -1;
    if (rank > PITH_MAX_RANK)
        return pith__op_fail(c, "rank %d is more than %d", rank, PITH_MAX_RANK);
    pith__dim dims[PITH_MAX_RANK];
    bool known = rank >= 0;
    for (int i = 0; i < axes.count; i++) known &= axes.items[i] != PITH_DIM_UNKNOWN;
    for (int i = 0; i < rank; i++) dims[i] = PITH_DIM_UNKNOWN;
    if (known) {
        PITH_TRY(pith__axes_normalize(axes.items, axes.count, rank, c->err));
        for (int i = 0; i < axes.count; i++) dims[axes.items[i]] = 1;
        for (int i = 0, own = 0; i < rank; i++) {
            bool is_new = false;
            for (int k = 0; k < axes.count; k++) is_new |= axes.items[k] == i;
            if (!is_new) dims[i] = x->dims[own++];
        }
    }
    pith__infer_set(c, 0, x->dtype, rank, dims);
    if (known) pith__infer_keep_elems(c);
    return PITH_OK;
}

const pith__op pith__op_Unsqueeze = { .domain = "",
                                      .name = "Unsqueeze",
                                      .since = 13,
                                      .newest = 25,
                                      .min_inputs = 2,
                                      .max_inputs = 2,
                                      .max_outputs = 1,
                                      .types = "al",
                                      .attrs = "axes ints! @-12",
                                      .flags = PITH_OP_VIEW,
                                      .upgrade = upgrade_axes,
                                      .shape_inputs = 1u << 1,
                                      .infer = infer_unsqueeze };

const pith__op pith__op_Identity = { .domain = "",
                                     .name = "Identity",
                                     .since = 1,
                                     .newest = 25,
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .max_outputs = 1,
                                     .types = "a",
                                     .attrs = "",
                                     .flags = PITH_OP_VIEW | PITH_OP_SEQUENCES,
                                     .infer = pith__infer_same };
