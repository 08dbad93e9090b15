/* op_grid.c - AffineGrid, Col2Im, MaxUnpool and DeformConv: sampling grids and the inverses of
 * sliding windows. Source: ONNX operators of these names. */
#include <math.h>

#include "base/checked.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/infer_shapes.h"

/* ---- AffineGrid ---- */

static pith_status infer_affine(pith__infer *c) {
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

static double grid_place(int64_t i, int64_t n, bool corners) {
    if (corners) return n > 1 ? -1 + 2.0 * (double)i / (double)(n - 1) : -1;
    return -1 + (2.0 * (double)i + 1) / (double)n;
}

static pith_status run_affine(pith__run *r) {
    const pith_tensor *y = r->out[0];
    int axes = y->rank - 2;
    if (pith__tensor_count(r->in[0]) != y->dims[0] * axes * (axes + 1))
        return pith__op_fail(r, "theta does not fit size");
    bool corners = pith__node_int(r->node, "align_corners", 0) != 0;
    pith__wide w;
    pith__wide_open(&w, r);
    int64_t points = 1;
    for (int d = 0; d < axes; d++) points *= y->dims[1 + d];
    for (int64_t i = 0; i < y->dims[0] * points; i++) {
        double place[4]; /* x, y(, z), 1 */
        int64_t rest = i % points;
        for (int d = 0; d < axes; d++) {
            int64_t n = y->dims[axes - d];
            place[d] = grid_place(rest % n, n, corners);
            rest /= n;
        }
        place[axes] = 1;
        const double *theta = w.in[0] + i / points * axes * (axes + 1);
        for (int row = 0; row < axes; row++)
            for (int k = 0; k <= axes; k++)
                w.out[0][i * axes + row] += theta[row * (axes + 1) + k] * place[k];
    }
    pith__wide_close(&w, r);
    return PITH_OK;
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
    .infer = infer_affine,
    .scratch = pith__wide_scratch,
    .run = run_affine,
};

/* ---- windows ---- */

/* Entry of an ints attribute, or the fall-back. */
static int64_t entry(const pith__node *node, const char *name, int i, int64_t fallback) {
    size_t n;
    const int64_t *list = pith__node_ints(node, name, &n);
    return list && (size_t)i < n ? list[i] : fallback;
}

static pith_status check_windows(const pith__node *node, int axes, pith_error *err) {
    for (int i = 0; i < axes; i++) {
        int64_t stride = entry(node, "strides", i, 1), dilation = entry(node, "dilations", i, 1);
        int64_t before = entry(node, "pads", i, 0), after = entry(node, "pads", axes + i, 0);
        int64_t kernel = entry(node, "kernel_shape", i, 1);
        if (stride < 1 || dilation < 1 || kernel < 1 || stride > INT32_MAX ||
            dilation > INT32_MAX || kernel > INT32_MAX || before < 0 || after < 0 ||
            before > INT32_MAX || after > INT32_MAX)
            return pith__fail(
                err, PITH_ERR_ARGUMENT,
                "kernel_shape, strides, dilations or pads of axis %d are out of range", i);
    }
    return PITH_OK;
}

/* ---- Col2Im ---- */

static pith_status infer_col2im(pith__infer *c) {
    const pith__type *x = c->in[0], *image = c->in[1], *block = c->in[2];
    if (x->rank >= 0 && x->rank != 3)
        return pith__op_fail(c, "input has %d dimensions, not 3", x->rank);
    int axes = image->rank == 1 && pith__dim_known(image->dims[0]) ? (int)image->dims[0] : -1;
    if (axes > PITH_MAX_RANK - 2) return pith__op_fail(c, "%d axes are too many", axes);
    PITH_TRY(check_windows(c->node, axes, c->err));
    pith__dim dims[PITH_MAX_RANK], volume = 1;
    for (int i = 0; i < axes; i++) {
        pith__dim b;
        if (!pith__type_elem(image, i, &dims[2 + i])) dims[2 + i] = PITH_DIM_UNKNOWN;
        if (!pith__type_elem(block, i, &b)) b = PITH_DIM_UNKNOWN;
        if (pith__dim_known(b) && (b < 1 || b > INT32_MAX))
            return pith__op_fail(c, "block_shape[%d] is out of range", i);
        volume = pith__dim_apply(c->dims, PITH_DIM_MUL, volume, b);
    }
    dims[0] = x->rank == 3 ? x->dims[0] : PITH_DIM_UNKNOWN;
    dims[1] = x->rank == 3 ? pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, x->dims[1], volume)
                           : PITH_DIM_UNKNOWN;
    pith__type_set(&c->out[0], x->dtype, axes < 0 ? -1 : axes + 2, dims);
    return PITH_OK;
}

static pith_status run_col2im(pith__run *r) {
    const pith_tensor *x = r->in[0], *y = r->out[0];
    int axes = y->rank - 2;
    const int64_t *block = r->in[2]->data;
    int64_t volume = 1, blocks = 1, size = 1, counts[PITH_MAX_RANK];
    for (int d = 0; d < axes; d++) {
        int64_t span = (block[d] - 1) * entry(r->node, "dilations", d, 1) + 1;
        int64_t room = y->dims[2 + d] + entry(r->node, "pads", d, 0) +
                       entry(r->node, "pads", axes + d, 0) - span;
        counts[d] = room < 0 ? 0 : room / entry(r->node, "strides", d, 1) + 1;
        if (pith__mul_overflows(volume, block[d], &volume) ||
            pith__mul_overflows(blocks, counts[d], &blocks) ||
            pith__mul_overflows(volume, y->dims[1], &(int64_t){ 0 }))
            return pith__op_fail(r, "the blocks are too large");
        size *= y->dims[2 + d];
    }
    if (x->dims[1] != y->dims[1] * volume || x->dims[2] != blocks)
        return pith__fail(r->err, PITH_ERR_ARGUMENT, "the input must be [batch, %lld, %lld]",
                          (long long)(y->dims[1] * volume), (long long)blocks);
    pith__wide w;
    pith__wide_open(&w, r);
    int parts = pith__parts(x->dtype);
    for (int64_t row = 0; row < x->dims[0] * x->dims[1]; row++) {
        for (int64_t b = 0; b < blocks; b++) {
            int64_t k = row % volume, at = b, index = 0, stride = 1;
            bool inside = true;
            for (int d = axes - 1; d >= 0; d--) {
                int64_t place = at % counts[d] * entry(r->node, "strides", d, 1) +
                                k % block[d] * entry(r->node, "dilations", d, 1) -
                                entry(r->node, "pads", d, 0);
                inside &= place >= 0 && place < y->dims[2 + d];
                index += place * stride;
                stride *= y->dims[2 + d];
                at /= counts[d];
                k /= block[d];
            }
            for (int p = 0; inside && p < parts; p++)
                w.out[0][(row / volume * size + index) * parts + p] +=
                    w.in[0][(row * blocks + b) * parts + p];
        }
    }
    pith__wide_close(&w, r);
    return PITH_OK;
}

const pith__op pith__op_Col2Im = {
    .domain = "",
    .name = "Col2Im",
    .since = 18,
    .newest = 18,
    .min_inputs = 3,
    .max_inputs = 3,
    .max_outputs = 1,
    .types = "Sl",
    .attrs = "dilations ints 1..; pads ints; strides ints 1..",
    .shape_inputs = 1u << 1 | 1u << 2,
    .infer = infer_col2im,
    .scratch = pith__wide_scratch,
    .run = run_col2im,
    .note = "no strings, which cannot be added",
};

/* ---- MaxUnpool ---- */

static pith__dim unpooled(const pith__infer *c, int axes, int d) {
    pith__dim n = pith__dim_apply(c->dims, PITH_DIM_SUB, c->in[0]->dims[2 + d], 1);
    n = pith__dim_apply(c->dims, PITH_DIM_MUL, n, entry(c->node, "strides", d, 1));
    int64_t pads = entry(c->node, "pads", d, 0) + entry(c->node, "pads", axes + d, 0);
    return pith__dim_apply(c->dims, PITH_DIM_ADD, n, entry(c->node, "kernel_shape", d, 1) - pads);
}

static pith_status infer_unpool(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->rank >= 0 && x->rank < 3)
        return pith__op_fail(c, "input has %d dimensions, at least 3 are needed", x->rank);
    PITH_TRY(check_windows(c->node, x->rank - 2, c->err));
    pith__type_set(&c->out[0], x->dtype, x->rank, x->dims);
    for (int d = 0; d < x->rank - 2; d++) c->out[0].dims[2 + d] = unpooled(c, x->rank - 2, d);
    for (int d = 0; c->in_count > 2 && c->in[2] && d < x->rank; d++)
        if (!pith__type_elem(c->in[2], d, &c->out[0].dims[d])) c->out[0].dims[d] = PITH_DIM_UNKNOWN;
    return PITH_OK;
}

static pith_status run_unpool(pith__run *r) {
    const pith_tensor *x = r->in[0], *y = r->out[0];
    if (pith__tensor_count(r->in[1]) != pith__tensor_count(x))
        return pith__op_fail(r, "indices do not fit the input");
    pith__wide w;
    pith__wide_open(&w, r);
    /* Indices count in the inferred shape, which a larger output_shape frames. */
    int axes = x->rank - 2;
    int64_t from[PITH_MAX_RANK], total = x->dims[0] * x->dims[1];
    for (int d = 0; d < axes; d++) {
        int64_t rest = entry(r->node, "kernel_shape", d, 1) - entry(r->node, "pads", d, 0) -
                       entry(r->node, "pads", axes + d, 0);
        if (pith__mul_overflows(x->dims[2 + d] - 1, entry(r->node, "strides", d, 1), &from[d]) ||
            pith__add_overflows(from[d], rest, &from[d]) || from[d] < 0 ||
            pith__mul_overflows(total, from[d], &total))
            return pith__op_fail(r, "kernel and pads do not fit");
    }
    for (int64_t i = 0; i < pith__tensor_count(x); i++) {
        int64_t at = ((const int64_t *)r->in[1]->data)[i], index = 0, stride = 1;
        if (at < 0 || at >= total)
            return pith__fail(r->err, PITH_ERR_RUN, "index %lld is outside of the output",
                              (long long)at);
        bool inside = true;
        for (int d = axes - 1; d >= 0; d--) {
            inside &= at % from[d] < y->dims[2 + d];
            index += at % from[d] * stride;
            stride *= y->dims[2 + d];
            at /= from[d];
        }
        inside &= at < y->dims[0] * y->dims[1];
        if (inside) w.out[0][at * stride + index] = w.in[0][i];
    }
    pith__wide_close(&w, r);
    return PITH_OK;
}

const pith__op pith__op_MaxUnpool = {
    .domain = "",
    .name = "MaxUnpool",
    .since = 9,
    .newest = 22,
    .min_inputs = 2,
    .max_inputs = 3,
    .max_outputs = 1,
    .types = "fl",
    .attrs = "kernel_shape ints! 1..; pads ints; strides ints 1..",
    .shape_inputs = 1u << 2,
    .infer = infer_unpool,
    .scratch = pith__wide_scratch,
    .run = run_unpool,
};

/* ---- DeformConv, two-dimensional ---- */

static pith_status infer_deform(pith__infer *c) {
    const pith__type *x = c->in[0], *weight = c->in[1], *offset = c->in[2];
    for (int i = 0; i < 3; i++)
        if (c->in[i]->rank >= 0 && c->in[i]->rank != 4)
            return pith__fail(c->err, PITH_ERR_UNSUPPORTED,
                              "input %d has %d dimensions; only images are supported", i,
                              c->in[i]->rank);
    PITH_TRY(check_windows(c->node, 2, c->err));
    if (x->rank < 0 || weight->rank < 0 || offset->rank < 0) return PITH_OK;
    pith__type_set(&c->out[0], x->dtype, 4,
                   (pith__dim[]){ x->dims[0], weight->dims[0], offset->dims[2], offset->dims[3] });
    return PITH_OK;
}

/* Bilinear, zero outside. */
static double bilinear(const double *plane, int64_t height, int64_t width, double y, double x) {
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
static double tap_place(const pith__node *node, int axis, int64_t i, int64_t k) {
    double stride = (double)entry(node, "strides", axis, 1),
           dilation = (double)entry(node, "dilations", axis, 1);
    return (double)i * stride - (double)entry(node, "pads", axis, 0) + (double)k * dilation;
}

static pith_status run_deform(pith__run *r) {
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
    pith__wide_open(&w, r);
    for (int64_t i = 0; i < pith__tensor_count(y); i++) {
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
                double py = tap_place(r->node, 0, row, t / kw) + w.in[2][at];
                double px = tap_place(r->node, 1, column, t % kw) + w.in[2][at + oh * ow];
                double m = mask ? w.in[4][((n * offset_groups + og) * taps + t) * oh * ow +
                                          row * ow + column]
                                : 1;
                sum += w.in[1][(o * weight->dims[1] + k) * taps + t] * m *
                       bilinear(plane, height, width, py, px);
            }
        }
        w.out[0][i] = sum;
    }
    pith__wide_close(&w, r);
    return PITH_OK;
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
    .infer = infer_deform,
    .scratch = pith__wide_scratch,
    .run = run_deform,
};
