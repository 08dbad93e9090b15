/* int_product.c - see int_product.h. */
#include "ops/int_product.h"

#include "base/checked.h"
#include "kernels/convert.h"

static int64_t round16(int64_t n) { return (n + 15) & ~(int64_t)15; }

/* Row block kb of b - zero as f32 [length, n] into to. */
static void unpack_block(float *to, const pith_tensor *b, int64_t first, const pith_tensor *zero, int64_t k0,
                         int64_t length, int64_t n) {
    bool per_column = zero && pith_tensor_count(zero) == n && n > 1;
    float one = 0;
    if (zero && !per_column) pith_convert(&one, PITH_F32, 0, zero->data, zero->dtype, 0, 1, true);
    for (int64_t i = 0; i < length; i++) {
        float *row = to + i * n;
        pith_convert(row, PITH_F32, 0, b->data, b->dtype, first + (k0 + i) * n, n, true);
        for (int64_t j = 0; j < n; j++) {
            float z = one;
            if (per_column) pith_convert(&z, PITH_F32, 0, zero->data, zero->dtype, j, 1, true);
            row[j] -= z;
        }
    }
}

pith_status pith_int_product_prepare(pith_int_product *p, pith_prepare *c, int b, int b_zero) {
    pith_type none;
    pith_type_init(&none);
    PITH_TRY(pith_product_prepare(&p->product, c, PITH_F32, &none, false));
    const pith_type *t = c->in[b];
    if (t->dtype != PITH_U8 && t->dtype != PITH_I8) return pith_fail_dtype(c->err, t->dtype);
    bool zero = b_zero >= 0 && pith_has_input(c, b_zero);
    if (!t->data || !t->data->data || t->rank != 2 || (zero && !c->in[b_zero]->data)) return PITH_OK;
    int64_t k = t->dims[0], n = t->dims[1], blocks = (k + PITH_INT_BLOCK - 1) / PITH_INT_BLOCK;
    int64_t size = pith_gemm_f32_packed_size(PITH_INT_BLOCK, n), total;
    if (size < 0 || pith_mul_overflows(size, blocks, &total) ||
        pith_mul_overflows(total, (int64_t)sizeof(float), &total)) {
        return pith_fail_memory(c->err, SIZE_MAX);
    }
    float *packed = pith_arena_alloc64(c->arena, (size_t)total);
    pith_arena_mark mark = pith_arena_get_mark(c->arena);
    float *block = pith_arena_alloc64(c->arena, (size_t)(PITH_INT_BLOCK * n) * sizeof(float));
    if (!packed || !block) return pith_fail_memory(c->err, (size_t)total);
    for (int64_t i = 0; i < blocks; i++) {
        int64_t k0 = i * PITH_INT_BLOCK, length = k - k0 < PITH_INT_BLOCK ? k - k0 : PITH_INT_BLOCK;
        unpack_block(block, t->data, 0, zero ? c->in[b_zero]->data : NULL, k0, length, n);
        p->product.pack(packed + i * size, block, n, 1, length, n, 0, n);
    }
    pith_arena_rewind(c->arena, mark);
    p->packed = packed;
    return PITH_OK;
}

bool pith_int_product_scratch(const pith_int_product *p, int64_t m, int64_t n, int64_t k, size_t *bytes) {
    size_t a, c, b = 0, pack = 0;
    int64_t length = k < PITH_INT_BLOCK ? k : PITH_INT_BLOCK;
    bool fits = pith_dtype_bytes(PITH_F32, m, &a) && !pith_mul_overflows(a, (size_t)k, &a) &&
                pith_dtype_bytes(PITH_F32, m, &c) && !pith_mul_overflows(c, (size_t)n, &c);
    if (!p->packed) {
        fits = fits && pith_product_scratch(&p->product, 1, n, length, 1, &pack) && pith_dtype_bytes(PITH_F32, n, &b) &&
               !pith_mul_overflows(b, (size_t)length, &b);
    }
    return fits && !pith_add_overflows(a, c, bytes) && !pith_add_overflows(*bytes, b, bytes) &&
           !pith_add_overflows(*bytes, pack + 512, bytes);
}

void pith_int_product_run(pith_run *r, const pith_int_product *p, void *scratch, int32_t *c, const pith_tensor *a,
                          int64_t a_first, const pith_tensor *b, int64_t b_first, const pith_tensor *a_zero,
                          const pith_tensor *b_zero, int64_t m, int64_t n, int64_t k) {
    float *left = scratch, *sum = left + round16(m * k), *right = sum + round16(m * n);
    float *pack = right + (p->packed ? 0 : round16((k < PITH_INT_BLOCK ? k : PITH_INT_BLOCK) * n));
    bool per_row = a_zero && pith_tensor_count(a_zero) == m && m > 1;
    for (int64_t i = 0; i < m; i++) {
        float zero = 0;
        if (a_zero) pith_convert(&zero, PITH_F32, 0, a_zero->data, a_zero->dtype, per_row ? i : 0, 1, true);
        pith_convert(left + i * k, PITH_F32, 0, a->data, a->dtype, a_first + i * k, k, true);
        for (int64_t j = 0; j < k; j++) left[i * k + j] -= zero;
    }
    if (k == 0) {
        for (int64_t i = 0; i < m * n; i++) c[i] = 0;
        return;
    }
    int64_t size = pith_gemm_f32_packed_size(PITH_INT_BLOCK, n);
    for (int64_t k0 = 0; k0 < k; k0 += PITH_INT_BLOCK) {
        int64_t length = k - k0 < PITH_INT_BLOCK ? k - k0 : PITH_INT_BLOCK;
        pith_product block = p->product;
        pith_product_job j = { .p = &block,
                               .a = left + k0,
                               .b = right,
                               .c = sum,
                               .count = 1,
                               .m = m,
                               .n = n,
                               .k = length,
                               .a_row = k,
                               .a_column = 1,
                               .b_row = n,
                               .b_column = 1 };
        if (p->packed) {
            block.packed = p->packed + k0 / PITH_INT_BLOCK * size;
            block.matrices = 1;
        } else {
            unpack_block(right, b, b_first, b_zero, k0, length, n);
        }
        pith_product_run(r, pack, &j);
        for (int64_t i = 0; i < m * n; i++) {
            uint32_t part = (uint32_t)(int32_t)sum[i];
            c[i] = k0 == 0 ? (int32_t)part : (int32_t)((uint32_t)c[i] + part);
        }
    }
}
