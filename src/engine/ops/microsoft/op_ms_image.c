/* op_ms_image.c - com.microsoft's CropAndResize, MaxpoolWithMask, WordConvEmbedding and
 * ConvTransposeWithDynamicPads. Source: ONNX Runtime's ContribOperators.md. */
#include <float.h>
#include <math.h>

#include "engine/ops/shared/compose_ops.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/window_attrs.h"

/* ---- CropAndResize: boxes of images, each sampled to one size, corners on corners ---- */

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
    for (int i = 0; i < 2 && size.count == 2; i++) {
        out[2 + i] = size.items[i];
        if (pith__dim_known(size.items[i]) && size.items[i] < 1)
            return pith__op_fail(c, "crop_size is not positive");
    }
    pith__infer_set(c, 0, x->dtype, 4, out);
    return PITH_OK;
}

/* Place i of n between a and b, of an axis of `size`. */
static double crop_place(double a, double b, int64_t i, int64_t n, int64_t size) {
    double last = (double)(size - 1);
    return n > 1 ? a * last + (double)i * ((b - a) * last / (double)(n - 1)) : 0.5 * (a + b) * last;
}

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

/* ---- ConvTransposeWithDynamicPads: the whole result of ConvTranspose, cut at both ends ---- */

static pith_status upgrade_dynamic_pads(pith__node *node, pith_error *err) {
    static const char *const kept[] = { "auto_pad",       "dilations", "group", "kernel_shape",
                                        "output_padding", "strides",   NULL };
    PITH_TRY(pith__compose_require(node, 3u, 1, err));
    pith__value *in[] = { pith__node_input(node, 0), pith__node_input(node, 1),
                          pith__node_input(node, 3) },
                *pads = pith__node_input(node, 2);
    pith__value *y =
        pith__with_attributes(pith__compose(node, "", "ConvTranspose", in, 3, 1), node, kept);
    if (!pads || !y) return pith__compose_become(node, y, err);
    pith__value *none = pith__graph_add_i64s(node->graph, PITH_STR(""), (int64_t[]){ 0, 0 }, 2),
                *cut[2];
    pads = pith__compose_list(node, "Reshape", pads, (int64_t[]){ 2, -1 }, 2);
    for (int64_t i = 0; i < 2; i++) {
        cut[i] = pith__compose_list(
            node, "Reshape", pith__compose_list(node, "Gather", pads, &i, 1), (int64_t[]){ -1 }, 1);
        cut[i] = none ? pith__compose_join(node, none, cut[i]) : NULL;
    }
    cut[1] = pith__compose2(node, "Sub", pith__compose1(node, "Shape", y), cut[1]);
    return pith__compose_become(
        node, cut[0] ? pith__compose3(node, "Slice", y, cut[0], cut[1]) : NULL, err);
}

PITH_OP_COMPOSED(
    ConvTransposeWithDynamicPads_ms, "com.microsoft", "ConvTransposeWithDynamicPads", 2, 4, 1,
    upgrade_dynamic_pads, NULL,
    .attrs =
        "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
        "dilations ints 1..; group int 1.. = 1; kernel_shape ints 1..; output_padding ints 0..; "
        "strides ints 1..")

/* ---- WordConvEmbedding: words as vectors, out of a convolution over the vectors of their
 * characters ---- */

static pith_status word_infer(pith__infer *c) {
    const pith__type *ids = c->in[0], *w = c->in[1], *chars = c->in[3];
    pith__dim dims[PITH_MAX_RANK];
    if (ids->rank == 0 || (w->rank >= 0 && w->rank != 4) || (chars->rank >= 0 && chars->rank != 2))
        return pith__op_fail(c, "Sequence must have a dimension, W four and C two");
    for (int i = 0; i < ids->rank; i++) dims[i] = ids->dims[i];
    if (ids->rank > 0) dims[ids->rank - 1] = w->rank == 4 ? w->dims[0] : PITH_DIM_UNKNOWN;
    pith__infer_set(c, 0, PITH_F32, ids->rank, dims);
    return PITH_OK;
}

static pith_status word_run(pith__run *r) {
    const pith_tensor *ids = r->in[0], *w = r->in[1], *chars = r->in[3];
    int64_t length = ids->dims[ids->rank - 1], maps = w->dims[0], window = w->dims[2],
            width = w->dims[3];
    int64_t known = chars->dims[0], words = length ? pith__tensor_count(ids) / length : 0;
    if (w->dims[1] != 1 || chars->dims[1] != width || window < 1 || window > length ||
        pith__tensor_count(r->in[2]) != maps)
        return pith__op_fail(r, "W, B and C do not fit words of %lld characters",
                             (long long)length);
    const float *table = chars->data, *filters = w->data, *bias = r->in[2]->data;
    for (int64_t word = 0; word < words; word++) {
        const int32_t *id = (const int32_t *)ids->data + word * length;
        float *y = (float *)r->out[0]->data + word * maps;
        int64_t used = 0;
        while (used < length && id[used] > 0) used++;
        for (int64_t i = 0; i < length; i++)
            if (id[i] < 0 || id[i] >= known)
                return pith__op_fail(r, "character %d is outside of %lld", id[i], (long long)known);
        for (int64_t m = 0; m < maps; m++) {
            float most = used ? -INFINITY : 0;
            for (int64_t at = 0; used && (at == 0 || at + window <= used); at++) {
                double sum = (double)bias[m];
                for (int64_t k = 0; k < window; k++)
                    for (int64_t i = 0; i < width; i++)
                        sum += (double)filters[(m * window + k) * width + i] *
                               (double)table[id[at + k] * width + i];
                most = fmaxf(most, (float)tanh(sum));
            }
            y[m] = most;
        }
    }
    return PITH_OK;
}

const pith__op pith__op_WordConvEmbedding_ms = {
    .domain = "com.microsoft",
    .name = "WordConvEmbedding",
    .since = 1,
    .newest = 1,
    .min_inputs = 4,
    .max_inputs = 4,
    .max_outputs = 1,
    .types = "we",
    .attrs = "char_embedding_size int; conv_window_size int; embedding_size int",
    .infer = word_infer,
    .run = word_run
};

/* ---- MaxpoolWithMask: MaxPool whose windows end, row by row, where the mask is 0 ---- */

static pith_status masked_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__window w;
    pith__dim dims[PITH_MAX_RANK];
    if (x->rank >= 0 && (x->rank < 3 || x->rank > 5))
        return pith__op_fail(c, "X has %d dimensions, not 3 to 5", x->rank);
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    if (x->rank >= 0) {
        PITH_TRY(pith__windows_attributes(&w, c->node, x->rank - 2, NULL, c->err));
        PITH_TRY(pith__windows_output(dims + 2, c->dims, &w, c->node, x->dims + 2, 0, c->err));
    }
    pith__infer_set(c, 0, x->dtype, x->rank, dims);
    return PITH_OK;
}

/* The largest element of the window of three axes whose first place is `start`. The plane's first
 * element counts whatever its mask, if it has more axes than one. */
static float masked_max(const pith__window *w, const int64_t *start, const float *x,
                        const int32_t *mask) {
    float most = -FLT_MAX;
    int64_t end[3];
    for (int i = 0; i < 3; i++) {
        end[i] = start[i] + w->kernel[i];
        if (end[i] > w->in[i]) end[i] = w->in[i];
    }
    for (int64_t a = start[0] > 0 ? start[0] : 0; a < end[0]; a++) {
        for (int64_t b = start[1] > 0 ? start[1] : 0; b < end[1]; b++) {
            for (int64_t c = start[2] > 0 ? start[2] : 0; c < end[2]; c++) {
                int64_t at = (a * w->in[1] + b) * w->in[2] + c;
                if ((at > 0 || w->rank == 1) && !mask[at]) break;
                if (x[at] > most) most = x[at];
            }
        }
    }
    return most;
}

static pith_status masked_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *mask = r->in[1];
    pith__window own, w;
    PITH_TRY(pith__windows_attributes(&own, r->node, x->rank - 2, NULL, r->err));
    pith__windows_complete(&own, r->node, x->dims + 2, r->out[0]->dims + 2);
    w.rank = own.rank;
    for (int i = 0; i < 3; i++) {
        int from = i - (3 - own.rank); /* axes that are not there are of 1 */
        w.in[i] = from < 0 ? 1 : own.in[from], w.out[i] = from < 0 ? 1 : own.out[from];
        w.kernel[i] = from < 0 ? 1 : own.kernel[from],
        w.stride[i] = from < 0 ? 1 : own.stride[from];
        w.begin[i] = from < 0 ? 0 : own.begin[from];
    }
    int64_t plane = pith__window_count(w.in, 3), pixels = pith__window_count(w.out, 3),
            planes = x->dims[0] * x->dims[1];
    int64_t masked = plane ? pith__tensor_count(mask) / plane : 0;
    if (pith__tensor_count(r->out[0]) == 0) return PITH_OK;
    if (masked < 1 || pith__tensor_count(mask) % plane)
        return pith__op_fail(r, "the mask does not fit X");
    float *y = r->out[0]->data;
    for (int64_t i = 0; i < planes * pixels; i++) {
        int64_t at = i % pixels, c = i / pixels;
        int64_t out[3] = { at / (w.out[1] * w.out[2]), at / w.out[2] % w.out[1], at % w.out[2] },
                start[3];
        for (int k = 0; k < 3; k++) start[k] = out[k] * w.stride[k] - w.begin[k];
        y[i] = masked_max(&w, start, (const float *)x->data + c * plane,
                          (const int32_t *)mask->data + c % masked * plane);
    }
    return PITH_OK;
}

const pith__op pith__op_MaxpoolWithMask_ms = {
    .domain = "com.microsoft",
    .name = "MaxpoolWithMask",
    .since = 1,
    .newest = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "ew",
    .attrs = "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; kernel_shape ints 1..; "
             "pads ints; "
             "storage_order bool = 0; strides ints 1..",
    .infer = masked_infer,
    .run = masked_run
};
