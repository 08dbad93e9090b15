/* op_pith_rotary.c - pith.Rotary: the heads in a row rotated by the angles of the row's position.
 *
 *   inputs      x [batch, sequence, columns] or [batch, sequence, heads, size], or ragged [tokens,
 *               …]: head h begins at column + h * pitch of a row cosine, sine: rows of `turned`
 *               (one per element) or turned / 2 (one per pair) along the last axis; their other
 *               axes multiply to sequence, or to batch * sequence
 *   output      [batch, sequence, heads * size], or [tokens, heads * size]
 *   attributes  heads, size, column, pitch (size if absent); turned: how many elements of a head
 *               are rotated (all if absent); the elements after them stay; interleaved (the pairs
 *               are neighbours, not halves), ragged
 *
 * The numeric definition is that of engine/kernels/rotary.h. */
#include "engine/kernels/rotary.h"
#include "engine/ops/op.h"

/* Elements that are worth a thread, a few microseconds. */
#define ROTARY_GRAIN 10000
/* Heads, sizes and columns stay below this, so that their products fit 64 bits. */
#define LIMIT ((int64_t)1 << 24)

typedef struct rotary {
    pith__rotary_f32_fn *fn;
    int64_t heads, size, column, pitch, turned;
    bool interleaved;
} rotary;

/* The bounds keep all places in a row inside of 63 bits, and a row must hold the last head. */
static pith_status rotary_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    int64_t heads = pith__node_int(c->node, "heads", 0), size = pith__node_int(c->node, "size", 0),
            column = pith__node_int(c->node, "column", 0),
            pitch = pith__node_int(c->node, "pitch", size),
            turned = pith__node_int(c->node, "turned", size);
    int lead = pith__node_int(c->node, "ragged", 0) ? 1 : 2;
    if (heads < 1 || size < 2 || column < 0 || heads > LIMIT || size > LIMIT ||
        column > LIMIT * LIMIT || pitch < 0 || pitch > LIMIT || turned < 2 || turned % 2 ||
        turned > size)
        return pith__op_fail(c, "impossible heads, size, column or pitch");
    for (int i = 0; i < 3; i++) {
        if (c->in[i]->dtype != PITH_F32) return pith__op_fail(c, "input %d must be float32", i);
    }
    for (int i = 1; i < 3; i++) {
        const pith__type *t = c->in[i];
        pith__dim width = t->rank > 0 ? t->dims[t->rank - 1] : PITH_DIM_UNKNOWN;
        if (t->rank == 0 || (pith__dim_known(width) && width != turned && width != turned / 2))
            return pith__op_fail(c, "input %d does not have rows of %lld", i, (long long)turned);
    }
    pith__type_set(&c->out[0], PITH_F32, -1, NULL);
    if (x->rank < 0) return PITH_OK;
    if (x->rank <= lead) return pith__op_fail(c, "x has rank %d", x->rank);
    pith__dim row = pith__dim_product(c->dims, x->dims + lead, x->rank - lead);
    if (pith__dim_known(row) && row < column + (heads - 1) * pitch + size)
        return pith__op_fail(c, "x has rows of %lld", (long long)row);
    pith__dim dims[] = { x->dims[0], lead == 2 ? x->dims[1] : heads * size, heads * size };
    pith__type_set(&c->out[0], PITH_F32, lead + 1, dims);
    return PITH_OK;
}

/* The kernel and the attributes. */
static pith_status rotary_prepare(pith__prepare *c) {
    rotary *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    s->fn = PITH_PREPARE_KERNEL(pith__rotary_f32_fn, "rotary", PITH_F32, c);
    if (!s->fn) return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "this build has no kernel rotary");
    s->heads = pith__node_int(c->node, "heads", 0);
    s->size = pith__node_int(c->node, "size", 0);
    s->column = pith__node_int(c->node, "column", 0);
    s->pitch = pith__node_int(c->node, "pitch", s->size);
    s->turned = pith__node_int(c->node, "turned", s->size);
    s->interleaved = pith__node_int(c->node, "interleaved", 0) != 0;
    c->state = s;
    return PITH_OK;
}

typedef struct work {
    pith__rotary_f32_fn *fn;
    pith__rotary first;       /* of row 0 */
    int64_t rows, row, chunk; /* row: floats from row to row of x */
    int64_t rest;             /* floats after those that are turned */
    int64_t positions, width; /* rows of the tables and floats in one */
} work;

/* Rows [begin, end): tables repeat if they have rows for one sequence only. Elements of a head
 * behind `turned` are copied. */
static void rotary_part(void *context, size_t index, int worker) {
    const work *w = context;
    int64_t begin = (int64_t)index * w->chunk,
            end = begin + w->chunk < w->rows ? begin + w->chunk : w->rows;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        pith__rotary a = w->first;
        a.x += i * w->row;
        a.y += i * a.heads * a.y_pitch;
        a.cosine += i % w->positions * w->width;
        a.sine += i % w->positions * w->width;
        w->fn(&a);
        if (w->rest) {
            for (int64_t h = 0; h < a.heads; h++)
                memcpy(a.y + h * a.y_pitch + a.size, a.x + h * a.x_pitch + a.size,
                       (size_t)w->rest * sizeof *a.y);
        }
    }
}

/* The tables may have rows for each position of a sequence, or of the batch; one number per
 * element, or per pair. */
static pith_status rotary_run(pith__run *r) {
    const rotary *s = r->state;
    const pith_tensor *x = r->in[0], *cosine = r->in[1], *out = r->out[0];
    int64_t columns = s->heads * s->size, count = pith__tensor_count(out);
    if (count == 0) return PITH_OK;
    work w = { .fn = s->fn,
               .rows = count / columns,
               .rest = s->size - s->turned,
               .width = cosine->dims[cosine->rank - 1] };
    int64_t sequence = out->rank == 3 ? out->dims[1] : w.rows, numbers = pith__tensor_count(cosine);
    w.row = pith__tensor_count(x) / w.rows;
    w.positions = w.width ? numbers / w.width : 0;
    if ((w.positions != sequence && w.positions != w.rows) ||
        pith__tensor_count(r->in[2]) != numbers || r->in[2]->dims[r->in[2]->rank - 1] != w.width ||
        (w.width != s->turned && 2 * w.width != s->turned))
        return pith__op_fail(r, "the tables of cosines and sines do not fit the positions");
    w.first = (pith__rotary){ .x = (const float *)x->data + s->column,
                              .cosine = cosine->data,
                              .sine = r->in[2]->data,
                              .y = out->data,
                              .heads = s->heads,
                              .size = s->turned,
                              .x_pitch = s->pitch,
                              .y_pitch = s->size,
                              .interleaved = s->interleaved,
                              .per_pair = w.width != s->turned };
    w.chunk = pith__run_chunk(r, w.rows, columns, ROTARY_GRAIN);
    pith__run_parallel(r, rotary_part, &w, (size_t)((w.rows + w.chunk - 1) / w.chunk));
    return PITH_OK;
}

const pith__op pith__op_Rotary_pith = {
    .domain = "pith",
    .name = "Rotary",
    .since = 1,
    .newest = 1,
    .min_inputs = 3,
    .max_inputs = 3,
    .max_outputs = 1,
    .attrs = "column int 0.. = 0; heads int! 1..; interleaved bool = 0; pitch int 0..; "
             "ragged bool = 0; size int! 1..; turned int 1..",
    .infer = rotary_infer,
    .prepare = rotary_prepare,
    .run = rotary_run,
};
