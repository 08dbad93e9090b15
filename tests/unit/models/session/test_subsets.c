/* test_subsets.c - runs of some outputs, runs on the model itself, references to a model, and what
 * a model says of itself. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/onnx/onnx_text.h"
#include "pith/pith.h"
#include "support/failing_alloc.h"

enum { LAYERS = 12, WIDTH = 8, ROWS = 5, OUTPUTS = 4, THREADS = 6 };

#define HEAD                                                                                       \
    "<ir_version: 8, producer_name: \"tests\", producer_version: \"1.5\", domain: \"org.pith\", "  \
    "model_version: 7, doc_string: \"layers\", metadata_props: [\"author\": \"nobody\", "          \
    "\"licence\": \"none\"], opset_import: [\"\" : 17]>\n"

/* Values for one input of strings and one of numbers. */
static const char mixed_text[] =
    HEAD "mixed (float[N] x, string[2] s) => "
         "(seq(float[M]) parts, string[2] same, float[N] twice)\n"
         "{ parts = SplitToSequence<axis = 0>(x)\n same = Identity(s)\n twice = Add(x, x) }";
/* A branch reads what only the first step makes. */
static const char branch_text[] =
    HEAD "branch (float[N] x, bool c) => (float[N] other, float[N] y)\n"
         "{ twice = Add(x, x)\n other = Neg(x)\n y = If(c) <"
         "then_branch = t () => (float[N] a) { a = Abs(twice) }, else_branch = e () => (float[N] "
         "b) { b = Neg(twice) }> }";

static pith__wire_build layers, mixed, branch;

static void make(pith__wire_build *b, const char *text) {
    pith__arena arena;
    pith_error err = PITH_ERROR_INIT;
    pith__arena_init(&arena, &pith__allocator_default);
    b->allocator = &pith__allocator_default;
    if (pith__onnx_parse(b, (pith_str){ text, strlen(text) }, NULL, &arena, &err))
        fail_msg("%s", err.message);
    pith__arena_free(&arena);
}

/* Each layer is MatMul, Add and Tanh; outputs stand after every third. */
static int make_models(void **state) {
    (void)state;
    static char text[1 << 16];
    size_t n = 0;
    n += (size_t)snprintf(text + n, sizeof text - n,
                          HEAD "layers (float[N, %d] h0) => (float[N, %d] h3, float[N, %d] h6, "
                               "float[N, %d] h9, float[N, %d] h12)\n<",
                          WIDTH, WIDTH, WIDTH, WIDTH, WIDTH);
    for (int l = 1; l <= LAYERS; l++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%sfloat[%d, %d] w%d = {",
                              l > 1 ? ", " : "", WIDTH, WIDTH, l);
        for (int i = 0; i < WIDTH * WIDTH; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%.4f", i ? ", " : "",
                                  (double)((i * 37 + l * 11) % 19 - 9) / 16);
        n += (size_t)snprintf(text + n, sizeof text - n, "}, float[%d] b%d = {", WIDTH, l);
        for (int i = 0; i < WIDTH; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%.4f", i ? ", " : "",
                                  (double)(i - 3 + l) / 32);
        n += (size_t)snprintf(text + n, sizeof text - n, "}");
    }
    n += (size_t)snprintf(text + n, sizeof text - n, ">\n{\n");
    for (int l = 1; l <= LAYERS; l++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "m%d = MatMul(h%d, w%d)\na%d = Add(m%d, b%d)\nh%d = Tanh(a%d)\n", l,
                              l - 1, l, l, l, l, l, l);
    snprintf(text + n, sizeof text - n, "}");
    make(&layers, text);
    make(&mixed, mixed_text);
    make(&branch, branch_text);
    return 0;
}

static int free_models(void **state) {
    (void)state;
    pith__wire_build_free(&layers);
    pith__wire_build_free(&mixed);
    pith__wire_build_free(&branch);
    return 0;
}

static pith_model *open_bytes(const pith__wire_build *b, const pith_open_options *o) {
    pith_model *model = NULL;
    pith_error err = PITH_ERROR_INIT;
    if (pith_model_open_memory(&model, b->bytes, b->size, o, &err)) fail_msg("%s", err.message);
    return model;
}

static float input_data[ROWS * WIDTH];
static const char *const input_names[] = { "h0" };

static pith_tensor input(int rows) {
    for (int i = 0; i < ROWS * WIDTH; i++) input_data[i] = (float)(i % 13 - 6) / 8;
    return (pith_tensor){ .data = input_data,
                          .bytes = (size_t)rows * WIDTH * sizeof(float),
                          .dtype = PITH_F32,
                          .rank = 2,
                          .dims = { rows, WIDTH } };
}

static pith_run_options wants(const char *const *names, size_t count) {
    pith_run_options o = PITH_RUN_OPTIONS_INIT;
    o.output_names = names;
    o.output_count = count;
    return o;
}

/* ---- some outputs ---- */

/* Every subset in both orders has the bits of a run of all; more subsets than are remembered. */
static void test_same_bits(void **state) {
    (void)state;
    static const uint32_t flags[] = { 0, PITH_OPEN_NO_ARENA, PITH_OPEN_NO_PLAN_REUSE };
    static const int32_t levels[] = { 0, PITH_OPTIMIZATION_NONE };
    for (size_t f = 0; f < 6; f++) {
        pith_open_options open = PITH_OPEN_OPTIONS_INIT;
        open.flags = flags[f % 3];
        open.optimization = levels[f / 3];
        pith_model *model = open_bytes(&layers, &open);
        pith_session *all, *some;
        pith_error err = PITH_ERROR_INIT;
        assert_int_equal(pith_session_create(&all, model, &err), PITH_OK);
        assert_int_equal(pith_session_create(&some, model, &err), PITH_OK);
        pith_tensor x = input(ROWS), full[OUTPUTS], part[OUTPUTS];
        assert_int_equal(pith_session_run(all, full, input_names, &x, 1, NULL, &err), PITH_OK);
        for (int round = 0; round < 2; round++)
            for (unsigned set = 1; set < 1u << OUTPUTS; set++) {
                const char *names[OUTPUTS];
                size_t places[OUTPUTS], count = 0;
                for (size_t k = 0; k < OUTPUTS; k++) {
                    const size_t i = round ? OUTPUTS - 1 - k : k;
                    if (!(set >> i & 1)) continue;
                    places[count] = i;
                    names[count++] = pith_model_output(model, i)->name;
                }
                pith_run_options o = wants(names, count);
                if (pith_session_run(some, part, input_names, &x, 1, &o, &err))
                    fail_msg("%s", err.message);
                for (size_t k = 0; k < count; k++) {
                    assert_int_equal(part[k].bytes, full[places[k]].bytes);
                    assert_memory_equal(part[k].data, full[places[k]].data, part[k].bytes);
                }
            }
        pith_session_destroy(some);
        pith_session_destroy(all);
        pith_model_close(model);
    }
}

static int32_t count_steps(void *user, const void *data, size_t size) {
    static const char word[] = "\"cat\": \"step\"", tight[] = "\"cat\":\"step\"";
    for (const char *at = data; at < (const char *)data + size; at++) {
        const size_t left = size - (size_t)(at - (const char *)data);
        if ((left >= sizeof word - 1 && !memcmp(at, word, sizeof word - 1)) ||
            (left >= sizeof tight - 1 && !memcmp(at, tight, sizeof tight - 1)))
            ++*(size_t *)user;
    }
    return 0;
}

typedef struct text {
    char *data;
    size_t size;
} text;

static int32_t append(void *user, const void *data, size_t size) {
    text *t = user;
    t->data = realloc(t->data, t->size + size);
    assert_non_null(t->data);
    memcpy(t->data + t->size, data, size);
    t->size += size;
    return 0;
}

static size_t steps_of(pith_session *session, const pith_tensor *x, const char *const *names,
                       size_t wanted) {
    pith_profile *profile;
    pith_tensor outputs[OUTPUTS];
    pith_error err = PITH_ERROR_INIT;
    text record = { NULL, 0 };
    size_t count = 0;
    assert_int_equal(pith_profile_create(&profile, NULL, NULL), PITH_OK);
    pith_run_options o = wants(names, wanted);
    o.call.profile = profile;
    if (pith_session_run(session, outputs, input_names, x, 1, &o, &err))
        fail_msg("%s", err.message);
    const pith_writer writer = { .write = append, .user = &record };
    assert_int_equal(pith_profile_write(profile, NULL, &writer, NULL), PITH_OK);
    count_steps(&count, record.data, record.size);
    free(record.data);
    pith_profile_destroy(profile);
    return count;
}

/* The steps of a run end with the last one that is needed. */
static void test_costs(void **state) {
    (void)state;
    static const int32_t levels[] = { 0, PITH_OPTIMIZATION_NONE };
    for (size_t l = 0; l < 2; l++) {
        pith_open_options open = PITH_OPEN_OPTIONS_INIT;
        open.optimization = levels[l];
        pith_model *model = open_bytes(&layers, &open);
        pith_session *session;
        assert_int_equal(pith_session_create(&session, model, NULL), PITH_OK);
        const pith_tensor x = input(ROWS);
        const size_t all = steps_of(session, &x, NULL, 0);
        const size_t half = steps_of(session, &x, (const char *[]){ "h6" }, 1);
        const size_t last = steps_of(session, &x, (const char *[]){ "h12" }, 1);
        assert_true(all >= LAYERS);
        assert_true(half > 0 && (double)half <= 0.55 * (double)all);
        assert_int_equal(last, all);
        pith_session_destroy(session);
        pith_model_close(model);
    }
}

/* What a branch captures is computed for it. */
static void test_branches(void **state) {
    (void)state;
    pith_model *model = open_bytes(&branch, NULL);
    pith_session *session;
    pith_error err = PITH_ERROR_INIT;
    float data[3] = { 1, -2, 3 };
    bool yes = true;
    const char *const names[] = { "x", "c" };
    const pith_tensor inputs[] = {
        { .data = data, .bytes = sizeof data, .dtype = PITH_F32, .rank = 1, .dims = { 3 } },
        { .data = &yes, .bytes = 1, .dtype = PITH_BOOL }
    };
    assert_int_equal(pith_session_create(&session, model, NULL), PITH_OK);
    pith_tensor y;
    const pith_run_options o = wants((const char *[]){ "y" }, 1);
    for (int round = 0; round < 3; round++) {
        yes = round != 1;
        if (pith_session_run(session, &y, names, inputs, 2, &o, &err)) fail_msg("%s", err.message);
        for (int i = 0; i < 3; i++)
            assert_true(((float *)y.data)[i] ==
                        (yes ? 2 * (data[i] < 0 ? -data[i] : data[i]) : -2 * data[i]));
    }
    pith_session_destroy(session);
    pith_model_close(model);
}

/* A bound output that is not wanted keeps what is there. */
static void test_bound(void **state) {
    (void)state;
    pith_model *model = open_bytes(&layers, NULL);
    pith_session *all, *some;
    pith_error err = PITH_ERROR_INIT;
    float h6[ROWS * WIDTH], h12[ROWS * WIDTH];
    memset(h6, 0x5a, sizeof h6);
    memset(h12, 0x5a, sizeof h12);
    const pith_tensor x = input(ROWS);
    pith_tensor full[OUTPUTS], got[2];
    pith_tensor t = { .bytes = sizeof h6, .dtype = PITH_F32, .rank = 2, .dims = { ROWS, WIDTH } };
    assert_int_equal(pith_session_create(&all, model, NULL), PITH_OK);
    assert_int_equal(pith_session_create(&some, model, NULL), PITH_OK);
    assert_int_equal(pith_session_run(all, full, input_names, &x, 1, NULL, &err), PITH_OK);
    t.data = h6;
    assert_int_equal(pith_session_bind_output(some, "h6", &t, &err), PITH_OK);
    t.data = h12;
    assert_int_equal(pith_session_bind_output(some, "h12", &t, &err), PITH_OK);
    const pith_run_options o = wants((const char *[]){ "h9", "h6" }, 2);
    assert_int_equal(pith_session_run(some, got, input_names, &x, 1, &o, &err), PITH_OK);
    assert_ptr_equal(got[1].data, h6);
    assert_memory_equal(h6, full[1].data, sizeof h6);
    assert_memory_equal(got[0].data, full[2].data, got[0].bytes);
    for (size_t i = 0; i < sizeof h12; i++) assert_int_equal(((unsigned char *)h12)[i], 0x5a);
    pith_session_destroy(some);
    pith_session_destroy(all);
    pith_model_close(model);
}

static void says(pith_session *session, const char *const *names, size_t count, const char *why) {
    const pith_tensor x = input(ROWS);
    pith_tensor outputs[8];
    pith_error err = PITH_ERROR_INIT;
    const pith_run_options o = wants(names, count);
    assert_int_equal(pith_session_run(session, outputs, input_names, &x, 1, &o, &err),
                     PITH_ERR_ARGUMENT);
    if (!strstr(err.message, why)) fail_msg("'%s' is not in: %s", why, err.message);
}

static void test_mistakes(void **state) {
    (void)state;
    pith_model *model = open_bytes(&layers, NULL);
    pith_session *session;
    assert_int_equal(pith_session_create(&session, model, NULL), PITH_OK);
    says(session, (const char *[]){ "h6", "h7" }, 2, "the model has no output 'h7'; it has 'h3'");
    says(session, (const char *[]){ "h6", "h6" }, 2, "output_names: 'h6' is there twice");
    says(session, (const char *[]){ "h3" }, 0, "output_names names no output");
    says(session, NULL, 1, "output_names names no output");
    says(session, (const char *[]){ "h3", "h6", "h9", "h12", "h3" }, 5, "is there twice");
    const pith_tensor x = input(ROWS); /* the session still works */
    assert_true(steps_of(session, &x, (const char *[]){ "h3" }, 1) > 0);
    pith_session_destroy(session);
    pith_model_close(model);
}

/* ---- runs on the model ---- */

typedef struct job {
    const pith_model *model;
    const pith_tensor *x, *expected;
    int which;
} job;

static void *run_many(void *context) {
    const job *j = context;
    for (int round = 0; round < 30; round++) {
        const size_t output = (size_t)(j->which + round) % OUTPUTS;
        const char *name = pith_model_output(j->model, output)->name;
        const pith_run_options o = wants(&name, 1);
        pith_tensor got;
        if (pith_model_run(&got, j->model, input_names, j->x, 1, &o, NULL)) return (void *)1;
        const bool same = got.bytes == j->expected[output].bytes &&
                          !memcmp(got.data, j->expected[output].data, got.bytes);
        pith_tensor_free(&got);
        if (!same || got.data) return (void *)1;
    }
    return NULL;
}

/* More threads than sessions are kept. */
static void test_threads(void **state) {
    (void)state;
    static const int32_t kept[] = { 0, 2, -1 };
    for (size_t k = 0; k < 3; k++) {
        pith_open_options open = PITH_OPEN_OPTIONS_INIT;
        open.sessions = kept[k];
        pith_model *model = open_bytes(&layers, &open);
        pith_error err = PITH_ERROR_INIT;
        const pith_tensor x = input(ROWS);
        pith_tensor full[OUTPUTS];
        if (pith_model_run(full, model, input_names, &x, 1, NULL, &err))
            fail_msg("%s", err.message);
        pthread_t threads[THREADS];
        job jobs[THREADS];
        for (int i = 0; i < THREADS; i++) {
            jobs[i] = (job){ model, &x, full, i };
            assert_int_equal(pthread_create(&threads[i], NULL, run_many, &jobs[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            void *failed;
            assert_int_equal(pthread_join(threads[i], &failed), 0);
            assert_null(failed);
        }
        pith_statistics n = PITH_STATISTICS_INIT;
        assert_int_equal(pith_model_statistics(&n, model, NULL), PITH_OK);
        if (kept[k]) assert_true(n.sessions_idle <= (kept[k] > 0 ? (uint64_t)kept[k] : 0));
        assert_true(n.sessions_made + n.sessions_borrowed >= THREADS * 30 + 1);
        assert_true(n.sessions_evicted + n.sessions_idle == n.sessions_made);
        pith_model_trim(model);
        assert_int_equal(pith_model_statistics(&n, model, NULL), PITH_OK);
        assert_int_equal(n.sessions_idle, 0);
        pith_model_close(model);
        for (size_t i = 0; i < OUTPUTS; i++) { /* they outlive the model */
            assert_int_equal(full[i].bytes, sizeof input_data);
            pith_tensor_free(&full[i]);
        }
    }
    pith_tensor_free(NULL);
}

/* Sequences and strings are copied with all they hold. */
static void test_kinds(void **state) {
    (void)state;
    pith_model *model = open_bytes(&mixed, NULL);
    pith_error err = PITH_ERROR_INIT;
    float data[3] = { 1, 2, 3 };
    char first[] = "one";
    pith_str strings[] = { { first, 3 }, { "", 0 } };
    const char *const names[] = { "x", "s" };
    const pith_tensor inputs[] = {
        { .data = data, .bytes = sizeof data, .dtype = PITH_F32, .rank = 1, .dims = { 3 } },
        { .data = strings, .bytes = sizeof strings, .dtype = PITH_STRING, .rank = 1, .dims = { 2 } }
    };
    pith_tensor got[3];
    counter count = { 0 };
    const pith_allocator allocator = { count_alloc, count_free, &count };
    pith_run_options o = PITH_RUN_OPTIONS_INIT;
    o.call.allocator = &allocator;
    if (pith_model_run(got, model, names, inputs, 2, &o, &err)) fail_msg("%s", err.message);
    first[0] = 'X';
    data[0] = 99;
    pith_model_close(model);
    assert_int_equal(count.live, 3);
    assert_int_equal(got[0].dtype, PITH_SEQUENCE);
    assert_int_equal(got[0].dims[0], 3);
    for (int i = 0; i < 3; i++)
        assert_true(((float *)((pith_tensor *)got[0].data)[i].data)[0] == (float)(i + 1));
    assert_int_equal(((pith_str *)got[1].data)[0].size, 3);
    assert_memory_equal(((pith_str *)got[1].data)[0].data, "one", 3);
    assert_true(((float *)got[2].data)[2] == 6);
    for (int i = 0; i < 3; i++) pith_tensor_free(&got[i]);
    assert_int_equal(count.live, 0);
}

/* Each allocation of a run fails once, the model's and the results' apart. */
static void test_memory(void **state) {
    (void)state;
    for (int own = 0; own < 2; own++) {
        counter c = { 0 }, results = { 0 };
        const pith_allocator allocator = { count_alloc, count_free, &c };
        const pith_allocator other = { count_alloc, count_free, &results };
        pith_open_options open = PITH_OPEN_OPTIONS_INIT;
        open.call.allocator = &allocator;
        open.pool_blocks = -1;
        open.sessions = -1;
        pith_model *model = open_bytes(&layers, &open);
        const pith_tensor x = input(ROWS);
        pith_run_options o = wants((const char *[]){ "h3", "h9" }, 2);
        o.call.allocator = &other;
        counter *failing = own ? &results : &c;
        pith_status status = PITH_ERR_MEMORY;
        for (long at = 1; status && at < 1000; at++) {
            pith_tensor got[2];
            pith_error err = PITH_ERROR_INIT;
            failing->fail_at = failing->calls + at;
            status = pith_model_run(got, model, input_names, &x, 1, &o, &err);
            failing->fail_at = 0;
            if (status) assert_int_equal(status, PITH_ERR_MEMORY);
            for (int i = 0; i < 2; i++) {
                if (status) assert_null(got[i].data);
                pith_tensor_free(&got[i]);
            }
            assert_int_equal(results.live, 0);
        }
        assert_int_equal(status, PITH_OK);
        pith_model_close(model);
        assert_int_equal(c.live, 0);
    }
}

/* ---- references ---- */

static void *close_late(void *model) {
    pith_model_close(model);
    return NULL;
}

/* Sessions, pools and other references are given up in every order. */
static void test_orders(void **state) {
    (void)state;
    enum { HOLDERS = 4 };
    static const int orders[][HOLDERS] = { { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 2, 0, 3, 1 },
                                           { 1, 3, 0, 2 }, { 3, 0, 1, 2 }, { 2, 3, 1, 0 } };
    for (size_t n = 0; n < sizeof orders / sizeof *orders; n++) {
        counter c = { 0 };
        const pith_allocator allocator = { count_alloc, count_free, &c };
        pith_open_options open = PITH_OPEN_OPTIONS_INIT;
        open.call.allocator = &allocator;
        pith_model *model = open_bytes(&layers, &open), *shared = pith_model_share(model);
        pith_session *session, *borrowed;
        pith_session_pool *pool;
        pith_tensor full[OUTPUTS];
        const pith_tensor x = input(ROWS);
        assert_ptr_equal(model, shared);
        assert_int_equal(pith_session_create(&session, model, NULL), PITH_OK);
        assert_int_equal(pith_session_pool_create(&pool, model, NULL, NULL), PITH_OK);
        assert_int_equal(pith_session_pool_borrow(&borrowed, pool, 0, NULL, NULL), PITH_OK);
        pith_session_pool_return(pool, borrowed);
        assert_int_equal(pith_model_run(full, model, input_names, &x, 1, NULL, NULL), PITH_OK);
        for (size_t i = 0; i < OUTPUTS; i++) pith_tensor_free(&full[i]);
        for (int i = 0; i < HOLDERS; i++) {
            assert_true(c.live > 0);
            pthread_t thread;
            switch (orders[n][i]) {
            case 0: pith_model_close(model); break;
            case 1:
                assert_int_equal(pthread_create(&thread, NULL, close_late, shared), 0);
                assert_int_equal(pthread_join(thread, NULL), 0);
                break;
            case 2:
                assert_int_equal(pith_session_run(session, full, input_names, &x, 1, NULL, NULL),
                                 PITH_OK);
                pith_session_destroy(session);
                break;
            default: pith_session_pool_destroy(pool); break;
            }
        }
        assert_int_equal(c.live, 0);
    }
}

/* Threads give up their references at the same time. */
static void test_last(void **state) {
    (void)state;
    for (int round = 0; round < 20; round++) {
        pith_model *model = open_bytes(&layers, NULL);
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, close_late, pith_model_share(model)),
                             0);
        pith_model_close(model);
        for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

/* ---- what a model says of itself ---- */

static void check_info(const pith_model *model) {
    pith_model_info info = PITH_MODEL_INFO_INIT;
    pith_error err = PITH_ERROR_INIT;
    if (pith_model_report(&info, model, &err)) fail_msg("%s", err.message);
    assert_string_equal(info.domain, "org.pith");
    assert_string_equal(info.doc, "layers");
    assert_int_equal(info.version, 7);
    assert_int_equal(info.metadata_count, 2);
    assert_string_equal(info.metadata[0].key, "author");
    assert_string_equal(info.metadata[0].value, "nobody");
    assert_string_equal(info.metadata[1].key, "licence");
    assert_string_equal(pith_model_input(model, 0)->dim_names[0], "N");
    assert_string_equal(pith_model_input(model, 0)->dim_names[1], "");
    assert_string_equal(pith_model_output(model, 3)->dim_names[0], "N");
}

static void test_info(void **state) {
    (void)state;
    pith_model *model = open_bytes(&layers, NULL);
    pith_model_info info = PITH_MODEL_INFO_INIT;
    check_info(model);
    check_info(model);
    assert_int_equal(pith_model_report(&info, model, NULL), PITH_OK);
    assert_string_equal(info.producer, "tests");
    assert_string_equal(info.producer_version, "1.5");
    assert_int_equal(info.ir_version, 8);
    assert_int_equal(info.opset, 17);
    info.size = 0;
    assert_int_equal(pith_model_report(&info, model, NULL), PITH_ERR_ARGUMENT);
    text compiled = { NULL, 0 };
    const pith_writer writer = { .write = append, .user = &compiled };
    assert_int_equal(pith_model_save(model, NULL, &writer, NULL), PITH_OK);
    pith_model_close(model);
    pith__wire_build file = { .bytes = compiled.data, .size = compiled.size };
    model = open_bytes(&file, NULL);
    check_info(model);
    info = (pith_model_info)PITH_MODEL_INFO_INIT;
    assert_int_equal(pith_model_report(&info, model, NULL), PITH_OK);
    assert_string_equal(info.producer, "tests");
    assert_int_equal(info.opset, 17);
    /* and it runs some outputs with the same bits */
    pith_model *written = open_bytes(&layers, NULL);
    const pith_tensor x = input(ROWS);
    const pith_run_options o = wants((const char *[]){ "h6" }, 1);
    pith_tensor a, b;
    assert_int_equal(pith_model_run(&a, model, input_names, &x, 1, &o, NULL), PITH_OK);
    assert_int_equal(pith_model_run(&b, written, input_names, &x, 1, &o, NULL), PITH_OK);
    assert_memory_equal(a.data, b.data, a.bytes);
    pith_tensor_free(&a);
    pith_tensor_free(&b);
    pith_model_close(written);
    pith_model_close(model);
    free(compiled.data);
}

/* To text and back. */
static pith_status convert_twice(const pith_source *source, text *to, pith_error *err) {
    text words = { NULL, 0 };
    const pith_writer first = { .write = append, .user = &words },
                      second = { .write = append, .user = to };
    pith_source *again = NULL;
    pith_status status = pith_source_convert(source, NULL, &first, NULL, err);
    if (!status) status = pith_source_open_memory(&again, words.data, words.size, NULL, err);
    if (!status) status = pith_source_convert(again, NULL, &second, NULL, err);
    pith_source_close(again);
    free(words.data);
    return status;
}

/* What is written of it keeps it, with the producer. */
static void test_exported(void **state) {
    (void)state;
    enum { EXPORT, HALF, OPTIMIZE, QUANTIZE, TEXT, WAYS };
    pith_error err = PITH_ERROR_INIT;
    pith_source *source;
    pith_export_options half = PITH_EXPORT_OPTIONS_INIT;
    half.dtype = PITH_F16;
    if (pith_source_open_memory(&source, layers.bytes, layers.size, NULL, &err))
        fail_msg("%s", err.message);
    for (int way = 0; way < WAYS; way++) {
        text written = { NULL, 0 };
        const pith_writer to = { .write = append, .user = &written };
        pith_status status = PITH_OK;
        switch (way) {
        case EXPORT: status = pith_source_export(source, NULL, &to, NULL, NULL, &err); break;
        case HALF: status = pith_source_export(source, &half, &to, NULL, NULL, &err); break;
        case OPTIMIZE: status = pith_source_optimize(source, NULL, &to, NULL, NULL, &err); break;
        case QUANTIZE: status = pith_source_quantize(source, NULL, &to, NULL, NULL, &err); break;
        default: status = convert_twice(source, &written, &err);
        }
        if (status) fail_msg("way %d: %s", way, err.message);
        pith__wire_build bytes = { .bytes = written.data, .size = written.size };
        pith_model *model = open_bytes(&bytes, NULL);
        pith_model_info info = PITH_MODEL_INFO_INIT;
        check_info(model);
        assert_int_equal(pith_model_report(&info, model, NULL), PITH_OK);
        assert_string_equal(info.producer, "tests");
        assert_string_equal(info.producer_version, "1.5");
        assert_string_equal(info.metadata[1].value, "none");
        pith_model_close(model);
        free(written.data);
    }
    pith_source_close(source);
}

/* What is in sequences, maps and optionals, and the names of dimensions. */
static void test_ports(void **state) {
    (void)state;
    static const char types_text[] =
        "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 3]>\n"
        "types (seq(int64[N]) s, optional(float[N, 3]) o, optional(seq(float[N])) os, "
        "map(string, float) m, float[B, 2] x) => "
        "(seq(int64[N]) same, bool has, float[1, 2] v, seq(map(int64, float)) z, int64 n)\n"
        "{ same = Identity(s)\n has = OptionalHasElement(o)\n "
        "v = ai.onnx.ml.DictVectorizer<string_vocabulary = [\"a\", \"b\"]>(m)\n "
        "z = ai.onnx.ml.ZipMap<classlabels_int64s = [4, 5]>(x)\n "
        "e = OptionalGetElement(os)\n n = SequenceLength(e) }";
    static const struct {
        int32_t dtype, item_dtype;
    } in[] = { { PITH_SEQUENCE, PITH_I64 },
               { PITH_NONE, PITH_F32 },
               { PITH_NONE, PITH_F32 },
               { PITH_SEQUENCE, PITH_MAP_STRING },
               { PITH_F32, 0 } },
      out[] = { { PITH_SEQUENCE, PITH_I64 },
                { PITH_BOOL, 0 },
                { PITH_F32, 0 },
                { PITH_SEQUENCE, PITH_MAP_I64 },
                { PITH_I64, 0 } };
    pith__wire_build types = { .allocator = NULL };
    make(&types, types_text);
    pith_model *model = open_bytes(&types, NULL);
    assert_int_equal(pith_model_input_count(model), 5);
    assert_int_equal(pith_model_output_count(model), 5);
    for (size_t i = 0; i < 5; i++) {
        const pith_port *a = pith_model_input(model, i), *b = pith_model_output(model, i);
        if (a->dtype != in[i].dtype || a->item_dtype != in[i].item_dtype)
            fail_msg("input '%s': %d of %d", a->name, a->dtype, a->item_dtype);
        if (b->dtype != out[i].dtype || b->item_dtype != out[i].item_dtype)
            fail_msg("output '%s': %d of %d", b->name, b->dtype, b->item_dtype);
        for (int d = 0; d < a->rank; d++) assert_non_null(a->dim_names[d]);
    }
    assert_string_equal(pith_model_input(model, 4)->dim_names[0], "B");
    assert_string_equal(pith_model_input(model, 4)->dim_names[1], "");
    assert_int_equal(pith_model_input(model, 3)->dims[0], 2);
    pith_model_close(model);
    pith__wire_build_free(&types);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_costs),
        cmocka_unit_test(test_branches),  cmocka_unit_test(test_bound),
        cmocka_unit_test(test_mistakes),  cmocka_unit_test(test_threads),
        cmocka_unit_test(test_kinds),     cmocka_unit_test(test_memory),
        cmocka_unit_test(test_orders),    cmocka_unit_test(test_last),
        cmocka_unit_test(test_info),      cmocka_unit_test(test_exported),
        cmocka_unit_test(test_ports),
    };
    return cmocka_run_group_tests(tests, make_models, free_models);
}
