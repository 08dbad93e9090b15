/* int_matmul.c - see int_matmul.h. */
#include "engine/ops/shared/int_matmul.h"

#include <string.h>

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/packed_constants.h"

/* Rows of a part. Fewer make more parts for threads, and each part reads its columns of b. COLUMNS:
 * what the columns of a part are a multiple of. GRAIN: multiply-adds that are worth a thread;
 * PACK_GRAIN: bytes to pack. */
enum { ROWS = 64, COLUMNS = 64, GRAIN = 1 << 20, PACK_GRAIN = 1 << 16 };

/* b as i8 in to: u8 less 128. */
static void int_matmul_shift_bytes(int8_t *to, const void *b, int dtype, int64_t count) {
    const uint8_t *from = b;
    uint8_t flip = dtype == PITH_U8 ? 0x80 : 0;
    for (int64_t i = 0; i < count; i++) to[i] = (int8_t)(from[i] ^ flip);
}

typedef struct weights {
    pith__gemm_pack_i8_fn *pack;
    const char *from;
    int dtype;
    int64_t k, n;
} weights;

static int64_t int_product_panels(const weights *w) {
    return (w->n + PITH_GEMM_PANEL - 1) / PITH_GEMM_PANEL;
}

static void int_product_fill_panel(void *packed, const void *context, size_t part, void *scratch) {
    const weights *w = context;
    int64_t n0 = (int64_t)part * PITH_GEMM_PANEL,
            n = w->n - n0 < PITH_GEMM_PANEL ? w->n - n0 : PITH_GEMM_PANEL;
    int8_t *bytes = scratch;
    for (int64_t i = 0; i < w->k; i++)
        int_matmul_shift_bytes(bytes + i * n, w->from + n0 + i * w->n, w->dtype, n);
    w->pack((char *)packed + (int64_t)part * pith__gemm_int8_panel_bytes(w->k), bytes, n, 1, w->k,
            n, 0, n);
}

/* Constant weights are packed as i8, u8 ones minus 128, which their zero points make up for. */
pith_status pith__int_product_prepare(pith__int_product *p, pith__prepare *c, int b) {
    pith__kernel_fn *kernel;
    const pith__type *t = c->in[b];
    if (t->dtype != PITH_U8 && t->dtype != PITH_I8) return pith__fail_dtype(c->err, t->dtype);
    PITH_TRY(pith__prepare_kernel(c, "gemm_pack", PITH_I8, &kernel));
    p->pack = (pith__gemm_pack_i8_fn *)kernel;
    PITH_TRY(pith__prepare_kernel(c, "sums_shift", PITH_I32, &kernel));
    p->shift = (pith__sums_shift_fn *)kernel;
    p->gemm =
        pith__gemm_i8_find(NULL, t->rank == 2 && t->dims[0] > 0 ? t->dims[0] : INT64_MAX, c->isa);
    if (!p->gemm) return pith__prepare_kernel(c, "gemm", PITH_I8, &kernel);
    if (t->rank != 2 || !pith__pack_can(c, b)) return PITH_OK;
    int64_t size = pith__gemm_int8_packed_size(t->dims[0], t->dims[1]);
    weights *w = pith__arena_array(c->arena, 1, sizeof *w);
    if (size < 0 || !w) return pith__fail_memory(c->err, size < 0 ? SIZE_MAX : sizeof *w);
    const pith_tensor *constant = t->data; /* NULL in a compiled model, which has it packed */
    *w = (weights){ p->pack, constant ? constant->data : NULL, t->dtype, t->dims[0], t->dims[1] };
    pith__pack pack = { .layout = t->dtype == PITH_U8 ? "u8-128x16" : "i8x16",
                        .bytes = (size_t)size,
                        .inputs = 1u << b,
                        .fill = int_product_fill_panel,
                        .context = w,
                        .parts = (size_t)int_product_panels(w),
                        .scratch = (size_t)w->k * PITH_GEMM_PANEL };
    return pith__prepare_pack(c, &p->packed, &pack);
}

/* Zero points of rows and columns, sums of columns; bytes of b and its packed form. */
bool pith__int_product_scratch(const pith__int_product *p, int64_t m, int64_t n, int64_t k,
                               size_t *bytes) {
    int64_t size = p->packed ? 0 : pith__gemm_int8_packed_size(k, n), plain = 0;
    size_t rows, columns;
    return size >= 0 && (p->packed || !pith__mul_overflows(k, n, &plain)) &&
           pith__dtype_bytes(PITH_I32, m, &rows) && pith__dtype_bytes(PITH_I64, n, &columns) &&
           !pith__add_overflows(rows, columns, bytes) &&
           !pith__add_overflows(*bytes, (size_t)size, bytes) &&
           !pith__add_overflows(*bytes, (size_t)plain + 512, bytes);
}

typedef struct job {
    const pith__int_product *p;
    pith__gemm_int8 g;
    const int32_t *row_zeros, *column_zeros, *column_sums;
    int64_t column_parts, columns; /* columns: of a part */
    bool needs_rows;
} job;

/* The packed form holds the sums of its 16 columns after each panel. */
static void int_matmul_read_column_sums(int32_t *sums, const void *packed, int64_t n, int64_t k) {
    int64_t panel = pith__gemm_int8_panel_bytes(k);
    for (int64_t j = 0; j < n; j += 16) {
        memcpy(sums + j, (const char *)packed + j / 16 * panel + panel - 64,
               (size_t)(n - j < 16 ? n - j : 16) * sizeof *sums);
    }
}

/* A block of the product and its correction for zero points, while the sums are in the cache. */
static void int_product_run_part(void *context, size_t part, int worker) {
    const job *w = context;
    const pith__gemm_int8 *g = &w->g;
    int64_t m0 = (int64_t)part / w->column_parts * ROWS, m1 = m0 + ROWS < g->m ? m0 + ROWS : g->m;
    int64_t n0 = (int64_t)part % w->column_parts * w->columns,
            n1 = n0 + w->columns < g->n ? n0 + w->columns : g->n;
    (void)worker;
    w->p->gemm(g, m0, m1, n0, n1);
    w->p->shift(&(pith__sums_shift){ .c = g->c + m0 * g->ldc + n0,
                                     .a = (const uint8_t *)g->a + m0 * g->lda,
                                     .row_zeros = w->row_zeros + m0,
                                     .column_sums = w->column_sums + n0,
                                     .column_zeros = w->needs_rows ? w->column_zeros + n0 : NULL,
                                     .rows = m1 - m0,
                                     .n = n1 - n0,
                                     .row = g->ldc,
                                     .k = g->k,
                                     .a_signed = g->a_signed });
}

/* Few rows are cut by columns, so that each thread has a part; so are long ones of a run that may
 * have to stop. */
static size_t int_product_split(const pith__run *r, job *w) {
    const int threads = r->exec->threads;
    const int64_t m = w->g.m, n = w->g.n, row_parts = (m + ROWS - 1) / ROWS;
    const double most = (double)m * (double)n * (double)w->g.k / GRAIN;
    int64_t parts = most < threads ? (int64_t)most : threads,
            wanted = (parts + row_parts - 1) / row_parts;
    int64_t strips = (n + COLUMNS - 1) / COLUMNS;
    const int64_t least =
        pith__run_parts_least(r, (double)(m < ROWS ? m : ROWS) * (double)n * (double)w->g.k);
    if (wanted < least) wanted = least;
    w->columns = (strips + wanted - 1) / wanted * COLUMNS;
    w->column_parts = (n + w->columns - 1) / w->columns;
    return (size_t)(row_parts * w->column_parts);
}

typedef struct packing {
    weights w;
    char *packed, *bytes; /* bytes: k x n, of which each panel has its own */
    int64_t panels, per_part;
} packing;

static void int_product_pack_part(void *context, size_t part, int worker) {
    const packing *p = context;
    const int64_t first = (int64_t)part * p->per_part,
                  end = first + p->per_part < p->panels ? first + p->per_part : p->panels;
    (void)worker;
    for (int64_t i = first; i < end; i++)
        int_product_fill_panel(p->packed, &p->w, (size_t)i,
                               p->bytes + i * PITH_GEMM_PANEL * p->w.k);
}

/* A matrix b that is no constant. */
static void int_product_pack(pith__run *r, const weights *w, char *packed, char *bytes) {
    packing p = { *w, packed, bytes, int_product_panels(w), 0 };
    p.per_part = pith__run_chunk(r, p.panels, w->k * PITH_GEMM_PANEL, PACK_GRAIN);
    pith__run_parallel(r, int_product_pack_part, &p,
                       (size_t)((p.panels + p.per_part - 1) / p.per_part));
}

static void int_matmul_read_zeros(int32_t *to, const pith_tensor *zeros, int64_t count) {
    const int64_t own = zeros ? pith__tensor_count(zeros) : 0;
    int32_t all = 0;
    if (own == count) {
        pith__convert(to, PITH_I32, 0, zeros->data, zeros->dtype, 0, count, true);
        return;
    }
    if (own) pith__convert(&all, PITH_I32, 0, zeros->data, zeros->dtype, 0, 1, true);
    for (int64_t i = 0; i < count; i++) to[i] = all;
}

/* sum (a - za) (b - zb) = sum a b - za sum b - zb sum a + k za zb: the matmul is on the plain
 * bytes, and the other sums are per row and per column. All of it is exact in 32 bits, modulo 2^32.
 */
void pith__int_product_run(pith__run *r, const pith__int_product *p, void *scratch, int32_t *c,
                           const pith_tensor *a, int64_t a_first, const pith_tensor *b,
                           int64_t b_first, const pith_tensor *a_zero, const pith_tensor *b_zero,
                           int64_t m, int64_t n, int64_t k) {
    int32_t *row_zeros = scratch, *column_zeros = row_zeros + m, *column_sums = column_zeros + n;
    char *rest = (char *)scratch + pith__round64((size_t)(m + 2 * n) * sizeof *row_zeros);
    if (m == 0 || n == 0) return;
    int_matmul_read_zeros(row_zeros, a_zero, m);
    int_matmul_read_zeros(column_zeros, b_zero, n);
    job w = {
        .p = p, .row_zeros = row_zeros, .column_zeros = column_zeros, .column_sums = column_sums
    };
    w.g = (pith__gemm_int8){ .a = (const char *)a->data + a_first,
                             .b = p->packed,
                             .c = c,
                             .m = m,
                             .n = n,
                             .k = k,
                             .lda = k,
                             .ldc = n,
                             .a_signed = a->dtype == PITH_I8 };
    for (int64_t j = 0; j < n; j++) {
        if (b->dtype == PITH_U8) column_zeros[j] -= 128;
        w.needs_rows |= column_zeros[j] != 0;
    }
    if (!p->packed) {
        const weights own = { p->pack, (const char *)b->data + b_first, b->dtype, k, n };
        char *packed = rest + pith__round64((size_t)(k * n));
        int_product_pack(r, &own, packed, rest);
        w.g.b = packed;
    }
    int_matmul_read_column_sums(column_sums, w.g.b, n, k);
    pith__run_parallel(r, int_product_run_part, &w, int_product_split(r, &w));
}
