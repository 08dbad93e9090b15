/* op_affine_grid.c - AffineGrid: the places that GridSample reads for an affine transformation.
 *
 * A place of the output has normalised coordinates from -1 to 1, which theta maps to those of the
 * input, with the last axis first. Source: ONNX AffineGrid (opset 20). */
#include "engine/ops/shared/as_doubles.h"

/* The grid is [batch, depth?, height, width, axes]: size without its channels, and one coordinate
 * per spatial axis. */
static pith_status affine_grid_infer(pith__infer *c) {
    const pith__type *size = c->in[1];
    pith__dim dims[5];
    int rank = size->rank == 1 && pith__dim_known(size->dims[0]) ? (int)size->dims[0] : -1;
    if (rank >= 0 && rank != 4 && rank != 5)
        return pith__op_fail(c, "size has %d entries, not 4 or 5", rank);
    for (int i = 0; i < rank; i++) {
        pith__dim d;
        if (!pith__type_elem(size, i, &d)) d = PITH_DIM_UNKNOWN;
        if (i != 1) dims[i ? i - 1 : 0] = d;
    }
    if (rank > 0) dims[rank - 1] = rank - 2;
    pith__type_set(&c->out[0], c->in[0]->dtype, rank, dims);
    return PITH_OK;
}

static double affine_grid_place(int64_t i, int64_t n, bool corners) {
    if (corners) return n > 1 ? -1 + 2.0 * (double)i / (double)(n - 1) : -1;
    return -1 + (2.0 * (double)i + 1) / (double)n;
}

/* theta is [batch, axes, axes + 1]: each coordinate of a point is a row of it times (x, y(, z), 1).
 * Outputs begin as zero (as_doubles.h), so the products are added to them. */
static pith_status affine_grid_run(pith__run *r) {
    const pith_tensor *y = r->out[0];
    int axes = y->rank - 2;
    if (pith__tensor_count(r->in[0]) != y->dims[0] * axes * (axes + 1))
        return pith__op_fail(r, "theta does not fit size");
    bool corners = pith__node_int(r->node, "align_corners", 0) != 0;
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t points = 1;
    for (int d = 0; d < axes; d++) points *= y->dims[1 + d];
    for (int64_t i = 0; i < y->dims[0] * points; i++) {
        PITH_TRY(pith__run_step(r, i));
        double place[4]; /* x, y(, z), 1 */
        int64_t rest = i % points;
        for (int d = 0; d < axes; d++) {
            int64_t n = y->dims[axes - d];
            place[d] = affine_grid_place(rest % n, n, corners);
            rest /= n;
        }
        place[axes] = 1;
        const double *theta = w.in[0] + i / points * axes * (axes + 1);
        for (int row = 0; row < axes; row++)
            for (int k = 0; k <= axes; k++)
                w.out[0][i * axes + row] += theta[row * (axes + 1) + k] * place[k];
    }
    return pith__wide_close(&w, r);
}

const pith__op pith__op_AffineGrid = {
    .domain = "",
    .name = "AffineGrid",
    .since = 20,
    .newest = 20,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "fl",
    .attrs = "align_corners bool = 0",
    .shape_inputs = 1u << 1,
    .infer = affine_grid_infer,
    .scratch = pith__wide_scratch,
    .run = affine_grid_run,
};
