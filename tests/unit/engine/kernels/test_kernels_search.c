/* The scores of rows and queries: every level gives the bits of sixteen sums in plain C, whatever
 * the tile, and touches no byte beside its arrays. */
#include "support/kernel_test.h"

#include <math.h>

#include "base/half.h"
#include "engine/kernels/scores.h"

enum { ROWS = 7, QUERIES = 11, DIMS = 70 };

static const int dtypes[] = { PITH_F32, PITH_U8, PITH_I8, PITH_F16 };
static const size_t sizes[] = { 4, 1, 1, 2 };

static float value_of(const void *p, int dtype, size_t i) {
    uint16_t half;
    float x;
    switch (dtype) {
    case PITH_F32: memcpy(&x, (const char *)p + 4 * i, sizeof x); return x;
    case PITH_U8: return ((const uint8_t *)p)[i];
    case PITH_I8: return ((const int8_t *)p)[i];
    default: memcpy(&half, (const char *)p + 2 * i, sizeof half); return pith__f32_of_f16(half);
    }
}

/* The definition in scores.h. kind: 0 dot, 1 l2, 2 sumsq. */
static float wanted(const void *row, int dtype, const float *query, size_t dim, int kind) {
    float sum[16] = { 0 };
    for (size_t i = 0; i < dim; i++) {
        float x = value_of(row, dtype, i), d = kind == 0 ? query[i] : kind == 1 ? x - query[i] : x;
        sum[i % 16] = fmaf(kind == 1 ? d : x, d, sum[i % 16]);
    }
    for (int half = 8; half; half /= 2) {
        for (int i = 0; i < half; i++) sum[i] += sum[i + half];
    }
    return sum[0];
}

static void fill_rows(char *rows, size_t bytes, int dtype) {
    for (size_t i = 0; i < bytes; i++) rows[i] = (char)random_u32();
    if (dtype == PITH_F32) fill_floats((float *)(void *)rows, (int64_t)(bytes / 4));
}

static void check_floats(int level, int t, size_t dim) {
    static const char *const families[] = { "scores_dot", "scores_l2", "scores_sumsq" };
    const size_t row_bytes = (dim + (size_t)random_below(3)) * sizes[t],
                 rows = (size_t)random_below(ROWS + 1);
    const size_t queries = (size_t)random_below(QUERIES + 1),
                 stride = rows + (size_t)random_below(3);
    const size_t bytes = rows ? (rows - 1) * row_bytes + dim * sizes[t] : 0;
    guarded x = guarded_alloc(bytes, (int)random_below(2)),
            y = guarded_floats((int64_t)(queries * dim));
    fill_rows(x.data, bytes, dtypes[t]);
    fill_floats(y.data, (int64_t)(queries * dim));
    for (int kind = 0; kind < 3; kind++) {
        const size_t lists = kind == 2 ? 1 : queries;
        guarded out = guarded_floats(lists && rows ? (int64_t)((lists - 1) * stride + rows) : 0);
        pith__scores a = { .rows = x.data,
                           .row_bytes = row_bytes,
                           .row_count = rows,
                           .dim = dim,
                           .queries = y.data,
                           .query_count = queries,
                           .scores = out.data,
                           .stride = stride };
        PITH_KERNEL_FIND(pith__scores_fn, families[kind], dtypes[t], (pith__isa)level)(&a);
        for (size_t q = 0; q < lists; q++) {
            for (size_t r = 0; r < rows; r++) {
                const float want = wanted((char *)x.data + r * row_bytes, dtypes[t],
                                          kind == 2 ? NULL : (float *)y.data + q * dim, dim, kind);
                if (!same_float(((float *)out.data)[q * stride + r], want))
                    fail_msg("%s of dtype %d at level %d, dim %zu: row %zu, query %zu",
                             families[kind], dtypes[t], level, dim, r, q);
            }
        }
        guarded_free(out);
    }
    guarded_free(x), guarded_free(y);
}

static void floats_of_all_types(void **state) {
    (void)state;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        for (size_t dim = 0; level_usable(level) && dim < DIMS; dim++) {
            for (int t = 0; t < (int)COUNT(dtypes); t++) check_floats(level, t, dim);
        }
    }
}

static void check_ints(int level, size_t width, const char *family) {
    const int bits = strcmp(family, "scores_hamming") == 0;
    const size_t row = bits ? (width + 7) / 8 : width,
                 row_bytes = row + (size_t)random_below(3) * 8;
    const size_t rows = (size_t)random_below(ROWS + 1), queries = (size_t)random_below(QUERIES + 1);
    const size_t query_bytes = bits ? row : width * 2;
    guarded x = guarded_alloc(rows ? (rows - 1) * row_bytes + row : 0, (int)random_below(2));
    guarded y = guarded_alloc(queries * query_bytes, 1),
            out = guarded_floats((int64_t)(queries * rows));
    fill_rows(x.data, rows ? (rows - 1) * row_bytes + row : 0, PITH_U8);
    fill_rows(y.data, queries * query_bytes, PITH_U8);
    for (size_t i = 0; !bits && i < queries * width; i++)
        ((int16_t *)y.data)[i] = (int16_t)(random_below(255) - 127);
    pith__int_scores a = { .rows = x.data,
                           .queries = y.data,
                           .row_bytes = row_bytes,
                           .row_count = rows,
                           .width = width,
                           .query_count = queries,
                           .scores = out.data,
                           .stride = rows };
    PITH_KERNEL_FIND(pith__int_scores_fn, family, bits ? PITH_U8 : PITH_I8, (pith__isa)level)
    (&a);
    for (size_t q = 0; q < queries; q++) {
        for (size_t r = 0; r < rows; r++) {
            int32_t want = 0;
            const uint8_t *p = (const uint8_t *)x.data + r * row_bytes;
            for (size_t i = 0; i < width; i++) {
                if (bits)
                    want += (p[i / 8] ^ ((const uint8_t *)y.data + q * query_bytes)[i / 8]) >>
                                (7 - i % 8) &
                            1;
                else
                    want += (int8_t)p[i] * ((const int16_t *)y.data)[q * width + i];
            }
            if (((int32_t *)out.data)[q * rows + r] != want)
                fail_msg("%s at level %d, width %zu: row %zu, query %zu", family, level, width, r,
                         q);
        }
    }
    guarded_free(x), guarded_free(y), guarded_free(out);
}

static void whole_numbers(void **state) {
    (void)state;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        for (size_t i = 0; level_usable(level) && i < 200; i++) {
            check_ints(level, i, "scores_hamming");
            check_ints(level, i % 8 * 32, "scores_int8");
            if (level_has_vnni(level)) check_ints(level, i % 8 * 32, "scores_int8_vnni");
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(floats_of_all_types),
                                        cmocka_unit_test(whole_numbers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
