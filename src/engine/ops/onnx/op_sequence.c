/* op_sequence.c - sequences of tensors: made, taken apart, joined.
 *
 * A sequence is an array of tensors whose contents never change, so a new sequence may share the
 * items of an old one. Items made from tensors are copies, since the memory of a tensor may be
 * reused. */
#include <inttypes.h>

#include "base/dtype.h"
#include "engine/ops/op.h"

static void sequence_set_sequence(pith__type *type, int item_dtype) {
    pith__type_init(type);
    type->dtype = PITH_SEQUENCE;
    type->item_dtype = item_dtype;
}

static pith_status sequence_check(const pith__infer *c, int input) {
    const pith__type *type = c->in[input];
    if (!type->dtype || type->dtype == PITH_SEQUENCE || type->dtype == PITH_NONE) return PITH_OK;
    return pith__op_fail(c, "input %d is %s, not a sequence", input, pith__dtype_name(type->dtype));
}

static pith_status sequence_run(pith__run *r, int input, const pith_tensor **items,
                                int64_t *count) {
    const pith_tensor *t = r->in[input];
    bool is_sequence = t->dtype == PITH_SEQUENCE;
    *items = is_sequence ? t->data : NULL;
    *count = is_sequence ? t->dims[0] : 0;
    return is_sequence ? PITH_OK : pith__op_fail(r, "input %d is not a sequence", input);
}

/* A position from an optional scalar input, negative counted from the end; from 0 to count - 1, or
 * to count if end. */
static pith_status sequence_run_position(pith__run *r, int input, int64_t fallback, int64_t count,
                                         bool end, int64_t *position) {
    *position = fallback;
    const pith_tensor *t = input < r->in_count ? r->in[input] : NULL;
    if (t) {
        if (pith__tensor_count(t) != 1)
            return pith__op_fail(r, "the position is not a single number");
        if (t->dtype == PITH_I32)
            *position = *(const int32_t *)t->data;
        else if (t->dtype == PITH_I64)
            *position = *(const int64_t *)t->data;
        else
            return pith__op_fail(r, "the position is %s, not int32 or int64",
                                 pith__dtype_name(t->dtype));
    }
    if (*position < -count || *position >= count + end) {
        return pith__fail(r->err, PITH_ERR_RUN,
                          "position %" PRId64 " is outside of a sequence of %" PRId64, *position,
                          count);
    }
    if (*position < 0) *position += count;
    return PITH_OK;
}

/* ---- SequenceConstruct, SequenceEmpty ---- */

static pith_status sequence_infer_construct(pith__infer *c) {
    for (int i = 0; i < c->in_count; i++) {
        if (c->in[i]->dtype != c->in[0]->dtype) return pith__op_fail(c, "inputs differ in type");
    }
    sequence_set_sequence(&c->out[0], c->in[0]->dtype);
    return PITH_OK;
}

static pith_status sequence_run_construct(pith__run *r) {
    if (!r->out[0]) return PITH_OK;
    PITH_TRY(pith__run_alloc(r, 0, PITH_SEQUENCE, 1, (int64_t[]){ r->in_count }));
    pith_tensor *items = r->out[0]->data;
    for (int i = 0; i < r->in_count; i++) PITH_TRY(pith__run_copy(r, &items[i], r->in[i]));
    return PITH_OK;
}

const pith__op pith__op_SequenceConstruct = { .domain = "",
                                              .name = "SequenceConstruct",
                                              .since = 11,
                                              .newest = 11,
                                              .min_inputs = 1,
                                              .max_inputs = -1,
                                              .max_outputs = 1,
                                              .attrs = "",
                                              .flags = PITH_OP_LATE,
                                              .infer = sequence_infer_construct,
                                              .run = sequence_run_construct };

static pith_status sequence_infer_empty(pith__infer *c) {
    sequence_set_sequence(&c->out[0], pith__node_choice(c->node, "dtype", PITH_F32));
    return PITH_OK;
}

static pith_status sequence_run_empty(pith__run *r) {
    return r->out[0] ? pith__run_alloc(r, 0, PITH_SEQUENCE, 1, (int64_t[]){ 0 }) : PITH_OK;
}

const pith__op pith__op_SequenceEmpty = { .domain = "",
                                          .name = "SequenceEmpty",
                                          .since = 11,
                                          .newest = 11,
                                          .min_inputs = 0,
                                          .max_inputs = 0,
                                          .max_outputs = 1,
                                          .attrs = "dtype dtype",
                                          .flags = PITH_OP_LATE,
                                          .infer = sequence_infer_empty,
                                          .run = sequence_run_empty };

/* ---- SequenceAt, SequenceLength ---- */

static pith_status sequence_infer_at(pith__infer *c) {
    PITH_TRY(sequence_check(c, 0));
    const int item = c->in[0]->item_dtype;
    c->out[0].dtype = item == PITH_MAP_I64 || item == PITH_MAP_STRING ? PITH_SEQUENCE : item;
    return PITH_OK;
}

static pith_status sequence_run_at(pith__run *r) {
    const pith_tensor *items;
    int64_t count, at;
    PITH_TRY(sequence_run(r, 0, &items, &count));
    PITH_TRY(sequence_run_position(r, 1, 0, count, false, &at));
    return r->out[0] ? pith__run_copy(r, r->out[0], &items[at]) : PITH_OK;
}

const pith__op pith__op_SequenceAt = { .domain = "",
                                       .name = "SequenceAt",
                                       .since = 11,
                                       .newest = 11,
                                       .min_inputs = 2,
                                       .max_inputs = 2,
                                       .max_outputs = 1,
                                       .attrs = "",
                                       .flags = PITH_OP_LATE | PITH_OP_SEQUENCES,
                                       .infer = sequence_infer_at,
                                       .run = sequence_run_at };

static pith_status sequence_infer_length(pith__infer *c) {
    PITH_TRY(sequence_check(c, 0));
    pith__type_set(&c->out[0], PITH_I64, 0, NULL);
    return PITH_OK;
}

static pith_status sequence_run_length(pith__run *r) {
    const pith_tensor *items;
    return sequence_run(r, 0, &items, r->out[0]->data);
}

const pith__op pith__op_SequenceLength = { .domain = "",
                                           .name = "SequenceLength",
                                           .since = 11,
                                           .newest = 11,
                                           .min_inputs = 1,
                                           .max_inputs = 1,
                                           .max_outputs = 1,
                                           .attrs = "",
                                           .flags = PITH_OP_SEQUENCES,
                                           .infer = sequence_infer_length,
                                           .run = sequence_run_length };

/* ---- SequenceInsert, SequenceErase ---- */

static pith_status sequence_infer_insert(pith__infer *c) {
    PITH_TRY(sequence_check(c, 0));
    int item = c->in[0]->item_dtype, given = c->node->op->max_inputs == 3 ? c->in[1]->dtype : 0;
    if (given >= PITH_DTYPE_COUNT)
        return pith__op_fail(c, "input 1 is %s, not a tensor", pith__dtype_name(given));
    if (item && given && item != given) {
        return pith__op_fail(c, "%s cannot go into a sequence of %s", pith__dtype_name(given),
                             pith__dtype_name(item));
    }
    sequence_set_sequence(&c->out[0], item ? item : given);
    return PITH_OK;
}

static pith_status sequence_run_insert(pith__run *r) {
    const pith_tensor *items;
    int64_t count, at;
    PITH_TRY(sequence_run(r, 0, &items, &count));
    PITH_TRY(sequence_run_position(r, 2, count, count, true, &at));
    if (!r->out[0]) return PITH_OK;
    PITH_TRY(pith__run_alloc(r, 0, PITH_SEQUENCE, 1, (int64_t[]){ count + 1 }));
    pith_tensor *out = r->out[0]->data;
    for (int64_t i = 0; i < count; i++) out[i + (i >= at)] = items[i];
    return pith__run_copy(r, &out[at], r->in[1]);
}

const pith__op pith__op_SequenceInsert = { .domain = "",
                                           .name = "SequenceInsert",
                                           .since = 11,
                                           .newest = 11,
                                           .min_inputs = 2,
                                           .max_inputs = 3,
                                           .max_outputs = 1,
                                           .attrs = "",
                                           .flags = PITH_OP_LATE | PITH_OP_SEQUENCES,
                                           .infer = sequence_infer_insert,
                                           .run = sequence_run_insert };

static pith_status sequence_run_erase(pith__run *r) {
    const pith_tensor *items;
    int64_t count, at;
    PITH_TRY(sequence_run(r, 0, &items, &count));
    PITH_TRY(sequence_run_position(r, 1, count - 1, count, false, &at));
    if (!r->out[0]) return PITH_OK;
    PITH_TRY(pith__run_alloc(r, 0, PITH_SEQUENCE, 1, (int64_t[]){ count - 1 }));
    pith_tensor *out = r->out[0]->data;
    for (int64_t i = 0; i + 1 < count; i++) out[i] = items[i + (i >= at)];
    return PITH_OK;
}

const pith__op pith__op_SequenceErase = { .domain = "",
                                          .name = "SequenceErase",
                                          .since = 11,
                                          .newest = 11,
                                          .min_inputs = 1,
                                          .max_inputs = 2,
                                          .max_outputs = 1,
                                          .attrs = "",
                                          .flags = PITH_OP_LATE | PITH_OP_SEQUENCES,
                                          .infer = sequence_infer_insert,
                                          .run = sequence_run_erase };

/* ---- ConcatFromSequence ---- */

/* Items must agree in everything but the size along the axis; stacking wants that too. */
static pith_status sequence_check_joinable(pith__run *r, const pith_tensor *items, int64_t count,
                                           int axis, bool stack) {
    for (int64_t i = 0; i < count; i++) {
        bool fits = items[i].dtype == items[0].dtype && items[i].rank == items[0].rank &&
                    pith__dtype_bits(items[i].dtype) >= 8;
        for (int k = 0; fits && k < items[0].rank; k++) {
            fits = items[i].dims[k] == items[0].dims[k] || (!stack && k == axis);
        }
        if (!fits)
            return pith__fail(r->err, PITH_ERR_RUN, "item %" PRId64 " does not fit the first", i);
    }
    return PITH_OK;
}

/* Each item is copied into its columns of the joined rows. Stacking adds an axis of the items'
 * number. */
static pith_status sequence_run_join(pith__run *r) {
    const pith_tensor *items;
    int64_t count, dims[PITH_MAX_RANK], outer = 1, length = 0;
    PITH_TRY(sequence_run(r, 0, &items, &count));
    if (!count) return pith__fail(r->err, PITH_ERR_RUN, "the sequence is empty");
    bool stack = pith__node_int(r->node, "new_axis", 0);
    int axis, rank = items[0].rank + stack;
    if (rank > PITH_MAX_RANK) return pith__op_fail(r, "rank %d is too large", rank);
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", 0), rank, &axis, r->err));
    PITH_TRY(sequence_check_joinable(r, items, count, axis, stack));
    if (!r->out[0]) return PITH_OK;
    for (int64_t i = 0; i < count; i++) length += stack ? 1 : items[i].dims[axis];
    for (int k = 0; k < rank; k++)
        dims[k] = k == axis ? length : items[0].dims[k - (stack && k > axis)];
    PITH_TRY(pith__run_alloc(r, 0, items[0].dtype, rank, dims));
    for (int k = 0; k < axis; k++) outer *= dims[k];
    size_t row = outer ? r->out[0]->bytes / (size_t)outer : 0, at = 0;
    int64_t spent = 0;
    if (row) {
        for (int64_t i = 0; i < count; i++) {
            size_t bytes = items[i].bytes / (size_t)outer;
            if (bytes) {
                for (int64_t o = 0; o < outer; o++) {
                    PITH_TRY(pith__run_spend(r, &spent, 8 + (int64_t)(bytes / 8)));
                    PITH_TRY(pith__run_bytes(r, (char *)r->out[0]->data + (size_t)o * row + at,
                                             (const char *)items[i].data + (size_t)o * bytes,
                                             bytes));
                }
            }
            at += bytes;
        }
    }
    return PITH_OK;
}

const pith__op pith__op_ConcatFromSequence = { .domain = "",
                                               .name = "ConcatFromSequence",
                                               .since = 11,
                                               .newest = 11,
                                               .min_inputs = 1,
                                               .max_inputs = 1,
                                               .max_outputs = 1,
                                               .attrs = "axis int!; new_axis bool = 0",
                                               .flags = PITH_OP_LATE | PITH_OP_SEQUENCES,
                                               .infer = sequence_infer_at,
                                               .run = sequence_run_join };

/* ---- SplitToSequence ---- */

static pith_status sequence_infer_split(pith__infer *c) {
    sequence_set_sequence(&c->out[0], c->in[0]->dtype);
    return PITH_OK;
}

/* Piece i of the axis: its length, from a list, an equal length, or 1. */
static pith_status sequence_piece_length(pith__run *r, int64_t i, int64_t left, int64_t *length) {
    const pith_tensor *split = r->in_count > 1 ? r->in[1] : NULL;
    *length = 1;
    if (split && split->dtype != PITH_I64 && split->dtype != PITH_I32) {
        return pith__op_fail(r, "split is %s, not int32 or int64", pith__dtype_name(split->dtype));
    }
    if (split) {
        int64_t place = split->rank ? i : 0;
        if (place >= pith__tensor_count(split))
            return pith__op_fail(r, "split adds up to less than the axis");
        *length = split->dtype == PITH_I64 ? ((const int64_t *)split->data)[place]
                                           : ((const int32_t *)split->data)[place];
        if (*length < 0 || (split->rank == 0 && *length == 0))
            return pith__op_fail(r, "split holds %" PRId64, *length);
        if (split->rank == 0 && *length > left) *length = left;
    }
    return *length > left ? pith__op_fail(r, "split adds up to more than the axis") : PITH_OK;
}

/* One piece as a tensor of its own. Without keepdims, pieces of 1 lose the axis. */
static pith_status sequence_cut(pith__run *r, pith_tensor *item, const pith_tensor *x, int axis,
                                int64_t begin, int64_t length) {
    int64_t outer = 1;
    for (int k = 0; k < axis; k++) outer *= x->dims[k];
    size_t row = outer ? x->bytes / (size_t)outer : 0,
           unit = x->dims[axis] ? row / (size_t)x->dims[axis] : 0;
    size_t bytes = unit * (size_t)length;
    bool keep = (r->in_count > 1 && r->in[1]) || pith__node_int(r->node, "keepdims", 1);
    *item =
        (pith_tensor){ .dtype = x->dtype, .rank = x->rank - !keep, .bytes = bytes * (size_t)outer };
    for (int k = 0; k < item->rank; k++) item->dims[k] = x->dims[keep ? k : k + (k >= axis)];
    if (keep) item->dims[axis] = length;
    item->data = r->exec->alloc(r->exec, item->bytes);
    if (!item->data) return pith__fail_memory(r->err, item->bytes);
    if (bytes) {
        int64_t spent = 0;
        for (int64_t o = 0; o < outer; o++) {
            PITH_TRY(pith__run_spend(r, &spent, 8 + (int64_t)(bytes / 8)));
            PITH_TRY(pith__run_bytes(r, (char *)item->data + (size_t)o * bytes,
                                     (const char *)x->data + (size_t)o * row + (size_t)begin * unit,
                                     bytes));
        }
    }
    return PITH_OK;
}

/* The pieces are counted first, which checks the list as well; empty ones behind the end of the
 * axis are allowed if the list names them. */
static pith_status sequence_run_split(pith__run *r) {
    const pith_tensor *x = r->in[0];
    int axis;
    if (pith__dtype_bits(x->dtype) < 8)
        return pith__op_fail(r, "%s cannot be split", pith__dtype_name(x->dtype));
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", 0), x->rank, &axis, r->err));
    int64_t pieces = 0, length;
    bool listed = r->in_count > 1 && r->in[1] && r->in[1]->rank;
    for (int64_t left = x->dims[axis]; left > 0; left -= length, pieces++) {
        PITH_TRY(sequence_piece_length(r, pieces, left, &length));
    }
    if (listed && pieces != pith__tensor_count(r->in[1])) {
        while (pieces < pith__tensor_count(r->in[1]))
            PITH_TRY(sequence_piece_length(r, pieces++, 0, &length));
    }
    if (!r->out[0]) return PITH_OK;
    PITH_TRY(pith__run_alloc(r, 0, PITH_SEQUENCE, 1, &pieces));
    pith_tensor *items = r->out[0]->data;
    int64_t at = 0;
    for (int64_t i = 0; i < pieces; i++, at += length) {
        PITH_TRY(sequence_piece_length(r, i, x->dims[axis] - at, &length));
        PITH_TRY(sequence_cut(r, &items[i], x, axis, at, length));
    }
    return PITH_OK;
}

const pith__op pith__op_SplitToSequence = { .domain = "",
                                            .name = "SplitToSequence",
                                            .since = 11,
                                            .newest = 24,
                                            .min_inputs = 1,
                                            .max_inputs = 2,
                                            .max_outputs = 1,
                                            .attrs = "axis int = 0; keepdims bool = 1",
                                            .flags = PITH_OP_LATE,
                                            .infer = sequence_infer_split,
                                            .run = sequence_run_split };
