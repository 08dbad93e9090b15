/* test_onnx_text.c - ONNX's text syntax: what faults say and where, damaged texts, memory that runs
 * out; and decimal numbers. What onnx.parser and onnx.printer make of the same models is in
 * tests/comparisons/compare_text.py. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/formats/decimal.h"
#include "base/str.h"
#include "support/failing_alloc.h"
#include "formats/onnx/onnx_text.h"
#include "support/source_test.h"
#include "pith/pith.h"

/* Everything the syntax has. */
static const char whole[] =
    "<\n"
    "  ir_version: 10, opset_import: [\"\": 21, \"com.microsoft\": 1], producer_name: \"a "
    "\\\"b\\\" \\\\\",\n"
    "  model_version: -3, metadata_props: [\"k\": \"v\", \"\": \"\"] # a comment\n"
    ">\n"
    "main (float[N, \"a b\", ?, 2] x, seq(optional(float[])) s = , map(int64, string) m) => (y)\n"
    "<float[2] w = {1.5, -nan}, int4[3] q = {18, 3}, string[2] t = {\"a\", \"\"}, bool b, "
    "double[1] e = [\"location\": "
    "\"f\"]>\n"
    "{\n"
    "  [n1] a, \"/b\" = com.microsoft.Op:v2 <i: int = -1, f = 2.5, fs: floats = [1, inf], g: graph "
    "= sub () => (z) { z "
    "= Neg (x) },\n"
    "    t: tensor = float16[1] c {15360}, tp: type_proto = float[1], none: ints = [], ts: tensors "
    "= [float {1}, int32 "
    "{2}]> (x, , y)\n"
    "  y = Add (a, w) <ref: int = @p>\n"
    "}\n"
    "<domain: \"d\", opset_import: [\"\": 21]> fn <p, q: int = 3> (float x, y) => (z) <float z> { "
    "z = Add (x, y) }\n";

typedef struct parsed {
    pith__arena scratch;
    pith__wire_build model;
    pith_error err;
    pith_status status;
} parsed;

static void parse_with(parsed *p, const char *text, size_t size, const pith_allocator *allocator) {
    *p = (parsed){ .model.allocator = allocator, .err = PITH_ERROR_INIT };
    pith__arena_init(&p->scratch, allocator);
    p->status = pith__onnx_parse(&p->model, (pith_str){ text, size }, NULL, &p->scratch, &p->err);
}

static void parsed_free(parsed *p) {
    pith__wire_build_free(&p->model);
    pith__arena_free(&p->scratch);
}

typedef struct gathered {
    char *text;
    size_t size;
} gathered;

static int32_t gather(void *user, const void *data, size_t size) {
    gathered *g = user;
    g->text = realloc(g->text, g->size + size);
    assert_non_null(g->text);
    memcpy(g->text + g->size, data, size);
    g->size += size;
    return 0;
}

static pith_status print_with(gathered *g, pith_str model, const pith_allocator *allocator,
                              pith_error *err) {
    pith__arena scratch;
    *g = (gathered){ NULL, 0 };
    const pith_writer writer = { gather, NULL, g };
    pith__syntax_sink sink = { .out = { &writer, false } };
    pith__arena_init(&scratch, allocator);
    pith_status status = pith__onnx_print(&sink, model, &scratch, err);
    pith__arena_free(&scratch);
    if (!status) assert_int_equal(sink.size, g->size);
    if (status) assert_int_equal(g->size, 0); /* all faults come before the first byte */
    return status;
}

static const char *valid_text(char *buffer, size_t size) {
    /* `whole` with its one fault put right: an input's default needs a tensor. */
    snprintf(buffer, size, "%s", whole);
    char *fault = strstr(buffer, "s = ,");
    memmove(fault + 2, fault + 4, strlen(fault + 4) + 1);
    return buffer;
}

static void test_whole(void **state) {
    (void)state;
    char text[sizeof whole];
    parsed p, again;
    gathered g;
    pith_error err = PITH_ERROR_INIT;
    valid_text(text, sizeof text);
    parse_with(&p, text, strlen(text), &pith__allocator_default);
    assert_string_equal(p.err.message, "");
    assert_int_equal(p.status, PITH_OK);
    assert_int_equal(
        print_with(&g, (pith_str){ p.model.bytes, p.model.size }, &pith__allocator_default, &err),
        PITH_OK);
    assert_true(pith__onnx_is_text((pith_str){ g.text, g.size }));
    assert_false(pith__onnx_is_text((pith_str){ p.model.bytes, p.model.size }));
    parse_with(&again, g.text, g.size, &pith__allocator_default);
    assert_int_equal(again.status, PITH_OK);
    gathered second;
    assert_int_equal(print_with(&second, (pith_str){ again.model.bytes, again.model.size },
                                &pith__allocator_default, &err),
                     PITH_OK);
    assert_int_equal(second.size, g.size);
    assert_memory_equal(second.text, g.text, g.size);
    free(g.text);
    free(second.text);
    parsed_free(&p);
    parsed_free(&again);
}

static void expect(const char *text, const char *message) {
    parsed p;
    parse_with(&p, text, strlen(text), &pith__allocator_default);
    assert_int_not_equal(p.status, PITH_OK);
    assert_int_equal(p.status, p.err.code);
    assert_string_equal(p.err.message, message);
    parsed_free(&p);
}

#define GRAPH(inside) "g (float[2] x) => (float[2] y) {\n  y = Op " inside "\n}"

static void test_faults(void **state) {
    (void)state;
    expect(
        whole,
        "line 5, column 58: a tensor with values needs a type with all sizes, such as float[2,3]");
    expect("", "line 1, column 1: the graph's name is expected, but the text ends");
    expect("<ir_version: 1.5> g () => () {}", "line 1, column 14: an integer is expected, not '1'");
    expect("<ir_version: 9223372036854775808> g () => () {}",
           "line 1, column 14: 9223372036854775808 is no integer of 64 bits");
    expect("<version: 1> g () => () {}",
           "line 1, column 2: ir_version or another field of a model is expected, not 'version'");
    expect("<opset_import: [\"\" 1]> g () => () {}", "line 1, column 20: ':' is expected, not '1'");
    expect("g () => () {", "line 1, column 13: '}' is expected, but the text ends");
    expect("g () = > () {}", "line 1, column 6: '=>' is expected, not '='");
    expect("g () => ()\n{ y = (x) }", "line 2, column 7: an operator is expected, not '('");
    expect("g () => () { y = a. Op (x) }",
           "line 1, column 20: there is a space in an operator's name");
    expect("g () => () { \"y = Op (x) }", "line 1, column 14: this string does not end");
    expect(GRAPH("<a: number = 1> (x)"), "line 2, column 14: the type of an attribute, such as int "
                                         "or floats is expected, not 'number'");
    expect(GRAPH("<a: int = 1.5> (x)"),
           "line 2, column 20: this is of type float, and the attribute of type int");
    expect(GRAPH("<a = []> (x)"),
           "line 2, column 17: an empty list needs its type, such as ': ints' before the '='");
    expect(GRAPH("<a = [1, 2.5]> (x)"),
           "line 2, column 19: this is of type float, and the attribute of type int");
    expect(GRAPH("<a = 1e99> (x)"), "line 2, column 15: 1e99 is no number of type float");
    expect(GRAPH("<a = 1e> (x)"), "line 2, column 15: 1e is no number of type float");
    expect(GRAPH("<a = -> (x)"), "line 2, column 15: a value is expected, not '-'");
    expect(GRAPH("<a = float[2] {1}> (x)"),
           "line 2, column 25: the tensor has 1 values, but its shape needs 2");
    expect(
        GRAPH("<a = float[N] {1}> (x)"),
        "line 2, column 24: a tensor with values needs a type with all sizes, such as float[2,3]");
    expect(GRAPH("<a = int8[1] {128}> (x)"), "line 2, column 24: this number is beyond int8");
    expect(GRAPH("<a = uint8[1] {256}> (x)"), "line 2, column 25: this number is beyond uint8");
    expect(GRAPH("<a = float[-1] t {}> (x)"), "line 2, column 28: impossible shape of a tensor");
    expect(GRAPH("<a = float[1] t = ...> (x)"),
           "line 2, column 28: '...' stands for values that the printer left out");
    expect(GRAPH("<a: tensor = float[1,1,1,1,1,1,1,1,1,1,1,1,1] {1}> (x)"),
           "line 2, column 56: a tensor of more than 12 dimensions");
    expect("g (seq(what) x) => () {}", "line 1, column 8: a type is expected, not 'what'");
    expect("g (map(seq, float) x) => () {}",
           "line 1, column 8: the type of a map's keys is expected, not 'seq'");
    expect("g () => () {} f", "line 1, column 16: '(' is expected, but the text ends");
}

static void test_depth(void **state) {
    (void)state;
    static char text[1 << 16];
    size_t n = 0;
    n += (size_t)sprintf(text + n, "g (");
    for (int i = 0; i < 10000; i++) n += (size_t)sprintf(text + n, "seq(");
    expect(text, "line 1, column 128: graphs and types are nested more than 32 deep");
    n = (size_t)sprintf(text, "g () => () { ");
    for (int i = 0; i < 40; i++) n += (size_t)sprintf(text + n, "= If () <a = g () => () {");
    parsed p;
    parse_with(&p, text, n, &pith__allocator_default);
    assert_int_equal(p.status, PITH_ERR_UNSUPPORTED);
    parsed_free(&p);
}

/* Cut short anywhere, and with each byte changed: an error with its place, or a model that can be
 * written again. */
static void test_damaged(void **state) {
    (void)state;
    static const char bytes[] = { 0, ' ', '"', '<', '[', '}', '9', 'e', ',', '=', '@', '\x80' };
    char text[sizeof whole], copy[sizeof whole];
    size_t size = strlen(valid_text(text, sizeof text)), good = 0;
    for (size_t i = 0; i < size; i++)
        for (size_t b = 0; b <= sizeof bytes; b++) {
            parsed p;
            gathered g;
            pith_error err = PITH_ERROR_INIT;
            memcpy(copy, text, size);
            if (b < sizeof bytes) copy[i] = bytes[b];
            parse_with(&p, copy, b < sizeof bytes ? size : i, &pith__allocator_default);
            if (p.status) assert_memory_equal(p.err.message, "line ", 5);
            if (!p.status) {
                pith_status status = print_with(&g, (pith_str){ p.model.bytes, p.model.size },
                                                &pith__allocator_default, &err);
                assert_true(!status || status == PITH_ERR_UNSUPPORTED);
                free(g.text);
                good++;
            }
            parsed_free(&p);
        }
    assert_true(good > size);
}

static void test_memory(void **state) {
    (void)state;
    char text[sizeof whole];
    size_t size = strlen(valid_text(text, sizeof text));
    for (long at = 1;; at++) {
        counter c = { .fail_at = at };
        const pith_allocator allocator = { count_alloc, count_free, &c };
        parsed p;
        parse_with(&p, text, size, &allocator);
        const bool failed = p.status != PITH_OK;
        if (failed) assert_int_equal(p.status, PITH_ERR_MEMORY);
        if (!failed) {
            gathered g;
            pith_error err = PITH_ERROR_INIT;
            pith_status status =
                print_with(&g, (pith_str){ p.model.bytes, p.model.size }, &allocator, &err);
            assert_true(!status || status == PITH_ERR_MEMORY);
            free(g.text);
        }
        parsed_free(&p);
        assert_int_equal(c.live, 0);
        if (c.calls < at) break;
        assert_true(at < 100);
    }
}

static void test_decimal(void **state) {
    (void)state;
    static const struct {
        float x;
        const char *text;
    } cases[] = { { 0.1F, "0.1" },
                  { 1, "1" },
                  { -0.0F, "-0" },
                  { 1e6F, "1000000" },
                  { 16777216, "16777216" },
                  { 1e9F, "1e+09" },
                  { 1.5e-5F, "1.5e-05" },
                  { 0.00012F, "0.00012" },
                  { 1e-45F, "1e-45" },
                  { 3.4e38F, "3.4e+38" },
                  { NAN, "nan" },
                  { -INFINITY, "-inf" },
                  { 0.33333334F, "0.33333334" } };
    pith__decimal d;
    pith_error err = PITH_ERROR_INIT;
    char text[PITH_DECIMAL_CHARS];
    assert_int_equal(pith__decimal_begin(&d, &err), PITH_OK);
    /* where there is one, the point is a comma */
    const char *locale = setlocale(LC_ALL, "de_DE.UTF-8");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(pith__decimal_put_f32(&d, text, cases[i].x), strlen(cases[i].text));
        assert_string_equal(text, cases[i].text);
    }
    uint32_t bits = 1;
    for (int i = 0; i < 2000000; i++) {
        float x, back;
        double y = 0, twice;
        bits = bits * 1664525 + 1013904223;
        memcpy(&x, &bits, sizeof x);
        if (i % 4 == 0) x = (float)(int32_t)bits * 0x1p-33F; /* as weights are */
        if (isnan(x)) continue;
        size_t size = pith__decimal_put_f32(&d, text, x);
        assert_true(size < PITH_DECIMAL_CHARS && text[size] == 0);
        assert_true(pith__decimal_get_f32(&d, &back, text));
        assert_memory_equal(&back, &x, sizeof x);
        if (i % 100) continue;
        y = (double)x * 1.0000000123;
        assert_true(pith__decimal_put_f64(&d, text, y) < PITH_DECIMAL_CHARS);
        assert_true(isinf(y) || pith__decimal_get_f64(&d, &twice, text));
        if (!isinf(y)) assert_memory_equal(&twice, &y, sizeof y);
    }
    float x;
    double y;
    static const char *const wrong[] = { "",   "-",      "1,5",   "0x1", "+1",   " 1",
                                         "1 ", "nan(1)", "1e400", "e5",  "infx", "1.5.5" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(pith__decimal_get_f32(&d, &x, wrong[i]));
        assert_false(pith__decimal_get_f64(&d, &y, wrong[i]));
    }
    assert_true(pith__decimal_get_f32(&d, &x, "-Infinity") && x == -INFINITY);
    if (locale) setlocale(LC_ALL, "C");
    pith__decimal_end(&d);
}

static int32_t refuse(void *user, const void *data, size_t size) {
    (void)user, (void)data, (void)size;
    return 1;
}

static void test_api(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_convert_options options = PITH_CONVERT_OPTIONS_INIT;
    pith_convert_report report = PITH_CONVERT_REPORT_INIT;
    const char *path = PITH_TEST_DATA "/models/bert-base-script17-sdpa/model.onnx";
    gathered g = { NULL, 0 };
    const pith_writer writer = { gather, NULL, &g }, full = { refuse, NULL, NULL };
    assert_int_equal(WITH_SOURCE(path, PITH_SOURCE_FILE,
                                 pith_source_convert(source, &options, &writer, &report, &err)),
                     PITH_OK);
    assert_int_equal(report.from, PITH_CONVERT_ONNX);
    assert_int_equal(report.to, PITH_CONVERT_TEXT);
    assert_int_equal(report.bytes, g.size);
    free(g.text);
    options.to = PITH_CONVERT_ONNX;
    assert_int_equal(WITH_SOURCE(path, PITH_SOURCE_FILE,
                                 pith_source_convert(source, &options, &writer, NULL, &err)),
                     PITH_ERR_ARGUMENT);
    assert_string_equal(err.message,
                        "pith_convert_options.to: the file is ONNX, not text, already");
    options.to = 3;
    assert_int_equal(WITH_SOURCE(path, PITH_SOURCE_FILE,
                                 pith_source_convert(source, &options, &writer, NULL, &err)),
                     PITH_ERR_ARGUMENT);
    assert_int_equal(
        WITH_SOURCE(path, PITH_SOURCE_FILE, pith_source_convert(source, NULL, &full, NULL, &err)),
        PITH_ERR_IO);
    assert_string_equal(err.message, "the text could not be written");
    assert_int_equal(
        WITH_SOURCE(path, PITH_SOURCE_FILE, pith_source_convert(source, NULL, NULL, NULL, &err)),
        PITH_ERR_ARGUMENT);
    assert_int_equal(WITH_SOURCE("missing.onnx", PITH_SOURCE_FILE,
                                 pith_source_convert(source, NULL, &writer, NULL, &err)),
                     PITH_ERR_NOT_FOUND);
    assert_int_equal(
        WITH_SOURCE(NULL, PITH_SOURCE_FILE, pith_source_convert(source, NULL, &writer, NULL, &err)),
        PITH_ERR_ARGUMENT);
    report.size = 0;
    assert_int_equal(WITH_SOURCE(path, PITH_SOURCE_FILE,
                                 pith_source_convert(source, NULL, &writer, &report, &err)),
                     PITH_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),  cmocka_unit_test(test_faults),
        cmocka_unit_test(test_depth),  cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_decimal),
        cmocka_unit_test(test_api),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
