/* The public functions on element types, shapes, tensors, texts and the processor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pith/pith.h>

static void test_elements(void **state) {
    (void)state;
    static const struct {
        int32_t dtype;
        const char *name;
        int32_t bits;
    } known[] = {
        { PITH_F32, "float32", 32 },
        { PITH_I4, "int4", 4 },
        { PITH_BOOL, "bool", 8 },
        { PITH_BF16, "bfloat16", 16 },
        { PITH_C128, "complex128", 128 },
        { PITH_U2, "uint2", 2 },
        { PITH_F4E2M1, "float4_e2m1fn", 4 },
        { PITH_STRING, "string", 8 * (int32_t)sizeof(pith_str) },
        { PITH_SEQUENCE, "sequence", 0 },
        { PITH_NONE, "none", 0 },
        { PITH_MAP_I64, "map(int64, float32)", 0 },
        { PITH_MAP_STRING, "map(string, float32)", 0 },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_string_equal(pith_element_name(known[i].dtype), known[i].name);
        assert_int_equal(pith_element_dtype(known[i].name), known[i].dtype);
        assert_int_equal(pith_element_bits(known[i].dtype), known[i].bits);
    }
    for (int32_t dtype = 1; dtype < PITH_DTYPE_COUNT; dtype++)
        assert_int_equal(pith_element_dtype(pith_element_name(dtype)), dtype);
    static const int32_t unknown[] = { PITH_UNDEFINED, PITH_DTYPE_COUNT, -1, 36,
                                       INT32_MIN,      INT32_MAX };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_string_equal(pith_element_name(unknown[i]), "unknown");
        assert_int_equal(pith_element_bits(unknown[i]), 0);
    }
    assert_int_equal(pith_element_dtype("unknown"), PITH_UNDEFINED);
    assert_int_equal(pith_element_dtype("float3"), PITH_UNDEFINED);
    assert_int_equal(pith_element_dtype(""), PITH_UNDEFINED);
}

static void test_shapes(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    int64_t dims[PITH_MAX_RANK];
    int32_t rank = 7;
    size_t bytes = 5;
    char text[40], small[8];
    assert_int_equal(pith_shape_parse(dims, &rank, "1x3x480x640", &err), PITH_OK);
    assert_int_equal(rank, 4);
    assert_int_equal(dims[3], 640);
    assert_int_equal(dims[PITH_MAX_RANK - 1], 0);
    assert_int_equal(pith_shape_count(dims, rank), 921600);
    assert_string_equal(pith_shape_format(text, sizeof text, dims, rank), "[1, 3, 480, 640]");
    assert_string_equal(pith_shape_format(small, sizeof small, dims, rank), "[1, …");
    static const char *const bad[] = { "1x", "x",    "1xx2",       "-1",
                                       "a",  "1 x2", "2147483648", "1x1x1x1x1x1x1x1x1x1x1x1x1" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(pith_shape_parse(dims, &rank, bad[i], &err), PITH_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, bad[i]));
        assert_int_equal(pith_shape_parse(dims, &rank, bad[i], NULL), PITH_ERR_ARGUMENT);
        assert_int_equal(rank, 4); /* as it was */
        assert_int_equal(dims[0], 1);
    }
    assert_int_equal(pith_shape_bytes(&bytes, PITH_F16, dims, rank, &err), PITH_OK);
    assert_int_equal(bytes, 1843200);
    assert_int_equal(pith_shape_parse(dims, &rank, "", &err), PITH_OK);
    assert_int_equal(rank, 0);
    assert_int_equal(pith_shape_count(dims, rank), 1);
    assert_int_equal(pith_shape_bytes(&bytes, PITH_U4, (const int64_t[]){ 3 }, 1, &err), PITH_OK);
    assert_int_equal(bytes, 2);
    assert_int_equal(pith_shape_count((const int64_t[]){ 0, 5 }, 2), 0);
    assert_int_equal(pith_shape_count((const int64_t[]){ -1, 5 }, 2), -1);
    assert_int_equal(pith_shape_count((const int64_t[]){ INT64_MAX, 5 }, 2), -1);
    assert_string_equal(pith_shape_format(text, sizeof text, (const int64_t[]){ -1, 5 }, 2),
                        "[?, 5]");
    assert_int_equal(pith_shape_bytes(&bytes, PITH_F32, (const int64_t[]){ -1, 5 }, 2, &err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "[?, 5]"));
    assert_int_equal(pith_shape_bytes(&bytes, PITH_F32, (const int64_t[]){ INT64_MAX, 1 }, 2, &err),
                     PITH_ERR_ARGUMENT);
    assert_int_equal(pith_shape_bytes(&bytes, PITH_NONE, dims, 0, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "none"));
    assert_int_equal(bytes, 2);
}

/* The data of a tensor in a file may lie at any address. */
static void test_convert_from_anywhere(void **state) {
    (void)state;
    enum { COUNT = 3000 };
    static char bytes[COUNT * sizeof(float) + 3];
    static double wide[COUNT];
    pith_error err = PITH_ERROR_INIT;
    for (int i = 0; i < COUNT; i++) memcpy(bytes + 3 + 4 * i, &(float){ (float)i / 8 }, 4);
    const pith_tensor t = { .data = bytes + 3,
                            .bytes = COUNT * sizeof(float),
                            .dtype = PITH_F32,
                            .rank = 1,
                            .dims = { COUNT } };
    assert_int_equal(pith_tensor_convert(wide, PITH_F64, &t, 5, COUNT - 5, &err), PITH_OK);
    for (int i = 0; i < COUNT - 5; i++) assert_true(wide[i] == (i + 5) / 8.0);
}

static void test_convert(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    uint16_t half[] = { 0x3C00, 0xC100, 0x7C00, 0x0001 }, bf16[] = { 0x3F80, 0xC020 };
    uint8_t packed[] = { 0x7F, 0x08 }; /* as I4: -1, 7, -8; as F4: -6, 6, -0 */
    int8_t wide[4] = { 99, 99, 99, 99 };
    double numbers[4] = { 0 };
    uint8_t nibbles[2] = { 0, 0 };
    pith_tensor t = {
        .data = half, .bytes = sizeof half, .dtype = PITH_F16, .rank = 2, .dims = { 2, 2 }
    };
    assert_int_equal(pith_tensor_convert(numbers, PITH_F64, &t, 1, 3, &err), PITH_OK);
    assert_true(numbers[0] == -2.5 && numbers[1] == INFINITY && numbers[2] == 0x1p-24 &&
                numbers[3] == 0);
    t = (pith_tensor){
        .data = bf16, .bytes = sizeof bf16, .dtype = PITH_BF16, .rank = 1, .dims = { 2 }
    };
    float floats[2];
    assert_int_equal(pith_tensor_convert(floats, PITH_F32, &t, 0, 2, &err), PITH_OK);
    assert_true(floats[0] == 1.0f && floats[1] == -2.5f);
    t = (pith_tensor){
        .data = packed, .bytes = sizeof packed, .dtype = PITH_I4, .rank = 1, .dims = { 3 }
    };
    assert_int_equal(pith_tensor_convert(wide, PITH_I8, &t, 0, 3, &err), PITH_OK);
    assert_true(wide[0] == -1 && wide[1] == 7 && wide[2] == -8 && wide[3] == 99);
    assert_int_equal(pith_tensor_convert(wide, PITH_I8, &t, 2, 1, &err), PITH_OK);
    assert_int_equal(wide[0], -8);
    t.dtype = PITH_F4E2M1;
    assert_int_equal(pith_tensor_convert(numbers, PITH_F64, &t, 0, 3, &err), PITH_OK);
    assert_true(numbers[0] == -6 && numbers[1] == 6 && numbers[2] == 0);
    int64_t large[] = { 300, -2, 5 };
    t = (pith_tensor){
        .data = large, .bytes = sizeof large, .dtype = PITH_I64, .rank = 1, .dims = { 3 }
    };
    assert_int_equal(pith_tensor_convert(nibbles, PITH_U4, &t, 0, 3, &err), PITH_OK);
    assert_int_equal(nibbles[0], 0xEC);
    assert_int_equal(nibbles[1] & 15, 5);
    /* Nothing is read or written where the request or the tensor is wrong. */
    t = (pith_tensor){ .data = NULL, .bytes = 0, .dtype = PITH_F32, .rank = 1, .dims = { 0 } };
    assert_int_equal(pith_tensor_convert(NULL, PITH_F64, &t, 0, 0, &err), PITH_OK);
    t = (pith_tensor){
        .data = half, .bytes = sizeof half, .dtype = PITH_F16, .rank = 1, .dims = { 4 }
    };
    assert_int_equal(pith_tensor_convert(NULL, PITH_F64, &t, 1, 4, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_tensor_convert(NULL, PITH_F64, &t, SIZE_MAX, 2, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_tensor_convert(NULL, PITH_F64, &t, 5, 0, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_tensor_convert(NULL, PITH_STRING, &t, 0, 1, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "float16"));
    assert_int_equal(pith_tensor_convert(NULL, PITH_C64, &t, 0, 1, NULL), PITH_ERR_ARGUMENT);
    t.bytes = 7;
    assert_int_equal(pith_tensor_convert(NULL, PITH_F64, &t, 0, 1, &err), PITH_ERR_ARGUMENT);
    t.bytes = 8, t.dims[0] = -4;
    assert_int_equal(pith_tensor_convert(NULL, PITH_F64, &t, 0, 1, &err), PITH_ERR_ARGUMENT);
    t.dims[0] = 4, t.rank = PITH_MAX_RANK + 1;
    assert_int_equal(pith_tensor_convert(NULL, PITH_F64, &t, 0, 1, &err), PITH_ERR_ARGUMENT);
    t.rank = 1, t.dtype = PITH_SEQUENCE;
    assert_int_equal(pith_tensor_convert(NULL, PITH_F64, &t, 0, 1, &err), PITH_ERR_ARGUMENT);
}

static void test_texts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t size, valid;
    } cases[] = {
        { "", 0, 0 },
        { "a\0b", 3, 3 },
        { "na\xC3\xAFve", 6, 6 },
        { "na\xC3", 3, 2 },
        { "\xED\xA0\x80", 3, 0 },
        { "a\xC0\x80", 3, 1 },
        { "\xF0\x9F\x98\x80\xFF", 5, 4 },
        { "\xF4\x90\x80\x80", 4, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(pith_text_valid((pith_str){ cases[i].text, cases[i].size }),
                         cases[i].valid);
    assert_int_equal(pith_text_valid((pith_str){ NULL, 0 }), 0);
}

static void test_cpu(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_cpu_info info = PITH_CPU_INFO_INIT, again = PITH_CPU_INFO_INIT, none = PITH_CPU_INFO_INIT;
    assert_int_equal(pith_cpu_report(&info, &err), PITH_OK);
    assert_true(!strcmp(info.isa, "scalar") || !strcmp(info.isa, "avx2") ||
                !strcmp(info.isa, "avx512") || !strcmp(info.isa, "neon"));
    assert_true(info.size == sizeof info && info.threads >= 1);
    assert_true(info.l1d_bytes >= 4096 && info.l2_bytes >= info.l1d_bytes && info.l3_bytes >= 4096);
    assert_int_equal(pith_cpu_report(&again, NULL), PITH_OK);
    assert_string_equal(again.isa, info.isa);
    assert_true(again.threads == info.threads && again.l1d_bytes == info.l1d_bytes &&
                again.l2_bytes == info.l2_bytes && again.l3_bytes == info.l3_bytes);
    /* A caller of an older header has a shorter struct, of a newer one a longer. */
    struct {
        pith_cpu_info info;
        int64_t more;
    } newer = { { .size = sizeof newer }, 77 };
    assert_int_equal(pith_cpu_report(&newer.info, &err), PITH_OK);
    assert_true(newer.more == 77 && newer.info.size == sizeof newer &&
                newer.info.l3_bytes == info.l3_bytes);
    pith_cpu_info older = { .size = offsetof(pith_cpu_info, l1d_bytes), .l1d_bytes = 77 };
    assert_int_equal(pith_cpu_report(&older, &err), PITH_OK);
    assert_true(older.threads == info.threads && older.l1d_bytes == 77 && older.l2_bytes == 0);
    none.size = 0;
    assert_int_equal(pith_cpu_report(&none, &err), PITH_ERR_ARGUMENT);
    assert_null(none.isa);
    assert_true(info.cores >= 1 && info.cores <= info.cpus && info.threads <= info.cpus &&
                info.quota >= 0);
    assert_true(info.threads == (info.quota && info.quota < info.cpus ? info.quota : info.cpus));
    assert_non_null(strstr(info.isas, info.isa));
    assert_true(info.model && info.features);
}

static void test_build(void **state) {
    (void)state;
    pith_build_info info = PITH_BUILD_INFO_INIT;
    assert_int_equal(pith_build_report(&info, NULL), PITH_OK);
    assert_non_null(strstr(info.runtimes, "builtin"));
    assert_non_null(strstr(info.backends, "cpu"));
    assert_true(*info.compiler && (*info.images || *info.images_missing));
    info.size = 0;
    assert_int_equal(pith_build_report(&info, NULL), PITH_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_convert),  cmocka_unit_test(test_convert_from_anywhere),
        cmocka_unit_test(test_texts),    cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_build)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
