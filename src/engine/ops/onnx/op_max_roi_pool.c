/* op_max_roi_pool.c - MaxRoiPool: the largest number in each of pooled_shape parts of each region.
 *
 * A region is [image, x0, y0, x1, y1] in input pixels times spatial_scale, rounded, both ends
 * included. Parts overlap if they do not divide it evenly, and an empty part gives 0. Sources: ONNX
 * MaxRoiPool; R. Girshick, Fast R-CNN. */
#include <math.h>

#include "engine/ops/shared/as_doubles.h"

static pith_status max_roi_pool_infer(pith__infer *c) {
    const pith__type *x = c->in[0], *rois = c->in[1];
    size_t count;
    const int64_t *shape = pith__node_ints(c->node, "pooled_shape", &count);
    if (!shape || count != 2 || shape[0] < 1 || shape[1] < 1)
        return pith__op_fail(c, "pooled_shape is out of range");
    if (x->rank >= 0 && x->rank != 4)
        return pith__op_fail(c, "input has %d dimensions, not 4", x->rank);
    if (rois->rank >= 0 &&
        (rois->rank != 2 || (pith__dim_known(rois->dims[1]) && rois->dims[1] != 5)))
        return pith__op_fail(c, "rois must be [count, 5]");
    pith__dim dims[4] = { rois->rank == 2 ? rois->dims[0] : PITH_DIM_UNKNOWN,
                          x->rank == 4 ? x->dims[1] : PITH_DIM_UNKNOWN, shape[0], shape[1] };
    pith__type_set(&c->out[0], x->dtype, 4, dims);
    return PITH_OK;
}

/* The pixels [*begin, *end) of part `part` of a side that begins at `from`. */
static void max_roi_pool_part_of(double from, double to, int64_t parts, int64_t part, int64_t size,
                                 int64_t *begin, int64_t *end) {
    double each = fmax(to - from + 1, 1) / (double)parts;
    *begin = (int64_t)fmin(fmax(floor((double)part * each) + from, 0), (double)size);
    *end = (int64_t)fmin(fmax(ceil((double)(part + 1) * each) + from, 0), (double)size);
}

/* A region names its image. Corners that are not numbers or an image that is not there are errors;
 * corners outside of the image only leave parts empty. */
static pith_status max_roi_pool_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *y = r->out[0];
    int64_t channels = x->dims[1], height = x->dims[2], width = x->dims[3], parts_h = y->dims[2],
            parts_w = y->dims[3];
    double scale = (double)pith__node_float(r->node, "spatial_scale", 1.0f);
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    double *out = w.out[0];
    for (int64_t n = 0; n < y->dims[0]; n++) {
        const double *roi = w.in[1] + 5 * n;
        double corners[4];
        for (int i = 0; i < 4; i++) corners[i] = round(roi[1 + i] * scale);
        if (!(roi[0] >= 0 && roi[0] < (double)x->dims[0]))
            return pith__fail(r->err, PITH_ERR_RUN,
                              "region %lld has the index of an image that does not exist",
                              (long long)n);
        if (isnan(corners[0] + corners[1] + corners[2] + corners[3]))
            return pith__fail(r->err, PITH_ERR_RUN, "region %lld has a corner that is not a number",
                              (long long)n);
        for (int64_t i = 0; i < channels * parts_h * parts_w; i++) {
            PITH_TRY(pith__run_look(r));
            const double *plane =
                w.in[0] + ((int64_t)roi[0] * channels + i / (parts_h * parts_w)) * height * width;
            int64_t top, bottom, left, right;
            max_roi_pool_part_of(corners[1], corners[3], parts_h, i / parts_w % parts_h, height,
                                 &top, &bottom);
            max_roi_pool_part_of(corners[0], corners[2], parts_w, i % parts_w, width, &left,
                                 &right);
            double most = top < bottom && left < right ? -INFINITY : 0;
            for (int64_t row = top; row < bottom; row++) {
                for (int64_t column = left; column < right; column++)
                    most = fmax(most, plane[row * width + column]);
            }
            *out++ = most;
        }
    }
    return pith__wide_close(&w, r);
}

const pith__op pith__op_MaxRoiPool = {
    .domain = "",
    .name = "MaxRoiPool",
    .since = 1,
    .newest = 22,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "fn",
    .attrs = "pooled_shape ints! 1..; spatial_scale float = 1",
    .infer = max_roi_pool_infer,
    .scratch = pith__wide_scratch,
    .run = max_roi_pool_run,
};
