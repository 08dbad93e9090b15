/* Products of weights in blocks at every level and by every way: the bits of the definition in
 * engine/kernels/gemm_blocks.h.
 */
#include "support/kernel_test.h"

#include <math.h>

#include "engine/kernels/gemm_blocks.h"

static int runnable(const char *family, int level) {
    const uint32_t features = pith__cpu_get()->features;
    if (strcmp(family, "gemm_blocks") == 0 || level == PITH_ISA_scalar || level == PITH_ISA_neon)
        return 1;
    return (features & (level == PITH_ISA_avx512 ? PITH_CPU_AVX512_VNNI : PITH_CPU_AVX_VNNI)) != 0;
}

/* Element i of a row that is packed low bits first. */
static int32_t packed_number(const uint8_t *row, int64_t i, int bits) {
    return bits == 8 ? row[i] : row[i / 2] >> i % 2 * 4 & 15;
}

/* The record of block t in a row of a. */
static const char *record(const void *rows, const pith__blocks_form *f, int64_t row, int64_t t) {
    return (const char *)rows + row * pith__blocks_row_bytes(f) + t * (f->block + 8);
}
static float scale_of(const char *record, const pith__blocks_form *f) {
    float scale;
    memcpy(&scale, record + 4 + f->block, sizeof scale);
    return scale;
}

/* The definition, from weights as MatMulNBits stores them. */
static float product(const pith__gemm_blocks *g, const pith__blocks_columns *w, int64_t i,
                     int64_t j) {
    const pith__blocks_form *f = g->form;
    const int64_t bytes = f->block * f->bits / 8, zero_row = (f->blocks * f->bits + 7) / 8;
    float c = 0;
    for (int64_t t = 0; t < f->blocks; t++) {
        const char *row = record(g->a, f, i, t);
        const int32_t zero =
            f->zeros ? packed_number(w->zeros + j * zero_row, t, f->bits) : 1 << (f->bits - 1);
        int32_t s = 0;
        for (int64_t l = 0; l < f->block && t * f->block + l < f->k; l++)
            s += ((const int8_t *)row)[4 + l] *
                 (packed_number(w->b + (j * f->blocks + t) * bytes, l, f->bits) - zero);
        c = fmaf((float)s * scale_of(row, f), w->scale[j * f->blocks + t], c);
    }
    return g->bias ? c + g->bias[j] : c;
}

static void fill_extremes(uint8_t *bytes, int64_t n) {
    const uint32_t kind = random_u32() % 4;
    for (int64_t i = 0; i < n; i++)
        bytes[i] = kind == 0 ? 255 : kind == 1 ? 0 : (uint8_t)random_u32();
}

/* Rows as quantize.h makes them, with values as large as there can be in some. */
static void fill_rows(void *rows, const pith__blocks_form *f, int64_t m) {
    char *to = rows;
    for (int64_t t = 0; t < m * f->blocks; t++, to += f->block + 8) {
        const int64_t left = f->k - t % f->blocks * f->block;
        const uint32_t kind = random_u32() % 4;
        const float scale = random_float();
        int32_t sum = 0;
        for (int64_t l = 0; l < f->block; l++) {
            const int32_t value = kind == 0   ? 127
                                  : kind == 1 ? -127
                                              : (int32_t)random_below(255) - 127;
            to[4 + l] = (char)(l < left ? value : 0);
            sum += l < left ? value : 0;
        }
        sum = f->zeros ? -sum : -sum * (1 << (f->bits - 1));
        memcpy(to, &sum, sizeof sum);
        memcpy(to + 4 + f->block, &scale, sizeof scale);
    }
}

static void check(int64_t m, int64_t n, int64_t k, int32_t block, int32_t bits, int32_t zeros) {
    static const char *const ways[] = { "gemm_blocks", "gemm_blocks_vnni" };
    const pith__blocks_form f = { k, (k + block - 1) / block, block, bits, zeros };
    const int64_t bytes = block * bits / 8, zero_row = (f.blocks * bits + 7) / 8,
                  panel = pith__blocks_panel_bytes(&f);
    const int64_t ldc = n + random_below(3), c_size = m > 0 ? (m - 1) * ldc + n : 0;
    guarded b = guarded_alloc((size_t)(n * f.blocks * bytes), 1),
            z = guarded_alloc((size_t)(n * zero_row), 1);
    guarded scale = guarded_floats(n * f.blocks), bias = guarded_floats(n),
            c = guarded_floats(c_size);
    guarded packed = guarded_alloc((size_t)pith__blocks_packed_size(&f, n), 1);
    guarded rows = guarded_alloc((size_t)(m * pith__blocks_row_bytes(&f)), 1);
    const pith__blocks_columns all = { b.data, scale.data, z.data, n };
    fill_extremes(b.data, n * f.blocks * bytes);
    fill_extremes(z.data, n * zero_row);
    fill_rows(rows.data, &f, m);
    for (int64_t j = 0; j < n; j += 16) {
        const pith__blocks_columns from = { all.b + j * f.blocks * bytes, all.scale + j * f.blocks,
                                            zeros ? all.zeros + j * zero_row : NULL,
                                            n - j < 16 ? n - j : 16 };
        pith__blocks_pack_panel((char *)packed.data + j / 16 * panel, &f, &from);
    }
    const pith__gemm_blocks g = { .a = rows.data,
                                  .b = packed.data,
                                  .c = c.data,
                                  .bias = random_below(2) ? bias.data : NULL,
                                  .form = &f,
                                  .n = n,
                                  .ldc = ldc };
    float *wanted = floats(c_size);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) wanted[i * ldc + j] = product(&g, &all, i, j);
    }
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        for (size_t way = 0; way < COUNT(ways); way++) {
            if (!level_usable(level) || !runnable(ways[way], level)) continue;
            for (int64_t i = 0; i < c_size; i++) ((float *)c.data)[i] = 1e30f;
            pith__gemm_blocks_fn *fn =
                PITH_KERNEL_FIND(pith__gemm_blocks_fn, ways[way], PITH_U8, (pith__isa)level);
            gemm_in_parts(fn, &g, m, n);
            for (int64_t i = 0; i < m; i++) {
                assert_same_floats((float *)c.data + i * ldc, wanted + i * ldc, n,
                                   "%s %s m=%d n=%d k=%d %d %d %d row %d", ways[way],
                                   pith__isa_name((pith__isa)level), (int)m, (int)n, (int)k, block,
                                   bits, zeros, (int)i);
                if (i + 1 < m && ldc > n) assert_true(g.c[i * ldc + n] == 1e30f);
            }
        }
    }
    free(wanted);
    guarded_free(b), guarded_free(z), guarded_free(scale), guarded_free(bias), guarded_free(c),
        guarded_free(packed);
    guarded_free(rows);
}

static void test_products(void **state) {
    (void)state;
    for (int32_t bits = 4; bits <= 8; bits += 4) {
        for (int32_t zeros = 0; zeros < 2; zeros++) {
            for (int32_t block = PITH_BLOCK_LEAST; block <= PITH_BLOCK_MOST; block *= 2) {
                for (int64_t m = 1; m <= 13; m++)
                    check(m, 1 + random_below(70), 1 + random_below(300), block, bits, zeros);
                check(0, 20, 40, block, bits, zeros);
                check(30, 33, 5 * block, block, bits, zeros);
                check(2, 16, 1, block, bits, zeros);
            }
        }
    }
}

/* Block t of a row by the definition, q[block] too. */
static void check_block(const float *x, int64_t n, const char *row, const pith__blocks_form *f) {
    float most = 0;
    int finite = 1;
    int32_t sum = 0, start;
    for (int64_t l = 0; l < n; l++) {
        finite &= isfinite(x[l]) != 0;
        most = fmaxf(most, fabsf(x[l]));
    }
    const int empty = !finite || most < 0x1p-100f;
    const float inverse = empty ? 0 : 127.0f / most, scale = !finite ? NAN
                                                             : empty ? 0
                                                                     : most / 127.0f;
    assert_true(same_float(scale_of(row, f), scale));
    for (int64_t l = 0; l < f->block; l++) {
        const int q = empty || l >= n ? 0 : (int)rintf(x[l] * inverse);
        assert_int_equal(((const int8_t *)row)[4 + l], q);
        sum += q;
    }
    memcpy(&start, row, sizeof start);
    assert_int_equal(start, f->zeros ? -sum : -sum * (1 << (f->bits - 1)));
}

static void test_quantize(void **state) {
    (void)state;
    for (int32_t block = PITH_BLOCK_LEAST; block <= PITH_BLOCK_MOST; block *= 2) {
        for (int64_t k = 1; k < 300; k += 1 + random_below(20)) {
            enum { ROWS = 5 };
            const pith__blocks_form f = { k, (k + block - 1) / block, block,
                                          random_below(2) ? 4 : 8, (int32_t)random_below(2) };
            const int64_t ldx = k + random_below(3);
            guarded x = guarded_floats((ROWS - 1) * ldx + k);
            guarded rows = guarded_alloc((size_t)(ROWS * pith__blocks_row_bytes(&f)), 1);
            for (int64_t i = 0; i < ROWS; i++) fill_floats((float *)x.data + i * ldx, k);
            memset(x.data, 0, sizeof(float));
            for (int level = 0; level < PITH_ISA_COUNT; level++) {
                if (!level_usable(level)) continue;
                memset(rows.data, 77, (size_t)(ROWS * pith__blocks_row_bytes(&f)));
                const pith__quantize_blocks a = { x.data, rows.data, &f, ROWS, ldx };
                PITH_KERNEL_FIND(pith__quantize_blocks_fn, "quantize_blocks", PITH_I8,
                                 (pith__isa)level)
                (&a);
                for (int64_t i = 0; i < ROWS; i++) {
                    for (int64_t t = 0; t < f.blocks; t++)
                        check_block((const float *)x.data + i * ldx + t * block,
                                    k - t * block < block ? k - t * block : block,
                                    record(rows.data, &f, i, t), &f);
                }
            }
            guarded_free(x), guarded_free(rows);
        }
    }
}

static void test_sizes(void **state) {
    (void)state;
    pith__blocks_form f = { 70, 3, 32, 4, 0 };
    assert_int_equal(pith__blocks_packed_size(&f, 17), 2 * 3 * (256 + 64));
    f.zeros = 1;
    assert_int_equal(pith__blocks_packed_size(&f, 16), 3 * (256 + 64) + 64);
    assert_int_equal(pith__blocks_packed_size(&f, -1), -1);
    f.blocks = INT64_MAX / 256;
    assert_int_equal(pith__blocks_packed_size(&f, 17), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_products),
                                        cmocka_unit_test(test_quantize),
                                        cmocka_unit_test(test_sizes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
