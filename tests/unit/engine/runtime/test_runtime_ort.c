/* test_runtime_ort.c - the runtime "ort": libraries that cannot be used, what a library is told,
 * and that nothing is left behind when a call of it fails. The real library is compared in
 * tests/cli/runtimes.py. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "false_ort.h"
#include "pith/pith.h"

#define FALSE_LIBRARY(kind) PITH_BINARY_DIR "/tests/false_ort_" kind ".so"

/* One node, Relu, from X to Y [n]. RELU + NAME is where the operator's name begins. */
static const char relu[] = "\x08\x08\x3a\x35\x0a\x0c\x0a\x01\x58\x12\x01\x59\x22\x04"
                           "Relu"
                           "\x12\x01\x67\x5a\x10\x0a\x01\x58\x12\x0b\x0a\x09\x08\x01\x12\x05\x0a"
                           "\x03\x12\x01\x6e\x62\x10\x0a\x01\x59\x12\x0b"
                           "\x0a\x09\x08\x01\x12\x05\x0a\x03\x12\x01\x6e\x42\x04\x0a\x00\x10\x0e";
enum { NAME = 14, SIZE = sizeof relu - 1 };

static struct {
    int warnings;
    char last[PITH_ERROR_MESSAGE_SIZE];
} heard;

static void hear(void *user, pith_log_level level, const char *message) {
    (void)user;
    if (level != PITH_LOG_WARNING) return;
    heard.warnings++;
    snprintf(heard.last, sizeof heard.last, "%s", message);
}

static const pith_log listener = { hear, NULL };

static pith_open_options open_with(const char *runtime, const pith_runtime_options *how) {
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    o.runtime = runtime;
    o.runtime_options = how;
    o.call.log = &listener;
    memset(&heard, 0, sizeof heard);
    return o;
}

static pith_runtime_options with_library(const char *path) {
    pith_runtime_options how = PITH_RUNTIME_OPTIONS_INIT;
    how.ort_library = path;
    return how;
}

/* y[0] of the model on x = -3: 0 from Relu, 997 from the false library. */
static float run_model(const pith_model *model, int threads, pith_error *err) {
    float x[] = { -3, 5 }, y = -1;
    const char *names[] = { "X" };
    pith_tensor in = { .data = x, .bytes = sizeof x, .dtype = PITH_F32, .rank = 1, .dims = { 2 } },
                out;
    pith_run_options options = PITH_RUN_OPTIONS_INIT;
    pith_session *session;
    options.call.threads = threads;
    if (pith_session_create(&session, model, err)) return -1;
    if (!pith_session_run(session, &out, names, &in, 1, &options, err)) {
        assert_int_equal(out.rank, 1);
        assert_int_equal(out.dims[0], 2);
        assert_int_equal(out.bytes, sizeof x);
        y = ((float *)out.data)[0];
    }
    pith_session_destroy(session);
    return y;
}

static pith_runtime_report report_of(const pith_model *model) {
    pith_runtime_report report = PITH_RUNTIME_REPORT_INIT;
    assert_int_equal(pith_model_runtime(&report, model, NULL), PITH_OK);
    return report;
}

/* ---- libraries that cannot be used ---- */

static void falls_back(const char *path, const char *says) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_runtime_options how = with_library(path);
    pith_open_options o = open_with("ort", &how);
    assert_int_equal(pith_model_open_memory(&model, relu, SIZE, &o, &err), PITH_OK);
    assert_int_equal(heard.warnings, 1);
    assert_non_null(strstr(heard.last, says));
    assert_non_null(strstr(heard.last, path));
    pith_runtime_report report = report_of(model);
    assert_string_equal(report.name, "builtin");
    assert_string_equal(report.requested, "ort");
    assert_int_equal(report.fallback, 1);
    assert_non_null(strstr(report.reason, says));
    assert_string_equal(report.library, "");
    assert_true(run_model(model, 1, &err) == 0);
    pith_model_close(model);

    how.strict = 1;
    o = open_with("ort", &how);
    assert_int_not_equal(pith_model_open_memory(&model, relu, SIZE, &o, &err), PITH_OK);
    assert_non_null(strstr(err.message, says));
    assert_int_equal(heard.warnings, 0);
}

static void unusable(void **unused) {
    (void)unused;
    char path[] = "/tmp/pith-text-XXXXXX.so";
    int file = mkstemps(path, 3);
    assert_true(file >= 0 && write(file, "just a text\n", 12) == 12);
    close(file);
    falls_back("/nonexistent/libonnxruntime.so", "there is no such file");
    falls_back(path, "the loader says: ");
    unlink(path);
    falls_back(FALSE_LIBRARY("symbol"), "has no OrtGetApiBase");
    falls_back(FALSE_LIBRARY("null"), "is too old");
    falls_back(FALSE_LIBRARY("old"), "version 1.3.1 is too old");
}

static void searched(void **unused) {
    (void)unused;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_runtime_options how = PITH_RUNTIME_OPTIONS_INIT;
    how.ort_python = "/nonexistent/environment";
    pith_open_options o = open_with("ort", &how);
    assert_int_equal(pith_model_open_memory(&model, relu, SIZE, &o, &err), PITH_OK);
    pith_model_close(model);
    if (heard.warnings) { /* the loader knows no library here */
        assert_non_null(strstr(heard.last, "/nonexistent/environment (the package onnxruntime)"));
        assert_non_null(strstr(heard.last, PITH_BINARY_DIR "/tests/libonnxruntime.so*"));
        assert_non_null(strstr(heard.last, "the loader says"));
    }
    o = open_with("abacus", NULL);
    assert_int_equal(pith_model_open_memory(&model, relu, SIZE, &o, &err), PITH_ERR_ARGUMENT);
    o = open_with("ort", &how);
    o.precision = PITH_PRECISION_INT8;
    assert_int_equal(pith_model_open_memory(&model, relu, SIZE, &o, &err), PITH_ERR_ARGUMENT);
}

/* ---- a library that works ---- */

static false_ort_state *state_of(const char *path) {
    void *handle = dlopen(path, RTLD_NOW);
    assert_non_null(handle);
    return dlsym(handle, "false_ort_state_now");
}

static void told(void **unused) {
    (void)unused;
    static const char *providers[] = { "tensorrt:trt_fp16_enable=1",
                                       "CUDAExecutionProvider:device_id=1,x=y",
                                       "coreml:MLComputeUnits=ALL",
                                       "directml",
                                       "Other",
                                       "cpu" };
    static const char *settings[] = { "session.intra_op.allow_spinning=0", "a=b=c" };
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    false_ort_state *state = state_of(FALSE_LIBRARY("whole"));
    pith_runtime_options how = with_library(FALSE_LIBRARY("whole"));
    how.providers = providers, how.provider_count = 6;
    how.settings = settings, how.setting_count = 2;
    how.ort_threads = 3;
    how.ort_optimization = 2;
    how.ort_profile = "trace";
    pith_open_options o = open_with("ort", &how);
    state->calls[0] = 0;
    assert_int_equal(pith_model_open_memory(&model, relu, SIZE, &o, &err), PITH_OK);
    memset(&how, 0, sizeof how); /* what opening needs later, it has copied */
    assert_int_equal(heard.warnings, 0);
    assert_string_equal(
        state->calls,
        "level 1\nthreads 3\nEnableProfiling trace\n"
        "config session.intra_op.allow_spinning=0\nconfig a=b=c\n"
        "TensorRT settings trt_fp16_enable=1\nappend TensorRT\n"
        "CUDA settings device_id=1 x=y\nappend CUDA\nappend CoreML MLComputeUnits=ALL\n"
        "append DML\nappend Other\nCreateSessionFromArray 63\n");
    pith_runtime_report report = report_of(model);
    assert_string_equal(report.name, "ort");
    assert_string_equal(report.version, "1.99.0");
    assert_string_equal(report.library, FALSE_LIBRARY("whole"));
    assert_string_equal(report.providers, "tensorrt,CUDA,CoreML,DML,Other,cpu");
    assert_int_equal(report.fallback, 0);

    /* A session per number of threads; the last one serves where there are many. */
    int before = state->sessions;
    assert_true(run_model(model, 3, &err) == 997);
    assert_int_equal(state->sessions, before);
    for (int threads = 1; threads < 20; threads++)
        assert_true(run_model(model, threads, &err) == 997);
    assert_int_equal(state->sessions, before + 7);
    pith_model_close(model);
    assert_int_equal(state->alive, 0);
}

static void from_a_file(void **unused) {
    (void)unused;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    false_ort_state *state = state_of(FALSE_LIBRARY("whole"));
    pith_runtime_options how = with_library(FALSE_LIBRARY("whole"));
    pith_open_options o = open_with("ort", &how);
    state->calls[0] = 0;
    assert_int_equal(
        pith_model_open(&model, PITH_TEST_DATA "/operators/repeated_symbol_question/model.onnx", &o,
                        &err),
        PITH_OK);
    assert_non_null(strstr(state->calls, "CreateSession model.onnx\n"));
    pith_model_close(model);
    assert_int_equal(state->alive, 0);
}

/* Providers that the library lacks: passed over, or, without any left, a reason to fall back. */
static void providers_lacking(void **unused) {
    (void)unused;
    static const char *some[] = { "coreml", "cuda" }, *none[] = { "coreml" },
                      *bad[] = { "cuda:device" };
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    false_ort_state *state = state_of(FALSE_LIBRARY("whole"));
    pith_runtime_options how = with_library(FALSE_LIBRARY("whole"));
    state->unknown = 1;
    how.providers = some, how.provider_count = 2;
    pith_open_options o = open_with("ort", &how);
    assert_int_equal(pith_model_open_memory(&model, relu, SIZE, &o, &err), PITH_OK);
    assert_int_equal(heard.warnings, 1);
    assert_non_null(strstr(heard.last, "the provider CoreML is skipped: "));
    assert_string_equal(report_of(model).providers, "cuda");
    pith_model_close(model);
    how.providers = none, how.provider_count = 1, how.strict = 1;
    o = open_with("ort", &how);
    assert_int_equal(pith_model_open_memory(&model, relu, SIZE, &o, &err), PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "has FalseExecutionProvider"));
    state->unknown = 0;
    how.providers = bad;
    o = open_with("ort", &how);
    assert_int_equal(pith_model_open_memory(&model, relu, SIZE, &o, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(state->alive, 0);
}

/* Each call of the library fails once. The model runs on the builtin engine, or the run fails, and
 * all is released. ort_threads: of the session that opening makes; a run with 2 threads uses it, or
 * makes one. */
static void each_call_fails_with(int ort_threads, int least_failed) {
    static const char *providers[] = { "cuda:a=b" };
    false_ort_state *state = state_of(FALSE_LIBRARY("other"));
    int failed = 0, fell_back = 0;
    for (int at = 1;; at++) {
        pith_error err = PITH_ERROR_INIT;
        pith_model *model;
        pith_runtime_options how = with_library(FALSE_LIBRARY("other"));
        how.providers = providers, how.provider_count = 1;
        how.ort_threads = ort_threads;
        pith_open_options o = open_with("ort", &how);
        state->calls_made = 0;
        state->fail_at = at;
        assert_int_equal(pith_model_open_memory(&model, relu, SIZE, &o, &err), PITH_OK);
        bool builtin = report_of(model).fallback;
        float y = run_model(model, 2, &err);
        bool ended = state->calls_made < at;
        if (!ended && !builtin && y != 997) {
            failed++;
            assert_non_null(strstr(err.message, "was told to fail"));
        }
        if (builtin) {
            fell_back++;
            assert_true(y == 0);
            assert_int_equal(heard.warnings > 0, true);
        }
        pith_model_close(model);
        assert_int_equal(state->alive, 0);
        if (ended) break;
        assert_true(at < 100);
    }
    assert_true(fell_back >= 10);
    assert_true(failed >= least_failed);
    state->fail_at = 0;
}

static void each_call_fails(void **unused) {
    (void)unused;
    each_call_fails_with(2, 8);
    each_call_fails_with(1, 14);
    each_call_fails_with(0, 8); /* as many as the machine has: either */
}

/* ---- which runtime ---- */

static void automatic(void **unused) {
    (void)unused;
    char strange[SIZE];
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_runtime_options how = with_library(FALSE_LIBRARY("whole"));
    pith_open_options o = open_with("auto", &how);
    assert_int_equal(pith_model_open_memory(&model, relu, SIZE, &o, &err), PITH_OK);
    assert_string_equal(report_of(model).name, "builtin");
    assert_string_equal(report_of(model).requested, "auto");
    assert_int_equal(report_of(model).fallback, 0);
    pith_model_close(model);

    memcpy(strange, relu, SIZE);
    memcpy(strange + NAME, "Rolu", 4);
    assert_int_equal(pith_model_open_memory(&model, strange, SIZE, &o, &err), PITH_OK);
    pith_runtime_report report = report_of(model);
    assert_string_equal(report.name, "ort");
    assert_non_null(strstr(report.reason, "Rolu"));
    assert_int_equal(pith_model_input(model, 0)->dtype, PITH_F32);
    assert_true(run_model(model, 1, &err) == 997);
    pith_model_close(model);

    o = open_with("ort", &how);
    assert_int_equal(pith_model_open_memory(&model, strange, SIZE, &o, &err), PITH_OK);
    assert_true(run_model(model, 1, &err) == 997);
    pith_model_close(model);

    how.ort_library = FALSE_LIBRARY("null"); /* neither can: the first reason is told */
    o = open_with("auto", &how);
    assert_int_equal(pith_model_open_memory(&model, strange, SIZE, &o, &err), PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "Rolu"));
    assert_non_null(strstr(err.message, "too old"));
    o = open_with("ort", &how);
    assert_int_equal(pith_model_open_memory(&model, strange, SIZE, &o, &err), PITH_ERR_UNSUPPORTED);
}

/* Two libraries in one process keep apart. */
static void two_libraries(void **unused) {
    (void)unused;
    pith_error err = PITH_ERROR_INIT;
    pith_model *a, *b;
    pith_runtime_options one = with_library(FALSE_LIBRARY("whole")),
                         two = with_library(FALSE_LIBRARY("other"));
    false_ort_state *first = state_of(FALSE_LIBRARY("whole")),
                    *second = state_of(FALSE_LIBRARY("other"));
    assert_ptr_not_equal(first, second);
    pith_open_options o = open_with("ort", &one);
    assert_int_equal(pith_model_open_memory(&a, relu, SIZE, &o, &err), PITH_OK);
    int before = first->sessions, others = second->sessions;
    o = open_with("ort", &two);
    assert_int_equal(pith_model_open_memory(&b, relu, SIZE, &o, &err), PITH_OK);
    assert_int_equal(first->sessions, before);
    assert_int_equal(second->sessions, others + 1);
    assert_true(run_model(a, 1, &err) == 997 && run_model(b, 1, &err) == 997);
    pith_model_close(a);
    pith_model_close(b);
    assert_int_equal(first->alive + second->alive, 0);
}

static volatile int stop;

static void *stop_soon(void *unused) {
    usleep(30000);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    return unused;
}

static void cancelled(void **unused) {
    (void)unused;
    float x = 1;
    const char *names[] = { "X" };
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_session *session;
    pthread_t thread;
    pith_tensor in = { .data = &x, .bytes = sizeof x, .dtype = PITH_F32, .rank = 1, .dims = { 1 } },
                out;
    pith_run_options run = PITH_RUN_OPTIONS_INIT;
    false_ort_state *state = state_of(FALSE_LIBRARY("whole"));
    pith_runtime_options how = with_library(FALSE_LIBRARY("whole"));
    pith_open_options o = open_with("ort", &how);
    assert_int_equal(pith_model_open_memory(&model, relu, SIZE, &o, &err), PITH_OK);
    assert_int_equal(pith_session_create(&session, model, &err), PITH_OK);
    run.call.cancel = &stop;
    state->waits = 1;
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, NULL), 0);
    assert_int_equal(pith_session_run(session, &out, names, &in, 1, &run, &err),
                     PITH_ERR_CANCELLED);
    pthread_join(thread, NULL);
    assert_int_equal(pith_session_run(session, &out, names, &in, 1, &run, &err),
                     PITH_ERR_CANCELLED);
    stop = state->waits = state->fail_at = 0;
    assert_int_equal(pith_session_run(session, &out, names, &in, 1, &run, &err), PITH_OK);
    assert_true(*(float *)out.data == 1001);
    pith_session_destroy(session);
    pith_model_close(model);
    assert_int_equal(state->alive, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unusable),
        cmocka_unit_test(searched),
        cmocka_unit_test(told),
        cmocka_unit_test(from_a_file),
        cmocka_unit_test(providers_lacking),
        cmocka_unit_test(each_call_fails),
        cmocka_unit_test(automatic),
        cmocka_unit_test(two_libraries),
        cmocka_unit_test(cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
