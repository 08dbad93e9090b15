/* op_roi_align.c - RoiAlign: regions of an image, each resampled to one grid of bins.
 *
 * A bin is the mean (or the largest) of the bilinear samples at sampling_ratio^2 places in it; with
 * a ratio of 0, about one place per pixel. Corners are shifted by half a pixel from opset 16 on.
 * Everything is computed in double, one bin after another. Sources: ONNX RoiAlign (opset 22); K. He
 * and others, Mask R-CNN. */
#include <math.h>

#include "engine/ops/shared/as_doubles.h"

/* Before opset 16 corners were not shifted by half a pixel. */
static pith_status roi_align_upgrade(pith__node *node, pith_error *err) {
    return pith__node_set_str(node, "coordinate_transformation_mode", PITH_STR("output_half_pixel"))
               ? pith__fail_memory(err, 32)
               : PITH_OK;
}

/* The sampling ratio is bounded, since its square is the work of a bin. */
static pith_status roi_align_infer(pith__infer *c) {
    if (c->in[0]->rank >= 0 && c->in[0]->rank != 4)
        return pith__op_fail(c, "input has %d dimensions, not 4", c->in[0]->rank);
    int64_t height = pith__node_int(c->node, "output_height", 1),
            width = pith__node_int(c->node, "output_width", 1);
    int64_t ratio = pith__node_int(c->node, "sampling_ratio", 0);
    if (height < 1 || width < 1 || ratio < 0 || ratio > 1024)
        return pith__op_fail(c, "output size or sampling ratio is out of range");
    pith__dim dims[4] = { c->in[2]->rank == 1 ? c->in[2]->dims[0] : PITH_DIM_UNKNOWN,
                          c->in[0]->rank == 4 ? c->in[0]->dims[1] : PITH_DIM_UNKNOWN, height,
                          width };
    pith__type_set(&c->out[0], c->in[0]->dtype, 4, dims);
    return PITH_OK;
}

/* The four weighted neighbours of (y, x), summed, or the largest. Beyond the border by more than a
 * pixel: zero. */
static double roi_align_sample(const double *plane, int64_t height, int64_t width, double y,
                               double x, bool max) {
    if (!(y >= -1 && y <= (double)height && x >= -1 && x <= (double)width)) return 0;
    y = fmin(fmax(y, 0), (double)(height - 1));
    x = fmin(fmax(x, 0), (double)(width - 1));
    int64_t y0 = (int64_t)y, x0 = (int64_t)x, y1 = y0 + (y0 < height - 1),
            x1 = x0 + (x0 < width - 1);
    double fy = y - (double)y0, fx = x - (double)x0;
    double a = (1 - fy) * (1 - fx) * plane[y0 * width + x0],
           b = (1 - fy) * fx * plane[y0 * width + x1];
    double c = fy * (1 - fx) * plane[y1 * width + x0], d = fy * fx * plane[y1 * width + x1];
    return max ? fmax(fmax(a, b), fmax(c, d)) : a + b + c + d;
}

/* Regions are [x0, y0, x1, y1] in input pixels times spatial_scale. Without half pixels, a region
 * is at least one pixel. With ratio 0 a bin gets as many samples as it has pixels, which is bounded
 * too. */
static pith_status roi_align_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *rois = r->in[1], *y = r->out[0];
    int64_t channels = x->dims[1], height = x->dims[2], width = x->dims[3], bins_h = y->dims[2],
            bins_w = y->dims[3];
    if (rois->rank != 2 || rois->dims[1] != 4 || rois->dims[0] != y->dims[0])
        return pith__fail(r->err, PITH_ERR_ARGUMENT, "rois must be [%lld, 4]",
                          (long long)y->dims[0]);
    if (height < 1 || width < 1) return pith__op_fail(r, "the input is empty");
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    pith_str mode = pith__node_str(r->node, "coordinate_transformation_mode", "half_pixel");
    bool half = pith__str_is(mode, "half_pixel"),
         max = pith__str_is(pith__node_str(r->node, "mode", "avg"), "max");
    double scale = pith__node_float(r->node, "spatial_scale", 1), offset = half ? 0.5 : 0;
    int64_t ratio = pith__node_int(r->node, "sampling_ratio", 0);
    for (int64_t n = 0; n < y->dims[0]; n++) {
        int64_t image = ((const int64_t *)r->in[2]->data)[n];
        if (image < 0 || image >= x->dims[0])
            return pith__fail(r->err, PITH_ERR_RUN, "batch index %lld is outside of %lld images",
                              (long long)image, (long long)x->dims[0]);
        const double *roi = w.in[1] + 4 * n;
        double x0 = roi[0] * scale - offset, y0 = roi[1] * scale - offset,
               roi_w = roi[2] * scale - offset - x0, roi_h = roi[3] * scale - offset - y0;
        if (!half) roi_w = fmax(roi_w, 1), roi_h = fmax(roi_h, 1);
        double bin_h = roi_h / (double)bins_h, bin_w = roi_w / (double)bins_w;
        double grid_h = ratio ? (double)ratio : ceil(bin_h),
               grid_w = ratio ? (double)ratio : ceil(bin_w);
        if (!(fabs(grid_h) <= 65536 && fabs(grid_w) <= 65536))
            return pith__fail(r->err, PITH_ERR_RUN, "region %lld is too large", (long long)n);
        int64_t steps_h = (int64_t)fmax(grid_h, 0), steps_w = (int64_t)fmax(grid_w, 0);
        for (int64_t i = 0; i < channels * bins_h * bins_w; i++) {
            PITH_TRY(pith__run_look(r));
            const double *plane =
                w.in[0] + (image * channels + i / (bins_h * bins_w)) * height * width;
            double top = y0 + (double)(i / bins_w % bins_h) * bin_h,
                   left = x0 + (double)(i % bins_w) * bin_w;
            double value = 0;
            for (int64_t k = 0; k < steps_h * steps_w; k++) {
                double s = roi_align_sample(
                    plane, height, width, top + ((double)(k / steps_w) + 0.5) * bin_h / grid_h,
                    left + ((double)(k % steps_w) + 0.5) * bin_w / grid_w, max);
                if (max)
                    value = k == 0 ? s : fmax(value, s);
                else
                    value += s;
            }
            if (!max) value /= fmax((double)(steps_h * steps_w), 1);
            w.out[0][n * channels * bins_h * bins_w + i] = value;
        }
    }
    return pith__wide_close(&w, r);
}

const pith__op pith__op_RoiAlign = {
    .domain = "",
    .name = "RoiAlign",
    .since = 16,
    .newest = 22,
    .min_inputs = 3,
    .max_inputs = 3,
    .max_outputs = 1,
    .types = "ffl",
    .attrs = "coordinate_transformation_mode string half_pixel|output_half_pixel = half_pixel @16; "
             "mode string avg|max = avg; output_height int 1.. = 1; "
             "output_width int 1.. = 1; sampling_ratio int 0.. = 0; "
             "spatial_scale float = 1",
    .upgrade = roi_align_upgrade,
    .infer = roi_align_infer,
    .scratch = pith__wide_scratch,
    .run = roi_align_run,
};
