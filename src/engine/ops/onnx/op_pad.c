/* op_pad.c - Pad and CenterCropPad: a border around a tensor, or a part from its middle.
 *
 * Negative pads crop. Each output index along an axis maps to an input index or to none (constant),
 * through one table per axis, so the modes differ only in the table. */
#include <string.h>

#include "base/checked.h"
#include "engine/kernels/move.h"
#include "engine/ops/shared/widen_types.h"

/* Opset 1 called the attribute paddings; 2 to 10 had pads and value as attributes. */
static pith_status pad_upgrade(pith__node *node, pith_error *err) {
    if (pith__upgrade_ints(node, "paddings", 1) || pith__upgrade_ints(node, "pads", 1) ||
        pith__upgrade_float(node, "value", 2)) {
        return pith__fail_memory(err, 0);
    }
    return PITH_OK;
}

/* begin and end per axis; *known is false if some are not. */
static pith_status pad_resolve(pith__dim begin[], pith__dim end[], bool *known, pith__numbers *pads,
                               pith__numbers *axes, bool has_axes, int rank, pith_error *err) {
    *known = pads->count >= 0 && axes->count >= 0;
    for (int i = 0; i < rank; i++) begin[i] = end[i] = 0;
    if (has_axes) {
        for (int i = 0; i < axes->count; i++) *known &= pith__dim_known(axes->items[i]);
    }
    if (!*known) return PITH_OK;
    int count = has_axes ? axes->count : rank;
    if (pads->count != 2 * count)
        return pith__fail(err, PITH_ERR_ARGUMENT, "%d pads for %d axes", pads->count, count);
    if (has_axes) PITH_TRY(pith__axes_normalize(axes->items, count, rank, err));
    for (int i = 0; i < count; i++) {
        int axis = has_axes ? (int)axes->items[i] : i;
        begin[axis] = pads->items[i];
        end[axis] = pads->items[count + i];
    }
    return PITH_OK;
}

/* Sizes are input + begin + end as symbols, so a pad that is computed from a shape stays known. */
static pith_status pad_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__numbers pads, axes;
    pith__dim begin[PITH_MAX_RANK], end[PITH_MAX_RANK], dims[PITH_MAX_RANK];
    bool known;
    PITH_TRY(pith__infer_numbers(c, 1, &pads));
    PITH_TRY(pith__infer_numbers(c, 3, &axes));
    if (pith__has_input(c, 2) && c->in[2]->dtype && x->dtype && c->in[2]->dtype != x->dtype) {
        return pith__op_fail(c, "value has dtype %s, input %s", pith__dtype_name(c->in[2]->dtype),
                             pith__dtype_name(x->dtype));
    }
    if (x->rank >= 0)
        PITH_TRY(
            pad_resolve(begin, end, &known, &pads, &axes, pith__has_input(c, 3), x->rank, c->err));
    for (int i = 0; i < x->rank; i++) {
        dims[i] = known ? pith__dim_apply(
                              c->dims, PITH_DIM_ADD,
                              pith__dim_apply(c->dims, PITH_DIM_ADD, x->dims[i], begin[i]), end[i])
                        : PITH_DIM_UNKNOWN;
        if (pith__dim_known(dims[i]) && dims[i] < 0)
            return pith__op_fail(c, "axis %d would have size %lld", i, (long long)dims[i]);
    }
    pith__infer_set(c, 0, x->dtype, x->rank, dims);
    return PITH_OK;
}

enum { CONSTANT, EDGE, REFLECT, WRAP };

/* Input index of output index i; -1 for none. */
static int64_t pad_source_of(int64_t i, int64_t begin, int64_t end, int64_t n, int mode) {
    /* what a negative pad crops is gone before the border is made */
    int64_t low = begin < 0 ? -begin : 0, size = n - low + (end < 0 ? end : 0);
    int64_t at = i - (begin > 0 ? begin : 0);
    if (at >= 0 && at < size) return low + at;
    if (mode == CONSTANT || size <= 0) return -1;
    if (mode == EDGE) return low + (at < 0 ? 0 : size - 1);
    if (mode == WRAP) return low + ((at % size) + size) % size;
    int64_t period = 2 * (size - 1);
    if (period == 0) return low;
    at = ((at % period) + period) % period;
    return low + (at < size ? at : period - at);
}

static size_t pad_table_bytes(const int64_t *dims, int rank) {
    int64_t sum = 0;
    for (int i = 0; i < rank; i++) {
        if (pith__add_overflows(sum, dims[i], &sum)) return SIZE_MAX / 2;
    }
    return (size_t)sum * sizeof(int64_t);
}

static pith_status pad_scratch(const pith__infer *c, const void *state, int threads,
                               size_t *bytes) {
    (void)state;
    (void)threads;
    *bytes = pad_table_bytes(c->out[0].dims, c->out[0].rank) + 64;
    return pith__unpack_scratch(c, bytes);
}

/* y through the tables, axis by axis; `at` < 0 marks the border. */
typedef struct job {
    const pith_tensor *x;
    pith_tensor *y;
    const int64_t *table[PITH_MAX_RANK];
    int64_t strides[PITH_MAX_RANK];
    const void *value;
    size_t size;
    int64_t rows, per_part;
    int64_t straight, straight_count; /* the longest run of the last axis that is a copy: its first
                                         place, its length */
} job;

static void pad_find_straight(job *j) {
    const int last = j->y->rank - 1;
    const int64_t n = j->y->dims[last], *table = j->table[last];
    for (int64_t i = 0, run; i < n; i += run) {
        run = 1;
        while (table[i] >= 0 && i + run < n && table[i + run] == table[i] + run) run++;
        if (table[i] >= 0 && run > j->straight_count) j->straight = i, j->straight_count = run;
    }
}

/* Rows of the output. One whose place along an outer axis lies in the border is filled as a whole.
 * Inside a row the longest run of neighbouring input elements is one copy, the rest goes element by
 * element. */
static void pad_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    const pith_tensor *y = j->y;
    (void)worker;
    int last = y->rank - 1;
    int64_t n = y->dims[last], first = (int64_t)part * j->per_part,
            end = first + j->per_part < j->rows ? first + j->per_part : j->rows;
    for (int64_t row = first; row < end; row++) {
        int64_t from = 0, rest = row;
        bool border = false;
        for (int i = last - 1; i >= 0; i--) {
            int64_t at = j->table[i][rest % y->dims[i]];
            rest /= y->dims[i];
            border |= at < 0;
            from += at * j->strides[i];
        }
        char *to = (char *)y->data + (size_t)(row * n) * j->size;
        if (border) {
            pith__fill(to, j->value, n, j->size);
            continue;
        }
        for (int64_t i = 0; i < n;) {
            int64_t at = j->table[last][i],
                    run = i == j->straight && j->straight_count ? j->straight_count : 1;
            if (at < 0) {
                memcpy(to + (size_t)i * j->size, j->value, j->size);
            } else {
                memcpy(to + (size_t)i * j->size,
                       (const char *)j->x->data + (size_t)(from + at) * j->size,
                       (size_t)run * j->size);
            }
            i += run;
        }
    }
}

/* Builds a table per axis: the input index of each output index, or -1 for the value. Reflecting an
 * axis without an element is an error. */
static pith_status pad_apply(pith__run *r, const pith__dim *begin, const pith__dim *end, int mode,
                             const void *value) {
    static const uint64_t zeros[2] = { 0, 0 };
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    job j = { .x = x,
              .y = y,
              .value = value ? value : zeros,
              .size = pith__element_size(x->dtype),
              .rows = 1 };
    if (!pith__tensor_count(y)) return PITH_OK;
    if (y->rank == 0) {
        memcpy(y->data, x->data, j.size);
        return PITH_OK;
    }
    int64_t *table = r->scratch;
    pith__strides(j.strides, x->dims, x->rank);
    for (int i = 0; i < y->rank; i++) {
        j.table[i] = table;
        for (int64_t k = 0; k < y->dims[i]; k++) {
            table[k] = pad_source_of(k, begin[i], end[i], x->dims[i], mode);
            if (table[k] < 0 && mode != CONSTANT)
                return pith__op_fail(r, "axis %d has no element to fill its border with", i);
        }
        table += y->dims[i];
        if (i < y->rank - 1) j.rows *= y->dims[i];
    }
    pad_find_straight(&j);
    j.per_part = pith__run_chunk(r, j.rows, y->dims[y->rank - 1], 16384);
    pith__run_parallel(r, pad_run_part, &j, (size_t)((j.rows + j.per_part - 1) / j.per_part));
    return PITH_OK;
}

static pith_status pad_run_plain(pith__run *r) {
    static const char *const modes[] = { "constant", "edge", "reflect", "wrap" };
    pith_str name = pith__node_str(r->node, "mode", "constant");
    pith__numbers pads, axes;
    pith__dim begin[PITH_MAX_RANK], end[PITH_MAX_RANK];
    bool known;
    int mode = 0;
    while (mode < 4 && !pith__str_is(name, modes[mode])) mode++;
    if (mode == 4) return pith__op_fail(r, "unknown mode '" PITH_STR_FMT "'", PITH_STR_ARG(name));
    PITH_TRY(pith__run_numbers(r, 1, &pads));
    PITH_TRY(pith__run_numbers(r, 3, &axes));
    PITH_TRY(pad_resolve(begin, end, &known, &pads, &axes, pith__has_input(r, 3), r->in[0]->rank,
                         r->err));
    bool value = pith__has_input(r, 2) && pith__tensor_count(r->in[2]) == 1;
    return pad_apply(r, begin, end, mode, value ? r->in[2]->data : NULL);
}

static pith_status pad_run(pith__run *r) { return pith__unpack_run(r, pad_run_plain); }

const pith__op pith__op_Pad = {
    .domain = "",
    .name = "Pad",
    .since = 11,
    .newest = 25,
    .min_inputs = 2,
    .max_inputs = 4,
    .max_outputs = 1,
    .types = "alai",
    .attrs = "mode string constant|reflect|edge|wrap = constant; paddings ints! @-1; "
             "pads ints! @2-10; value float = 0 @-10",
    .upgrade = pad_upgrade,
    .shape_inputs = 1u << 1 | 1u << 3,
    .infer = pad_infer,
    .scratch = pad_scratch,
    .run = pad_run
};

/* ---- CenterCropPad ---- */

static pith_status pad_center_axes(const pith__node *node, int rank, pith__dim *axes, int *count,
                                   pith_error *err) {
    size_t n;
    const int64_t *items = pith__node_ints(node, "axes", &n);
    if (n > (size_t)rank) return pith__fail(err, PITH_ERR_ARGUMENT, "more axes than the input has");
    *count = items ? (int)n : rank;
    for (int i = 0; i < *count; i++) axes[i] = items ? items[i] : i;
    return pith__axes_normalize(axes, *count, rank, err);
}

/* Sizes along the named axes are given; the others stay. */
static pith_status pad_infer_center(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__numbers shape;
    pith__dim axes[PITH_MAX_RANK], dims[PITH_MAX_RANK];
    int count = 0;
    PITH_TRY(pith__infer_numbers(c, 1, &shape));
    if (x->rank >= 0) PITH_TRY(pad_center_axes(c->node, x->rank, axes, &count, c->err));
    if (x->rank >= 0 && shape.count >= 0 && shape.count != count)
        return pith__op_fail(c, "%d sizes for %d axes", shape.count, count);
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    for (int i = 0; i < count; i++) {
        dims[axes[i]] = shape.count >= 0 ? shape.items[i] : PITH_DIM_UNKNOWN;
        if (pith__dim_known(dims[axes[i]]) && dims[axes[i]] < 0)
            return pith__op_fail(c, "shape[%d] is negative", i);
    }
    pith__infer_set(c, 0, x->dtype, x->rank, dims);
    return PITH_OK;
}

/* The smaller half of an odd border comes first; of an odd crop as well. */
static pith_status pad_run_center(pith__run *r) {
    pith__dim begin[PITH_MAX_RANK], end[PITH_MAX_RANK];
    for (int i = 0; i < r->in[0]->rank; i++) {
        int64_t more = r->out[0]->dims[i] - r->in[0]->dims[i];
        begin[i] = more / 2;
        end[i] = more - begin[i];
    }
    return pad_apply(r, begin, end, CONSTANT, NULL);
}

const pith__op pith__op_CenterCropPad = { .domain = "",
                                          .name = "CenterCropPad",
                                          .since = 18,
                                          .newest = 18,
                                          .min_inputs = 2,
                                          .max_inputs = 2,
                                          .max_outputs = 1,
                                          .types = "mi",
                                          .attrs = "axes ints",
                                          .shape_inputs = 1u << 1,
                                          .infer = pad_infer_center,
                                          .prepare = pith__prepare_movable,
                                          .scratch = pad_scratch,
                                          .run = pad_run_center };
