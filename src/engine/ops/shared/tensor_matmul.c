/* tensor_matmul.c - see tensor_matmul.h. */
#include "engine/ops/shared/tensor_matmul.h"

#include "base/checked.h"
#include "engine/kernels/matmul.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/packed_constants.h"

/* ROWS, COLUMNS: sizes of a part of a split matmul. Smaller parts spread better over threads and
 * read more per multiply-add. GRAIN: multiply-adds that are worth a thread; a matmul with fewer is
 * not split. */
enum { ROWS = 48, COLUMNS = 256, GRAIN = 1 << 18 };

/* The right side is packed now if it is constant. b < 0: it never is. */
pith_status pith__product_prepare(pith__product *p, pith__prepare *c, int dtype, int b,
                                  bool transposed) {
    int compute = pith__compute_dtype(dtype);
    p->element = pith__element_size(compute);
    if (compute != PITH_F32) {
        PITH_TRY(pith__prepare_kernel(c, "matmul", compute, &p->plain));
        return PITH_OK;
    }
    pith__kernel_fn *gemm, *pack;
    PITH_TRY(pith__prepare_kernel(c, "gemm", PITH_F32, &gemm));
    PITH_TRY(pith__prepare_kernel(c, "gemm_pack", PITH_F32, &pack));
    p->gemm = (pith__gemm_f32_fn *)gemm;
    p->pack = (pith__gemm_pack_f32_fn *)pack;
    if (b < 0 || c->in[b]->rank < 2 || !pith__pack_can(c, b)) return PITH_OK;
    const pith__type *t = c->in[b];
    int64_t k = t->dims[t->rank - 2 + transposed], n = t->dims[t->rank - 1 - transposed];
    p->matrices = 1;
    for (int i = 0; i < t->rank - 2; i++) p->matrices *= t->dims[i];
    p->packed_size = pith__gemm_f32_packed_size(k, n);
    size_t floats;
    if (p->packed_size < 0 ||
        pith__mul_overflows((size_t)p->packed_size, (size_t)p->matrices, &floats)) {
        return pith__fail_memory(c->err, SIZE_MAX);
    }
    pith__pack_matrix *list = pith__arena_array(c->arena, (size_t)p->matrices, sizeof *list);
    if (!list) return pith__fail_memory(c->err, SIZE_MAX);
    for (int64_t i = 0; i < p->matrices; i++)
        list[i] = (pith__pack_matrix){ b, transposed, i * k * n, n, i * p->packed_size };
    return pith__prepare_pack_f32(c, &p->packed, list, (size_t)p->matrices, k, floats);
}

bool pith__product_scratch(const pith__product *p, int64_t count, int64_t n, int64_t k, int threads,
                           size_t *bytes) {
    *bytes = 0;
    if (p->plain || p->packed) return true;
    int64_t one = pith__gemm_f32_packed_size(k, n);
    if (one < 0 || pith__mul_overflows((size_t)one, sizeof(float), bytes)) return false;
    *bytes = pith__round64(*bytes);
    return count < 2 || !pith__mul_overflows(*bytes, (size_t)(threads > 0 ? threads : 1), bytes);
}

static int64_t product_a_offset(const pith__product_job *j, int64_t i) {
    return j->a_at ? j->a_at[i] : i * j->m * j->k;
}

typedef struct job {
    const pith__product_job *j;
    float *scratch;
    int64_t packed_size, row_parts, rows, column_parts, columns, m;
    const float *packed;
    const void *a;
    void *c;
    pith__stop *stop;
} job;

static pith__gemm product_gemm_of(const pith__product_job *j, const void *a, const float *packed,
                                  void *c, int64_t m) {
    return (pith__gemm){ .a = a,
                         .b = packed,
                         .c = c,
                         .bias = j->bias,
                         .m = m,
                         .n = j->n,
                         .k = j->k,
                         .lda = j->a_row,
                         .ldc = j->n };
}

static void product_pack_part(void *context, size_t part, int worker) {
    const job *w = context;
    const pith__product_job *j = w->j;
    (void)worker;
    int64_t n0 = (int64_t)part * COLUMNS, n1 = n0 + COLUMNS < j->n ? n0 + COLUMNS : j->n;
    j->product->pack(w->scratch, (const float *)j->b + (j->b_at ? j->b_at[0] : 0), j->b_row,
                     j->b_column, j->k, j->n, n0, n1);
}

static void product_block_part(void *context, size_t part, int worker) {
    const job *w = context;
    (void)worker;
    int64_t m0 = (int64_t)part / w->column_parts * w->rows,
            n0 = (int64_t)part % w->column_parts * w->columns;
    int64_t m1 = m0 + w->rows < w->m ? m0 + w->rows : w->m,
            n1 = n0 + w->columns < w->j->n ? n0 + w->columns : w->j->n;
    pith__gemm g = product_gemm_of(w->j, w->a, w->packed, w->c, w->m);
    w->j->product->gemm(&g, m0, m1, n0, n1);
}

/* One matmul of m rows, its right side packed. */
static void product_run_blocks(pith__run *r, job *w, const void *a, const float *packed, void *c,
                               int64_t m) {
    const pith__product_job *j = w->j;
    const double products = (double)m * (double)j->n * (double)j->k;
    bool small =
        products < GRAIN || (r->exec->threads < 2 && pith__run_parts_least(r, products) < 2);
    w->a = a;
    w->packed = packed;
    w->c = c;
    w->m = m;
    w->rows = small ? m : ROWS;
    w->columns = small || m > ROWS * 2 * r->exec->threads ? j->n : COLUMNS;
    w->row_parts = (m + w->rows - 1) / w->rows;
    w->column_parts = (j->n + w->columns - 1) / w->columns;
    pith__run_parallel(r, product_block_part, w, (size_t)(w->row_parts * w->column_parts));
}

static void product_matrix_part(void *context, size_t part, int worker) {
    const job *w = context;
    const pith__product_job *j = w->j;
    int64_t i = (int64_t)part;
    const float *b = (const float *)j->b + (j->b_at ? j->b_at[i] : 0);
    float *packed = w->scratch + worker * w->packed_size;
    j->product->pack(packed, b, j->b_row, j->b_column, j->k, j->n, 0, j->n);
    pith__gemm g = product_gemm_of(j, (const float *)j->a + product_a_offset(j, i), packed,
                                   (float *)j->c + i * j->m * j->n, j->m);
    for (int64_t m0 = 0, m1; m0 < j->m; m0 = m1) {
        if (pith__stop_asked(w->stop)) return;
        m1 = w->stop && j->m - m0 > ROWS ? m0 + ROWS : j->m;
        j->product->gemm(&g, m0, m1, 0, j->n);
    }
}

/* Rows of one matrix, by the kernel that takes strides. */
static void product_plain_part(void *context, size_t part, int worker) {
    const job *w = context;
    const pith__product_job *j = w->j;
    (void)worker;
    int64_t i = (int64_t)part / w->row_parts, m0 = (int64_t)part % w->row_parts * w->rows;
    int64_t m1 = m0 + w->rows < j->m ? m0 + w->rows : j->m;
    size_t size = j->product->element;
    pith__matmul p = { .a = (const char *)j->a + (size_t)product_a_offset(j, i) * size,
                       .b = (const char *)j->b + (size_t)(j->b_at ? j->b_at[i] : 0) * size,
                       .c = (char *)j->c + (size_t)(i * j->m * j->n) * size,
                       .n = j->n,
                       .k = j->k,
                       .a_row = j->a_row,
                       .a_column = j->a_column,
                       .b_row = j->b_row,
                       .b_column = j->b_column };
    ((pith__matmul_fn *)j->product->plain)(&p, m0, m1);
}

/* One right matrix for all left ones makes one tall product. */
void pith__product_run(pith__run *r, void *scratch, const pith__product_job *j) {
    job w = { .j = j,
              .scratch = scratch,
              .packed_size = pith__gemm_f32_packed_size(j->k, j->n),
              .stop = r->exec->stop };
    if (j->count == 0 || j->m == 0 || j->n == 0) return;
    if (j->product->plain) {
        w.rows = pith__run_chunk(r, j->m, j->n * j->k, GRAIN);
        w.row_parts = (j->m + w.rows - 1) / w.rows;
        pith__run_parallel(r, product_plain_part, &w, (size_t)(j->count * w.row_parts));
        return;
    }
    w.packed_size = (w.packed_size + 15) & ~(int64_t)15;
    bool one_right = !j->b_at;
    if (j->b_at) {
        for (int64_t i = 1; !one_right && i < j->count; i++) {
            if (j->b_at[i] != j->b_at[0]) break;
            one_right = i == j->count - 1;
        }
    }
    if (j->product->packed || j->count == 1 || one_right) {
        const float *packed = j->product->packed;
        if (!packed) {
            pith__run_parallel(r, product_pack_part, &w, (size_t)((j->n + COLUMNS - 1) / COLUMNS));
            packed = w.scratch;
        }
        if (!j->a_at && one_right) { /* rows of all matrices are one matrix */
            product_run_blocks(r, &w, j->a, packed, j->c, j->count * j->m);
            return;
        }
        for (int64_t i = 0; i < j->count; i++) {
            const float *b =
                packed + (j->product->packed && j->b_at ? j->b_at[i] * j->product->packed_size : 0);
            product_run_blocks(r, &w, (const float *)j->a + product_a_offset(j, i), b,
                               (float *)j->c + i * j->m * j->n, j->m);
        }
        return;
    }
    pith__run_parallel(r, product_matrix_part, &w, (size_t)j->count);
}
