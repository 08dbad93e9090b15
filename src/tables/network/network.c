/* network.c - cells to answers and back. Names of columns and texts that occur several times in a
 * pack are projected once. */
#include "tables/network/network.h"

#include <math.h>
#include <string.h>

#include "tables/network/network_layers.h"

/* The encoded parts of a pack. */
typedef struct network_cells {
    uint32_t *name_of;                       /* [cells] row of names.y */
    uint32_t *value_of;                      /* [cells] row of values, or PITH_RDB_NONE for masked
                                                and null cells */
    float *name_in, *text_in, *scalar_in[3]; /* vectors of names and texts; numbers, booleans,
                                                times */
    size_t name_count, text_count, scalar_count[3], value_count;
    float *values_raw; /* texts first, then the three kinds of scalars */
    pith__normed names, values;
} network_cells;

static const size_t scalar_width[3] = { 1, 1, PITH_TIME_FEATURES };

static int scalar_kind(pith__stype stype) {
    if (stype == PITH_STYPE_NUMERICAL) return 0;
    if (stype == PITH_STYPE_BOOLEAN) return 1;
    if (stype == PITH_STYPE_TIMESTAMP) return 2;
    return -1;
}

static uint32_t *network_numbers(pith__network_work *w, size_t count) {
    uint32_t *x = pith__arena_alloc(w->arena, (count + 1) * sizeof *x);
    if (!x) w->failed = true;
    return x;
}

/* The row of a string in `in`, which is added if it is new. `used` lists what is in slots. */
static uint32_t network_string(float *in, size_t *count, uint32_t *used, uint32_t *slots,
                               const pith__rdb *rdb, uint32_t string, bool hidden) {
    if (slots[string] != PITH_RDB_NONE) return slots[string];
    if (!hidden)
        memcpy(in + *count * rdb->dim, rdb->vectors + (size_t)string * rdb->dim,
               rdb->dim * sizeof *in);
    used[*count] = string;
    slots[string] = (uint32_t)*count;
    return (uint32_t)(*count)++;
}

static void network_forget(uint32_t *slots, const uint32_t *used, size_t count) {
    for (size_t i = 0; i < count; i++) slots[used[i]] = PITH_RDB_NONE;
}

/* Collects names, texts and scalars of a pack, each name and text once: projecting them is a matmul
 * by their embeddings, and the same names occur in most rows. `slots` maps a string of the database
 * to its place here and is cleared of what was used afterwards. Places of scalars count within
 * their kind first. */
static void network_collect(pith__network_work *w, network_cells *c, const pith__rdb *rdb,
                            const pith__sample_options *options, uint32_t *slots) {
    const size_t cells = w->pack->cell_count;
    uint32_t *used = network_numbers(w, cells);
    c->name_of = network_numbers(w, cells);
    c->value_of = network_numbers(w, cells);
    c->name_in =
        pith__work_floats(w, (cells < rdb->column_count ? cells : rdb->column_count) * rdb->dim);
    c->text_in = pith__work_floats(w, cells * rdb->dim);
    for (int k = 0; k < 3; k++) c->scalar_in[k] = pith__work_floats(w, cells * scalar_width[k]);
    if (w->failed) return;
    for (size_t i = 0; i < cells; i++) {
        const pith__cell *cell = &w->pack->cells[i];
        const pith__rdb_column *column = &rdb->tables[cell->table].columns[cell->column];
        c->name_of[i] = network_string(c->name_in, &c->name_count, used, slots, rdb,
                                       column->name_string, false);
    }
    network_forget(slots, used, c->name_count);
    for (size_t i = 0; i < cells; i++) {
        const pith__cell *cell = &w->pack->cells[i];
        const pith__rdb_column *column = &rdb->tables[cell->table].columns[cell->column];
        const int kind = scalar_kind(column->stype);
        c->value_of[i] = PITH_RDB_NONE;
        if (cell->state != PITH_CELL_VALUE) continue;
        if (kind < 0) {
            const uint32_t string = ((const uint32_t *)column->data)[cell->row];
            c->value_of[i] = network_string(c->text_in, &c->text_count, used, slots, rdb, string,
                                            options->no_text);
            continue;
        }
        c->value_of[i] = (uint32_t)c->scalar_count[kind];
        float *in = c->scalar_in[kind] + c->scalar_count[kind]++ * scalar_width[kind];
        if (kind == 2)
            pith__rdb_time_features(in, column, cell->row, w->pack->asked[cell->sequence],
                                    options->ages_alone);
        else
            *in = pith__rdb_scaled(column, cell->row);
    }
    network_forget(slots, used, c->text_count);
}

/* Projects the values and numbers their rows through all kinds. */
static void network_values(pith__network_work *w, network_cells *c, const pith__rdb *rdb) {
    const pith__network *n = w->network;
    const int layers[3] = { n->number, n->boolean, n->time };
    const size_t dim = (size_t)n->shape.dim;
    c->value_count = c->text_count + c->scalar_count[0] + c->scalar_count[1] + c->scalar_count[2];
    c->values_raw = pith__work_floats(w, c->value_count * dim);
    const float *text = pith__linear(w, n->text, true, c->text_in, c->text_count);
    if (w->failed) return;
    memcpy(c->values_raw, text, c->text_count * dim * sizeof *text);
    size_t at = c->text_count, begins[3];
    for (int k = 0; k < 3; k++) {
        begins[k] = at;
        const float *y = pith__linear(w, layers[k], true, c->scalar_in[k], c->scalar_count[k]);
        if (w->failed) return;
        memcpy(c->values_raw + at * dim, y, c->scalar_count[k] * dim * sizeof *y);
        at += c->scalar_count[k];
    }
    for (size_t i = 0; i < w->pack->cell_count; i++) {
        const pith__cell *cell = &w->pack->cells[i];
        const int kind = scalar_kind(rdb->tables[cell->table].columns[cell->column].stype);
        if (c->value_of[i] != PITH_RDB_NONE && kind >= 0) c->value_of[i] += (uint32_t)begins[kind];
    }
}

/* The cells as vectors: the name of the column plus the value, each projected and normalised. In
 * place of a value that is missing stands a learned vector, another one for a value that is masked.
 */
static float *network_encode(pith__network_work *w, network_cells *c, const pith__rdb *rdb,
                             const pith__sample_options *options, uint32_t *slots) {
    const pith__network *n = w->network;
    const size_t cells = w->pack->cell_count, dim = (size_t)n->shape.dim;
    float *h = pith__work_floats(w, cells * dim);
    network_collect(w, c, rdb, options, slots);
    if (w->failed) return h;
    c->names = pith__norm(w, n->name_norm,
                          pith__linear(w, n->name, true, c->name_in, c->name_count), c->name_count);
    network_values(w, c, rdb);
    if (w->failed) return h;
    c->values = pith__norm(w, n->value_norm, c->values_raw, c->value_count);
    if (w->failed) return h;
    for (size_t i = 0; i < cells; i++) {
        const float *name = c->names.y + c->name_of[i] * dim;
        const float *value = n->weights + n->parameters[n->null].offset;
        if (c->value_of[i] != PITH_RDB_NONE)
            value = c->values.y + c->value_of[i] * dim;
        else if (w->pack->cells[i].state == PITH_CELL_MASKED)
            value = n->weights + n->parameters[n->mask].offset;
        for (size_t d = 0; d < dim; d++) h[i * dim + d] = name[d] + value[d];
    }
    return h;
}

/* Gradients of network_encode, from the sum of name and value of each cell back. A name or text
 * that stands in several cells was projected once, so the gradients of its cells are added first,
 * in the order of the cells; then the projections run backwards over the different ones. A masked
 * cell and an empty one have a learned vector each instead of a value. */
static void network_encode_back(pith__network_work *w, const network_cells *c, const float *d_h) {
    const pith__network *n = w->network;
    const int layers[3] = { n->number, n->boolean, n->time };
    const size_t cells = w->pack->cell_count, dim = (size_t)n->shape.dim;
    float *d_names = pith__work_floats(w, c->name_count * dim),
          *d_values = pith__work_floats(w, c->value_count * dim);
    float *d_name_raw = pith__work_floats(w, c->name_count * dim),
          *d_raw = pith__work_floats(w, c->value_count * dim);
    if (w->failed) return;
    for (size_t i = 0; i < cells; i++) {
        float *name = d_names + c->name_of[i] * dim;
        float *value = w->gradient + n->parameters[n->null].offset;
        if (c->value_of[i] != PITH_RDB_NONE)
            value = d_values + c->value_of[i] * dim;
        else if (w->pack->cells[i].state == PITH_CELL_MASKED)
            value = w->gradient + n->parameters[n->mask].offset;
        for (size_t d = 0; d < dim; d++) {
            name[d] += d_h[i * dim + d];
            value[d] += d_h[i * dim + d];
        }
    }
    pith__norm_back(w, &c->names, d_names, d_name_raw);
    pith__linear_back(w, n->name, true, c->name_in, d_name_raw, c->name_count, false);
    pith__norm_back(w, &c->values, d_values, d_raw);
    pith__linear_back(w, n->text, true, c->text_in, d_raw, c->text_count, false);
    size_t at = c->text_count;
    for (int k = 0; k < 3; k++) {
        pith__linear_back(w, layers[k], true, c->scalar_in[k], d_raw + at * dim, c->scalar_count[k],
                          false);
        at += c->scalar_count[k];
    }
}

/* The answers, from the asked cells alone: no other cell's vector is normalised or projected here.
 * With gradients (w->d), also the losses, and in d_h the gradient of the asked cells; that of all
 * others is zero. */
static void network_head(pith__network_work *w, float *answers, double *losses, float *d_h,
                         const float *h, const pith__target *target) {
    const pith__network *n = w->network;
    const size_t count = w->pack->sequences, dim = (size_t)n->shape.dim,
                 outputs = (size_t)n->shape.outputs;
    float *asked = pith__work_floats(w, count * dim), *d = pith__work_floats(w, count * outputs),
          *d_asked = pith__work_floats(w, count * dim);
    if (w->failed) return;
    for (size_t i = 0; i < count; i++)
        memcpy(asked + i * dim, h + w->pack->seeds[i] * dim, dim * sizeof *h);
    const pith__normed normed = pith__norm(w, n->last_norm, asked, count);
    const float *y = pith__linear(w, n->head, true, normed.y, count);
    if (w->failed) return;
    memcpy(answers, y, count * outputs * sizeof *y);
    if (!w->gradient) return;
    for (size_t i = 0; i < count; i++)
        losses[i] = pith__target_loss(d + i * outputs, target,
                                      w->pack->cells[w->pack->seeds[i]].row, y + i * outputs);
    const float *d_y = pith__linear_back(w, n->head, true, normed.y, d, count, true);
    pith__norm_back(w, &normed, d_y, d_asked);
    for (size_t i = 0; i < count; i++)
        memcpy(d_h + w->pack->seeds[i] * dim, d_asked + i * dim, dim * sizeof *d_h);
}

/* Forwards through the blocks, each with its kinds of attention and a feed-forward part, all of
 * which add to h; then, if d is given, backwards in the reverse order with what the forward parts
 * kept. h itself is one array throughout: parts keep their own input where the backward pass needs
 * it. */
bool pith__network_run(float *answers, float *d, double *losses, const pith__network *n,
                       const pith__rdb *rdb, const pith__target *target, const pith__pack *pack,
                       const pith__sample_options *options, uint32_t *slots, pith__stop *stop,
                       pith__arena *arena) {
    pith__network_work w = { n, pack, d, arena, false };
    network_cells cells = { .name_count = 0 };
    pith__residual kept[PITH_NETWORK_BLOCKS * (PITH_ATTEND_KINDS + 1)];
    int at = 0;
    float *h = network_encode(&w, &cells, rdb, options, slots);
    for (int b = 0; b < n->shape.blocks; b++) {
        for (int k = 0; k < PITH_ATTEND_KINDS; k++)
            if (n->shape.attend & 1u << k)
                pith__attend(&w, &kept[at++], &n->blocks[b].attend[k], k, h);
        w.failed |= pith__stop_asked(stop);
        pith__feed(&w, &kept[at++], &n->blocks[b].ff, h);
    }
    float *d_h = d ? pith__work_floats(&w, (size_t)pack->cell_count * (size_t)n->shape.dim) : NULL;
    network_head(&w, answers, losses, d_h, h, target);
    if (d)
        for (int b = n->shape.blocks; b-- > 0;) {
            w.failed |= pith__stop_asked(stop);
            pith__feed_back(&w, &kept[--at], &n->blocks[b].ff, d_h);
            for (int k = PITH_ATTEND_KINDS; k-- > 0;)
                if (n->shape.attend & 1u << k)
                    pith__attend_back(&w, &kept[--at], &n->blocks[b].attend[k], d_h);
        }
    if (d && !w.failed) network_encode_back(&w, &cells, d_h);
    return !w.failed;
}
