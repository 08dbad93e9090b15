/* op_ms_crop_and_resize.c - com.microsoft's CropAndResize: boxes of images, each sampled to one
 * size, the corners of a box on the corners of its result. Places are computed in double; those
 * outside of the image give extrapolation_value. Source: ONNX Runtime's ContribOperators.md. */
#include <math.h>

#include "engine/ops/shared/infer_shapes.h"

/* One image per box, of the size in crop_size. */
static pith_status crop_infer(pith__infer *c) {
    const pith__type *x = c->in[0], *rois = c->in[1];
    pith__numbers size;
    if ((x->rank >= 0 && x->rank != 4) || (rois->rank >= 0 && rois->rank != 2))
        return pith__op_fail(c, "X must have four dimensions and rois two");
    if (rois->rank == 2 && pith__dim_known(rois->dims[1]) && rois->dims[1] != 4)
        return pith__op_fail(c, "rois has %lld columns, not 4", (long long)rois->dims[1]);
    PITH_TRY(pith__infer_numbers(c, 3, &size));
    if (size.count >= 0 && size.count != 2)
        return pith__op_fail(c, "crop_size has %d elements, not 2", size.count);
    pith__dim out[4] = { rois->rank == 2 ? rois->dims[0] : PITH_DIM_UNKNOWN,
                         x->rank == 4 ? x->dims[1] : PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN,
                         PITH_DIM_UNKNOWN };
    if (size.count == 2) {
        for (int i = 0; i < 2; i++) {
            out[2 + i] = size.items[i];
            if (pith__dim_known(size.items[i]) && size.items[i] < 1)
                return pith__op_fail(c, "crop_size is not positive");
        }
    }
    pith__infer_set(c, 0, x->dtype, 4, out);
    return PITH_OK;
}

/* Place i of n between a and b, of an axis of `size`. */
static double crop_place(double a, double b, int64_t i, int64_t n, int64_t size) {
    double last = (double)(size - 1);
    return n > 1 ? a * last + (double)i * ((b - a) * last / (double)(n - 1)) : 0.5 * (a + b) * last;
}

/* Between four pixels, or the nearest one. The caller has checked that the point lies inside, so
 * its four pixels exist. */
static double crop_sample(const float *plane, int64_t height, int64_t width, double y, double x,
                          bool nearest) {
    if (nearest) return (double)plane[(int64_t)round(y) * width + (int64_t)round(x)];
    int64_t y0 = (int64_t)floor(y), y1 = (int64_t)ceil(y), x0 = (int64_t)floor(x),
            x1 = (int64_t)ceil(x);
    double fx = x - (double)x0, fy = y - (double)y0;
    (void)height;
    double above = (double)plane[y0 * width + x0] * (1 - fx) + (double)plane[y0 * width + x1] * fx;
    double below = (double)plane[y1 * width + x0] * (1 - fx) + (double)plane[y1 * width + x1] * fx;
    return above * (1 - fy) + below * fy;
}

/* Every element by itself: its place in the box, then the sample. Boxes are relative to the image,
 * y before x. */
static pith_status crop_run(pith__run *r) {
    const int64_t *in = r->in[0]->dims, *out = r->out[0]->dims;
    const int32_t *images = r->in[2]->data;
    bool nearest = pith__str_is(pith__node_str(r->node, "mode", "bilinear"), "nearest");
    float outside = pith__node_float(r->node, "extrapolation_value", 0), *y = r->out[0]->data;
    if (pith__tensor_count(r->in[2]) != out[0])
        return pith__op_fail(r, "%lld batch_indices for %lld boxes",
                             (long long)pith__tensor_count(r->in[2]), (long long)out[0]);
    for (int64_t i = 0; i < out[0]; i++) {
        const float *box = (const float *)r->in[1]->data + 4 * i;
        if (images[i] < 0 || images[i] >= in[0])
            return pith__op_fail(r, "batch index %d is outside of %lld images", images[i],
                                 (long long)in[0]);
        for (int64_t at = 0; at < out[1] * out[2] * out[3]; at++) {
            if (at % 4096 == 0) PITH_TRY(pith__run_look(r));
            int64_t c = at / (out[2] * out[3]), row = at / out[3] % out[2], column = at % out[3];
            double v = crop_place((double)box[0], (double)box[2], row, out[2], in[2]);
            double u = crop_place((double)box[1], (double)box[3], column, out[3], in[3]);
            const float *plane =
                (const float *)r->in[0]->data + (images[i] * in[1] + c) * in[2] * in[3];
            bool inside = v >= 0 && v <= (double)(in[2] - 1) && u >= 0 && u <= (double)(in[3] - 1);
            *y++ = inside ? (float)crop_sample(plane, in[2], in[3], v, u, nearest) : outside;
        }
    }
    return PITH_OK;
}

const pith__op pith__op_CropAndResize_ms = {
    .domain = "com.microsoft",
    .name = "CropAndResize",
    .since = 1,
    .newest = 1,
    .min_inputs = 4,
    .max_inputs = 4,
    .max_outputs = 1,
    .types = "eeww",
    .attrs = "extrapolation_value float = 0; mode string bilinear|nearest = bilinear",
    .shape_inputs = 1u << 3,
    .infer = crop_infer,
    .run = crop_run
};
