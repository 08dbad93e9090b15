/* test_inner.c - PITH_OPEN_INNER: what nodes give as outputs; where it is refused; memory that runs
 * out. tests/cli/runtimes.py compares these values with ONNX Runtime's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/failing_alloc.h"
#include "pith/embed.h"
#include "pith/session.h"

#define MODEL PITH_TEST_DATA "/models/bert-base-script17-sdpa/model.onnx"
#define COMPILED PITH_BINARY_DIR "/test_inner.pith"

static pith_open_options inner_options(void) {
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    o.flags = PITH_OPEN_INNER;
    o.optimization = PITH_OPTIMIZATION_NONE;
    return o;
}

/* Values come in the order of nodes; the file's outputs are among them, with the same numbers;
 * texts are refused. */
static void values(void **unused) {
    (void)unused;
    pith_error err = PITH_ERROR_INIT;
    pith_open_options o = inner_options();
    pith_model *inner, *plain;
    pith_session *a, *b;
    assert_int_equal(pith_model_open(&inner, MODEL, &o, &err), PITH_OK);
    o.flags = 0;
    assert_int_equal(pith_model_open(&plain, MODEL, &o, &err), PITH_OK);
    const size_t count = pith_model_output_count(inner), few = pith_model_output_count(plain);
    assert_true(count > 50 && count < 1000 && few < 4);
    int64_t ids[] = { 1, 2, 3, 4, 5, 6 }, ones[] = { 1, 1, 1, 1, 1, 1 };
    const char *names[3];
    pith_tensor inputs[3], all[1000], some[4];
    const size_t given = pith_model_input_count(plain);
    assert_true(given <= 3);
    for (size_t i = 0; i < given; i++) {
        names[i] = pith_model_input(plain, i)->name;
        inputs[i] = (pith_tensor){ .data = strcmp(names[i], "input_ids") ? ones : ids,
                                   .bytes = sizeof ids,
                                   .dtype = PITH_I64,
                                   .rank = 2,
                                   .dims = { 1, 6 } };
    }
    assert_int_equal(pith_session_create(&a, inner, &err), PITH_OK);
    assert_int_equal(pith_session_create(&b, plain, &err), PITH_OK);
    pith_status status = pith_session_run(b, some, names, inputs, given, NULL, &err);
    assert_int_equal(pith_session_run(a, all, names, inputs, given, NULL, &err), status);
    for (size_t i = 0; i < few && !status; i++) {
        size_t k = 0;
        while (k < count &&
               strcmp(pith_model_output(inner, k)->name, pith_model_output(plain, i)->name))
            k++;
        assert_true(k < count);
        assert_int_equal(all[k].bytes, some[i].bytes);
        assert_memory_equal(all[k].data, some[i].data, some[i].bytes);
    }
    assert_int_equal(status, PITH_OK);
    pith_session_destroy(a);
    pith_session_destroy(b);
    pith_model_close(plain);
    float vector[512];
    const pith_str text = { "a", 1 };
    assert_int_equal(pith_embed(vector, inner, &text, 1, NULL, &err), PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "inner values"));
    pith_model_close(inner);
}

static int32_t put(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, user) != size;
}

static void refused(void **unused) {
    (void)unused;
    pith_error err = PITH_ERROR_INIT;
    pith_open_options o = inner_options();
    pith_model *model;
    assert_int_equal(pith_model_open(&model, MODEL, NULL, &err), PITH_OK);
    FILE *file = fopen(COMPILED, "wb");
    assert_non_null(file);
    assert_int_equal(pith_model_save(model, NULL, &(pith_writer){ put, NULL, file }, &err),
                     PITH_OK);
    fclose(file);
    pith_model_close(model);
    assert_int_equal(pith_model_open(&model, COMPILED, &o, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "a compiled model has no inner values"));
    remove(COMPILED);
    assert_int_equal(pith_model_open(&model, PITH_TEST_DATA "/hf/bert", &o, &err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "another format"));
    o.optimization = 1;
    assert_int_equal(pith_model_open(&model, MODEL, &o, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "optimization PITH_OPTIMIZATION_NONE"));
}

static void memory_runs_out(void **unused) {
    (void)unused;
    counter memory = { .fail_at = 0 };
    pith_allocator allocator = { count_alloc, count_free, &memory };
    pith_error err = PITH_ERROR_INIT;
    pith_open_options o = inner_options();
    pith_model *model;
    int failures = 0;
    o.call.allocator = &allocator;
    o.pool_blocks = -1;
    for (;; failures++) {
        const long before = memory.calls;
        memory.fail_at = before + failures + 1;
        pith_status status = pith_model_open(&model, MODEL, &o, &err);
        memory.fail_at = 0;
        if (!status) break;
        assert_int_equal(status, PITH_ERR_MEMORY);
        assert_int_equal(memory.live, 0);
    }
    assert_true(failures > 5);
    pith_model_close(model);
    assert_int_equal(memory.live, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(refused),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
