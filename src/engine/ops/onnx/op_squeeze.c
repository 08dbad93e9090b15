/* op_squeeze.c - Squeeze and Unsqueeze: axes of size 1 taken out or put in. Views, whose contents
 * stay known. Without axes, Squeeze takes out all that are 1, so every size must be known. Source:
 * ONNX Squeeze and Unsqueeze (opset 25). */
#include "engine/ops/shared/infer_shapes.h"

static pith_status squeeze_upgrade_axes(pith__node *node, pith_error *err) {
    return pith__upgrade_ints(node, "axes", 1) ? pith__fail_memory(err, 0) : PITH_OK;
}

/* A symbolic size may be squeezed if its axis is named: that it is 1 is checked when it is known.
 * If the axes are not known, not even the rank is. */
static pith_status squeeze_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__numbers axes;
    PITH_TRY(pith__infer_numbers(c, 1, &axes));
    bool named = pith__has_input(c, 1), known = x->rank >= 0 && axes.count >= 0;
    for (int i = 0; i < axes.count; i++) known &= axes.items[i] != PITH_DIM_UNKNOWN;
    if (!named) {
        for (int i = 0; i < x->rank; i++) known &= pith__dim_known(x->dims[i]);
    }
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
                                    .upgrade = squeeze_upgrade_axes,
                                    .shape_inputs = 1u << 1,
                                    .infer = squeeze_infer };

/* Axes count in the result. */
static pith_status squeeze_infer_unsqueeze(pith__infer *c) {
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
                                      .upgrade = squeeze_upgrade_axes,
                                      .shape_inputs = 1u << 1,
                                      .infer = squeeze_infer_unsqueeze };
