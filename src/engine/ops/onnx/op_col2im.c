/* op_col2im.c - Col2Im: columns of sliding blocks added back into an image, the inverse of what a
 * convolution takes apart. An element that several blocks cover is their sum, in ascending order of
 * blocks. Source: ONNX Col2Im (opset 18). */
#include "base/checked.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/window_attrs.h"

/* The image's shape is the second input. Channels are what is left of the input's rows after the
 * block's volume. */
static pith_status col2im_infer(pith__infer *c) {
    const pith__type *x = c->in[0], *image = c->in[1], *block = c->in[2];
    if (x->rank >= 0 && x->rank != 3)
        return pith__op_fail(c, "input has %d dimensions, not 3", x->rank);
    int axes = image->rank == 1 && pith__dim_known(image->dims[0]) ? (int)image->dims[0] : -1;
    if (axes > PITH_MAX_RANK - 2) return pith__op_fail(c, "%d axes are too many", axes);
    PITH_TRY(pith__windows_check(c->node, axes, c->err));
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

/* Each element of a column is added to its place in the image, or dropped if that lies in the
 * padding. Complex numbers are two doubles next to each other. */
static pith_status col2im_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *y = r->out[0];
    int axes = y->rank - 2;
    const int64_t *block = r->in[2]->data;
    int64_t volume = 1, blocks = 1, size = 1, counts[PITH_MAX_RANK];
    for (int d = 0; d < axes; d++) {
        int64_t span = (block[d] - 1) * pith__window_entry(r->node, "dilations", d, 1) + 1;
        int64_t room = y->dims[2 + d] + pith__window_entry(r->node, "pads", d, 0) +
                       pith__window_entry(r->node, "pads", axes + d, 0) - span;
        counts[d] = room < 0 ? 0 : room / pith__window_entry(r->node, "strides", d, 1) + 1;
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
    PITH_TRY(pith__wide_open(&w, r));
    int parts = pith__parts(x->dtype);
    for (int64_t row = 0; row < x->dims[0] * x->dims[1]; row++) {
        PITH_TRY(pith__run_look(r));
        for (int64_t b = 0; b < blocks; b++) {
            int64_t k = row % volume, at = b, index = 0, stride = 1;
            bool inside = true;
            for (int d = axes - 1; d >= 0; d--) {
                int64_t place = at % counts[d] * pith__window_entry(r->node, "strides", d, 1) +
                                k % block[d] * pith__window_entry(r->node, "dilations", d, 1) -
                                pith__window_entry(r->node, "pads", d, 0);
                inside &= place >= 0 && place < y->dims[2 + d];
                index += place * stride;
                stride *= y->dims[2 + d];
                at /= counts[d];
                k /= block[d];
            }
            if (inside) {
                for (int p = 0; p < parts; p++)
                    w.out[0][(row / volume * size + index) * parts + p] +=
                        w.in[0][(row * blocks + b) * parts + p];
            }
        }
    }
    return pith__wide_close(&w, r);
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
    .infer = col2im_infer,
    .scratch = pith__wide_scratch,
    .run = col2im_run,
    .note = "no strings, which cannot be added",
};
