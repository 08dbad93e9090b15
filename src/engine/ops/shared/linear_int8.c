/* linear_int8.c - pith.Linear with 8-bit weights: one scale per column. Rows of x become u8 with a
 * scale and a zero point each, and some outliers. Sums are exact.
 *
 * The packed form is that of engine/kernels/gemm_int8.h, followed by the scales of the columns. A
 * quantised row is its bytes, padded to a multiple of 64. After all rows of the run come their
 * scales, zero points and outliers. */
#include "base/checked.h"
#include "engine/kernels/gemm_int8.h"
#include "engine/ops/shared/linear.h"

/* The largest k: sums of more 8-bit products could overflow 32 bits. */
enum { K_MAX = 65000 };

typedef struct form {
    pith__quantize_panel_fn *quantize;
    int64_t k;
    size_t panel, scales;       /* bytes of a panel; before the scales */
    const pith__factor *factor; /* of fit */
} form;

static void linear_int8_pack_panel(void *packed, const void *context, int64_t index,
                                   const float *panel, float *work) {
    const form *f = context;
    float *scales = (float *)((char *)packed + f->scales);
    f->quantize((char *)packed + (size_t)index * f->panel, scales + index * PITH_GEMM_PANEL, panel,
                f->k, f->factor, work);
}

static int64_t linear_int8_scales_at(const pith__linear *s) {
    return pith__gemm_int8_packed_size(s->k, s->n);
}

/* K_MAX keeps the sum of k products of 8-bit numbers inside of 32 bits. */
static pith_status linear_int8_prepare(pith__linear *s, pith__prepare *c,
                                       const pith__pack_matrix *weights, size_t count) {
    form *f = pith__arena_array(c->arena, 1, sizeof *f);
    int speed = 1;
    int64_t panel = pith__gemm_int8_packed_size(s->k, PITH_GEMM_PANEL),
            scales = linear_int8_scales_at(s), bytes;
    if (s->k > K_MAX)
        return pith__op_fail(c, "%lld rows are too many for exact 8-bit sums", (long long)s->k);
    if (!f || scales < 0 ||
        pith__add_overflows(scales, scales / panel * PITH_GEMM_PANEL * 4, &bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    f->quantize = PITH_PREPARE_KERNEL(pith__quantize_panel_fn, "quantize_panel", PITH_I8, c);
    s->gemm = (pith__kernel_fn *)pith__gemm_i8_find(&speed, s->k, c->isa);
    if (!s->gemm) (void)pith__prepare_find(c, "gemm", PITH_I8);
    s->grain = speed * PITH_LINEAR_GRAIN;
    s->convert = pith__prepare_find(c, "quantize_rows", PITH_U8);
    if (!f->quantize || !s->gemm || !s->convert)
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "this build has no int8 matmul kernels");
    s->form = f;
    f->k = s->k;
    f->panel = (size_t)panel;
    f->scales = (size_t)scales;
    s->packed_bytes = (size_t)bytes;
    pith__pack_form as = {
        .layout = "i8x4x16q", .bytes = (size_t)bytes, .panel = linear_int8_pack_panel, .context = f
    };
    return pith__prepare_pack_panels(c, &s->packed, weights, count, s->k, &as);
}

static void linear_int8_fit(const pith__linear *s, const pith__factor *factor) {
    ((form *)s->form)->factor = factor;
}

static int64_t linear_int8_stride_of(const pith__linear *s) { return (s->k + 63) / 64 * 64; }

static size_t linear_int8_row_bytes(const pith__linear *s) {
    return (size_t)linear_int8_stride_of(s) + 64;
}

/* What stands after the rows, of each: numbers of 4 bytes, and room for 16. */
enum { SCALE, ZERO, EXTRA };
_Static_assert(EXTRA * 4 + PITH_I8_EXTRAS * sizeof(pith__i8_extra) <= 64, "room behind the rows");
static void *linear_int8_row_numbers(const pith__linear *s, const pith__linear_rows *r, int which) {
    return (char *)r->converted + r->m * (linear_int8_stride_of(s) + 4 * which);
}

/* Rows [m0, m1) of x as bytes, with scale, zero point and outliers. */
static void linear_int8_convert(const pith__linear *s, const pith__linear_rows *r, int64_t m0,
                                int64_t m1) {
    pith__quantize_rows a = { .x = r->x + m0 * s->k,
                              .q = (uint8_t *)r->converted + m0 * linear_int8_stride_of(s),
                              .scale = (float *)linear_int8_row_numbers(s, r, SCALE) + m0,
                              .zero = (int32_t *)linear_int8_row_numbers(s, r, ZERO) + m0,
                              .extra = (pith__i8_extra *)linear_int8_row_numbers(s, r, EXTRA) +
                                       m0 * PITH_I8_EXTRAS,
                              .rows = m1 - m0,
                              .n = s->k,
                              .ldx = s->k,
                              .ldq = linear_int8_stride_of(s) };
    ((pith__quantize_rows_fn *)s->convert)(&a);
}

/* The exact sums, then scales, bias and activation, in the kernel. */
static void linear_int8_multiply(const pith__linear *s, const pith__linear_rows *r, int64_t m0,
                                 int64_t m1, int64_t n0, int64_t n1) {
    pith__gemm_int8 g = { .a = r->converted,
                          .b = s->packed,
                          .out = r->y,
                          .a_scale = linear_int8_row_numbers(s, r, SCALE),
                          .a_zero = linear_int8_row_numbers(s, r, ZERO),
                          .a_extra = linear_int8_row_numbers(s, r, EXTRA),
                          .b_scale =
                              (const float *)((const char *)s->packed + linear_int8_scales_at(s)),
                          .bias = s->bias,
                          .m = r->m,
                          .n = s->n,
                          .k = s->k,
                          .lda = linear_int8_stride_of(s),
                          .ldc = s->n,
                          .narrow = 1,
                          .activation = s->activation,
                          .next = r->next };
    ((pith__gemm_i8_fn *)s->gemm)(&g, m0, m1, n0, n1);
}

const pith__linear_way pith__linear_int8 = {
    .kernel = "gemm i8",
    .prepare = linear_int8_prepare,
    .row_bytes = linear_int8_row_bytes,
    .convert = linear_int8_convert,
    .multiply = linear_int8_multiply,
    .fit = linear_int8_fit,
};
