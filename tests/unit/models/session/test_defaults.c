/* test_defaults.c - inputs with a default that sessions feed other values: each session for itself,
 * the model and its plan as they were; in a compiled model an error; every failed allocation an
 * error that leaves the session usable. What is computed is compared by `pith verify` over
 * tests/data/operators/fed_defaults. */
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/failing_alloc.h"
#include "pith/pith.h"

#define MODEL                                                                                      \
    PITH_TEST_DATA                                                                                 \
    "/operators/fed_defaults/model.onnx" /* y = x w^2 + b, [2, 3]; w [3], b [1] = 2 */

static pith_tensor floats(float *data, int64_t n) {
    return (pith_tensor){
        .data = data, .bytes = (size_t)n * 4, .dtype = PITH_F32, .rank = 1, .dims = { n }
    };
}

/* y of x = 1, and of w and b where they are not NULL; w [3], b [1]. */
static pith_status run_session(pith_session *session, float y[6], float *w, float *b,
                               pith_error *err) {
    float ones[6] = { 1, 1, 1, 1, 1, 1 };
    const char *names[3] = { "x" };
    pith_tensor in[3] = { floats(ones, 3) }, out;
    size_t count = 1;
    in[0].rank = 2, in[0].bytes = 24, in[0].dims[0] = 2, in[0].dims[1] = 3;
    if (w) names[count] = "w", in[count++] = floats(w, 3);
    if (b) names[count] = "b", in[count++] = floats(b, 1);
    pith_status status = pith_session_run(session, &out, names, in, count, NULL, err);
    if (!status) memcpy(y, out.data, 24);
    return status;
}

static pith_model *open_model(const pith_open_options *options) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    if (pith_model_open(&model, MODEL, options, &err)) fail_msg("%s", err.message);
    return model;
}

typedef struct user {
    const pith_model *model;
    float w;
    bool good;
} user;

static void *feed_often(void *context) {
    user *u = context;
    pith_session *session;
    pith_error err = PITH_ERROR_INIT;
    float y[6], w[3] = { u->w, u->w, u->w }, b = -u->w;
    u->good = !pith_session_create(&session, u->model, &err);
    for (int i = 0; u->good && i < 50; i++) {
        u->good = !run_session(session, y, w, i % 3 ? &b : NULL, &err);
        for (int k = 0; k < 6; k++) u->good &= y[k] == u->w * u->w + (i % 3 ? b : 2);
    }
    pith_session_destroy(session);
    return NULL;
}

static void test_threads_feed_their_own(void **state) {
    (void)state;
    pthread_t threads[4];
    user users[4];
    pith_model *model = open_model(NULL);
    for (int i = 0; i < 4; i++) {
        users[i] = (user){ model, (float)(i + 2), false };
        assert_int_equal(pthread_create(&threads[i], NULL, feed_often, &users[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_true(users[i].good);
    }
    pith_model_close(model);
}

/* The model's own plan runs again once nothing is fed, and takes a default's own value. */
static void test_defaults_come_back(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_session *session;
    float first[6], y[6], w[3] = { 9, 9, 9 }, two = 2;
    pith_model *model = open_model(NULL);
    assert_int_equal(pith_session_create(&session, model, &err), PITH_OK);
    assert_int_equal(run_session(session, first, NULL, NULL, &err), PITH_OK);
    size_t before = pith_model_bytes(model, NULL);
    assert_int_equal(run_session(session, y, NULL, &two, &err), PITH_OK);
    assert_memory_equal(y, first, sizeof y);
    assert_int_equal(pith_model_bytes(model, NULL), before); /* no plan was made for that */
    assert_int_equal(run_session(session, y, w, NULL, &err), PITH_OK);
    assert_true(y[0] == 83);
    assert_int_equal(run_session(session, y, NULL, NULL, &err), PITH_OK);
    assert_memory_equal(y, first, sizeof y);
    pith_session_destroy(session);
    pith_model_close(model);
}

typedef struct bytes {
    char *data;
    size_t size;
} bytes;

static int32_t make_room(void *context, uint64_t total) {
    bytes *b = context;
    b->data = aligned_alloc(64, (total + 63) & ~(uint64_t)63);
    return !b->data;
}

static int32_t append(void *context, const void *data, size_t size) {
    bytes *b = context;
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return 0;
}

static void test_compiled_model_refuses(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_session *session;
    bytes file = { NULL, 0 };
    float y[6], two = 2, three = 3;
    pith_model *model = open_model(NULL);
    assert_int_equal(pith_model_save(model, NULL, &(pith_writer){ append, make_room, &file }, &err),
                     PITH_OK);
    pith_model_close(model);
    assert_int_equal(pith_model_open_memory(&model, file.data, file.size, NULL, &err), PITH_OK);
    assert_int_equal(pith_session_create(&session, model, &err), PITH_OK);
    assert_int_equal(run_session(session, y, NULL, &two, &err), PITH_OK);
    assert_int_equal(run_session(session, y, NULL, &three, &err), PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "compiled"));
    assert_int_equal(run_session(session, y, NULL, NULL, &err), PITH_OK);
    pith_session_destroy(session);
    pith_model_close(model);
    free(file.data);
}

static void test_failed_allocations(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_session *session;
    counter c = { 0 };
    pith_allocator allocator = { count_alloc, count_free, &c };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    options.call.allocator = &allocator;
    options.pool_blocks = -1; /* freeing pooled blocks would make up for a failure */
    pith_model *model = open_model(&options);
    float y[6], w[3] = { 3, 3, 3 };
    int failed = 0;
    for (long n = 1;; n++) {
        assert_int_equal(pith_session_create(&session, model, &err), PITH_OK);
        c.fail_at = c.calls + n;
        pith_status status = run_session(session, y, w, NULL, &err);
        bool reached = c.calls >= c.fail_at;
        c.fail_at = 0;
        assert_int_equal(status, reached ? PITH_ERR_MEMORY : PITH_OK);
        failed += reached;
        assert_int_equal(run_session(session, y, w, NULL, &err), PITH_OK);
        assert_true(y[0] == 11);
        pith_session_destroy(session);
        if (!reached) break;
    }
    assert_true(failed > 5);
    pith_model_close(model);
    assert_int_equal(c.live, 0);
}

static char warned[300];

static void keep_warning(void *context, pith_log_level level, const char *text) {
    (void)context, (void)level;
    snprintf(warned, sizeof warned, "%s", text);
}

/* Two inputs [2, seq]: with sizes of their own the model is planned again, with a warning that
 * names both; where it cannot be run so, the error does too. Sizes that agree go on with the
 * model's plan, and strict shapes refuse. */
static void test_names_of_sizes_are_hints(void **state) {
    (void)state;
    static const char path[] = PITH_TEST_DATA "/operators/repeated_symbol_two_inputs/model.onnx";
    const pith_log log = { keep_warning, NULL };
    const char *const names[] = { "X", "Z" };
    for (int strict = 0; strict < 2; strict++) {
        pith_open_options options = PITH_OPEN_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        pith_model *model;
        pith_session *session;
        float data[10] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
        options.call.log = &log;
        options.flags = strict ? PITH_OPEN_STRICT_SHAPES : 0;
        assert_int_equal(pith_model_open(&model, path, &options, &err), PITH_OK);
        assert_int_equal(pith_session_create(&session, model, &err), PITH_OK);
        for (int64_t size = 3; size <= 5; size++) {
            pith_tensor in[2] = { floats(data, 6), floats(data, 2 * size) }, out;
            for (int i = 0; i < 2; i++)
                in[i].rank = 2, in[i].dims[0] = 2, in[i].dims[1] = i ? size : 3;
            warned[0] = 0;
            pith_status status = pith_session_run(session, &out, names, in, 2, NULL, &err);
            assert_int_equal(status, strict && size > 3 ? PITH_ERR_ARGUMENT : PITH_OK);
            const char *said = "input 'Z' has size 4 at axis 1, but input 'X' sets seq to 3";
            assert_int_equal(!strncmp(warned, said, strlen(said)), !strict && size == 4); /* once */
            if (status) assert_non_null(strstr(err.message, "input 'Z' has size"));
        }
        pith_session_destroy(session);
        pith_model_close(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_feed_their_own),   cmocka_unit_test(test_defaults_come_back),
        cmocka_unit_test(test_compiled_model_refuses),   cmocka_unit_test(test_failed_allocations),
        cmocka_unit_test(test_names_of_sizes_are_hints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
