/* op_slice.c - Slice: a box of a tensor, with steps that may run backwards. */
#include "base/checked.h"
#include "engine/kernels/move.h"
#include "engine/ops/shared/infer_shapes.h"

static pith_status slice_upgrade(pith__node *node, pith_error *err) {
    if (pith__upgrade_ints(node, "starts", 1) || pith__upgrade_ints(node, "ends", 2) ||
        pith__upgrade_ints(node, "axes", 3)) {
        return pith__fail_memory(err, 0);
    }
    return PITH_OK;
}

typedef struct box {
    pith__dim start[PITH_MAX_RANK], size[PITH_MAX_RANK], step[PITH_MAX_RANK];
} box;

/* start and end clamped into an axis of n as the standard says; everything known. */
static void slice_clamp(int64_t n, int64_t start, int64_t end, int64_t step, pith__dim *first,
                        pith__dim *size) {
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    if (start < 0) start = start < -n ? 0 : start + n;
    if (end < 0) end = end < -n ? low : end + n;
    start = start > high ? high : start;
    end = end > high ? high : end;
    int64_t distance = step > 0 ? end - start : start - end;
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    *first = start;
    *size = distance <= 0 ? 0 : (int64_t)(((uint64_t)distance - 1) / stride + 1);
}

/* The size of a box along a symbolic axis: an `end` past every size means the axis' end; a symbolic
 * end within an axis of fixed length (a table of positions) is taken at its word, binding checks
 * it. */
static pith__dim slice_symbolic_size(pith__dims *dims, pith__dim n, pith__dim start, pith__dim end,
                                     pith__dim step) {
    if (!pith__dim_known(step) || start == PITH_DIM_UNKNOWN || end == PITH_DIM_UNKNOWN)
        return PITH_DIM_UNKNOWN;
    if (step == -1 && pith__dim_known(start) && start == -1 && pith__dim_known(end) &&
        end < -INT32_MAX)
        return n;
    bool far = (pith__dim_known(end) && end <= -INT32_MAX) ||
               (pith__dim_known(start) && (start <= -INT32_MAX || start >= INT32_MAX));
    if (step <= 0 || far) return PITH_DIM_UNKNOWN;
    bool whole = pith__dim_known(end) && end >= INT32_MAX;
    if (pith__dim_known(start) && start < 0) start = pith__dim_apply(dims, PITH_DIM_ADD, n, start);
    if (whole)
        end = n;
    else if (pith__dim_known(end) && end < 0)
        end = pith__dim_apply(dims, PITH_DIM_ADD, n, end);
    else if (pith__dim_known(end))
        end = pith__dim_apply(dims, PITH_DIM_MIN, n, end);
    pith__dim size = pith__dim_apply(dims, PITH_DIM_SUB, end, start);
    if (pith__dim_known(size) && size < 0) size = 0;
    return step == 1 ? size : pith__dim_apply(dims, PITH_DIM_CEIL_DIV, size, step);
}

/* start, size and step for every axis; axes that are not named are whole. Known numbers are clamped
 * exactly as the standard says, symbols as far as they allow. */
static pith_status slice_resolve(box *b, pith__dims *symbols, int rank, const pith__dim *dims,
                                 pith__numbers list[4], bool has_axes, bool has_steps,
                                 pith_error *err) {
    for (int i = 0; i < rank; i++) {
        b->start[i] = 0;
        b->size[i] = dims[i];
        b->step[i] = 1;
    }
    int count = list[0].count;
    if (list[1].count != count || (has_axes && list[2].count != count) ||
        (has_steps && list[3].count != count)) {
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "starts, ends, axes and steps have different lengths");
    }
    if (!has_axes) {
        for (int i = 0; i < count; i++) list[2].items[i] = i;
    }
    PITH_TRY(pith__axes_normalize(list[2].items, count, rank, err));
    for (int i = 0; i < count; i++) {
        int axis = (int)list[2].items[i];
        pith__dim start = list[0].items[i], end = list[1].items[i],
                  step = has_steps ? list[3].items[i] : 1;
        if (step == 0) return pith__fail(err, PITH_ERR_ARGUMENT, "steps[%d] is 0", i);
        b->step[axis] = step;
        b->start[axis] = start;
        if (pith__dim_known(dims[axis]) && pith__dim_known(start) && pith__dim_known(end) &&
            pith__dim_known(step)) {
            slice_clamp(dims[axis], start, end, step, &b->start[axis], &b->size[axis]);
        } else {
            b->size[axis] = slice_symbolic_size(symbols, dims[axis], start, end, step);
        }
    }
    return PITH_OK;
}

/* If an axis list is not known, nothing is. A slice of known contents stays known. */
static pith_status slice_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__numbers list[4];
    pith__dim unknown[PITH_MAX_RANK];
    bool axes = pith__has_input(c, 3), steps = pith__has_input(c, 4);
    for (int i = 0; i < 4; i++) PITH_TRY(pith__infer_numbers(c, i + 1, &list[i]));
    bool known = x->rank >= 0 && list[0].count >= 0 && list[1].count >= 0 && list[2].count >= 0 &&
                 list[3].count >= 0;
    if (axes) {
        for (int i = 0; i < list[2].count; i++) known &= pith__dim_known(list[2].items[i]);
    }
    for (int i = 0; i < x->rank; i++) unknown[i] = PITH_DIM_UNKNOWN;
    if (!known) {
        pith__infer_set(c, 0, x->dtype, x->rank, unknown);
        return PITH_OK;
    }
    box b;
    PITH_TRY(slice_resolve(&b, c->dims, x->rank, x->dims, list, axes, steps, c->err));
    pith__infer_set(c, 0, x->dtype, x->rank, b.size);
    int64_t count;
    pith__dim *elems =
        x->rank == 1 && (x->data || x->elems) ? pith__infer_new_elems(c, &count) : NULL;
    if (!elems || !pith__dim_known(b.start[0]) || !pith__dim_known(b.step[0])) return PITH_OK;
    for (int64_t i = 0; i < count; i++) {
        if (!pith__type_elem(x, b.start[0] + i * b.step[0], &elems[i])) return PITH_OK;
    }
    c->out[0].elems = elems;
    return PITH_OK;
}

/* One strided copy from the first element of the box. A stride that would overflow belongs to an
 * axis of one element and is not used. */
static pith_status slice_run(pith__run *r) {
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    pith__numbers list[4];
    box b;
    int64_t own[PITH_MAX_RANK], from[PITH_MAX_RANK], to[PITH_MAX_RANK], at = 0;
    if (!pith__tensor_count(y)) return PITH_OK;
    for (int i = 0; i < 4; i++) PITH_TRY(pith__run_numbers(r, i + 1, &list[i]));
    PITH_TRY(slice_resolve(&b, NULL, x->rank, x->dims, list, pith__has_input(r, 3),
                           pith__has_input(r, 4), r->err));
    pith__strides(own, x->dims, x->rank);
    pith__strides(to, y->dims, y->rank);
    for (int i = 0; i < x->rank; i++) {
        at += b.start[i] * own[i];
        if (y->dims[i] < 2 || pith__mul_overflows(own[i], b.step[i], &from[i])) from[i] = 0;
    }
    size_t size = pith__element_size(x->dtype);
    pith__run_move(r, y->data, to, (const char *)x->data + (size_t)at * size, from, y->dims,
                   y->rank, size);
    return PITH_OK;
}

const pith__op pith__op_Slice = { .domain = "",
                                  .name = "Slice",
                                  .since = 10,
                                  .newest = 13,
                                  .min_inputs = 3,
                                  .max_inputs = 5,
                                  .max_outputs = 1,
                                  .types = "mi",
                                  .attrs =
                                      "axes ints @-9; ends ints! any @-9; starts ints! any @-9",
                                  .upgrade = slice_upgrade,
                                  .shape_inputs = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
                                  .infer = slice_infer,
                                  .prepare = pith__prepare_movable,
                                  .run = slice_run };
