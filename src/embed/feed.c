/* feed.c - token rows to input tensors.
 *
 * Each input of the graph has a role, found by its name in one table; each role has a generator that writes the chunk's
 * numbers as int64, which are then stored in the input's own dtype. */
#include "embed/feed.h"

#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"

typedef enum role { IDS, MASK, TYPES, POSITIONS, OFFSETS } role;

static const struct {
    const char *name;
    role role;
} names[] = {
    { "input_ids", IDS },
    { "attention_mask", MASK },
    { "input_mask", MASK },
    { "token_type_ids", TYPES },
    { "segment_ids", TYPES },
    { "position_ids", POSITIONS },
    { "pith.positions", POSITIONS },
    { "pith.offsets", OFFSETS },
};

pith_status pith_feed_init(pith_feed *feed, const pith_graph *graph, bool ragged, int32_t pad_token_id,
                           pith_arena *arena, pith_error *err) {
    *feed = (pith_feed){ .graph = graph, .ragged = ragged, .pad_token_id = pad_token_id };
    feed->roles = pith_arena_array(arena, graph->input_count, sizeof *feed->roles);
    if (!feed->roles) return pith_fail_memory(err, graph->input_count);
    bool has_ids = false;
    for (size_t i = 0; i < graph->input_count; i++) {
        const pith_value *input = graph->inputs[i];
        size_t n = 0, known = sizeof names / sizeof names[0];
        while (n < known && !pith_str_is(input->name, names[n].name)) n++;
        if (n == known)
            return pith_fail(err, PITH_ERR_UNSUPPORTED,
                             "the model is no text encoder: its input '" PITH_STR_FMT "' is not made from text",
                             PITH_STR_ARG(input->name));
        feed->roles[i] = (uint8_t)names[n].role;
        has_ids |= names[n].role == IDS;
        feed->masked |= names[n].role == MASK;
        if (!ragged && names[n].role == IDS && input->type.rank == 2 && pith_dim_known(input->type.dims[1]))
            feed->fixed_length = input->type.dims[1];
    }
    if (!has_ids)
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "the model is no text encoder: it has no input 'input_ids'");
    return PITH_OK;
}

/* The numbers of one role for rows, each padded to at least `length`. */
static void generate(int64_t *out, role what, const pith_feed *feed, const pith_row *const *rows, size_t count,
                     int64_t length) {
    int64_t offset = 0;
    if (what == OFFSETS) *out++ = 0;
    for (size_t r = 0; r < count; r++) {
        const pith_row *row = rows[r];
        if (what == OFFSETS) {
            *out++ = offset += row->count;
            continue;
        }
        for (int32_t t = 0; t < row->count; t++)
            *out++ = what == IDS ? row->ids[t] : what == MASK ? 1 : what == TYPES ? row->type_ids[t] : t;
        for (int64_t t = row->count; t < length; t++)
            *out++ = what == IDS ? feed->pad_token_id : what == POSITIONS ? t : 0;
    }
}

/* Stores int64 numbers in place in a type that is not wider: element i is written when all up to i were read. */
static bool convert(int64_t *numbers, int64_t count, int dtype) {
    char *out = (char *)numbers;
    for (int64_t i = 0; i < count; i++) {
        int64_t n = numbers[i];
        int32_t n32 = (int32_t)n;
        float f32 = (float)n;
        switch (dtype) {
        case PITH_I64: return true;
        case PITH_I32: memcpy(out + 4 * i, &n32, 4); break;
        case PITH_F32: memcpy(out + 4 * i, &f32, 4); break;
        case PITH_BOOL: out[i] = n != 0; break;
        default: return false;
        }
    }
    return true;
}

pith_status pith_feed_fill(pith_tensor *inputs, const pith_feed *feed, const pith_row *const *rows, size_t count,
                           pith_arena *arena, pith_error *err) {
    int64_t tokens = 0;
    for (size_t r = 0; r < count; r++)
        if (pith_add_overflows(tokens, rows[r]->count, &tokens)) return pith_fail_memory(err, SIZE_MAX);
    if (tokens < feed->fixed_length) tokens = feed->fixed_length;
    for (size_t i = 0; i < feed->graph->input_count; i++) {
        role what = feed->roles[i];
        const pith_value *value = feed->graph->inputs[i];
        int dtype = value->type.dtype == PITH_UNDEFINED ? PITH_I64 : value->type.dtype;
        int64_t n = what == OFFSETS ? (int64_t)count + 1 : tokens;
        int64_t *numbers = pith_arena_array(arena, (size_t)n, sizeof *numbers);
        if (!numbers) return pith_fail_memory(err, (size_t)n * sizeof *numbers);
        generate(numbers, what, feed, rows, count, feed->fixed_length);
        if (!convert(numbers, n, dtype))
            return pith_fail(err, PITH_ERR_UNSUPPORTED, "input '" PITH_STR_FMT "' wants %s", PITH_STR_ARG(value->name),
                             pith_dtype_name(dtype));
        inputs[i] = (pith_tensor){ .data = numbers, .dtype = dtype };
        inputs[i].rank = feed->ragged ? 1 : 2;
        inputs[i].dims[0] = feed->ragged ? n : 1;
        inputs[i].dims[1] = feed->ragged ? 0 : n;
        pith_dtype_bytes(dtype, n, &inputs[i].bytes);
    }
    return PITH_OK;
}
