/* op_deform_conv.c - DeformConv of images: a convolution whose taps are moved by offsets that are
 * an input, and weighted by a mask.
 *
 * A moved tap is read bilinearly, zero outside. Everything is computed in double, one output after
 * another. Sources: ONNX DeformConv (opset 22); J. Dai and others, Deformable Convolutional
 * Networks. */
#include <math.h>

#include "base/checked.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/window_attrs.h"

/* The output's places are those of the offsets, which have two numbers per tap of each of them. */
static pith_status deform_conv_infer(pith__infer *c) {
    const pith__type *x = c->in[0], *weight = c->in[1], *offset = c->in[2];
    for (int i = 0; i < 3; i++)
        if (c->in[i]->rank >= 0 && c->in[i]->rank != 4)
            return pith__fail(c->err, PITH_ERR_UNSUPPORTED,
                              "input %d has %d dimensions; only images are supported", i,
                              c->in[i]->rank);
    PITH_TRY(pith__windows_check(c->node, 2, c->err));
    if (x->rank < 0 || weight->rank < 0 || offset->rank < 0) return PITH_OK;
    pith__type_set(&c->out[0], x->dtype, 4,
                   (pith__dim[]){ x->dims[0], weight->dims[0], offset->dims[2], offset->dims[3] });
    return PITH_OK;
}

/* Bilinear, zero outside. */
static double deform_conv_bilinear(const double *plane, int64_t height, int64_t width, double y,
                                   double x) {
    if (!(y > -1 && y < (double)height && x > -1 && x < (double)width)) return 0;
    int64_t y0 = (int64_t)floor(y), x0 = (int64_t)floor(x);
    double fy = y - (double)y0, fx = x - (double)x0, sum = 0;
    for (int k = 0; k < 4; k++) {
        int64_t row = y0 + k / 2, column = x0 + k % 2;
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        sum += (k / 2 ? fy : 1 - fy) * (k % 2 ? fx : 1 - fx) * plane[row * width + column];
    }
    return sum;
}

/* Of tap k of window i along an axis, before its offset. */
static double deform_conv_tap_place(const pith__node *node, int axis, int64_t i, int64_t k) {
    double stride = (double)pith__window_entry(node, "strides", axis, 1),
           dilation = (double)pith__window_entry(node, "dilations", axis, 1);
    return (double)i * stride - (double)pith__window_entry(node, "pads", axis, 0) +
           (double)k * dilation;
}

/* Offsets are [batch, offset groups * taps * 2, rows, columns], y before x; the mask likewise with
 * one number. Channels are divided into groups for the weights and, independently, into offset
 * groups. */
static pith_status deform_conv_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *weight = r->in[1], *y = r->out[0],
                      *mask = r->in_count > 4 ? r->in[4] : NULL;
    const pith_tensor *bias = r->in_count > 3 ? r->in[3] : NULL;
    int64_t groups = pith__node_int(r->node, "group", 1),
            offset_groups = pith__node_int(r->node, "offset_group", 1);
    int64_t grouped, offsets;
    int64_t channels = x->dims[1], height = x->dims[2], width = x->dims[3], outs = weight->dims[0],
            kh = weight->dims[2], kw = weight->dims[3];
    int64_t oh = y->dims[2], ow = y->dims[3], taps = kh * kw;
    if (groups < 1 || offset_groups < 1 || pith__mul_overflows(weight->dims[1], groups, &grouped) ||
        channels != grouped || outs % groups || channels % offset_groups ||
        r->in[2]->dims[0] != x->dims[0] || pith__mul_overflows(offset_groups, 2 * taps, &offsets) ||
        r->in[2]->dims[1] != offsets || (bias && pith__tensor_count(bias) != outs) ||
        (mask && pith__tensor_count(mask) * 2 != pith__tensor_count(r->in[2])))
        return pith__fail(r->err, PITH_ERR_ARGUMENT,
                          "weights, offsets, bias or mask do not fit the input and the groups");
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t spent = 0;
    for (int64_t i = 0; i < pith__tensor_count(y); i++) {
        PITH_TRY(pith__run_spend(r, &spent, 64 + 16 * weight->dims[1] * taps));
        int64_t n = i / (outs * oh * ow), o = i / (oh * ow) % outs, row = i / ow % oh,
                column = i % ow;
        double sum = bias ? w.in[3][o] : 0;
        for (int64_t k = 0; k < weight->dims[1]; k++) {
            int64_t channel = o / (outs / groups) * weight->dims[1] + k,
                    og = channel / (channels / offset_groups);
            const double *plane = w.in[0] + (n * channels + channel) * height * width;
            for (int64_t t = 0; t < taps; t++) {
                int64_t at =
                    ((n * offset_groups + og) * taps + t) * 2 * oh * ow + row * ow + column;
                double py = deform_conv_tap_place(r->node, 0, row, t / kw) + w.in[2][at];
                double px =
                    deform_conv_tap_place(r->node, 1, column, t % kw) + w.in[2][at + oh * ow];
                double m = mask ? w.in[4][((n * offset_groups + og) * taps + t) * oh * ow +
                                          row * ow + column]
                                : 1;
                sum += w.in[1][(o * weight->dims[1] + k) * taps + t] * m *
                       deform_conv_bilinear(plane, height, width, py, px);
            }
        }
        w.out[0][i] = sum;
    }
    return pith__wide_close(&w, r);
}

const pith__op pith__op_DeformConv = {
    .domain = "",
    .name = "DeformConv",
    .since = 19,
    .newest = 22,
    .min_inputs = 3,
    .max_inputs = 5,
    .max_outputs = 1,
    .types = "f",
    .attrs = "dilations ints 1..; group int 1.. = 1; kernel_shape ints 1..; "
             "offset_group int 1.. = 1; pads ints; strides ints 1..",
    .infer = deform_conv_infer,
    .scratch = pith__wide_scratch,
    .run = deform_conv_run,
};
