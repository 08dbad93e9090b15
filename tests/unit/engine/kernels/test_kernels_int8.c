/* The 8-bit product at every level and by every way: the exact sums, and equal bits of what is made
 * of them. */
#include "support/kernel_test.h"

#include <math.h>

#include "engine/kernels/gemm.h"
#include "engine/kernels/gemm_int8.h"
#include "engine/kernels/int_sums.h"
#include "engine/kernels/quantize.h"

static int runnable(const char *family, int level) {
    uint32_t features = pith__cpu_get()->features;
    if (strcmp(family, "gemm") == 0 || level == PITH_ISA_scalar || level == PITH_ISA_neon) return 1;
    if (strcmp(family, "gemm_amx") == 0)
        return level == PITH_ISA_avx512 && features & PITH_CPU_AMX_INT8;
    return (features & (level == PITH_ISA_avx512 ? PITH_CPU_AVX512_VNNI : PITH_CPU_AVX_VNNI)) != 0;
}

static void check(int64_t m, int64_t n, int64_t k, int is_signed, int narrow) {
    static const char *const ways[] = { "gemm", "gemm_vnni", "gemm_amx" };
    int64_t lda = k + random_below(3), ldc = n + random_below(3),
            a_size = m > 0 ? (m - 1) * lda + k : 0;
    int64_t c_size = m > 0 ? (m - 1) * ldc + n : 0;
    guarded a = guarded_alloc((size_t)a_size, (int)random_below(2));
    guarded b = guarded_alloc((size_t)(k * n), (int)random_below(2));
    guarded packed = guarded_alloc((size_t)pith__gemm_int8_packed_size(k, n), 1);
    guarded c = guarded_floats(c_size), out = guarded_floats(c_size), scale_a = guarded_floats(m),
            scale_b = guarded_floats(n);
    guarded zero = guarded_floats(m), bias = guarded_floats(n);
    guarded extra = guarded_alloc((size_t)m * PITH_I8_EXTRAS * sizeof(pith__i8_extra), 1);
    struct {
        int64_t at;
        int32_t lacks;
    } *beyond = calloc((size_t)(m * PITH_I8_EXTRAS + 1), sizeof *beyond);
    int32_t *expected = calloc((size_t)(c_size + 1), sizeof *expected),
            *sums = calloc((size_t)(n + 1), sizeof *sums);
    float *first = floats(c_size);
    for (int64_t i = 0; i < a_size; i++) {
        uint8_t value = random_below(4) ? (uint8_t)random_u32() : 255;
        ((uint8_t *)a.data)[i] = narrow && value > PITH_NARROW_A ? PITH_NARROW_A : value;
    }
    for (int64_t i = 0; i < k * n; i++) {
        int32_t extreme = random_u32() & 1 ? -128 : 127,
                value = random_below(3) ? (int8_t)random_u32() : extreme;
        ((int8_t *)b.data)[i] = (int8_t)(narrow ? value * 54 / 128 : value);
    }
    for (int64_t i = 0; i < m; i++) { ((int32_t *)zero.data)[i] = (int32_t)random_below(256); }
    for (int64_t i = 0; i < m * PITH_I8_EXTRAS; i++) {
        beyond[i].at = k > 0 ? random_below(random_below(2) ? k : 1) : 0;
        beyond[i].lacks = k > 0 && random_below(4) ? (int32_t)random_below(50000) - 25000 : 0;
        ((pith__i8_extra *)extra.data)[i] = pith__i8_extra_of(beyond[i].at, beyond[i].lacks);
    }
    for (int64_t j = 0; j < n; j++) {
        for (int64_t l = 0; l < k; l++) sums[j] += ((int8_t *)b.data)[l * n + j];
        for (int64_t i = 0; i < m; i++) {
            for (int64_t l = 0; l < k; l++) {
                int32_t x =
                    is_signed ? ((int8_t *)a.data)[i * lda + l] : ((uint8_t *)a.data)[i * lda + l];
                expected[i * ldc + j] += x * ((int8_t *)b.data)[l * n + j];
            }
        }
    }
    pith__gemm_int8 g = { .a = a.data,
                          .b = packed.data,
                          .a_scale = scale_a.data,
                          .a_zero = zero.data,
                          .b_scale = scale_b.data,
                          .m = m,
                          .n = n,
                          .k = k,
                          .lda = lda,
                          .ldc = ldc,
                          .a_signed = is_signed,
                          .narrow = narrow };
    if (random_below(2)) g.bias = bias.data;
    if (random_below(2)) g.a_extra = extra.data;
    if (random_below(2)) g.activation = PITH_ACT_GELU_ERF;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        if (!level_usable(level)) continue;
        PITH_KERNEL_FIND(pith__gemm_pack_i8_fn, "gemm_pack", PITH_I8, (pith__isa)level)
        (packed.data, b.data, n, 1, k, n, 0, n);
        for (size_t way = 0; way < COUNT(ways); way++) {
            if (!runnable(ways[way], level)) continue;
            pith__gemm_i8_fn *fn =
                PITH_KERNEL_FIND(pith__gemm_i8_fn, ways[way], PITH_I8, (pith__isa)level);
            for (int64_t i = 0; i < m; i++) { /* what another way left is no result */
                for (int64_t j = 0; j < n; j++) {
                    ((int32_t *)c.data)[i * ldc + j] = INT32_MIN;
                    ((float *)out.data)[i * ldc + j] = NAN;
                }
            }
            g.c = c.data;
            gemm_in_parts(fn, &g, m, n);
            g.c = NULL;
            g.out = out.data;
            fn(&g, 0, m, 0, n);
            for (int64_t i = 0; i < m; i++) {
                for (int64_t j = 0; j < n; j++) {
                    int32_t exact = expected[i * ldc + j];
                    if (((int32_t *)c.data)[i * ldc + j] != exact) {
                        fail_msg("%s %s m=%d n=%d k=%d signed=%d narrow=%d at %d, %d", ways[way],
                                 pith__isa_name((pith__isa)level), (int)m, (int)n, (int)k,
                                 is_signed, narrow, (int)i, (int)j);
                    }
                    int32_t more = 0;
                    for (int64_t e = i * PITH_I8_EXTRAS;
                         g.a_extra && k > 0 && e < (i + 1) * PITH_I8_EXTRAS; e++)
                        more += beyond[e].lacks * ((int8_t *)b.data)[beyond[e].at * n + j];
                    float v =
                        (float)(exact - ((int32_t *)zero.data)[i] * sums[j] + more) * g.a_scale[i];
                    v = fmaf(v, g.b_scale[j], g.bias ? g.bias[j] : -0.0f);
                    float y = ((float *)out.data)[i * ldc + j];
                    if (g.activation == PITH_ACT_NONE)
                        assert_true(same_float(y, v));
                    else
                        assert_float_equal(y, v / 2 * erfcf(-v / sqrtf(2)),
                                           1.3e-4f + 1e-6f * fabsf(v));
                    if (level == 0 && way == 0) first[i * ldc + j] = y;
                    assert_true(same_float(y, first[i * ldc + j]));
                }
            }
        }
    }
    free(expected), free(sums), free(first), free(beyond);
    guarded_free(a), guarded_free(b), guarded_free(packed), guarded_free(c), guarded_free(out),
        guarded_free(scale_a);
    guarded_free(scale_b), guarded_free(zero), guarded_free(bias), guarded_free(extra);
}

static void test_products(void **state) {
    (void)state;
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        for (int narrow = 0; narrow < 2 - is_signed; narrow++) {
            for (int64_t n = 0; n <= 50; n++)
                check(1 + n % 27, n, random_below(40), is_signed, narrow);
            check(0, 20, 5, is_signed, narrow);
            check(29, 70, 1000, is_signed, narrow);
            /* blocks of rows that overlap, groups of columns */
            check(70, 150, 1000, is_signed, narrow);
            for (int64_t m = 1; m <= 14; m++)
                check(m, 60 + random_below(150), random_below(90), is_signed, narrow);
        }
    }
}

/* The scale of a row as quantize.h defines it. */
static float expected_scale(const float *x, int64_t n) {
    enum { HIGH, NEXT_HIGH, LOW, NEXT_LOW };
    float e[4][16] = { 0 }, farthest = 0, high = 0, low = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t l = i % 16;
        e[NEXT_HIGH][l] = fmaxf(e[NEXT_HIGH][l], fminf(e[HIGH][l], x[i]));
        e[HIGH][l] = fmaxf(e[HIGH][l], x[i]);
        e[NEXT_LOW][l] = fminf(e[NEXT_LOW][l], fmaxf(e[LOW][l], x[i]));
        e[LOW][l] = fminf(e[LOW][l], x[i]);
    }
    for (int turn = 0; turn < PITH_I8_EXTRAS; turn++) {
        int side = HIGH, lane = 0;
        for (int l = 0; l < 16; l++) {
            if (e[HIGH][l] > fabsf(e[side][lane])) side = HIGH, lane = l;
            if (-e[LOW][l] > fabsf(e[side][lane])) side = LOW, lane = l;
        }
        farthest = fmaxf(farthest, fabsf(e[side][lane]));
        e[side][lane] = e[side + 1][lane];
    }
    for (int l = 0; l < 16; l++) high = fmaxf(high, e[HIGH][l]), low = fminf(low, e[LOW][l]);
    return fmaxf(high - low, farthest * 0.01f) / ((float)PITH_NARROW_A - 0.5f);
}

static void test_quantize_rows(void **state) {
    (void)state;
    for (int64_t n = 1; n < 300; n += n < 150 ? 1 : 37) {
        enum { ROWS = 7, EXTRAS = ROWS * PITH_I8_EXTRAS };
        int64_t ldx = n + random_below(3), ldq = n + random_below(3), x_size = (ROWS - 1) * ldx + n;
        int64_t q_size = (ROWS - 1) * ldq + n;
        guarded x = guarded_floats(x_size), q = guarded_alloc((size_t)q_size, 1);
        struct {
            float scale[ROWS];
            int32_t zero[ROWS];
            pith__i8_extra extra[EXTRAS];
        } first, now;
        for (int64_t i = 0; i < x_size; i++)
            ((float *)x.data)[i] = random_float() * (random_below(20) ? 1.0f : 30.0f);
        uint8_t *first_q = calloc(1, (size_t)q_size);
        memset(q.data, 0, (size_t)q_size);
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!level_usable(level)) continue;
            pith__quantize_rows a = { x.data, q.data, now.scale, now.zero, now.extra,
                                      ROWS,   n,      ldx,       ldq };
            PITH_KERNEL_FIND(pith__quantize_rows_fn, "quantize_rows", PITH_U8, (pith__isa)level)
            (&a);
            if (level == 0) {
                memcpy(first_q, q.data, (size_t)q_size);
                first = now;
            }
            assert_memory_equal(first_q, q.data, (size_t)q_size);
            assert_memory_equal(&first, &now, sizeof now);
            for (int64_t i = 0; i < ROWS; i++) {
                const float *row = (const float *)x.data + i * ldx;
                assert_in_range(now.zero[i], 0, PITH_NARROW_A);
                assert_true(fabsf(now.scale[i] / expected_scale(row, n) - 1.0f) < 1e-6f);
                for (int64_t j = 0; j < n; j++) {
                    int32_t whole = ((uint8_t *)q.data)[i * ldq + j] - now.zero[i];
                    for (int64_t e = i * PITH_I8_EXTRAS; e < (i + 1) * PITH_I8_EXTRAS; e++) {
                        pith__i8_extra here = pith__i8_extra_of(j, now.extra[e].pair >> 16);
                        if (!memcmp(&here, &now.extra[e], sizeof here))
                            whole += now.extra[e].pair >> 16;
                    }
                    assert_true(fabsf((float)whole * now.scale[i] - row[j]) <=
                                0.501f * now.scale[i]);
                }
            }
        }
        free(first_q);
        guarded_free(x), guarded_free(q);
    }
}

/* Nothing to divide by, one element alone, and one so large that the others vanish. */
static void test_quantize_odd_rows(void **state) {
    (void)state;
    static const float rows[4][4] = {
        { 0 }, { 0x1p-140f, 0, 0, 0 }, { 0.5f, 0.5f, 0.5f, 0.5f }, { 1e-6f, -3e5f, 0, 1 }
    };
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        uint8_t q[4][4];
        float scale[4];
        int32_t zero[4];
        pith__i8_extra extra[4][PITH_I8_EXTRAS];
        if (!level_usable(level)) continue;
        pith__quantize_rows a = { rows[0], q[0], scale, zero, extra[0], 4, 4, 4, 4 };
        PITH_KERNEL_FIND(pith__quantize_rows_fn, "quantize_rows", PITH_U8, (pith__isa)level)(&a);
        for (int i = 0; i < 2; i++) {
            assert_true(scale[i] == 0.0f && zero[i] == 0 && extra[i][0].pair == 0);
            assert_int_equal(q[i][0], 0);
        }
        assert_int_equal(q[2][3], PITH_NARROW_A);
        assert_int_equal(zero[2], 0);
        assert_int_equal(extra[2][0].pair, 0);
        assert_int_equal(extra[3][0].one, 1 << 8);
        assert_int_equal(extra[3][1].pair, 0);
        assert_true(fabsf((float)(q[3][1] - zero[3] + (extra[3][0].pair >> 16)) * scale[3] +
                          3e5f) <= scale[3]);
    }
}

/* The weights of a packed panel, [k][16]. */
static void unpack_panel(int8_t *plain, const void *packed, int64_t k) {
    for (int64_t i = 0; i < 16 * k; i++)
        plain[i] = ((const int8_t *)packed)[i / 64 * 64 + i % 16 * 4 + i / 16 % 4];
}

/* Fours stay within their bound, the packed form is that of the packing kernel. */
static void check_panel(const int8_t *plain, const void *packed, int64_t k) {
    size_t bytes = (size_t)pith__gemm_int8_packed_size(k, 16);
    uint8_t *again = malloc(bytes);
    for (int64_t i = 0; i < k; i += i % 8 ? 6 : 2) {
        for (int64_t j = 0; j < 16; j++) {
            int sum = 0;
            for (int64_t row = i; row < i + 6 && row < k; row++)
                sum += row - i < 2 || row - i > 3 ? abs(plain[16 * row + j]) : 0;
            assert_in_range(sum, 0, PITH_NARROW_FOUR);
        }
    }
    PITH_KERNEL_FIND(pith__gemm_pack_i8_fn, "gemm_pack", PITH_I8, PITH_ISA_scalar)
    (again, plain, 16, 1, k, 16, 0, 16);
    assert_memory_equal(again, packed, bytes);
    free(again);
}

/* Columns come back within half a step. */
static void test_quantize_panel(void **state) {
    (void)state;
    for (int64_t k = 0; k < 40; k++) {
        size_t bytes = (size_t)pith__gemm_int8_packed_size(k, 16);
        guarded panel = guarded_floats(16 * k), packed = guarded_alloc(bytes, 1),
                scale = guarded_floats(16);
        uint8_t *first = malloc(bytes);
        int8_t *plain = calloc(1, (size_t)(16 * k + 1));
        float first_scale[16];
        for (int64_t i = 0; k > 5 && i < k; i++) ((float *)panel.data)[16 * i + 5] = 0.0f;
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!level_usable(level)) continue;
            PITH_KERNEL_FIND(pith__quantize_panel_fn, "quantize_panel", PITH_I8, (pith__isa)level)
            (packed.data, scale.data, panel.data, k, NULL, NULL);
            if (level == 0) {
                memcpy(first, packed.data, bytes);
                memcpy(first_scale, scale.data, sizeof first_scale);
            }
            assert_memory_equal(first, packed.data, bytes);
            assert_same_floats(first_scale, (float *)scale.data, 16, "scales of %s",
                               pith__isa_name((pith__isa)level));
        }
        unpack_panel(plain, first, k);
        for (int64_t i = 0; i < 16 * k; i++) {
            float error = fabsf((float)plain[i] * first_scale[i % 16] - ((float *)panel.data)[i]);
            assert_true(error <= 0.501f * first_scale[i % 16]);
        }
        check_panel(plain, first, k);
        free(first), free(plain);
        guarded_free(panel), guarded_free(packed), guarded_free(scale);
    }
}

/* The gram matrix of rows that lie near few directions, in order and on the diagonal as calibration
 * makes it. */
static void make_gram(float *gram, int64_t k, const int32_t *order) {
    enum { ROWS = 12 };
    float *x = floats(ROWS * k);
    memset(gram, 0, (size_t)(k * pith__factor_stride(k)) * sizeof *gram);
    for (int64_t s = 0; s < k; s++) {
        for (int64_t t = s; t < k; t++)
            for (int r = 0; r < ROWS; r++)
                gram[s * pith__factor_stride(k) + t] += x[r * k + order[s]] * x[r * k + order[t]];
        gram[s * pith__factor_stride(k) + s] += 0.1f;
    }
    free(x);
}

static int32_t *random_order(int64_t k) {
    int32_t *order = calloc((size_t)(k + 1), sizeof *order);
    for (int64_t i = 0; i < k; i++) {
        int64_t j = random_below(i + 1);
        order[i] = order[j];
        order[j] = (int32_t)i;
    }
    return order;
}

/* U^T D U is what was factored, at every level with the same bits; what is not positive definite is
 * refused. */
static void test_unit_factor(void **state) {
    (void)state;
    for (int64_t k = 0; k < 150; k += k < 40 ? 1 : 37) {
        const int64_t stride = pith__factor_stride(k);
        const size_t bytes = (size_t)(k * stride) * sizeof(float);
        float *gram = floats(k * stride), *first = floats(k * stride);
        int32_t *order = random_order(k);
        guarded u = guarded_floats(k * stride), column = guarded_floats(k);
        make_gram(gram, k, order);
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            pith__unit_factor_fn *fn =
                PITH_KERNEL_FIND(pith__unit_factor_fn, "unit_factor", PITH_F32, (pith__isa)level);
            if (!level_usable(level)) continue;
            memcpy(u.data, gram, bytes);
            assert_true(fn(u.data, k, column.data, NULL));
            if (level == 0) memcpy(first, u.data, bytes);
            for (int64_t s = 0; s < k; s++)
                assert_same_floats(first + s * stride + s, (float *)u.data + s * stride + s, k - s,
                                   "row %d of %s", (int)s, pith__isa_name((pith__isa)level));
            for (int64_t bad = 0; bad < 2 && k; bad++) {
                int64_t s = random_below(k);
                memcpy(u.data, gram, bytes);
                ((float *)u.data)[s * stride + s] = bad ? NAN : -1.0f;
                assert_false(fn(u.data, k, column.data, NULL));
            }
        }
        for (int64_t s = 0; s < k; s++) {
            for (int64_t t = s; t < k; t++) {
                double sum = s == t ? first[s * stride + s]
                                    : (double)first[s * stride + s] * first[s * stride + t];
                for (int64_t l = 0; l < s; l++)
                    sum += (double)first[l * stride + l] * first[l * stride + s] *
                           first[l * stride + t];
                assert_true(fabs(sum - gram[s * stride + t]) <= 1e-5 * (1 + k));
            }
        }
        free(gram), free(first), free(order);
        guarded_free(u), guarded_free(column);
    }
}

/* What quantize.h says of a panel that is rounded with a factor, one weight after the other. */
static void round_with_factor(int8_t *rounded, const float *scale, const float *panel, int64_t k,
                              const pith__factor *factor) {
    double *error = calloc((size_t)(k + 1), sizeof *error);
    for (int64_t j = 0; j < 16; j++) {
        for (int64_t t = k - 1; t >= 0; t--) {
            const int64_t i = factor->order[t];
            double aim = panel[16 * i + j];
            int four = 0;
            for (int64_t s = t + 1; s < k; s++)
                aim += factor->u[t * pith__factor_stride(k) + s] * error[s];
            for (int64_t s = t + 1; s < k; s++) {
                const int64_t other = factor->order[s];
                if (other / 8 == i / 8 && other / 2 % 2 == i / 2 % 2)
                    four += abs(rounded[16 * other + j]);
            }
            double q = scale[j] > 0 ? rint(aim / scale[j]) : 0,
                   most = fmin(127, PITH_NARROW_FOUR - four);
            rounded[16 * i + j] = (int8_t)fmax(-most, fmin(most, q));
            error[t] = panel[16 * i + j] - rounded[16 * i + j] * (double)scale[j];
        }
    }
    free(error);
}

/* What rounding costs on the rows of the gram: the sum over columns of e^T gram e. */
static double cost_of(const int8_t *rounded, const float *scale, const float *panel, int64_t k,
                      const float *gram, const int32_t *order) {
    double sum = 0;
    for (int64_t j = 0; j < 16; j++) {
        for (int64_t s = 0; s < k; s++) {
            for (int64_t t = s; t < k; t++) {
                double a = panel[16 * order[s] + j] - (double)scale[j] * rounded[16 * order[s] + j];
                double b = panel[16 * order[t] + j] - (double)scale[j] * rounded[16 * order[t] + j];
                sum += a * b * gram[s * pith__factor_stride(k) + t] * (s == t ? 1 : 2);
            }
        }
    }
    return sum;
}

/* The definition, but for ties that floats and doubles break in different ways; the same bits at
 * every level; and it is worth it. */
static void test_quantize_fit(void **state) {
    (void)state;
    double plain_cost = 0, fit_cost = 0;
    int64_t weights = 0, other = 0;
    for (int64_t k = 0; k < 120; k += k < 20 ? 1 : 25) {
        const int64_t stride = pith__factor_stride(k);
        const size_t bytes = (size_t)pith__gemm_int8_packed_size(k, 16);
        guarded panel = guarded_floats(16 * k), packed = guarded_alloc(bytes, 1),
                scale = guarded_floats(16);
        guarded work = guarded_floats(16 * k), column = guarded_floats(k);
        float *gram = floats(k * stride), *u = floats(k * stride);
        int8_t *plain = calloc(1, (size_t)(16 * k + 1)), *fit = calloc(1, (size_t)(16 * k + 1));
        int8_t *expected = calloc(1, (size_t)(16 * k + 1));
        uint8_t *first = malloc(bytes);
        int32_t *order = random_order(k);
        for (int64_t i = 0; i < k; i++) ((float *)panel.data)[16 * i + 5] = 0.0f;
        make_gram(gram, k, order);
        memcpy(u, gram, (size_t)(k * stride) * sizeof *u);
        assert_true(PITH_KERNEL_FIND(pith__unit_factor_fn, "unit_factor", PITH_F32,
                                     PITH_ISA_scalar)(u, k, column.data, NULL));
        const pith__factor factor = { u, order };
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!level_usable(level)) continue;
            PITH_KERNEL_FIND(pith__quantize_panel_fn, "quantize_panel", PITH_I8, (pith__isa)level)
            (packed.data, scale.data, panel.data, k, &factor, work.data);
            if (level == 0) memcpy(first, packed.data, bytes);
            assert_memory_equal(first, packed.data, bytes);
        }
        unpack_panel(fit, first, k);
        check_panel(fit, first, k);
        round_with_factor(expected, scale.data, panel.data, k, &factor);
        for (int64_t i = 0; i < 16 * k; i++) other += fit[i] != expected[i];
        weights += 16 * k;
        fit_cost += cost_of(fit, scale.data, panel.data, k, gram, order);
        PITH_KERNEL_FIND(pith__quantize_panel_fn, "quantize_panel", PITH_I8, PITH_ISA_scalar)
        (packed.data, scale.data, panel.data, k, NULL, NULL);
        unpack_panel(plain, packed.data, k);
        plain_cost += cost_of(plain, scale.data, panel.data, k, gram, order);
        free(gram), free(u), free(plain), free(fit), free(expected), free(first), free(order);
        guarded_free(panel), guarded_free(packed), guarded_free(scale), guarded_free(work),
            guarded_free(column);
    }
    print_message(
        "%lld of %lld weights differ; the rounding costs %.3f of what the nearest steps do\n",
        (long long)other, (long long)weights, fit_cost / plain_cost);
    assert_true(other <= weights / 200);
    assert_true(fit_cost < 0.5 * plain_cost);
}

static void test_quantize_table(void **state) {
    (void)state;
    for (int64_t n = 1; n < 110; n++) {
        enum { ROWS = 2, GROUPS_MAX = 4 };
        const size_t bytes = (size_t)(ROWS * n);
        const int64_t groups = pith__table_groups(n);
        guarded x = guarded_floats(ROWS * n), q = guarded_alloc(bytes, 1), y = guarded_floats(n);
        int8_t *first = malloc(bytes);
        float scale[ROWS * GROUPS_MAX], first_scale[ROWS * GROUPS_MAX];
        assert_true(groups <= GROUPS_MAX && groups * PITH_TABLE_GROUP >= n &&
                    (groups - 1) * PITH_TABLE_GROUP < n);
        /* a part of a group has nothing */
        if (n > 40) memset((float *)x.data + 32, 0, 8 * sizeof(float));
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!level_usable(level)) continue;
            PITH_KERNEL_FIND(pith__quantize_table_fn, "quantize_table", PITH_I8, (pith__isa)level)
            (x.data, q.data, scale, ROWS, n);
            if (level == 0) {
                memcpy(first, q.data, bytes);
                memcpy(first_scale, scale, sizeof scale);
            }
            assert_memory_equal(first, q.data, bytes);
            assert_memory_equal(first_scale, scale, (size_t)(ROWS * groups) * sizeof *scale);
            for (int64_t row = 0; row < ROWS; row++) {
                PITH_KERNEL_FIND(pith__dequantize_row_fn, "dequantize_row", PITH_I8,
                                 (pith__isa)level)
                ((int8_t *)q.data + row * n, scale + row * groups, y.data, n);
                for (int64_t i = 0; i < n; i++) {
                    const float step = scale[row * groups + i / PITH_TABLE_GROUP];
                    float back = ((float *)y.data)[i], value = ((float *)x.data)[row * n + i];
                    assert_true(same_float(back, (float)first[row * n + i] * step));
                    assert_true(fabsf(back - value) <= 0.51f * step);
                }
            }
        }
        free(first);
        guarded_free(x), guarded_free(q), guarded_free(y);
    }
}

static void test_sizes(void **state) {
    (void)state;
    assert_int_equal(pith__gemm_int8_packed_size(5, 17), 2 * (2 * 64 + 64));
    assert_int_equal(pith__gemm_int8_packed_size(0, 0), 0);
    assert_int_equal(pith__gemm_int8_packed_size(-1, 1), -1);
    assert_int_equal(pith__gemm_int8_packed_size(INT64_MAX / 8, 17), -1);
}

/* Zero points of rows and columns taken from sums, and sums scaled. */
static void check_sums(int level, int64_t rows, int64_t n, int64_t k, bool is_signed,
                       bool by_column) {
    guarded a = guarded_alloc((size_t)(rows * k), 0), c = guarded_alloc((size_t)(rows * n) * 4, 0);
    guarded zeros = guarded_alloc((size_t)rows * 4, 0), y = guarded_floats(n),
            scales = guarded_floats(n);
    guarded columns[2] = { guarded_alloc((size_t)n * 4, 0), guarded_alloc((size_t)n * 4, 0) };
    int32_t *sums = c.data, *row_zeros = zeros.data, *column_sums = columns[0].data,
            *column_zeros = columns[1].data;
    int32_t expected[9 * 70];
    for (int64_t i = 0; i < rows * k; i++) ((uint8_t *)a.data)[i] = (uint8_t)random_u32();
    for (int64_t i = 0; i < rows; i++) row_zeros[i] = i % 3 ? (int32_t)random_below(256) : 0;
    for (int64_t j = 0; j < n; j++)
        column_sums[j] = (int32_t)random_u32(), column_zeros[j] = (int32_t)random_below(256);
    for (int64_t i = 0; i < rows * n; i++) {
        const int64_t row = i / n, j = i % n;
        uint32_t sum = 0, p = (uint32_t)row_zeros[row],
                 q = by_column ? (uint32_t)column_zeros[j] : 0;
        for (int64_t l = 0; l < k; l++) {
            const uint8_t byte = ((const uint8_t *)a.data)[row * k + l];
            sum += (uint32_t)(is_signed ? (int8_t)byte : byte);
        }
        sums[i] = (int32_t)random_u32();
        expected[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)k * p * q -
                                p * (uint32_t)column_sums[j] - q * sum);
    }
    PITH_KERNEL_FIND(pith__sums_shift_fn, "sums_shift", PITH_I32, (pith__isa)level)
    (&(pith__sums_shift){ .c = sums,
                          .a = a.data,
                          .row_zeros = row_zeros,
                          .column_sums = column_sums,
                          .column_zeros = by_column ? column_zeros : NULL,
                          .rows = rows,
                          .n = n,
                          .row = n,
                          .k = k,
                          .a_signed = is_signed });
    assert_memory_equal(sums, expected, (size_t)(rows * n) * 4);
    fill_floats(scales.data, n);
    PITH_KERNEL_FIND(pith__sums_scale_fn, "sums_scale", PITH_I32, (pith__isa)level)
    (y.data, sums, n, 0.3f, scales.data, by_column ? scales.data : NULL);
    for (int64_t j = 0; j < n; j++) {
        const float scale = ((const float *)scales.data)[j], v = (float)sums[j] * (0.3f * scale);
        assert_true(same_float(((const float *)y.data)[j], by_column ? v + scale : v));
    }
    guarded_free(a), guarded_free(c), guarded_free(zeros), guarded_free(y), guarded_free(scales);
    guarded_free(columns[0]), guarded_free(columns[1]);
}

static void sums(void **state) {
    (void)state;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        for (int64_t n = 1; level_usable(level) && n < 70; n++)
            check_sums(level, 1 + n % 9, n, random_below(50), n % 2, n % 3 != 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_quantize_rows),
        cmocka_unit_test(test_quantize_odd_rows),
        cmocka_unit_test(test_quantize_panel),
        cmocka_unit_test(test_unit_factor),
        cmocka_unit_test(test_quantize_fit),
        cmocka_unit_test(test_quantize_table),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
