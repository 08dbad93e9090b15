/* trainer_inputs.c - the cells that a model reads for some rows as arrays: what a network exported
 * as ONNX takes. */
#include <string.h>

#include "base/error.h"
#include "tables/network/trainer.h"

/* The most questions and cells of a call. A cell keeps its question's number in a byte, and a mask
 * takes a byte for each pair of cells, 256 MB at most. */
enum { INPUT_ROWS = 255, INPUT_CELLS = 1 << 14 };

typedef struct inputs {
    pith_relational *r;
    const pith__pack *pack;
    pith__arena *arena;
    void (*each)(void *user, const char *name, const pith_tensor *value);
    void *user;
    pith__stop *stop;
    float *texts, *number, *boolean, *time;
    int64_t *name, *text, *state;
    uint32_t *used; /* strings that have a place in texts */
    size_t text_count;
} inputs;

/* The place of a string's vector in texts. */
static int64_t inputs_string(inputs *in, uint32_t string, bool hidden) {
    uint32_t *slots = in->r->workers[0].slots;
    const pith__rdb *rdb = in->r->rdb;
    if (hidden) return 0; /* the first vector is zero */
    if (slots[string] == PITH_RDB_NONE) {
        memcpy(in->texts + in->text_count * rdb->dim, rdb->vectors + (size_t)string * rdb->dim,
               rdb->dim * sizeof *in->texts);
        in->used[in->text_count - 1] = string;
        slots[string] = (uint32_t)in->text_count++;
    }
    return slots[string];
}

static void inputs_cell(inputs *in, size_t i) {
    const pith__cell *cell = &in->pack->cells[i];
    const pith__rdb_column *c = &in->r->rdb->tables[cell->table].columns[cell->column];
    in->name[i] = inputs_string(in, c->name_string, false);
    in->state[i] = cell->state == PITH_CELL_MASKED ? PITH_CELL_OF_MASK : PITH_CELL_OF_NULL;
    if (cell->state != PITH_CELL_VALUE) return;
    switch (c->stype) {
    case PITH_STYPE_NUMERICAL:
        in->state[i] = PITH_CELL_OF_NUMBER;
        in->number[i] = pith__rdb_scaled(c, cell->row);
        break;
    case PITH_STYPE_BOOLEAN:
        in->state[i] = PITH_CELL_OF_BOOLEAN;
        in->boolean[i] = pith__rdb_scaled(c, cell->row);
        break;
    case PITH_STYPE_TIMESTAMP:
        in->state[i] = PITH_CELL_OF_TIME;
        pith__rdb_time_features(in->time + i * PITH_TIME_FEATURES, c, cell->row,
                                in->pack->asked[cell->sequence], in->r->config.sample.ages_alone);
        break;
    default:
        in->state[i] = PITH_CELL_OF_TEXT;
        in->text[i] =
            inputs_string(in, ((const uint32_t *)c->data)[cell->row], in->r->config.sample.no_text);
        break;
    }
}

static void inputs_tell(const inputs *in, const char *name, void *data, int dtype, size_t item,
                        size_t rows, size_t columns) {
    pith_tensor t = { .data = data, .dtype = dtype, .rank = columns ? 2 : 1 };
    t.dims[0] = (int64_t)rows;
    t.dims[1] = (int64_t)columns;
    t.bytes = rows * (columns ? columns : 1) * item;
    in->each(in->user, name, &t);
}

/* Which pairs of cells see each other. */
static bool inputs_masks(const inputs *in) {
    const size_t cells = in->pack->cell_count;
    uint8_t *mask = pith__arena_alloc(in->arena, cells * cells + 1);
    if (!mask) return false;
    for (int k = 0; k < PITH_ATTEND_KINDS; k++) {
        const pith__key_list *list = &in->pack->lists[k];
        if (!(in->r->network.shape.attend & 1u << k)) continue;
        for (size_t i = 0; i < cells; i++) {
            if (i % 64 == 0 && pith__stop_asked(in->stop)) return false;
            memset(mask + i * cells, 0, cells);
            for (uint32_t j = list->begin[i]; j < list->begin[i + 1]; j++)
                mask[i * cells + list->keys[j]] = 1;
        }
        inputs_tell(in, pith__attend_names[k], mask, PITH_BOOL, 1, cells, cells);
    }
    return true;
}

/* Arrays of all cells. A text or name that stands in several cells is in `texts` once, at the place
 * that the worker's slots remember; these are cleared again, since they belong to the model. */
static bool inputs_make(inputs *in) {
    const size_t cells = in->pack->cell_count, dim = in->r->rdb->dim;
    int64_t *asked = pith__arena_array(in->arena, in->pack->sequences, sizeof *asked);
    in->texts = pith__arena_array(in->arena, 2 * cells + 1, dim * sizeof *in->texts);
    in->used = pith__arena_array(in->arena, 2 * cells + 1, sizeof *in->used);
    in->number = pith__arena_array(in->arena, cells, sizeof *in->number);
    in->boolean = pith__arena_array(in->arena, cells, sizeof *in->boolean);
    in->time = pith__arena_array(in->arena, cells, PITH_TIME_FEATURES * sizeof *in->time);
    in->name = pith__arena_array(in->arena, cells, sizeof *in->name);
    in->text = pith__arena_array(in->arena, cells, sizeof *in->text);
    in->state = pith__arena_array(in->arena, cells, sizeof *in->state);
    if (!asked || !in->texts || !in->used || !in->number || !in->boolean || !in->time ||
        !in->name || !in->text || !in->state)
        return false;
    in->text_count = 1;
    for (size_t i = 0; i < cells; i++) inputs_cell(in, i);
    for (size_t i = 1; i < in->text_count; i++)
        in->r->workers[0].slots[in->used[i - 1]] = PITH_RDB_NONE;
    for (uint32_t i = 0; i < in->pack->sequences; i++) asked[i] = in->pack->seeds[i];
    inputs_tell(in, "texts", in->texts, PITH_F32, 4, in->text_count, dim);
    inputs_tell(in, "name", in->name, PITH_I64, 8, cells, 0);
    inputs_tell(in, "state", in->state, PITH_I64, 8, cells, 0);
    inputs_tell(in, "text", in->text, PITH_I64, 8, cells, 0);
    inputs_tell(in, "number", in->number, PITH_F32, 4, cells, 0);
    inputs_tell(in, "boolean", in->boolean, PITH_F32, 4, cells, 0);
    inputs_tell(in, "time", in->time, PITH_F32, 4, cells, PITH_TIME_FEATURES);
    inputs_tell(in, "asked", asked, PITH_I64, 8, in->pack->sequences, 0);
    return inputs_masks(in);
}

static pith_status inputs_run(inputs *in, const uint32_t *rows, size_t count, pith_error *err) {
    pith__sample_options sample = in->r->config.sample;
    pith__pack pack;
    sample.seed = in->r->seed;
    sample.epoch = PITH_TRAINER_ANSWERS;
    if (!pith__pack_begin(&pack, in->arena, (uint32_t)count, &sample))
        return pith__fail_memory(err, 0);
    for (size_t i = 0; i < count; i++) {
        PITH_TRY(pith__stop_check(in->stop, err));
        pith__pack_add(&pack, in->r->rdb, in->r->task, rows[i], &sample);
    }
    if (pack.cell_count > INPUT_CELLS)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the rows have %u cells, and %d are the most; ask for fewer rows",
                          pack.cell_count, INPUT_CELLS);
    in->pack = &pack;
    if (pith__pack_list(&pack, in->arena, in->r->network.shape.attend) && inputs_make(in))
        return PITH_OK;
    PITH_TRY(pith__stop_check(in->stop, err));
    return pith__fail_memory(err, 0);
}

pith_status pith__trainer_inputs(pith_relational *r, const uint32_t *rows, size_t count,
                                 void (*each)(void *user, const char *name,
                                              const pith_tensor *value),
                                 void *user, pith__stop *stop, pith_error *err) {
    pith__arena arena;
    inputs in = { .r = r, .arena = &arena, .each = each, .user = user, .stop = stop };
    if (!count || count > INPUT_ROWS)
        return pith__fail(err, PITH_ERR_ARGUMENT, "give 1 to %d rows, and not %zu", INPUT_ROWS,
                          count);
    for (size_t i = 0; i < count; i++)
        if (rows[i] >= r->rdb->tables[r->task->table].rows)
            return pith__fail(err, PITH_ERR_ARGUMENT, "there is no row %u", rows[i]);
    if (!pith__trainer_workers(r, 1)) return pith__fail_memory(err, r->rdb->string_count * 4u);
    pith__arena_init(&arena, &r->allocator);
    const pith_status status = inputs_run(&in, rows, count, err);
    pith__arena_free(&arena);
    return status;
}
