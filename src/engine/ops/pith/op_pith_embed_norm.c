/* op_pith_embed_norm.c - pith.EmbedNorm: the sum of up to three looked-up rows, normalised.
 *
 *   inputs      gamma [n]; beta [n] (may be absent); then pairs of table [rows_i, n] (f32, f16 or
 *               bf16, constant) and ids_i
 *   output      [ids…, n]; the shapes of the ids broadcast
 *   attributes  epsilon; rms: 1 for the root mean square form; precision: PITH_PRECISION_INT8 keeps
 *               large tables in 8 bits, with a scale for each group of a row's elements
 *
 * Rows of 16 bits are widened as they are looked up. The first table may have any alignment. Rows
 * are added in the order of the pairs. A negative id counts from the end of the table, as in
 * Gather. */
#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/quantize.h"
#include "engine/ops/shared/packed_constants.h"

/* Tables that are added: words, positions, types. */
#define TABLES_MAX 3
/* Elements that are worth a thread, a few microseconds. */
#define EMBED_GRAIN 20000
/* Tables of fewer rows (positions, types) stay f32 with int8: they save little memory, and rounding
 * them costs quality. */
#define QUANTIZED_ROWS 1024
/* Rows that are quantised as one part. */
#define PACK_ROWS 256

/* A table in 8 bits: its rows, then (64-byte aligned) their scales. */
typedef struct small_table {
    const void *rows; /* NULL: the table is read as it is */
    size_t scales_at; /* bytes after rows */
} small_table;

typedef struct embed_norm {
    pith__layer_norm_f32_fn *norm;
    pith__dequantize_row_fn *dequantize;
    float epsilon;
    small_table small[TABLES_MAX];
} embed_norm;

static bool embed_norm_is_narrow(int dtype) { return dtype == PITH_F16 || dtype == PITH_BF16; }

/* Ids of several tables broadcast, as the Adds they came from did. */
static pith_status embed_norm_infer(pith__infer *c) {
    int tables = (c->in_count - 2) / 2;
    if (c->in_count < 4 || c->in_count % 2 || tables > TABLES_MAX)
        return pith__op_fail(c, "tables and ids do not come in one to three pairs");
    pith__type shape;
    for (int i = 0; i < tables; i++) {
        const pith__type *table = c->in[2 + 2 * i], *ids = c->in[3 + 2 * i];
        if (!table || table->rank != 2 ||
            (table->dtype != PITH_F32 && !embed_norm_is_narrow(table->dtype)))
            return pith__op_fail(c, "table %d is not a matrix of float32, float16 or bfloat16", i);
        if (!ids || (ids->dtype != PITH_I64 && ids->dtype != PITH_I32))
            return pith__op_fail(c, "ids %d are not integers", i);
        if (!pith__dim_equal(table->dims[1], c->in[2]->dims[1]))
            return pith__op_fail(c, "tables differ in width");
        pith__type sum = *ids;
        if (i > 0) PITH_TRY(pith__infer_broadcast(c, &shape, ids, &sum));
        shape = sum;
    }
    if (shape.rank < 0) {
        c->out[0].dtype = PITH_F32;
        return PITH_OK;
    }
    if (shape.rank == PITH_MAX_RANK) return pith__op_fail(c, "ids have too many axes");
    shape.dims[shape.rank] = c->in[2]->dims[1];
    for (int i = 0; i < 2; i++) {
        if (c->in[i] && (c->in[i]->dtype != PITH_F32 || c->in[i]->rank != 1 ||
                         c->in[i]->dims[0] != c->in[2]->dims[1])) {
            return pith__op_fail(c, "gamma or beta does not have the tables' width");
        }
    }
    pith__type_set(&c->out[0], PITH_F32, shape.rank + 1, shape.dims);
    return PITH_OK;
}

/* n elements from `first` on, wherever they lie; room: for as many. */
static void embed_norm_read_floats(float *to, const pith_tensor *from, int64_t first, int64_t n,
                                   void *room) {
    const size_t size = embed_norm_is_narrow(from->dtype) ? sizeof(uint16_t) : sizeof(float);
    const char *at = (const char *)from->data + (size_t)first * size;
    if (embed_norm_is_narrow(from->dtype) && (uintptr_t)at % size)
        at = memcpy(room, at, (size_t)n * size);
    if (embed_norm_is_narrow(from->dtype))
        pith__convert(to, PITH_F32, 0, at, from->dtype, 0, n, true);
    else
        memcpy(to, at, (size_t)n * size);
}

typedef struct table_pack {
    pith__quantize_table_fn *quantize;
    const pith_tensor *from;
    int64_t rows, n;
    size_t scales_at;
} table_pack;

/* Quantises a part of PACK_ROWS rows; those of 16 bits are widened first. */
static void embed_norm_fill_table(void *packed, const void *context, size_t part, void *scratch) {
    const table_pack *t = context;
    int64_t first = (int64_t)part * PACK_ROWS,
            rows = t->rows - first < PACK_ROWS ? t->rows - first : PACK_ROWS;
    size_t skip = (size_t)(first * t->n);
    embed_norm_read_floats(scratch, t->from, (int64_t)skip, rows * t->n,
                           (float *)scratch + PACK_ROWS * t->n);
    float *scales =
        (float *)(void *)((char *)packed + t->scales_at) + first * pith__table_groups(t->n);
    t->quantize(scratch, (int8_t *)packed + skip, scales, rows, t->n);
}

/* All rows in 8 bits, then, 64 bytes aligned, the scales of their groups. */
static pith_status embed_norm_pack_table(small_table *small, pith__prepare *c, int input) {
    table_pack *t = pith__arena_array(c->arena, 1, sizeof *t);
    if (!t) return pith__fail_memory(c->err, sizeof *t);
    *t = (table_pack){ .quantize = PITH_PREPARE_KERNEL(pith__quantize_table_fn, "quantize_table",
                                                       PITH_I8, c),
                       .from = c->in[input]->data,
                       .rows = c->in[input]->dims[0],
                       .n = c->in[input]->dims[1] };
    if (!t->quantize)
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED,
                          "this build has no kernels for int8 tables");
    pith__pack pack = {
        .layout = "i8rows32", .inputs = 1u << input, .fill = embed_norm_fill_table, .context = t
    };
    if (pith__mul_overflows((size_t)t->rows, (size_t)t->n, &t->scales_at) ||
        pith__add_overflows(t->scales_at, (size_t)63, &t->scales_at) ||
        pith__mul_overflows((size_t)t->n, PACK_ROWS * 2 * sizeof(float), &pack.scratch))
        return pith__fail_memory(c->err, SIZE_MAX);
    t->scales_at = t->scales_at / 64 * 64;
    if (pith__mul_overflows((size_t)t->rows, sizeof(float), &pack.bytes) ||
        pith__mul_overflows(pack.bytes, (size_t)pith__table_groups(t->n), &pack.bytes) ||
        pith__add_overflows(pack.bytes, t->scales_at, &pack.bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    pack.parts = (size_t)((t->rows + PACK_ROWS - 1) / PACK_ROWS);
    small->scales_at = t->scales_at;
    return pith__prepare_pack(c, &small->rows, &pack);
}

/* Only tables of many rows: small ones stay in the cache anyway. */
static pith_status embed_norm_pack_tables(embed_norm *s, pith__prepare *c) {
    if (pith__node_int(c->node, "precision", PITH_PRECISION_F32) != PITH_PRECISION_INT8)
        return PITH_OK;
    s->dequantize = PITH_PREPARE_KERNEL(pith__dequantize_row_fn, "dequantize_row", PITH_I8, c);
    if (!s->dequantize)
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED,
                          "this build has no kernels for int8 tables");
    for (int t = 0; t < (c->in_count - 2) / 2; t++) {
        int input = 2 + 2 * t;
        if (c->in[input]->dims[0] >= QUANTIZED_ROWS && pith__pack_can(c, input))
            PITH_TRY(embed_norm_pack_table(&s->small[t], c, input));
    }
    return PITH_OK;
}

/* Kernels of the norm, and tables in 8 bits if the precision asks for that. */
static pith_status embed_norm_prepare(pith__prepare *c) {
    embed_norm *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    const char *family = pith__node_int(c->node, "rms", 0) ? "rms_norm" : "layer_norm";
    s->norm = PITH_PREPARE_KERNEL(pith__layer_norm_f32_fn, family, PITH_F32, c);
    if (!s->norm)
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "this build has no kernel %s", family);
    s->epsilon = pith__node_float(c->node, "epsilon", 1e-5f);
    c->state = s;
    return embed_norm_pack_tables(s, c);
}

/* A row of floats for each table that is not f32, and one more, for each worker. */
static pith_status embed_norm_scratch(const pith__infer *c, const void *state, int threads,
                                      size_t *bytes) {
    const embed_norm *s = state;
    bool small = s->dequantize != NULL;
    for (int i = 2; i < c->in_count; i += 2) small |= embed_norm_is_narrow(c->in[i]->dtype);
    *bytes = 0;
    if (!small) return PITH_OK;
    if (pith__mul_overflows((size_t)c->in[0]->dims[0], (TABLES_MAX + 1) * sizeof(float), bytes) ||
        pith__mul_overflows(*bytes, (size_t)threads, bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    return PITH_OK;
}

typedef struct work {
    const embed_norm *s;
    pith__layer_norm row; /* what all rows share */
    int tables;
    const pith_tensor *table[TABLES_MAX], *ids[TABLES_MAX];
    int64_t strides[TABLES_MAX][PITH_MAX_RANK]; /* of the ids, 0 along broadcast axes */
    const pith_tensor *out;
    int64_t rows, chunk;
    float *wide; /* [threads, TABLES_MAX + 1, n], for rows of tables that are not f32 */
} work;

static int64_t embed_norm_id_at(const pith_tensor *ids, int64_t i) {
    return ids->dtype == PITH_I64 ? ((const int64_t *)ids->data)[i]
                                  : ((const int32_t *)ids->data)[i];
}

/* The row of table t for an output row: where it lies if it is f32, else widened into the worker's
 * memory, which has one row per table. */
static const float *embed_norm_table_row(const work *w, int t, int64_t row, int worker) {
    int64_t at = 0;
    for (int d = w->out->rank - 2; d >= 0; d--) {
        at += row % w->out->dims[d] * w->strides[t][d];
        row /= w->out->dims[d];
    }
    int64_t id = embed_norm_id_at(w->ids[t], at);
    if (id < 0) id += w->table[t]->dims[0];
    const small_table *small = &w->s->small[t];
    float *own = w->wide ? w->wide + worker * (TABLES_MAX + 1) * w->row.n : NULL,
          *wide = own ? own + t * w->row.n : NULL;
    if (embed_norm_is_narrow(w->table[t]->dtype) && !small->rows) {
        embed_norm_read_floats(wide, w->table[t], id * w->row.n, w->row.n,
                               own + TABLES_MAX * w->row.n);
        return wide;
    }
    if (small->rows) {
        const int8_t *rows = small->rows;
        const float *scales = (const float *)(const void *)(rows + small->scales_at);
        w->s->dequantize(rows + id * w->row.n, scales + id * pith__table_groups(w->row.n), wide,
                         w->row.n);
        return wide;
    }
    return (const float *)w->table[t]->data + id * w->row.n;
}

/* A row that is not aligned, as a file may have it, is copied to the output first, where the kernel
 * reads and overwrites it. */
static void embed_norm_part(void *context, size_t index, int worker) {
    const work *w = context;
    int64_t first = (int64_t)index * w->chunk,
            last = first + w->chunk < w->rows ? first + w->chunk : w->rows;
    for (int64_t row = first; row < last; row++) {
        pith__layer_norm a = w->row;
        a.x = embed_norm_table_row(w, 0, row, worker);
        a.y += row * a.n;
        if ((uintptr_t)a.x % sizeof(float)) a.x = memcpy(a.y, a.x, (size_t)a.n * sizeof(float));
        /* The kernel computes (x + bias) + residual. */
        if (w->tables == 3) a.bias = embed_norm_table_row(w, 1, row, worker);
        if (w->tables > 1) a.residual = embed_norm_table_row(w, w->tables - 1, row, worker);
        w->s->norm(&a);
    }
}

/* Before the parallel part, which cannot fail. */
static pith_status embed_norm_check_ids(const pith__run *r, const work *w) {
    for (int t = 0; t < w->tables; t++) {
        int64_t count = pith__tensor_count(w->ids[t]), rows = w->table[t]->dims[0];
        for (int64_t i = 0; i < count; i++) {
            int64_t id = embed_norm_id_at(w->ids[t], i);
            if (id < -rows || id >= rows) {
                return pith__fail(r->err, PITH_ERR_RUN,
                                  "id %lld is outside the table of %lld rows (ids %d)",
                                  (long long)id, (long long)rows, t);
            }
        }
    }
    return PITH_OK;
}

/* strides: how the ids of a table are found from a place of the output; 0 along axes that
 * broadcast. */
static pith_status embed_norm_run(pith__run *r) {
    const embed_norm *s = r->state;
    const pith_tensor *out = r->out[0];
    int64_t n = out->dims[out->rank - 1], count = pith__tensor_count(out);
    work w = { .s = s,
               .row = { .gamma = r->in[0]->data,
                        .beta = r->in[1] ? r->in[1]->data : NULL,
                        .y = out->data,
                        .rows = 1,
                        .n = n,
                        .epsilon = s->epsilon },
               .tables = (r->in_count - 2) / 2,
               .wide = r->scratch,
               .out = out };
    for (int t = 0; t < w.tables; t++) {
        w.table[t] = r->in[2 + 2 * t];
        w.ids[t] = r->in[3 + 2 * t];
        int lead = out->rank - 1 - w.ids[t]->rank;
        int64_t stride = 1;
        for (int d = w.ids[t]->rank - 1; d >= 0; d--) {
            if (w.ids[t]->dims[d] != 1) w.strides[t][lead + d] = stride;
            stride *= w.ids[t]->dims[d];
        }
    }
    if (count == 0) return PITH_OK;
    PITH_TRY(embed_norm_check_ids(r, &w));
    w.rows = count / n;
    w.chunk = pith__run_chunk(r, w.rows, n, EMBED_GRAIN);
    pith__run_parallel(r, embed_norm_part, &w, (size_t)((w.rows + w.chunk - 1) / w.chunk));
    return PITH_OK;
}

/* As SkipNorm; of the tables only the rows that are looked up are read. */
static void embed_norm_cost(const pith__run *r, pith__cost *cost) {
    int tables = (r->in_count - 2) / 2;
    cost->operations *= 7 + tables;
    cost->bytes = (double)r->out[0]->bytes * (1 + tables);
    cost->kernel = "layer_norm f32";
}

const pith__op pith__op_EmbedNorm_pith = {
    .domain = "pith",
    .name = "EmbedNorm",
    .since = 1,
    .newest = 1,
    .min_inputs = 1,
    .max_inputs = 8,
    .max_outputs = 1,
    .unaligned = 1u << 2,
    .attrs = "epsilon float = 1e-05; precision int 0..3 = 1; rms bool = 0",
    .infer = embed_norm_infer,
    .prepare = embed_norm_prepare,
    .scratch = embed_norm_scratch,
    .run = embed_norm_run,
    .cost = embed_norm_cost,
};
