/* made_up_inputs.c - see made_up_inputs.h.
 *
 * Sizes: a symbol has one size in a run, which the first axis it names decides. The first axis of
 * an input is its batch, and every other one is a length. Both walk through small tables, so that
 * 1, 2, odd and larger sizes meet; pictures get multiples of 32 in every third run, because
 * pyramids halve them five times. Numbers that the file declares are kept. Integers stay below the
 * number of rows of the table they index. An input whose name contains "mask" gets the patterns of
 * mask_kind in turn. */
#include "models/describe/made_up_inputs.h"

#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/mix.h"
#include "base/half.h"
#include "base/str.h"
#include "base/text_out.h"
#include "engine/ops/op.h"

/* How many nodes are followed from an input to the table that it indexes. */
enum { DEPTH = 12 };

typedef enum mask_kind {
    MASK_ONES,
    MASK_RIGHT,
    MASK_LEFT,
    MASK_HOLES,
    MASK_EMPTY_ROW,
    MASKS
} mask_kind;
static const char *const mask_names[MASKS] = { "ones", "padded right", "padded left", "holes",
                                               "one row of zeros" };

uint64_t pith__made_up_random(uint64_t seed, uint64_t run, uint64_t i) {
    return pith__mix64(seed * 0x9E3779B97F4A7C15u + run * 0xBF58476D1CE4E5B9u +
                       i * 0x94D049BB133111EBu + 1);
}

/* ---- ranges ---- */

/* Operators whose output holds the input's integers, or numbers made of them that index the same
 * table. */
static bool made_up_pass_on(const pith__node *node) {
    static const char *const names[] = { "Cast",    "Identity", "Reshape",   "Unsqueeze",
                                         "Squeeze", "Flatten",  "Transpose", "Expand",
                                         "Slice",   "Concat",   "Where",     "Clip" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (pith__str_is(node->op_type, names[i])) return true;
    return false;
}

static void made_up_find_limit(int64_t *limit, const pith__value *v, int depth) {
    if (depth >= DEPTH) return;
    for (size_t u = 0; u < v->user_count; u++) {
        const pith__node *node = v->users[u].node;
        if (pith__str_is(node->op_type, "Gather") && v->users[u].input == 1 && node->inputs[0]) {
            const pith__type *table = &node->inputs[0]->type;
            int64_t axis = pith__node_int(node, "axis", 0);
            if (axis < 0) axis += table->rank;
            if (axis < 0 || axis >= table->rank) continue;
            pith__dim rows = table->dims[axis];
            if (pith__dim_known(rows) && rows > 0 && rows < *limit) *limit = rows;
        } else if (made_up_pass_on(node) && node->output_count && node->outputs[0]) {
            made_up_find_limit(limit, node->outputs[0], depth + 1);
        }
    }
}

static int64_t made_up_limit(const pith__value *v) {
    int64_t limit = INT64_MAX;
    made_up_find_limit(&limit, v, 0);
    return limit == INT64_MAX ? 2 : limit;
}

int64_t pith__made_up_index_limit(const pith__graph *graph, const char *input) {
    for (size_t i = 0; i < graph->input_count; i++)
        if (pith__str_is(graph->inputs[i]->name, input)) return made_up_limit(graph->inputs[i]);
    return 2;
}

/* ---- sizes ---- */

/* The size of an axis in this run. sizes has an entry for each symbol of the graph: 0 before it is
 * chosen. */
static int64_t made_up_size(int64_t *sizes, const pith__graph *g, const pith__value *v, int axis,
                            uint64_t run) {
    /* Four, seven and five masks have no common factor, so that each meets each. One batch and one
     * length a run, so that inputs fit each other. */
    static const int64_t batches[] = { 2, 1, 3, 2 }, lengths[] = { 7, 16, 9, 33, 2, 1, 5 };
    pith__dim declared =
        v->hint && v->hint->rank == v->type.rank ? v->hint->dims[axis] : v->type.dims[axis];
    if (pith__dim_known(declared) && declared >= 0) return declared;
    int32_t symbol = pith__dim_symbol_index(g->dims, v->type.dims[axis]);
    if (symbol >= 0 && sizes[symbol]) return sizes[symbol];
    bool picture = v->type.rank >= 4 && axis >= 2 && run % 3 == 2;
    int64_t size = lengths[run % 7];
    if (picture) size = 32 + 32 * (int64_t)(run % 2);
    if (axis == 0) size = batches[run % 4];
    if (symbol >= 0) sizes[symbol] = size;
    return size;
}

/* ---- contents ---- */

static bool made_up_kept(mask_kind kind, uint64_t r, int64_t row, int64_t rows, int64_t k,
                         int64_t keys) {
    int64_t padding = keys > 1 ? 1 + row % (keys - 1) : 0;
    switch (kind) {
    case MASK_RIGHT: return k < keys - padding;
    case MASK_LEFT: return k >= padding;
    case MASK_HOLES: return k == 0 || r % 3 != 0;
    case MASK_EMPTY_ROW: return rows == 1 ? k < keys - padding : row != rows - 1;
    default: return true;
    }
}

static void made_up_put(pith_tensor *t, int64_t i, double x) {
    switch (t->dtype) {
    case PITH_F32: ((float *)t->data)[i] = (float)x; break;
    case PITH_F64: ((double *)t->data)[i] = x; break;
    case PITH_F16: ((uint16_t *)t->data)[i] = pith__f16_of_f32((float)x); break;
    case PITH_BF16: ((uint16_t *)t->data)[i] = pith__bf16_of_f32((float)x); break;
    case PITH_I64:
    case PITH_U64: ((int64_t *)t->data)[i] = (int64_t)x; break;
    case PITH_I32:
    case PITH_U32: ((int32_t *)t->data)[i] = (int32_t)x; break;
    case PITH_I16:
    case PITH_U16: ((int16_t *)t->data)[i] = (int16_t)x; break;
    default: ((int8_t *)t->data)[i] = (int8_t)x; break;
    }
}

bool pith__made_up_is_mask(pith_str name) {
    return name.size >= 4 && memmem(name.data, name.size, "mask", 4) != NULL;
}

static void made_up_fill(pith_tensor *t, const pith__value *v, uint64_t seed, uint64_t run,
                         uint64_t input) {
    int64_t count = pith__tensor_count(t), keys = t->rank ? t->dims[t->rank - 1] : 1;
    int64_t rows = keys ? count / keys : 0, limit = made_up_limit(v);
    bool mask = pith__made_up_is_mask(v->name), real = pith__dtype_is_float(t->dtype);
    /* Integers of 8 and 16 bits stay small, so that sums of them fit. */
    const bool small = limit >= 120 && pith__dtype_bits(t->dtype) <= 16;
    const uint64_t below = (uint64_t)(small ? 120 : limit);
    for (int64_t i = 0; i < count; i++) {
        uint64_t r = pith__made_up_random(seed, run, (input << 40) + (uint64_t)i);
        double x;
        if (mask)
            x = made_up_kept((mask_kind)(run % MASKS), r, i / keys, rows, i % keys, keys);
        else if (real)
            x = (double)(r >> 11) * 0x1p-52 - 1.0;
        else if (t->dtype == PITH_BOOL)
            x = (double)(r & 1);
        else
            x = (double)(r % below);
        made_up_put(t, i, x);
    }
}

pith_status pith__made_up_inputs(pith_tensor *inputs, const pith__graph *g, uint64_t seed,
                                 uint64_t run, char *text, size_t size, pith__arena *arena,
                                 pith_error *err) {
    pith__text_out out = pith__text_begin(text, size);
    size_t symbols = pith__dims_symbol_count(g->dims);
    int64_t *sizes = pith__arena_array(arena, symbols + 1, sizeof *sizes);
    if (!sizes) return pith__fail_memory(err, symbols * sizeof *sizes);
    for (size_t i = 0; i < g->input_count; i++) {
        const pith__value *v = g->inputs[i];
        pith_tensor *t = &inputs[i];
        char shape[128];
        *t = (pith_tensor){ .dtype = PITH_UNDEFINED };
        if (v->type.data) continue;
        int dtype = v->type.dtype;
        if (v->type.rank < 0 || dtype == PITH_UNDEFINED || dtype == PITH_STRING ||
            dtype > PITH_BF16 || dtype == PITH_C64 || dtype == PITH_C128)
            return pith__fail(err, PITH_ERR_UNSUPPORTED,
                              "input '" PITH_STR_FMT "': inputs of this kind cannot be made up",
                              PITH_STR_ARG(v->name));
        *t = (pith_tensor){ .dtype = dtype, .rank = v->type.rank };
        for (int d = 0; d < t->rank; d++) t->dims[d] = made_up_size(sizes, g, v, d, run);
        if (!pith__dtype_bytes(dtype, pith__dims_count(t->dims, t->rank), &t->bytes))
            return pith__fail_memory(err, SIZE_MAX);
        t->data = pith__arena_alloc64(arena, t->bytes);
        if (!t->data) return pith__fail_memory(err, t->bytes);
        made_up_fill(t, v, seed, run, i);
        bool mask = pith__made_up_is_mask(v->name);
        pith__text_put(&out, "%s" PITH_STR_FMT " %s%s%s%s", out.used ? ", " : "",
                       PITH_STR_ARG(v->name),
                       pith__dims_text(t->dims, t->rank, shape, sizeof shape), mask ? " (" : "",
                       mask ? mask_names[run % MASKS] : "", mask ? ")" : "");
    }
    return PITH_OK;
}
