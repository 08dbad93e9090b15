/* test_token_pooling.c - hierarchical pooling of vectors with many equal distances. The labels are
 * those that scipy 1.17 gives within sentence-transformers 6.2 (_hierarchical_pool_one of
 * multi_vector_encoder/modules/token_pooling.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "models/heads/token_pooling.h"

enum { WIDTH = 4, ROWS_MAX = 40 };

typedef struct tied_case {
    double factor;
    int protects, n, clusters;
    int axes[ROWS_MAX];   /* row i is the unit vector of axis 1 to 4, or its negative */
    int labels[ROWS_MAX]; /* of the rows behind the protected ones */
} tied_case;

/* clang-format off */
static const tied_case cases[] = {
    { 1.5, 0, 2, 1, { 2, -1 }, { 0, 0 } },
    { 2, 0, 5, 2, { 1, 3, 1, 4, 4 }, { 1, 1, 1, 0, 0 } },
    { 2, 1, 9, 4, { 4, -2, 4, 2, 1, 4, 1, 4, 4 }, { 1, 2, 3, 0, 2, 0, 2, 2 } },
    { 3, 0, 12, 4, { -1, 1, -2, 4, 3, -2, 2, -1, 1, 3, 1, 1 }, { 1, 3, 2, 1, 0, 2, 1, 1, 3, 0, 3, 3
      } },
    { 1.2, 0, 16, 5, { 1, -2, -1, 1, 4, -2, 2, 4, -2, 1, -1, 2, 4, 4, -1, 2 },
      { 0, 3, 4, 0, 2, 3, 1, 2, 3, 0, 4, 1, 2, 2, 4, 1 } },
    { 4, 0, 24, 6, { 3, 2, -2, 2, 4, 3, 1, 4, -1, -2, 1, 2, -2, -2, 3, 1, -2, 3, -2, -2, -1, 4, -1,
      -2 },
      { 0, 1, 3, 1, 4, 0, 2, 4, 5, 3, 2, 1, 3, 3, 0, 2, 3, 0, 3, 3, 5, 4, 5, 3 } },
    { 6, 2, 40, 6, { 2, 3, 3, -1, 4, -1, 4, -1, 1, 4, 2, -2, 4, 4, -2, 2, 3, -1, -2, -2, -2, 3, 1,
      4, -2, -1, 1, 2, -1,
                     4, 3, 4, -2, 1, 4, 1, 3, -2, -1, -1 },
      { 1, 4, 0, 4, 0, 4, 3, 0, 2, 5, 0, 0, 5, 2, 1, 4, 5, 5, 5, 1, 3, 0, 5, 4, 3, 2, 4, 0, 1, 0, 5,
        3, 0, 3, 1, 5, 4,
        4 } },
};
/* clang-format on */

static void check_rows(const tied_case *c, const float *rows, const int32_t *ids, size_t count) {
    assert_int_equal(count, c->protects + c->clusters);
    for (int i = 0; i < c->protects; i++) assert_int_equal(ids[i], i);
    for (int label = 0; label < c->clusters; label++) {
        int first = -1, size = 0;
        double sum[WIDTH] = { 0 };
        for (int i = c->protects; i < c->n; i++) {
            if (c->labels[i - c->protects] != label) continue;
            if (first < 0) first = i;
            sum[(c->axes[i] < 0 ? -c->axes[i] : c->axes[i]) - 1] += c->axes[i] < 0 ? -1 : 1;
            size++;
        }
        assert_int_equal(ids[c->protects + label], first);
        for (int k = 0; k < WIDTH; k++)
            assert_float_equal(rows[(c->protects + label) * WIDTH + k], (float)sum[k] / (float)size,
                               0);
    }
}

static void ties(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tied_case *c = &cases[i];
        const pith__hf_token_pool pool = { .factor = c->factor, .protects = c->protects };
        float rows[ROWS_MAX * WIDTH] = { 0 };
        int32_t ids[ROWS_MAX];
        size_t count = (size_t)c->n;
        pith__arena scratch;
        pith__arena_init(&scratch, &pith__allocator_default);
        for (int r = 0; r < c->n; r++) {
            ids[r] = r;
            rows[r * WIDTH + (c->axes[r] < 0 ? -c->axes[r] : c->axes[r]) - 1] =
                c->axes[r] < 0 ? -1 : 1;
        }
        assert_int_equal(pith__token_pool(rows, ids, &count, WIDTH, &pool, &scratch, NULL),
                         PITH_OK);
        check_rows(c, rows, ids, count);
        pith__arena_free(&scratch);
    }
}

static void refused(void **state) {
    (void)state;
    static float rows[PITH_TOKEN_POOL_MAX + 2];
    static int32_t ids[PITH_TOKEN_POOL_MAX + 2];
    const pith__hf_token_pool pool = { .factor = 2, .protects = 1 };
    size_t count = PITH_TOKEN_POOL_MAX + 2;
    pith_error err = PITH_ERROR_INIT;
    pith__arena scratch;
    pith__arena_init(&scratch, &pith__allocator_default);
    assert_int_equal(pith__token_pool(rows, ids, &count, 1, &pool, &scratch, &err),
                     PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "max_length"));
    rows[2] = NAN;
    count = 4;
    err = (pith_error)PITH_ERROR_INIT;
    assert_int_equal(pith__token_pool(rows, ids, &count, 1, &pool, &scratch, &err), PITH_ERR_RUN);
    assert_non_null(strstr(err.message, "no number"));
    pith__arena_free(&scratch);
}

/* Nothing to pool: no vectors, fewer than are protected, a factor of 1. */
static void nothing(void **state) {
    (void)state;
    float rows[3] = { 1, 1, 1 };
    int32_t ids[3] = { 5, 6, 7 };
    pith__arena scratch;
    pith__arena_init(&scratch, &pith__allocator_default);
    for (int i = 0; i < 3; i++) {
        const pith__hf_token_pool pool = { .factor = i == 2 ? 1 : 2, .protects = i == 2 ? 0 : 4 };
        size_t count = i ? 3 : 0;
        assert_int_equal(pith__token_pool(rows, ids, &count, 1, &pool, &scratch, NULL), PITH_OK);
        assert_int_equal(count, i ? 3 : 0);
    }
    pith__arena_free(&scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(ties), cmocka_unit_test(refused),
                                        cmocka_unit_test(nothing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
