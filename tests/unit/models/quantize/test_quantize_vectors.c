/* Vectors in smaller types, against what NumPy 2 makes with the formulas of
 * sentence_transformers.quantize_embeddings. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pith/pith.h"

enum { ROWS = 2, DIM = 10 };
static const float vectors[ROWS * DIM] = { 0.1f,   -0.25f, 0.5f,    -0.9999f, 1.0f,  -1.0f, 0.0f,
                                           1e-8f,  0.333f, -0.007f, -0.2f,    0.4f,  0.03f, 0.7f,
                                           -0.61f, 0.9f,   -0.0f,   -1e-9f,   0.25f, 0.125f };

static void quantize(void *rows, int type, const float *ranges) {
    pith_quantize_options options = PITH_QUANTIZE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    options.type = type;
    options.ranges = ranges;
    memset(rows, 0x55, 4 * sizeof vectors);
    if (pith_quantize_vectors(rows, vectors, ROWS, DIM, &options, &err))
        fail_msg("%s", err.message);
    const size_t size = ROWS * pith_quantize_row_bytes(type, DIM);
    assert_int_equal(((unsigned char *)rows)[size], 0x55); /* nothing behind the rows */
}

static void test_int8(void **state) {
    static const int8_t fixed[] = { 12,  -33, 63, -128, 126, -128, -1, -1, 41, -2,
                                    -27, 50,  3,  88,   -79, 114,  -1, -1, 31, 15 };
    static const uint8_t ufixed[] = { 140, 95,  191, 0,   254, 0,   127, 127, 169, 126,
                                      101, 178, 131, 216, 49,  242, 127, 127, 159, 143 };
    static const int8_t own[] = { 127,  -128, 127,  -128, 127,  -128, -128, 127,  126,  -128,
                                  -128, 127,  -128, 127,  -128, 127,  -128, -128, -128, 126 };
    static const uint8_t uown[] = { 255, 0,   255, 0,   255, 0,   0, 255, 254, 0,
                                    0,   255, 0,   255, 0,   255, 0, 0,   0,   254 };
    unsigned char rows[4 * sizeof vectors];
    float ranges[2 * DIM];
    (void)state;
    quantize(rows, PITH_VECTOR_INT8, NULL);
    assert_memory_equal(rows, fixed, sizeof fixed);
    quantize(rows, PITH_VECTOR_UINT8, NULL);
    assert_memory_equal(rows, ufixed, sizeof ufixed);
    assert_int_equal(pith_quantize_ranges(ranges, vectors, ROWS, DIM, NULL, NULL), PITH_OK);
    quantize(rows, PITH_VECTOR_INT8, ranges);
    assert_memory_equal(rows, own, sizeof own);
    quantize(rows, PITH_VECTOR_UINT8, ranges);
    assert_memory_equal(rows, uown, sizeof uown);
}

static void test_outside_of_ranges(void **state) {
    static const float x[] = { -2.0f, 2.0f, INFINITY, -INFINITY, 1e38f };
    static const int8_t wanted[] = { -128, 127, 127, -128, 127 };
    static const uint8_t uwanted[] = { 0, 255, 255, 0, 255 };
    unsigned char row[sizeof x];
    pith_quantize_options options = PITH_QUANTIZE_OPTIONS_INIT;
    (void)state;
    options.type = PITH_VECTOR_INT8;
    assert_int_equal(pith_quantize_vectors(row, x, 1, 5, &options, NULL), PITH_OK);
    assert_memory_equal(row, wanted, sizeof wanted);
    options.type = PITH_VECTOR_UINT8;
    assert_int_equal(pith_quantize_vectors(row, x, 1, 5, &options, NULL), PITH_OK);
    assert_memory_equal(row, uwanted, sizeof uwanted);
}

static void test_bits(void **state) {
    static const uint8_t bits[] = { 169, 128, 116, 192 };
    static const int8_t less[] = { 41, 0, -12, 64 };
    unsigned char rows[4 * sizeof vectors];
    (void)state;
    quantize(rows, PITH_VECTOR_UBINARY, NULL);
    assert_memory_equal(rows, bits, sizeof bits);
    quantize(rows, PITH_VECTOR_BINARY, NULL);
    assert_memory_equal(rows, less, sizeof less);
    const float odd[] = { NAN, INFINITY, -INFINITY };
    pith_quantize_options options = PITH_QUANTIZE_OPTIONS_INIT;
    options.type = PITH_VECTOR_UBINARY;
    assert_int_equal(pith_quantize_vectors(rows, odd, 1, 3, &options, NULL), PITH_OK);
    assert_int_equal(rows[0], 0x40);
}

static void test_f16(void **state) {
    static const float x[] = { 65504,    65519.99f,   65520, 1 + 0x1p-11f, 1 + 3 * 0x1p-11f,
                               0x1p-25f, 0x1.03p-25f, -1e6f, 0.1f };
    static const uint16_t wanted[] = {
        0x7bff, 0x7bff, 0x7c00, 0x3c00, 0x3c02, 0, 1, 0xfc00, 0x2e66
    };
    uint16_t row[9];
    float same[9];
    pith_quantize_options options = PITH_QUANTIZE_OPTIONS_INIT;
    (void)state;
    options.type = PITH_VECTOR_F16;
    assert_int_equal(pith_quantize_vectors(row, x, 1, 9, &options, NULL), PITH_OK);
    assert_memory_equal(row, wanted, sizeof wanted);
    /* the default is f32 */
    assert_int_equal(pith_quantize_vectors(same, x, 1, 9, NULL, NULL), PITH_OK);
    assert_memory_equal(same, x, sizeof x);
}

static void test_row_bytes(void **state) {
    static const size_t wanted[] = { 40, 20, 10, 10, 2, 2 };
    (void)state;
    for (int type = PITH_VECTOR_F32; type <= PITH_VECTOR_UBINARY; type++)
        assert_int_equal(pith_quantize_row_bytes(type, DIM), wanted[type]);
    assert_int_equal(pith_quantize_row_bytes(PITH_VECTOR_UBINARY, 8), 1);
    assert_int_equal(pith_quantize_row_bytes(6, DIM), 0);
    assert_int_equal(pith_quantize_row_bytes(-1, DIM), 0);
    assert_int_equal(pith_quantize_row_bytes(PITH_VECTOR_F32, SIZE_MAX), 0);
}

static void refuse(const float *x, size_t count, size_t dim, const pith_quantize_options *options,
                   const char *says) {
    unsigned char rows[64];
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(pith_quantize_vectors(rows, x, count, dim, options, &err), PITH_ERR_ARGUMENT);
    if (!strstr(err.message, says)) fail_msg("'%s' is not in '%s'", says, err.message);
}

static void test_refused(void **state) {
    const float x[4] = { 0, 1, 2, NAN };
    float ranges[4] = { 0, 0, 1, NAN };
    pith_error err = PITH_ERROR_INIT;
    pith_quantize_options options = PITH_QUANTIZE_OPTIONS_INIT;
    (void)state;
    options.type = PITH_VECTOR_UINT8;
    refuse(x, 2, 2, &options, "component 1 of vector 1 is not a number");
    refuse(x, 1, 0, &options, "one or more");
    refuse(x, SIZE_MAX / 2, 2, &options, "more than memory");
    options.ranges = ranges;
    refuse(x, 1, 2, &options, "component 1 is 0 to nan");
    ranges[3] = -1;
    refuse(x, 1, 2, &options, "component 1 is 0 to -1");
    ranges[1] = -3e38f;
    ranges[3] = 3e38f;
    refuse(x, 1, 2, &options, "component 1 is -3e+38 to 3e+38");
    options.type = 6;
    refuse(x, 1, 2, &options, "type is 6");
    options.call.size = 0;
    refuse(x, 1, 2, &options, "_INIT macro");
    assert_int_equal(pith_quantize_ranges(ranges, x, 2, 2, NULL, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "component 1 of vector 1 is not finite"));
    assert_int_equal(pith_quantize_ranges(ranges, x, 0, 2, NULL, &err), PITH_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_int8),      cmocka_unit_test(test_outside_of_ranges),
        cmocka_unit_test(test_bits),      cmocka_unit_test(test_f16),
        cmocka_unit_test(test_row_bytes), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
