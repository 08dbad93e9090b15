/* op_depth_to_space.c - DepthToSpace and SpaceToDepth: channels into blocks of pixels and back, a
 * move between two 6-d layouts. */
#include "engine/kernels/move.h"
#include "engine/ops/shared/infer_shapes.h"

static pith_status depth_to_space_check(pith__infer *c, int64_t *block) {
    const pith__type *x = c->in[0];
    *block = pith__node_int(c->node, "blocksize", 1);
    if (x->rank >= 0 && x->rank != 4)
        return pith__op_fail(c, "input has rank %d, expected 4", x->rank);
    return PITH_OK;
}

static pith_status depth_to_space_divisible(pith__infer *c, int axis, int64_t by) {
    pith__dim d = c->in[0]->dims[axis];
    if (pith__dim_known(d) && d % by)
        return pith__op_fail(c, "axis %d of size %lld does not divide by %lld", axis, (long long)d,
                             (long long)by);
    return PITH_OK;
}

/* Channels give b * b of their factors to the two spatial axes. */
static pith_status depth_to_space_infer_space(pith__infer *c) {
    const pith__type *x = c->in[0];
    int64_t b;
    pith__dim dims[4];
    PITH_TRY(depth_to_space_check(c, &b));
    if (x->rank == 4) PITH_TRY(depth_to_space_divisible(c, 1, b * b));
    for (int i = 0; i < x->rank; i++) {
        dims[i] = x->dims[i];
        if (i == 1) dims[i] = pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, x->dims[i], b * b);
        if (i > 1) dims[i] = pith__dim_apply(c->dims, PITH_DIM_MUL, x->dims[i], b);
    }
    pith__infer_set(c, 0, x->dtype, x->rank, dims);
    return PITH_OK;
}

/* The reverse: each spatial axis gives a factor b to the channels. */
static pith_status depth_to_space_infer_depth(pith__infer *c) {
    const pith__type *x = c->in[0];
    int64_t b;
    pith__dim dims[4];
    PITH_TRY(depth_to_space_check(c, &b));
    for (int i = 0; i < x->rank; i++) {
        if (i > 1) PITH_TRY(depth_to_space_divisible(c, i, b));
        dims[i] = x->dims[i];
        if (i == 1) dims[i] = pith__dim_apply(c->dims, PITH_DIM_MUL, x->dims[i], b * b);
        if (i > 1) dims[i] = pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, x->dims[i], b);
    }
    pith__infer_set(c, 0, x->dtype, x->rank, dims);
    return PITH_OK;
}

/* `order`: which axis of the input's 6-d form each axis of the output's is. */
static void depth_to_space_move(pith__run *r, const int64_t in[6], const int order[6]) {
    int64_t own[6], from[6], to[6], dims[6];
    pith__strides(own, in, 6);
    for (int i = 0; i < 6; i++) {
        dims[i] = in[order[i]];
        from[i] = own[order[i]];
    }
    pith__strides(to, dims, 6);
    if (pith__tensor_count(r->in[0])) {
        pith__run_move(r, r->out[0]->data, to, r->in[0]->data, from, dims, 6,
                       pith__element_size(r->in[0]->dtype));
    }
}

/* Whether channels are ordered column, row, depth; else depth, column, row. */
static bool depth_to_space_crd(const pith__node *node) {
    return pith__str_is(pith__node_str(node, "mode", "DCR"), "CRD");
}

static pith_status depth_to_space_run_space(pith__run *r) {
    const int64_t *d = r->in[0]->dims, b = pith__node_int(r->node, "blocksize", 1);
    if (depth_to_space_crd(r->node))
        depth_to_space_move(r, (int64_t[]){ d[0], d[1] / (b * b), b, b, d[2], d[3] },
                            (int[]){ 0, 1, 4, 2, 5, 3 });
    else
        depth_to_space_move(r, (int64_t[]){ d[0], b, b, d[1] / (b * b), d[2], d[3] },
                            (int[]){ 0, 3, 4, 1, 5, 2 });
    return PITH_OK;
}

static pith_status depth_to_space_run_depth(pith__run *r) {
    const int64_t *d = r->in[0]->dims, b = pith__node_int(r->node, "blocksize", 1);
    depth_to_space_move(r, (int64_t[]){ d[0], d[1], d[2] / b, b, d[3] / b, b },
                        depth_to_space_crd(r->node) ? (int[]){ 0, 1, 3, 5, 2, 4 }
                                                    : (int[]){ 0, 3, 5, 1, 2, 4 });
    return PITH_OK;
}

const pith__op pith__op_DepthToSpace = {
    .domain = "",
    .name = "DepthToSpace",
    .since = 1,
    .newest = 28,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "m",
    .attrs = "blocksize int! 1..32768; mode string DCR|CRD = DCR @11",
    .infer = depth_to_space_infer_space,
    .prepare = pith__prepare_movable,
    .run = depth_to_space_run_space
};
const pith__op pith__op_SpaceToDepth = {
    .domain = "",
    .name = "SpaceToDepth",
    .since = 1,
    .newest = 28,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "m",
    .attrs = "blocksize int! 1..32768; mode string DCR|CRD = DCR @28",
    .infer = depth_to_space_infer_depth,
    .prepare = pith__prepare_movable,
    .run = depth_to_space_run_depth
};
