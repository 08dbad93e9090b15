/* nbits_int8.c - see nbits_int8.h. */
#include "engine/ops/shared/nbits_int8.h"

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/packed_constants.h"

/* GRAIN, BYTES: multiply-adds in f32, and bytes of weights, that take about five microseconds; less
 * is not worth a thread. ROWS: the fewest rows of a part, since weights are read again for each
 * part. SHARES: parts that a thread gets if there are enough rows, so that a delayed thread can
 * leave some to others. STRIP: parts begin at a multiple of so many columns, which most tiles
 * have. */
enum { GRAIN = 400000, BYTES = 65536, ROWS = 48, SHARES = 4, STRIP = 2 * PITH_GEMM_PANEL };

/* Whether a MatMulNBits node asks for 8-bit inputs and has a form that the kernels know: constant
 * weights in blocks of a power of two, without groups. */
bool pith__nbits_int8_takes(pith__nbits_int8 *q, const pith__prepare *c) {
    const int64_t block = pith__node_int(c->node, "block_size", 32),
                  bits = pith__node_int(c->node, "bits", 4);
    const pith__type *zeros = pith__has_input(c, PITH_NBITS_ZEROS) ? c->in[PITH_NBITS_ZEROS] : NULL;
    if (pith__node_int(c->node, "accuracy_level", 0) != 4 || (bits != 4 && bits != 8) ||
        block < PITH_BLOCK_LEAST || block > PITH_BLOCK_MOST || (block & (block - 1)) ||
        pith__has_input(c, PITH_NBITS_GROUPS) || (zeros && zeros->dtype != PITH_U8))
        return false;
    for (int i = PITH_NBITS_B; i <= PITH_NBITS_ZEROS && i < c->in_count; i++) {
        if (c->in[i] && !pith__pack_can(c, i)) return false;
    }
    const int64_t k = pith__node_int(c->node, "K", 0);
    q->n = pith__node_int(c->node, "N", 0);
    q->form = (pith__blocks_form){ .k = k,
                                   .blocks = (k + block - 1) / block,
                                   .block = (int32_t)block,
                                   .bits = (int32_t)bits,
                                   .zeros = zeros != NULL };
    return true;
}

/* scratch: the scales of the panel's columns. */
static void nbits_int8_fill_panel(void *packed, const void *context, size_t part, void *scratch) {
    const pith__nbits_int8 *q = context;
    const pith__blocks_form *f = &q->form;
    const int64_t j = (int64_t)part * PITH_GEMM_PANEL, left = q->n - j;
    pith__blocks_columns from = { .b = (const uint8_t *)q->b->data +
                                       j * f->blocks * (f->block * f->bits / 8),
                                  .scale = scratch,
                                  .columns = left < PITH_GEMM_PANEL ? left : PITH_GEMM_PANEL };
    if (f->zeros)
        from.zeros = (const uint8_t *)q->zeros->data + j * ((f->blocks * f->bits + 7) / 8);
    pith__convert(scratch, PITH_F32, 0, q->scales->data, q->scales->dtype, j * f->blocks,
                  from.columns * f->blocks, true);
    pith__blocks_pack_panel((char *)packed + part * (size_t)pith__blocks_panel_bytes(f), f, &from);
}

/* Weights stay in their bits, only turned into panels, with their scales between them. */
pith_status pith__nbits_int8_prepare(pith__nbits_int8 *q, pith__prepare *c) {
    int speed;
    const int64_t bytes = pith__blocks_packed_size(&q->form, q->n);
    pith__pack pack = { .layout = q->form.bits == 4 ? "nbits-u4x8x16" : "nbits-u8x4x16",
                        .bytes = (size_t)bytes,
                        .inputs = 1u << PITH_NBITS_B | 1u << PITH_NBITS_SCALES |
                                  (q->form.zeros ? 1u << PITH_NBITS_ZEROS : 0),
                        .fill = nbits_int8_fill_panel,
                        .context = q,
                        .parts = (size_t)((q->n + PITH_GEMM_PANEL - 1) / PITH_GEMM_PANEL) };
    if (bytes < 0 ||
        pith__mul_overflows((size_t)q->form.blocks, PITH_GEMM_PANEL * sizeof(float), &pack.scratch))
        return pith__fail_memory(c->err, SIZE_MAX);
    q->gemm = pith__gemm_blocks_find(&speed, c->isa);
    if (!q->gemm) (void)pith__prepare_find(c, "gemm_blocks", PITH_U8);
    q->quantize = PITH_PREPARE_KERNEL(pith__quantize_blocks_fn, "quantize_blocks", PITH_I8, c);
    if (!q->gemm || !q->quantize)
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED,
                          "this build has no kernels for weights in blocks");
    q->grain = (int64_t)speed * GRAIN;
    q->b = c->in[PITH_NBITS_B]->data;
    q->scales = c->in[PITH_NBITS_SCALES]->data;
    q->zeros = q->form.zeros ? c->in[PITH_NBITS_ZEROS]->data : NULL;
    q->packed_bytes = (size_t)bytes;
    return pith__prepare_pack(c, &q->packed, &pack);
}

bool pith__nbits_int8_scratch(const pith__nbits_int8 *q, int64_t m, size_t *bytes) {
    return !pith__mul_overflows((size_t)pith__blocks_row_bytes(&q->form), (size_t)m, bytes) &&
           !pith__add_overflows(*bytes, 63, bytes) && (*bytes -= *bytes % 64, true);
}

typedef struct job {
    const pith__nbits_int8 *q;
    pith__gemm_blocks gemm;
    const float *x;
    char *rows; /* quantised */
    int64_t m, row_parts, column_parts;
} job;

static void nbits_int8_quantize(const job *w, int64_t m0, int64_t m1) {
    const pith__blocks_form *f = &w->q->form;
    const pith__quantize_blocks a = { .x = w->x + m0 * f->k,
                                      .q = w->rows + m0 * pith__blocks_row_bytes(f),
                                      .form = f,
                                      .rows = m1 - m0,
                                      .ldx = f->k };
    w->q->quantize(&a);
}

/* Where part i of `parts` begins, in multiples of unit. */
static int64_t nbits_int8_begin(int64_t i, int64_t parts, int64_t size, int64_t unit) {
    const int64_t begin = (size + unit - 1) / unit * i / parts * unit;
    return begin < size ? begin : size;
}

static void nbits_int8_part(void *context, size_t index, int worker) {
    const job *w = context;
    const int64_t i = (int64_t)index / w->column_parts, j = (int64_t)index % w->column_parts,
                  n = w->q->n;
    const int64_t m0 = nbits_int8_begin(i, w->row_parts, w->m, 1),
                  m1 = nbits_int8_begin(i + 1, w->row_parts, w->m, 1);
    (void)worker;
    if (w->column_parts == 1) nbits_int8_quantize(w, m0, m1);
    w->q->gemm(&w->gemm, m0, m1, nbits_int8_begin(j, w->column_parts, n, STRIP),
               nbits_int8_begin(j + 1, w->column_parts, n, STRIP));
}

/* By rows where each part has enough of them; else by columns, and the few rows are quantised
 * before. */
static void nbits_int8_split(job *w, int threads, int64_t least) {
    const pith__nbits_int8 *q = w->q;
    const int64_t strips = (q->n + STRIP - 1) / STRIP;
    double most = (double)w->m * (double)q->n * (double)q->form.k / (double)q->grain;
    if (most < (double)q->packed_bytes / BYTES) most = (double)q->packed_bytes / BYTES;
    int64_t parts = threads;
    if (most < threads) parts = most > 1 ? (int64_t)most : 1;
    w->row_parts = parts > 1 ? SHARES * parts : 1;
    if (w->row_parts < least) w->row_parts = least;
    if (w->row_parts > w->m / ROWS) w->row_parts = w->m / ROWS;
    if (w->row_parts < 1) w->row_parts = 1;
    w->column_parts = (parts + w->row_parts - 1) / w->row_parts;
    if (w->column_parts > strips) w->column_parts = strips;
}

/* With several parts of columns all rows are quantised first, since the parts share them. */
void pith__nbits_int8_run(pith__run *r, const pith__nbits_int8 *q, float *y, const float *x,
                          const float *bias, int64_t m) {
    job w = { .q = q,
              .gemm = { .a = r->scratch,
                        .b = q->packed,
                        .c = y,
                        .bias = bias,
                        .form = &q->form,
                        .n = q->n,
                        .ldc = q->n },
              .x = x,
              .rows = r->scratch,
              .m = m };
    if (m == 0) return;
    nbits_int8_split(&w, r->exec->threads,
                     pith__run_parts_least(r, (double)m * (double)q->n * (double)q->form.k));
    if (w.column_parts > 1) nbits_int8_quantize(&w, 0, m);
    pith__run_parallel(r, nbits_int8_part, &w, (size_t)(w.row_parts * w.column_parts));
}
