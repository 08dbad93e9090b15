/* Every row of the kernel table at every level of this machine: the bits of the scalar level, at
 * all tail lengths, unaligned, in place, against inaccessible pages. A row is tested by its
 * family's signature; a family that is in no list below fails the test, unless all its levels are
 * one function. */
#include "support/kernel_test.h"

#include <math.h>

#include "engine/kernels/affine.h"
#include "engine/kernels/binary.h"
#include "engine/kernels/maps.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/reduce.h"
#include "engine/kernels/rotary.h"
#include "engine/kernels/unary.h"

enum { LONGEST = 1031 };

/* 0 to 67, then a few around powers of two. */
static int64_t next_length(int64_t n) {
    static const int64_t longer[] = { 127, 128, 129, 384, 511, LONGEST };
    if (n < 67) return n + 1;
    for (size_t i = 0; i < COUNT(longer); i++) {
        if (longer[i] > n) return longer[i];
    }
    return -1;
}

static guarded filled(int64_t n) {
    guarded g = guarded_floats(n);
    fill_floats(g.data, n);
    return g;
}

/* Runs body with `fn` for each level after scalar, `expected` made by scalar, and compares [n] of
 * out. */
#define EACH_LEVEL(row, type, out, n, call)                                                        \
    do {                                                                                           \
        float *expected_ = floats(n);                                                              \
        for (int level_ = 0; level_ < PITH_ISA_COUNT; level_++) {                                  \
            if (!level_usable(level_) || !(row)->fn[level_]) continue;                             \
            type *fn = (type *)(row)->fn[level_];                                                  \
            call;                                                                                  \
            if (level_ == PITH_ISA_scalar) memcpy(expected_, out, (size_t)(n) * sizeof(float));    \
            assert_same_floats((const float *)(out), expected_, n, "%s %s length %d",              \
                               pith__isa_name((pith__isa)level_), (row)->family, (int)(n));        \
        }                                                                                          \
        free(expected_);                                                                           \
    } while (0)

static void check_unary(const pith__kernel_row *row, int64_t n) {
    guarded x = filled(n), y = guarded_floats(n);
    EACH_LEVEL(row, pith__unary_f32_fn, y.data, n, fn(x.data, y.data, (size_t)n));
    EACH_LEVEL(row, pith__unary_f32_fn, y.data, n,
               (memcpy(y.data, x.data, (size_t)n * sizeof(float)), fn(y.data, y.data, (size_t)n)));
    guarded_free(x), guarded_free(y);
}

static void check_binary(const pith__kernel_row *row, int64_t n) {
    for (int strides = 0; strides < 4; strides++) {
        int as = strides & 1, bs = strides >> 1;
        guarded a = filled(as ? n : n > 0), b = filled(bs ? n : n > 0), y = guarded_floats(n);
        EACH_LEVEL(row, pith__binary_fn, y.data, n, fn(y.data, a.data, b.data, n, as, bs));
        if (bs) {
            EACH_LEVEL(row, pith__binary_fn, y.data, n,
                       (memcpy(y.data, b.data, (size_t)n * sizeof(float)),
                        fn(y.data, a.data, y.data, n, as, bs)));
        }
        guarded_free(a), guarded_free(b), guarded_free(y);
    }
}

static void check_rows(const pith__kernel_row *row, int64_t n) {
    enum { ROWS = 3 };
    guarded x = filled(ROWS * n), y = guarded_floats(ROWS);
    EACH_LEVEL(row, pith__reduce_rows_fn, y.data, ROWS, fn(x.data, y.data, ROWS, n));
    guarded_free(x), guarded_free(y);
}

static void check_columns(const pith__kernel_row *row, int64_t n) {
    int64_t height = random_below(9), stride = n + random_below(4);
    guarded x = filled(height > 0 ? (height - 1) * stride + n : 0), y = guarded_floats(n);
    EACH_LEVEL(row, pith__reduce_columns_fn, y.data, n, fn(x.data, y.data, height, n, stride));
    guarded_free(x), guarded_free(y);
}

static void check_row_to_row(const pith__kernel_row *row, int64_t n) {
    enum { ROWS = 2 };
    guarded x = filled(ROWS * n), y = guarded_floats(ROWS * n);
    EACH_LEVEL(row, pith__row_f32_fn, y.data, ROWS * n, fn(x.data, y.data, ROWS, n));
    EACH_LEVEL(
        row, pith__row_f32_fn, y.data, ROWS * n,
        (memcpy(y.data, x.data, (size_t)(ROWS * n) * sizeof(float)), fn(y.data, y.data, ROWS, n)));
    guarded_free(x), guarded_free(y);
}

static void check_norm(const pith__kernel_row *row, int64_t n) {
    enum { ROWS = 2 };
    guarded x = filled(ROWS * n), residual = filled(ROWS * n), sum = guarded_floats(ROWS * n),
            y = guarded_floats(ROWS * n);
    guarded bias = filled(n), gamma = guarded_floats(n), beta = guarded_floats(n),
            mean = guarded_floats(ROWS);
    for (int which = 0; which < 64; which++) {
        pith__layer_norm a = { .x = x.data, .y = y.data, .rows = ROWS, .n = n, .epsilon = 1e-5f };
        if (which & 1) a.residual = residual.data;
        if (which & 2) a.bias = bias.data;
        if (which & 4) a.gamma = gamma.data;
        if (which & 8) a.beta = beta.data;
        if (which & 16) a.sum = sum.data;
        if (which & 32) a.mean_out = mean.data;
        EACH_LEVEL(row, pith__layer_norm_f32_fn, y.data, ROWS * n, fn(&a));
        if (which & 16) EACH_LEVEL(row, pith__layer_norm_f32_fn, sum.data, ROWS * n, fn(&a));
        if (which & 32) EACH_LEVEL(row, pith__layer_norm_f32_fn, mean.data, ROWS, fn(&a));
        a.mean_out = NULL;
        a.inv_out = mean.data;
        EACH_LEVEL(row, pith__layer_norm_f32_fn, mean.data, ROWS, fn(&a));
    }
    guarded_free(x), guarded_free(residual), guarded_free(sum), guarded_free(y);
    guarded_free(bias), guarded_free(gamma), guarded_free(beta), guarded_free(mean);
}

/* n pairs in each of three heads. */
static void check_rotary(const pith__kernel_row *row, int64_t n) {
    enum { HEADS = 3 };
    guarded x = filled((2 * n + 5) * HEADS), y = guarded_floats(2 * n * HEADS),
            cosine = filled(2 * n), sine = filled(2 * n);
    for (int which = 0; which < 4; which++) {
        pith__rotary a = {
            .x = x.data, .cosine = cosine.data, .sine = sine.data, .y = y.data, .heads = HEADS
        };
        a.size = a.y_pitch = 2 * n;
        a.x_pitch = 2 * n + 5;
        a.interleaved = which & 1;
        a.per_pair = which >> 1;
        EACH_LEVEL(row, pith__rotary_f32_fn, y.data, 2 * n * HEADS, fn(&a));
    }
    guarded_free(x), guarded_free(y), guarded_free(cosine), guarded_free(sine);
}

static void check_map(const pith__kernel_row *row, int64_t n) {
    static const double parameters[2] = { 0.7, 0.3 };
    guarded x = filled(n), y = guarded_floats(n);
    EACH_LEVEL(row, pith__map_fn, y.data, n, fn(y.data, x.data, n, parameters));
    EACH_LEVEL(
        row, pith__map_fn, y.data, n,
        (memcpy(y.data, x.data, (size_t)n * sizeof(float)), fn(y.data, y.data, n, parameters)));
    guarded_free(x), guarded_free(y);
}

/* Every level against C's own comparisons. */
static void check_compare(const pith__kernel_row *row, int64_t n) {
    for (int strides = 0; strides < 4; strides++) {
        int as = strides & 1, bs = strides >> 1;
        guarded a = filled(as ? n : n > 0), b = filled(bs ? n : n > 0),
                y = guarded_alloc((size_t)n, (int)(n & 1));
        const float *u = a.data, *v = b.data;
        for (int64_t i = 0; i < n && as && bs; i += 3) ((float *)b.data)[i] = u[i];
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!level_usable(level) || !row->fn[level]) continue;
            ((pith__map2_fn *)row->fn[level])(y.data, a.data, b.data, n, as, bs);
            for (int64_t i = 0; i < n; i++) {
                float left = u[i * as], right = v[i * bs];
                int expected = row->family[4] == 'e' ? left == right
                               : row->family[8]      ? left <= right
                                                     : left < right;
                assert_int_equal(((const uint8_t *)y.data)[i], expected);
            }
        }
        guarded_free(a), guarded_free(b), guarded_free(y);
    }
}

static void check_affine(const pith__kernel_row *row, int64_t n) {
    for (int step = 0; step < 2; step++) {
        guarded x = filled(n), y = guarded_floats(n), a = filled(step ? n : n > 0),
                b = filled(step ? n : n > 0);
        EACH_LEVEL(row, pith__affine_fn, y.data, n, fn(y.data, x.data, a.data, b.data, n, step));
        for (int64_t i = 0; i < n; i++) {
            const float *scale = a.data, *shift = b.data;
            assert_true(
                same_float(((const float *)y.data)[i],
                           fmaf(((const float *)x.data)[i], scale[i * step], shift[i * step])));
        }
        guarded_free(x), guarded_free(y), guarded_free(a), guarded_free(b);
    }
}

static void check_moments(const pith__kernel_row *row, int64_t n) {
    if (n == 0) return;
    guarded x = guarded_floats(3 * n);
    double expected[2] = { 0 }, found[2], sum = 0, squares = 0;
    float *p = x.data;
    for (int64_t i = 0; i < 3 * n; i++) p[i] += 5.0f;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        if (!level_usable(level) || !row->fn[level]) continue;
        ((pith__moments_fn *)row->fn[level])(p, 3 * n, &found[0], &found[1]);
        if (level == PITH_ISA_scalar) memcpy(expected, found, sizeof found);
        assert_memory_equal(found, expected, sizeof found);
    }
    for (int64_t i = 0; i < 3 * n; i++) sum += (double)p[i] / (double)(3 * n);
    for (int64_t i = 0; i < 3 * n; i++)
        squares += ((double)p[i] - sum) * ((double)p[i] - sum) / (double)(3 * n);
    assert_float_equal(expected[0], sum, 1e-5);
    assert_float_equal(expected[1], squares, 1e-6);
    guarded_free(x);
}

static int one_function(const pith__kernel_row *row) {
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        if (row->fn[level] && row->fn[level] != row->fn[PITH_ISA_scalar]) return 0;
    }
    return 1;
}

static void test_every_row(void **state) {
    (void)state;
    for (size_t i = 0; i < pith__kernel_table_count; i++) {
        const pith__kernel_row *row = &pith__kernel_table[i];
        if (one_function(row) || LISTED(elsewhere_families, row->family)) continue;
        for (int64_t n = 0; n >= 0; n = next_length(n)) {
            if (LISTED(unary_families, row->family))
                check_unary(row, n);
            else if (LISTED(binary_families, row->family))
                check_binary(row, n);
            else if (LISTED(rows_families, row->family))
                check_rows(row, n);
            else if (LISTED(columns_families, row->family))
                check_columns(row, n);
            else if (LISTED(row_to_row_families, row->family))
                check_row_to_row(row, n);
            else if (LISTED(norms_families, row->family))
                check_norm(row, n);
            else if (LISTED(rotary_families, row->family))
                check_rotary(row, n);
            else if (LISTED(maps_families, row->family))
                check_map(row, n);
            else if (LISTED(compare_families, row->family))
                check_compare(row, n);
            else if (LISTED(affine_families, row->family))
                check_affine(row, n);
            else if (LISTED(moments_families, row->family))
                check_moments(row, n);
            else
                fail_msg("no test knows the signature of kernel %s", row->family);
        }
    }
}

static void test_table(void **state) {
    (void)state;
    for (size_t i = 0; i < pith__kernel_table_count; i++) {
        const pith__kernel_row *row = &pith__kernel_table[i], *next = row + 1;
        assert_non_null(row->fn[PITH_ISA_scalar]);
        if (i + 1 < pith__kernel_table_count) {
            int order = strcmp(row->family, next->family);
            if (order > 0 || (order == 0 && row->dtype >= next->dtype))
                fail_msg("%s is not sorted", next->family);
        }
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (row->fn[level])
                assert_true(pith__kernel_find(row->family, row->dtype, (pith__isa)level) ==
                            row->fn[level]);
        }
    }
    assert_null(pith__kernel_find("no_such_family", PITH_F32, PITH_ISA_scalar));
    assert_null(pith__kernel_find("gemm", PITH_STRING, PITH_ISA_scalar));
}

/* The results themselves, against the same formulas in double. */
static void test_reductions_in_double(void **state) {
    (void)state;
    enum { N = 777 };
    float *x = floats(N), y;
    double sum = 0, l1 = 0, squares = 0, top = -9, bottom = 9;
    for (int i = 0; i < N; i++) {
        sum += (double)x[i];
        l1 += fabs((double)x[i]);
        squares += (double)x[i] * (double)x[i];
        top = fmax(top, (double)x[i]);
        bottom = fmin(bottom, (double)x[i]);
    }
    const double expected[COUNT(rows_families)] = { l1, top, sum / N, bottom, sum, squares };
    /* Each addition rounds by at most half a unit of a partial sum: (steps of a chain + tree) *
     * 2^-24 * sum of |x|. */
    for (size_t f = 0; f < COUNT(rows_families); f++) {
        PITH_KERNEL_FIND(pith__reduce_rows_fn, rows_families[f], PITH_F32, pith__cpu_get()->isa)
        (x, &y, 1, N);
        assert_float_equal(y, expected[f], (N / 16 + 6) * 0x1p-24 * l1);
        PITH_KERNEL_FIND(pith__reduce_columns_fn, columns_families[f], PITH_F32,
                         pith__cpu_get()->isa)
        (x, &y, N, 1, 1);
        assert_float_equal(y, expected[f], (N + 1) * 0x1p-24 * l1);
    }
    free(x);
}

/* Each pair is turned by its angle, whichever way pairs and tables lie. */
static void test_rotary_by_hand(void **state) {
    (void)state;
    enum { SIZE = 38, HEADS = 2, HALF = SIZE / 2 };
    enum { PITCH = SIZE + 3 };
    float x[PITCH * HEADS], y[SIZE * HEADS], cosine[SIZE], sine[SIZE];
    for (int which = 0; which < 4; which++) {
        int interleaved = which & 1, per_pair = which >> 1;
        for (int i = 0; i < PITCH * HEADS; i++) x[i] = random_float();
        for (int i = 0; i < SIZE; i++) cosine[i] = random_float(), sine[i] = random_float();
        pith__rotary a = { x, cosine, sine, y, HEADS, SIZE, PITCH, SIZE, interleaved, per_pair };
        PITH_KERNEL_FIND(pith__rotary_f32_fn, "rotary", PITH_F32, pith__cpu_get()->isa)(&a);
        for (int h = 0; h < HEADS; h++) {
            for (int i = 0; i < HALF; i++) {
                int p = interleaved ? 2 * i : i, q = interleaved ? 2 * i + 1 : i + HALF;
                int at_p = per_pair ? i : p, at_q = per_pair ? i : q;
                const float *in = x + h * PITCH, *out = y + h * SIZE;
                assert_float_equal(out[p],
                                   (double)in[p] * cosine[at_p] - (double)in[q] * sine[at_p], 1e-6);
                assert_float_equal(out[q],
                                   (double)in[q] * cosine[at_q] + (double)in[p] * sine[at_q], 1e-6);
            }
        }
    }
}

static void test_norms_in_double(void **state) {
    (void)state;
    enum { N = 390 };
    float *x = floats(N), *r = floats(N), *gamma = floats(N), *beta = floats(N), *y = floats(N);
    double mean = 0, variance = 0, squares = 0, exponentials = 0, norm = 0;
    for (int i = 0; i < N; i++) mean += ((double)x[i] + (double)r[i]) / N;
    for (int i = 0; i < N; i++) {
        double s = (double)x[i] + (double)r[i];
        variance += (s - mean) * (s - mean) / N;
        squares += s * s / N;
        exponentials += exp((double)x[i]);
        norm += (double)x[i] * (double)x[i];
    }
    pith__isa isa = pith__cpu_get()->isa;
    pith__layer_norm a = { .x = x,
                           .residual = r,
                           .gamma = gamma,
                           .beta = beta,
                           .y = y,
                           .rows = 1,
                           .n = N,
                           .epsilon = 1e-5f };
    PITH_KERNEL_FIND(pith__layer_norm_f32_fn, "layer_norm", PITH_F32, isa)(&a);
    for (int i = 0; i < N; i++) {
        double s = (double)x[i] + (double)r[i];
        assert_float_equal(
            y[i], (s - mean) / sqrt(variance + 1e-5) * (double)gamma[i] + (double)beta[i], 1e-6);
    }
    PITH_KERNEL_FIND(pith__layer_norm_f32_fn, "rms_norm", PITH_F32, isa)(&a);
    for (int i = 0; i < N; i++) {
        double s = (double)x[i] + (double)r[i];
        assert_float_equal(y[i], s / sqrt(squares + 1e-5) * (double)gamma[i], 1e-6);
    }
    PITH_KERNEL_FIND(pith__row_f32_fn, "softmax", PITH_F32, isa)(x, y, 1, N);
    for (int i = 0; i < N; i++) assert_float_equal(y[i], exp((double)x[i]) / exponentials, 1e-9);
    PITH_KERNEL_FIND(pith__row_f32_fn, "log_softmax", PITH_F32, isa)(x, y, 1, N);
    for (int i = 0; i < N; i++) assert_float_equal(y[i], (double)x[i] - log(exponentials), 2e-6);
    PITH_KERNEL_FIND(pith__row_f32_fn, "l2_normalize", PITH_F32, isa)(x, y, 1, N);
    for (int i = 0; i < N; i++) assert_float_equal(y[i], (double)x[i] / sqrt(norm), 1e-7);
    memset(x, 0, N * sizeof *x);
    PITH_KERNEL_FIND(pith__row_f32_fn, "l2_normalize", PITH_F32, isa)(x, y, 1, N);
    for (int i = 0; i < N; i++) assert_true(y[i] == 0.0f);
    free(x), free(r), free(gamma), free(beta), free(y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_every_row),
        cmocka_unit_test(test_reductions_in_double),
        cmocka_unit_test(test_norms_in_double),
        cmocka_unit_test(test_rotary_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
