/* window_attrs.c - see window_attrs.h. */
#include "engine/ops/shared/window_attrs.h"

#include <string.h>

/* A list of count numbers in [least, 2^31), or count times the fallback if it is absent. */
static pith_status windows_read_list(int64_t *items, const pith__node *node, const char *name,
                                     int count, int64_t fallback, int64_t least, pith_error *err) {
    size_t given;
    const int64_t *list = pith__node_ints(node, name, &given);
    if (list && given != (size_t)count) {
        return pith__fail(err, PITH_ERR_ARGUMENT, "attribute %s has %zu numbers, expected %d", name,
                          given, count);
    }
    for (int i = 0; i < count; i++) {
        items[i] = list ? list[i] : fallback;
        if (items[i] < least || items[i] > INT32_MAX) {
            return pith__fail(err, PITH_ERR_ARGUMENT, "attribute %s[%d] is %lld", name, i,
                              (long long)items[i]);
        }
    }
    return PITH_OK;
}

static bool windows_is_same(const pith__node *node) {
    pith_str mode = pith__node_str(node, "auto_pad", "NOTSET");
    return pith__str_is(mode, "SAME_UPPER") || pith__str_is(mode, "SAME_LOWER");
}

/* kernel: the sizes that the weights have, with which kernel_shape must agree. */
pith_status pith__windows_attributes(pith__window *w, const pith__node *node, int rank,
                                     const int64_t *kernel, pith_error *err) {
    int64_t pads[2 * PITH_WINDOW_RANK];
    pith_str mode = pith__node_str(node, "auto_pad", "NOTSET");
    memset(w, 0, sizeof *w);
    if (rank < 1 || rank > PITH_WINDOW_RANK)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%d spatial axes are not supported", rank);
    w->rank = rank;
    if (!kernel && !pith__node_attr(node, "kernel_shape"))
        return pith__fail(err, PITH_ERR_ARGUMENT, "attribute kernel_shape is missing");
    PITH_TRY(windows_read_list(w->kernel, node, "kernel_shape", rank, 1, 1, err));
    if (kernel) {
        for (int i = 0; i < rank; i++) {
            if (pith__node_attr(node, "kernel_shape") && w->kernel[i] != kernel[i]) {
                return pith__fail(err, PITH_ERR_ARGUMENT,
                                  "kernel_shape[%d] is %lld, the weights have %lld", i,
                                  (long long)w->kernel[i], (long long)kernel[i]);
            }
            if (kernel[i] < 1 || kernel[i] > INT32_MAX)
                return pith__fail(err, PITH_ERR_ARGUMENT, "the weights' axis %d has size %lld",
                                  i + 2, (long long)kernel[i]);
            w->kernel[i] = kernel[i];
        }
    }
    PITH_TRY(windows_read_list(w->stride, node, "strides", rank, 1, 1, err));
    PITH_TRY(windows_read_list(w->dilation, node, "dilations", rank, 1, 1, err));
    PITH_TRY(windows_read_list(pads, node, "pads", 2 * rank, 0, 0, err));
    if (!windows_is_same(node) && !pith__str_is(mode, "VALID") && !pith__str_is(mode, "NOTSET") &&
        mode.size) {
        return pith__fail(err, PITH_ERR_ARGUMENT, "unknown auto_pad '" PITH_STR_FMT "'",
                          PITH_STR_ARG(mode));
    }
    for (int i = 0; i < rank; i++) {
        bool own = pith__str_is(mode, "NOTSET") || !mode.size;
        w->begin[i] = own ? pads[i] : 0;
        w->end[i] = own ? pads[rank + i] : 0;
    }
    return PITH_OK;
}

static int64_t windows_reach(const pith__window *w, int i) {
    return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

/* With ceil_mode, a last window that would begin in the padding at the end is left out. */
static pith__dim windows_output_ceil(pith__dims *dims, const pith__window *w, int i, pith__dim in,
                                     pith__dim room) {
    pith__dim padded = pith__dim_apply(dims, PITH_DIM_ADD, in, w->begin[i]);
    pith__dim out = pith__dim_apply(dims, PITH_DIM_CEIL_DIV, room, w->stride[i]);
    out = pith__dim_apply(dims, PITH_DIM_ADD, out, 1);
    if (w->end[i] + w->stride[i] <= windows_reach(w, i)) return out; /* none does */
    if (pith__dim_known(in)) return (out - 1) * w->stride[i] >= padded ? out - 1 : out;
    /* several would, and still one is left out */
    if (w->end[i] > windows_reach(w, i)) return PITH_DIM_UNKNOWN;
    return pith__dim_apply(dims, PITH_DIM_MIN, out,
                           pith__dim_apply(dims, PITH_DIM_CEIL_DIV, padded, w->stride[i]));
}

/* Sizes may be symbols, so all arithmetic is that of symbolic_dim.h. SAME_* depends on the stride
 * only. */
pith_status pith__windows_output(pith__dim *out, pith__dims *dims, const pith__window *w,
                                 const pith__node *node, const pith__dim *in, int64_t least,
                                 pith_error *err) {
    bool ceil_mode = pith__node_int(node, "ceil_mode", 0) != 0;
    for (int i = 0; i < w->rank; i++) {
        if (windows_is_same(node)) {
            out[i] = pith__dim_apply(dims, PITH_DIM_CEIL_DIV, in[i], w->stride[i]);
            continue;
        }
        pith__dim room = pith__dim_apply(dims, PITH_DIM_ADD, in[i],
                                         w->begin[i] + w->end[i] - windows_reach(w, i));
        if (ceil_mode) {
            out[i] = windows_output_ceil(dims, w, i, in[i], room);
        } else {
            out[i] = pith__dim_apply(dims, PITH_DIM_FLOOR_DIV, room, w->stride[i]);
            out[i] = pith__dim_apply(dims, PITH_DIM_ADD, out[i], 1);
        }
        if (pith__dim_known(out[i]) && out[i] < least) {
            return pith__fail(
                err, PITH_ERR_ARGUMENT,
                "a window of %lld is larger than the padded size %lld of spatial axis %d",
                (long long)windows_reach(w, i), (long long)(room + windows_reach(w, i)), i);
        }
    }
    return PITH_OK;
}

void pith__windows_complete(pith__window *w, const pith__node *node, const int64_t *in,
                            const int64_t *out) {
    bool lower = pith__str_is(pith__node_str(node, "auto_pad", "NOTSET"), "SAME_LOWER");
    for (int i = 0; i < w->rank; i++) {
        w->in[i] = in[i];
        w->out[i] = out[i];
        if (!windows_is_same(node)) continue;
        int64_t total = (out[i] - 1) * w->stride[i] + windows_reach(w, i) - in[i];
        if (total < 0) total = 0;
        w->begin[i] = lower ? total - total / 2 : total / 2;
        w->end[i] = total - w->begin[i];
    }
}

int64_t pith__window_entry(const pith__node *node, const char *name, int i, int64_t fallback) {
    size_t n;
    const int64_t *list = pith__node_ints(node, name, &n);
    return list && (size_t)i < n ? list[i] : fallback;
}

static bool windows_in_range(int64_t item, int64_t least) {
    return item >= least && item <= INT32_MAX;
}

/* Before inference: the attributes of a file that a pass or an export reads itself. */
pith_status pith__windows_check(const pith__node *node, int axes, pith_error *err) {
    for (int i = 0; i < axes; i++) {
        bool fits = windows_in_range(pith__window_entry(node, "kernel_shape", i, 1), 1) &&
                    windows_in_range(pith__window_entry(node, "strides", i, 1), 1) &&
                    windows_in_range(pith__window_entry(node, "dilations", i, 1), 1) &&
                    windows_in_range(pith__window_entry(node, "pads", i, 0), 0) &&
                    windows_in_range(pith__window_entry(node, "pads", axes + i, 0), 0);
        if (!fits)
            return pith__fail(
                err, PITH_ERR_ARGUMENT,
                "kernel_shape, strides, dilations or pads of axis %d are out of range", i);
    }
    return PITH_OK;
}
