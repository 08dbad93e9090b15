/* stack_tensors.c - see stack_tensors.h. Items are collected one after another and moved to their
 * axis once, at the end. */
#include "engine/ops/shared/stack_tensors.h"

#include "base/checked.h"
#include "base/dtype.h"

/* All items must be as the first one. Sequences and types of less than a byte cannot be copied to
 * an axis. */
static pith_status stack_check_item(pith__run *r, const pith_tensor *first,
                                    const pith_tensor *item) {
    if (item->dtype >= PITH_DTYPE_COUNT || pith__dtype_bits(item->dtype) < 8) {
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED, "results of type %s cannot be stacked",
                          pith__dtype_name(item->dtype));
    }
    if (item->rank >= PITH_MAX_RANK) {
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED, "rank %d cannot be stacked", item->rank);
    }
    bool same =
        first->dtype == item->dtype && first->rank == item->rank && first->bytes == item->bytes;
    for (int i = 0; same && i < item->rank; i++) same = first->dims[i] == item->dims[i];
    char a[256], b[256];
    return same ? PITH_OK
                : pith__fail(r->err, PITH_ERR_RUN, "an iteration makes %s, the first one made %s",
                             pith__dims_text(item->dims, item->rank, a, sizeof a),
                             pith__dims_text(first->dims, first->rank, b, sizeof b));
}

/* Doubles the room. The old one is freed at the end of the run. */
static pith_status stack_reserve(pith__run *r, pith__stack *stack) {
    if (stack->count < stack->capacity) return PITH_OK;
    int64_t wanted = stack->capacity ? stack->capacity * 2 : 4;
    size_t bytes;
    if (pith__mul_overflows((size_t)wanted, stack->item.bytes, &bytes))
        return pith__fail_memory(r->err, SIZE_MAX);
    char *grown = r->exec->alloc(r->exec, bytes);
    if (!grown) return pith__fail_memory(r->err, bytes);
    PITH_TRY(pith__run_bytes(r, grown, stack->data, (size_t)stack->count * stack->item.bytes));
    stack->data = grown;
    stack->capacity = wanted;
    return PITH_OK;
}

pith_status pith__stack_push(pith__run *r, pith__stack *stack, const pith_tensor *item) {
    if (!stack->count) stack->item = *item;
    PITH_TRY(stack_check_item(r, &stack->item, item));
    PITH_TRY(stack_reserve(r, stack));
    pith_tensor copy = *item;
    if (item->dtype == PITH_STRING) PITH_TRY(pith__run_copy(r, &copy, item));
    PITH_TRY(pith__run_bytes(r, stack->data + (size_t)stack->count * item->bytes, copy.data,
                             item->bytes));
    stack->count++;
    return PITH_OK;
}

/* Bytes of one index before the axis holds (outer many), and from it on. */
static void stack_split_at(const pith_tensor *item, int axis, int64_t *outer, size_t *inner) {
    *outer = 1;
    for (int i = 0; i < axis; i++) *outer *= item->dims[i];
    *inner = *outer ? item->bytes / (size_t)*outer : 0;
}

static void stack_item_from_type(pith_tensor *item, const pith__type *shape) {
    *item = (pith_tensor){ .dtype = shape->dtype, .rank = shape->rank < 0 ? 0 : shape->rank };
    for (int i = 0; i < item->rank; i++)
        item->dims[i] = pith__dim_known(shape->dims[i]) ? shape->dims[i] : 0;
}

/* Without an item the shape comes from inference, with 0 along the axis. */
pith_status pith__stack_finish(pith__run *r, int output, pith__stack *stack, int64_t axis,
                               bool reverse, const pith__type *shape) {
    if (!r->out[output]) return PITH_OK;
    if (!stack->count) stack_item_from_type(&stack->item, shape);
    const pith_tensor *item = &stack->item;
    int at;
    int64_t dims[PITH_MAX_RANK], outer;
    size_t inner;
    if (item->rank >= PITH_MAX_RANK)
        return pith__op_fail(r, "output %d has too many dimensions", output);
    PITH_TRY(pith__axis_normalize(axis, item->rank + 1, &at, r->err));
    for (int i = 0; i < at; i++) dims[i] = item->dims[i];
    dims[at] = stack->count;
    for (int i = at + 1; i <= item->rank; i++) dims[i] = item->dims[i - 1];
    PITH_TRY(pith__run_alloc(r, output, item->dtype, item->rank + 1, dims));
    stack_split_at(item, at, &outer, &inner);
    char *to = r->out[output]->data;
    if (inner) {
        int64_t spent = 0;
        for (int64_t i = 0; i < stack->count; i++) {
            const char *from = stack->data + (size_t)i * item->bytes;
            int64_t place = reverse ? stack->count - 1 - i : i;
            for (int64_t o = 0; o < outer; o++) {
                PITH_TRY(pith__run_spend(r, &spent, 8 + (int64_t)(inner / 8)));
                PITH_TRY(pith__run_bytes(r, to + (size_t)(o * stack->count + place) * inner,
                                         from + (size_t)o * inner, inner));
            }
        }
    }
    return PITH_OK;
}

/* A slice of the first axis is read where it is, any other one is gathered into buffer, which is
 * made once and used again. */
pith_status pith__stack_slice(pith__run *r, pith_tensor *item, const pith_tensor *x, int axis,
                              int64_t i, void **buffer) {
    int64_t outer, length = x->dims[axis];
    size_t row;
    stack_split_at(x, axis, &outer, &row);
    size_t inner = length ? row / (size_t)length : 0;
    *item = (pith_tensor){ .dtype = x->dtype, .rank = x->rank - 1, .bytes = inner * (size_t)outer };
    for (int k = 0; k < x->rank; k++)
        if (k != axis) item->dims[k - (k > axis)] = x->dims[k];
    item->data = (char *)x->data + (size_t)i * inner;
    if (outer == 1) return PITH_OK;
    if (!*buffer) *buffer = r->exec->alloc(r->exec, item->bytes);
    if (!*buffer) return pith__fail_memory(r->err, item->bytes);
    item->data = *buffer;
    if (inner) {
        int64_t spent = 0;
        for (int64_t o = 0; o < outer; o++) {
            PITH_TRY(pith__run_spend(r, &spent, 8 + (int64_t)(inner / 8)));
            memcpy((char *)*buffer + (size_t)o * inner,
                   (const char *)x->data + (size_t)o * row + (size_t)i * inner, inner);
        }
    }
    return PITH_OK;
}
