/* test_locale.c - a program that has set a locale with a decimal comma gets the same numbers: from
 * strings and as strings, of a GGUF file's settings, in statistics. The locale is made here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/formats/decimal.h"
#include "formats/onnx/onnx_text.h"
#include "pith/pith.h"

static char folder[] = "/tmp/pith-locale-XXXXXX";

static void shell(const char *format) {
    char line[300];
    snprintf(line, sizeof line, format, folder);
    if (system(line)) fail_msg("%s failed; Debian has it in the package locales", line);
}

static int set_comma(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    shell("localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8");
    setenv("LOCPATH", folder, 1);
    return !setlocale(LC_ALL, "de_DE.UTF-8") || strcmp(localeconv()->decimal_point, ",");
}

static int unset_comma(void **state) {
    (void)state;
    setlocale(LC_ALL, "C");
    shell("rm -r %s");
    return 0;
}

static void printed(void **state) {
    (void)state;
    static const struct {
        double x;
        int digits;
        const char *text;
    } rows[] = {
        { 0, 9, "0" },
        { -0.0, 9, "-0" },
        { 1.5, 9, "1.5" },
        { -1e-12, 17, "-9.9999999999999998e-13" },
        { 10000, 17, "10000" },
        { 1234567, 6, "1.23457e+06" },
        { 0x1.fffffffffffffp1023, 17, "1.7976931348623157e+308" },
        { -0x1p-1022, 17, "-2.2250738585072014e-308" },
        { INFINITY, 6, "inf" },
        { -INFINITY, 17, "-inf" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[PITH_DECIMAL_CHARS];
        assert_int_equal(pith__decimal_print(text, rows[i].digits, rows[i].x),
                         strlen(rows[i].text));
        assert_string_equal(text, rows[i].text);
    }
}

/* A network of one node, from x to y. */
typedef struct network {
    pith__arena scratch;
    pith__wire_build bytes;
    pith_model *model;
    pith_session *session;
} network;

static void network_run(network *n, pith_tensor *y, const char *text, const pith_tensor *x) {
    pith_error err = PITH_ERROR_INIT;
    const char *name = "x";
    *n = (network){ .bytes.allocator = &pith__allocator_default };
    pith__arena_init(&n->scratch, NULL);
    if (pith__onnx_parse(&n->bytes, (pith_str){ text, strlen(text) }, NULL, &n->scratch, &err) ||
        pith_model_open_memory(&n->model, n->bytes.bytes, n->bytes.size, NULL, &err) ||
        pith_session_create(&n->session, n->model, &err) ||
        pith_session_run(n->session, y, &name, x, 1, NULL, &err))
        fail_msg("%s", err.message);
}

static void network_end(network *n) {
    pith_session_destroy(n->session);
    pith_model_close(n->model);
    pith__wire_build_free(&n->bytes);
    pith__arena_free(&n->scratch);
}

static void cast(void **state) {
    (void)state;
    static const pith_str texts[] = { { "1.5", 3 }, { " -2.25e1", 8 }, { "-INF", 4 }, { "7", 1 } };
    const float numbers[] = { 1.5F, -22.5F, -INFINITY, 7 };
    static const char *const written[] = { "1.5", "-22.5", "-INF", "7" };
    network n;
    pith_tensor x = { .data = (void *)(uintptr_t)texts,
                      .bytes = sizeof texts,
                      .dtype = PITH_STRING,
                      .rank = 1,
                      .dims = { 4 } },
                y;
    network_run(&n, &y,
                "<ir_version: 9, opset_import: [\"\": 21]> "
                "g (string[4] x) => (float[4] y) { y = Cast <to = 1> (x) }",
                &x);
    assert_memory_equal(y.data, numbers, sizeof numbers);
    network_end(&n);
    x.data = (void *)(uintptr_t)numbers;
    x.bytes = sizeof numbers;
    x.dtype = PITH_F32;
    network_run(&n, &y,
                "<ir_version: 9, opset_import: [\"\": 21]> "
                "g (float[4] x) => (string[4] y) { y = Cast <to = 8> (x) }",
                &x);
    for (int i = 0; i < 4; i++) {
        const pith_str got = ((const pith_str *)y.data)[i];
        assert_int_equal(got.size, strlen(written[i]));
        assert_memory_equal(got.data, written[i], got.size);
    }
    network_end(&n);
}

static void gguf(void **state) {
    (void)state;
    pith_model *model;
    pith_error err = PITH_ERROR_INIT;
    if (pith_model_open(&model, PITH_TEST_DATA "/gguf/blocks/model.gguf", NULL, &err))
        fail_msg("%s", err.message);
    pith_model_close(model);
}

static int32_t collect(void *user, const void *text, size_t size) {
    char *all = user;
    const size_t used = strlen(all);
    assert_true(used + size < 4096);
    memcpy(all + used, text, size);
    all[used + size] = 0;
    return 0;
}

static void statistics(void **state) {
    (void)state;
    char all[4096] = "";
    pith_statistics s = PITH_STATISTICS_INIT;
    s.pool_hits = 1;
    s.pool_misses = 3;
    assert_int_equal(
        pith_statistics_write(&s, PITH_STATISTICS_JSON, &(pith_writer){ collect, NULL, all }, NULL),
        PITH_OK);
    assert_non_null(strstr(all, "\"pool_hit_ratio\": 0.25"));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(printed), cmocka_unit_test(cast),
                                        cmocka_unit_test(gguf), cmocka_unit_test(statistics) };
    return cmocka_run_group_tests(tests, set_comma, unset_comma);
}
