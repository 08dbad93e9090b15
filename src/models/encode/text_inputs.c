/* text_inputs.c - token rows to input tensors.
 *
 * Each input of the graph has a role, found by its name in one table. The numbers of a role are
 * written once, directly in the dtype of the input. */
#include "models/encode/text_inputs.h"

#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"

typedef enum inputs_role {
    IDS,
    MASK,
    TYPES,
    POSITIONS,
    OFFSETS,
    TASK,
    PAST,
    NO_CACHE,
    NO_ROLE
} inputs_role;

static const struct {
    const char *name;
    inputs_role role;
} names[] = {
    { "input_ids", IDS },
    { "attention_mask", MASK },
    { "input_mask", MASK },
    { "token_type_ids", TYPES },
    { "segment_ids", TYPES },
    { "position_ids", POSITIONS },
    { "pith.positions", POSITIONS },
    { "pith.offsets", OFFSETS },
    { "task_id", TASK },
    { "use_cache_branch", NO_CACHE },
};

/* Exports of language models take the keys and values of earlier tokens, one input for each layer
 * and kind. */
static const char *const pasts[] = {
    "past_key_values.", "past_key_values_", "past_key_self_", "past_value_self_", "past.", "past_"
};

/* Names are those of transformers' forward() and of its ONNX exporters, and "pith." ones of ragged
 * graphs. Exporters number or spell the inputs of a cache in several ways, with a common beginning.
 */
static inputs_role inputs_role_of(pith_str name) {
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (pith__str_is(name, names[i].name)) return names[i].role;
    for (size_t i = 0; i < sizeof pasts / sizeof pasts[0]; i++) {
        const size_t n = strlen(pasts[i]);
        if (name.size > n && !memcmp(name.data, pasts[i], n)) return PAST;
    }
    return NO_ROLE;
}

/* The shape of an input that holds no earlier tokens: one text, and length 0 on the one other axis
 * of no given size. */
static bool inputs_past_shape(int64_t *dims, const pith__value *input) {
    /* as the file declares it, with its numbers */
    const pith__type *type = input->hint ? input->hint : &input->type;
    int open = 0;
    for (int i = 0; i < type->rank; i++) {
        const bool known = pith__dim_known(type->dims[i]);
        dims[i] = known ? type->dims[i] : i == 0;
        open += !known && i > 0;
    }
    return type->rank > 1 && open == 1;
}

/* A graph with an input of unknown role is no text encoder: leaving it out, or guessing, would give
 * vectors that look right. */
pith_status pith__text_inputs_init(pith__text_inputs *form, const pith__graph *graph, bool ragged,
                                   int32_t pad_token_id, pith__arena *arena, pith_error *err) {
    *form = (pith__text_inputs){ .graph = graph, .ragged = ragged, .pad_token_id = pad_token_id };
    form->roles = pith__arena_array(arena, graph->input_count, sizeof *form->roles);
    if (!form->roles) return pith__fail_memory(err, graph->input_count);
    bool has_ids = false;
    for (size_t i = 0; i < graph->input_count; i++) {
        const pith__value *input = graph->inputs[i];
        int64_t dims[PITH_MAX_RANK];
        const inputs_role role = inputs_role_of(input->name);
        if (role == NO_ROLE)
            return pith__fail(err, PITH_ERR_UNSUPPORTED,
                              "not a text encoder: its input '" PITH_STR_FMT
                              "' cannot be made from text",
                              PITH_STR_ARG(input->name));
        if (role == PAST && !inputs_past_shape(dims, input))
            return pith__fail(err, PITH_ERR_UNSUPPORTED,
                              "not a text encoder: its input '" PITH_STR_FMT
                              "' must be empty, but its shape does not tell which axis counts "
                              "earlier tokens; export the "
                              "model without a cache (use_cache=False)",
                              PITH_STR_ARG(input->name));
        form->roles[i] = (uint8_t)role;
        has_ids |= role == IDS;
        form->typed |= role == TYPES;
        form->masked |= role == MASK;
        form->tasked |= role == TASK;
        if (!ragged && role == IDS && input->type.rank == 2 && pith__dim_known(input->type.dims[1]))
            form->fixed_length = input->type.dims[1];
    }
    if (!has_ids)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "not a text encoder: it has no input 'input_ids'");
    return PITH_OK;
}

/* The number of one token. At places behind the last token of a row, which are padding, the mask is
 * 0 and positions go on. */
static inline int64_t inputs_number(inputs_role role, const pith__text_inputs *form,
                                    const pith__row *row, int64_t at) {
    const bool token = at < row->count;
    switch (role) {
    case IDS: return token ? row->ids[at] : form->pad_token_id;
    case MASK: return at < row->count - row->hidden;
    case TYPES: return token ? row->type_ids[at] : 0;
    default: return at;
    }
}

/* Writes the numbers of one role for rows, each padded to at least `length`, as elements of a C
 * type. */
#define INPUTS_WRITER(name, type)                                                                  \
    static void name(void *to, inputs_role role, const pith__text_inputs *form,                    \
                     const pith__row *const *rows, size_t count, int64_t length) {                 \
        type *out = to;                                                                            \
        int64_t offset = 0;                                                                        \
        if (role == OFFSETS) *out++ = 0;                                                           \
        for (size_t r = 0; r < count; r++) {                                                       \
            const int64_t tokens = rows[r]->count, places = tokens < length ? length : tokens;     \
            if (role == OFFSETS) {                                                                 \
                *out++ = (type)(offset += tokens);                                                 \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t at = 0; at < places; at++)                                                \
                *out++ = (type)inputs_number(role, form, rows[r], at);                             \
        }                                                                                          \
    }
INPUTS_WRITER(inputs_write_i64, int64_t)
INPUTS_WRITER(inputs_write_i32, int32_t)
INPUTS_WRITER(inputs_write_f32, float)
INPUTS_WRITER(inputs_write_bool, bool)

typedef void inputs_write_fn(void *to, inputs_role role, const pith__text_inputs *form,
                             const pith__row *const *rows, size_t count, int64_t length);

/* NULL: inputs of this dtype cannot be made from text. */
static inputs_write_fn *inputs_writer(int dtype) {
    switch (dtype) {
    case PITH_I64: return inputs_write_i64;
    case PITH_I32: return inputs_write_i32;
    case PITH_F32: return inputs_write_f32;
    case PITH_BOOL: return inputs_write_bool;
    default: return NULL;
    }
}

/* An input that has the same value for every text: the task, no cache, or nothing. Its elements are
 * zero bytes but for the task. */
static pith_status inputs_fill_same(pith_tensor *t, const pith__text_inputs *form, inputs_role role,
                                    const pith__value *value, pith__arena *arena, pith_error *err) {
    const int dtype = value->type.dtype == PITH_UNDEFINED ? PITH_I64 : value->type.dtype;
    int64_t count = 1;
    *t = (pith_tensor){ .dtype = dtype, .rank = value->type.rank < 0 ? 0 : value->type.rank };
    if (t->rank > PITH_MAX_RANK) t->rank = 0;
    for (int i = 0; i < t->rank; i++) t->dims[i] = 1;
    if (role == PAST) {
        (void)inputs_past_shape(t->dims, value);
        count = 0;
    }
    if (role == TASK && dtype != PITH_I64 && dtype != PITH_I32)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "input '" PITH_STR_FMT "' has dtype %s; int64 and int32 can be fed",
                          PITH_STR_ARG(value->name), pith__dtype_name(dtype));
    if (!pith__dtype_bytes(dtype, count, &t->bytes)) return pith__fail_memory(err, SIZE_MAX);
    t->data = pith__arena_alloc64(arena, t->bytes + 1);
    if (!t->data) return pith__fail_memory(err, t->bytes);
    memset(t->data, 0, t->bytes + 1);
    const int64_t task = form->task;
    if (role == TASK && dtype == PITH_I64) memcpy(t->data, &task, sizeof task);
    if (role == TASK && dtype == PITH_I32) memcpy(t->data, &form->task, sizeof form->task);
    return PITH_OK;
}

/* A graph that was exported for a fixed length gets texts padded to it; pith__encoder_max_length
 * has seen to it that none is longer. */
pith_status pith__text_inputs_fill(pith_tensor *inputs, const pith__text_inputs *form,
                                   const pith__row *const *rows, size_t count, pith__arena *arena,
                                   pith_error *err) {
    int64_t tokens = 0;
    for (size_t r = 0; r < count; r++)
        if (pith__add_overflows(tokens, rows[r]->count, &tokens))
            return pith__fail_memory(err, SIZE_MAX);
    if (tokens < form->fixed_length) tokens = form->fixed_length;
    for (size_t i = 0; i < form->graph->input_count; i++) {
        inputs_role role = form->roles[i];
        const pith__value *value = form->graph->inputs[i];
        if (role >= TASK) {
            PITH_TRY(inputs_fill_same(&inputs[i], form, role, value, arena, err));
            continue;
        }
        int dtype = value->type.dtype == PITH_UNDEFINED ? PITH_I64 : value->type.dtype;
        int64_t n = role == OFFSETS ? (int64_t)count + 1 : tokens;
        inputs_write_fn *write = inputs_writer(dtype);
        if (!write)
            return pith__fail(
                err, PITH_ERR_UNSUPPORTED,
                "input '" PITH_STR_FMT
                "' has dtype %s; int64, int32, float32 and bool can be made from text",
                PITH_STR_ARG(value->name), pith__dtype_name(dtype));
        inputs[i] = (pith_tensor){ .dtype = dtype };
        if (!pith__dtype_bytes(dtype, n, &inputs[i].bytes)) return pith__fail_memory(err, SIZE_MAX);
        inputs[i].data = pith__arena_alloc64(arena, inputs[i].bytes);
        if (!inputs[i].data) return pith__fail_memory(err, inputs[i].bytes);
        write(inputs[i].data, role, form, rows, count, form->fixed_length);
        inputs[i].rank = form->ragged ? 1 : 2;
        inputs[i].dims[0] = form->ragged ? n : 1;
        inputs[i].dims[1] = form->ragged ? 0 : n;
    }
    return PITH_OK;
}
