/* The call context: every way to stop ends opening, runs, exports, quantisation, optimisation and
 * conversion, and handles stay usable; a host's pool gives the same bits as the library's threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "formats/onnx/onnx_text.h"
#include "support/source_test.h"
#include "pith/pith.h"

enum { ROWS = 96, K = 160, N = 192 };

#define MODEL PITH_TEST_DATA "/models/bert-base-script17-sdpa/model.onnx"

static pith__wire_build file;
static pith__arena arena;

/* A product, its softmax along the other axis, and a map: parts of several kinds. */
static int make_file(void **state) {
    static const char text[] = "<ir_version: 9, opset_import: [\"\": 21]> "
                               "g (float[96,160] x, float[160,192] w) => (float[96,192] y, "
                               "float[96,192] z) { m = MatMul (x, w) y = Softmax <axis = 0> (m) "
                               "z = Erf (m) }";
    pith_error err = PITH_ERROR_INIT;
    (void)state;
    file = (pith__wire_build){ .allocator = &pith__allocator_default };
    pith__arena_init(&arena, NULL);
    if (pith__onnx_parse(&file, (pith_str){ text, sizeof text - 1 }, NULL, &arena, &err))
        fail_msg("%s", err.message);
    return 0;
}

static int free_file(void **state) {
    (void)state;
    pith__wire_build_free(&file);
    pith__arena_free(&arena);
    return 0;
}

typedef struct inputs {
    float x[ROWS * K], w[K * N];
} inputs;

typedef struct results {
    float y[ROWS * N], z[ROWS * N];
} results;

static inputs given;

static void fill_inputs(void) {
    uint32_t seed = 7;
    float *all = (float *)&given;
    for (size_t i = 0; i < sizeof given / sizeof *all; i++) {
        seed = seed * 1664525 + 1013904223;
        all[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
}

static pith_status run(results *got, pith_session *session, const pith_call *call,
                       pith_error *err) {
    const char *const names[] = { "x", "w" };
    const pith_tensor in[] = {
        { .data = given.x,
          .bytes = sizeof given.x,
          .dtype = PITH_F32,
          .rank = 2,
          .dims = { ROWS, K } },
        { .data = given.w,
          .bytes = sizeof given.w,
          .dtype = PITH_F32,
          .rank = 2,
          .dims = { K, N } },
    };
    pith_tensor out[2];
    pith_run_options o = PITH_RUN_OPTIONS_INIT;
    const size_t size = o.call.size;
    o.call = *call;
    o.call.size = size;
    const pith_status status = pith_session_run(session, out, names, in, 2, &o, err);
    if (status) return status;
    memcpy(got->y, out[0].data, sizeof got->y);
    memcpy(got->z, out[1].data, sizeof got->z);
    return PITH_OK;
}

/* In reverse, or in order; never at the same time. */
static void host_run(void *user, void (*task)(void *context, size_t part), void *context,
                     size_t parts, int32_t width) {
    int *runs = user;
    (void)width;
    ++*runs;
    for (size_t i = 0; i < parts; i++) task(context, *runs % 2 ? i : parts - 1 - i);
}

static pith_session *open_session(pith_model **model) {
    pith_error err = PITH_ERROR_INIT;
    pith_session *session;
    if (pith_model_open_memory(model, file.bytes, file.size, NULL, &err) ||
        pith_session_create(&session, *model, &err))
        fail_msg("%s", err.message);
    return session;
}

static int32_t say(void *user) {
    int *left = user;
    return --*left < 0;
}

static void same_bits(void **state) {
    (void)state;
    static results first, got;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_session *session = open_session(&model);
    pith_call call = PITH_CALL_INIT;
    int runs = 0, left = 1 << 30;
    const pith_executor executor = { host_run, &runs };
    call.threads = 1;
    assert_int_equal(run(&first, session, &call, &err), PITH_OK);
    for (int way = 0; way < 4; way++) {
        if (way == 2) assert_int_equal(pith_set_executor(&executor, &err), PITH_OK);
        call.stop = way % 2 ? say : NULL; /* which cuts steps into other parts */
        call.user = &left;
        for (int threads = 1; threads <= 5; threads++) {
            call.threads = threads;
            memset(&got, 0, sizeof got);
            assert_int_equal(run(&got, session, &call, &err), PITH_OK);
            assert_memory_equal(&got, &first, sizeof got);
        }
    }
    assert_true(runs > 0);
    assert_int_equal(pith_set_executor(NULL, &err), PITH_OK);
    assert_int_equal(pith_stop_threads(&err), PITH_OK);
    assert_int_equal(run(&got, session, &call, &err), PITH_OK);
    assert_memory_equal(&got, &first, sizeof got);
    pith_session_destroy(session);
    pith_model_close(model);
}

/* way 0: the flag; 1: the deadline; 2: the function. */
static pith_status stop_by(pith_call *call, int way) {
    static const volatile int set = 1;
    static int left;
    const pith_call none = PITH_CALL_INIT;
    const size_t size = call->size;
    *call = none;
    call->size = size;
    left = 0;
    if (way == 0) call->cancel = &set;
    if (way == 1) call->deadline_ns = pith_clock_now();
    if (way == 2) call->stop = say, call->user = &left;
    return way == 1 ? PITH_ERR_DEADLINE : PITH_ERR_CANCELLED;
}

static void runs_stop(void **state) {
    (void)state;
    static results got;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_session *session = open_session(&model);
    for (int way = 0; way < 3; way++)
        for (int threads = 1; threads <= 4; threads += 3) {
            pith_call call = PITH_CALL_INIT, none = PITH_CALL_INIT;
            const pith_status expected = stop_by(&call, way);
            call.threads = threads;
            assert_int_equal(run(&got, session, &call, &err), expected);
            assert_int_equal(err.code, expected);
            assert_int_equal(run(&got, session, &none, &err), PITH_OK);
        }
    pith_session_destroy(session);
    pith_model_close(model);
}

static void opening_stops(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    for (int way = 0; way < 3; way++) {
        pith_open_options o = PITH_OPEN_OPTIONS_INIT;
        pith_model *model;
        const pith_status expected = stop_by(&o.call, way);
        assert_int_equal(pith_model_open(&model, MODEL, &o, &err), expected);
        assert_int_equal(pith_model_open_memory(&model, file.bytes, file.size, &o, &err), expected);
    }
}

static int32_t count_bytes(void *user, const void *data, size_t size) {
    (void)data;
    *(size_t *)user += size;
    return 0;
}

static void other_forms_stop(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    for (int way = 0; way < 3; way++) {
        size_t size = 0;
        const pith_writer writer = { count_bytes, NULL, &size };
        pith_export_options e = PITH_EXPORT_OPTIONS_INIT;
        pith_optimize_options o = PITH_OPTIMIZE_OPTIONS_INIT;
        pith_quantize_model_options q = PITH_QUANTIZE_MODEL_OPTIONS_INIT;
        pith_convert_options c = PITH_CONVERT_OPTIONS_INIT;
        pith_status expected = stop_by(&e.call, way);
        assert_int_equal(
            WITH_SOURCE(MODEL, 0, pith_source_export(source, &e, &writer, NULL, NULL, &err)),
            expected);
        expected = stop_by(&o.call, way);
        assert_int_equal(
            WITH_SOURCE(MODEL, 0, pith_source_optimize(source, &o, &writer, NULL, NULL, &err)),
            expected);
        expected = stop_by(&q.call, way);
        assert_int_equal(
            WITH_SOURCE(MODEL, 0, pith_source_quantize(source, &q, &writer, NULL, NULL, &err)),
            expected);
        expected = stop_by(&c.call, way);
        assert_int_equal(WITH_SOURCE(MODEL, PITH_SOURCE_FILE,
                                     pith_source_convert(source, &c, &writer, NULL, &err)),
                         expected);
        assert_int_equal(size, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(runs_stop),
        cmocka_unit_test(opening_stops),
        cmocka_unit_test(other_forms_stop),
    };
    fill_inputs();
    return cmocka_run_group_tests(tests, make_file, free_file);
}
