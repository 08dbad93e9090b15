/* linear_half.c - pith.Linear with weights of 16 bits.
 *
 * f16 or bf16 weights as they are stored are multiplied in f32: the bits are those of widened
 * weights, with half the bytes to read. At precision bf16, weights and rows of x are rounded to
 * bf16 and multiplied by the CPU's own instructions, where it has any. */
#include <string.h>

#include "base/checked.h"
#include "base/piece_listener.h"
#include "engine/kernels/gemm_half.h"
#include "engine/ops/shared/linear.h"

typedef struct form {
    pith__gemm_pack_half_fn *pack;
    int64_t k;
    size_t panel;
} form;

static void linear_half_pack_panel(void *packed, const void *context, int64_t index,
                                   const float *panel, float *work) {
    (void)work;
    const form *f = context;
    f->pack((char *)packed + (size_t)index * f->panel, panel, f->k);
}

/* Panels of 16 columns in the 16-bit type, whose layout depends on the instructions that read it.
 */
static pith_status linear_half_pack(pith__linear *s, pith__prepare *c,
                                    const pith__pack_matrix *weights, size_t count, int dtype) {
    form *f = pith__arena_array(c->arena, 1, sizeof *f);
    int64_t bytes = pith__gemm_half_packed_size(s->k, s->n);
    if (!f || bytes < 0) return pith__fail_memory(c->err, SIZE_MAX);
    f->pack = PITH_PREPARE_KERNEL(pith__gemm_pack_half_fn, "gemm_pack", dtype, c);
    if (!f->pack || !s->gemm)
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "this build has no %s matmul kernels",
                          pith__dtype_name(dtype));
    f->k = s->k;
    s->packed_bytes = (size_t)bytes;
    f->panel = (size_t)pith__gemm_half_packed_size(s->k, PITH_GEMM_PANEL);
    pith__pack_form as = { .layout = dtype == PITH_F16 ? "f16x16" : "bf16x2x16",
                           .bytes = (size_t)bytes,
                           .panel = linear_half_pack_panel,
                           .context = f };
    return pith__prepare_pack_panels(c, &s->packed, weights, count, s->k, &as);
}

/* The kernel's arguments for a block; a is x itself or its rows in bf16. */
static void linear_half_multiply_rows(const pith__linear *s, const pith__linear_rows *r,
                                      const void *a, int64_t lda, int64_t m0, int64_t m1,
                                      int64_t n0, int64_t n1) {
    pith__gemm_half g = { .a = a,
                          .b = s->packed,
                          .c = r->y,
                          .bias = s->bias,
                          .m = r->m,
                          .n = s->n,
                          .k = s->k,
                          .lda = lda,
                          .ldc = s->n,
                          .activation = s->activation,
                          .next = r->next };
    ((pith__gemm_half_fn *)s->gemm)(&g, m0, m1, n0, n1);
}

/* ---- f32 arithmetic ---- */

static pith_status linear_half_prepare_f16(pith__linear *s, pith__prepare *c,
                                           const pith__pack_matrix *weights, size_t count) {
    s->gemm = pith__prepare_find(c, "gemm", PITH_F16);
    s->grain = PITH_LINEAR_GRAIN;
    return linear_half_pack(s, c, weights, count, PITH_F16);
}

static pith_status linear_half_prepare_bf16(pith__linear *s, pith__prepare *c,
                                            const pith__pack_matrix *weights, size_t count) {
    s->gemm = pith__prepare_find(c, "gemm", PITH_BF16);
    s->grain = PITH_LINEAR_GRAIN;
    return linear_half_pack(s, c, weights, count, PITH_BF16);
}

static void linear_half_multiply_stored(const pith__linear *s, const pith__linear_rows *r,
                                        int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    linear_half_multiply_rows(s, r, r->x, s->k, m0, m1, n0, n1);
}

const pith__linear_way pith__linear_f16_stored = {
    .kernel = "gemm f16",
    .prepare = linear_half_prepare_f16,
    .multiply = linear_half_multiply_stored,
};

const pith__linear_way pith__linear_bf16_stored = {
    .kernel = "gemm bf16",
    .prepare = linear_half_prepare_bf16,
    .multiply = linear_half_multiply_stored,
};

/* ---- precision bf16 ---- */

/* At precision bf16. The kernel found says whether it wants rows in f32 (wide) or in bf16. */
static pith_status linear_half_prepare(pith__linear *s, pith__prepare *c,
                                       const pith__pack_matrix *weights, size_t count) {
    int wide;
    s->gemm = pith__prepare_find(c, pith__gemm_bf16_family(&wide, c->isa), PITH_BF16);
    if (pith__piece_heard()) /* `wide` depends on the processor */
        (void)pith__prepare_find(c, "to_bf16", wide ? PITH_BF16 : PITH_F32);
    s->convert = pith__prepare_find(c, "to_bf16", wide ? PITH_F32 : PITH_BF16);
    if (!s->convert)
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED,
                          "this build has no bfloat16 matmul kernels");
    s->element = wide ? sizeof(float) : sizeof(uint16_t);
    s->grain = wide ? PITH_LINEAR_GRAIN : 5 * PITH_LINEAR_GRAIN;
    return linear_half_pack(s, c, weights, count, PITH_BF16);
}

static int64_t linear_half_stride_of(const pith__linear *s) { return (s->k + 31) / 32 * 32; }

static size_t linear_half_row_bytes(const pith__linear *s) {
    return (size_t)linear_half_stride_of(s) * s->element;
}

static void linear_half_convert(const pith__linear *s, const pith__linear_rows *r, int64_t m0,
                                int64_t m1) {
    for (int64_t i = m0; i < m1; i++) {
        char *row = (char *)r->converted + (size_t)i * linear_half_row_bytes(s);
        ((pith__round_bf16_fn *)s->convert)(r->x + i * s->k, row, s->k);
        /* matmuls take pairs of k */
        if (s->k % 2) memset(row + (size_t)s->k * s->element, 0, s->element);
    }
}

static void linear_half_multiply(const pith__linear *s, const pith__linear_rows *r, int64_t m0,
                                 int64_t m1, int64_t n0, int64_t n1) {
    linear_half_multiply_rows(s, r, r->converted, linear_half_stride_of(s), m0, m1, n0, n1);
}

const pith__linear_way pith__linear_bf16 = {
    .kernel = "gemm bf16",
    .prepare = linear_half_prepare,
    .row_bytes = linear_half_row_bytes,
    .convert = linear_half_convert,
    .multiply = linear_half_multiply,
};
