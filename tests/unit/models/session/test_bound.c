/* test_bound.c - inputs and outputs bound to memory of the caller: where the bits go, what is
 * counted, every mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pith/pith.h"

#define BERT PITH_TEST_DATA "/models/bert-base-script17-sdpa/model.onnx"
#define DEFAULTS                                                                                   \
    PITH_TEST_DATA                                                                                 \
    "/operators/fed_defaults/model.onnx" /* y = x w^2 + b, [2, 3]; w [3], b [1] = 2 */
#define SEQUENCE PITH_TEST_DATA "/control/sequence_insert_at_back.onnx"

typedef struct subject {
    pith_model *model;
    pith_session *session;
    pith_error err;
} subject;

static subject open_subject(const char *path, uint32_t flags) {
    subject s = { .err = PITH_ERROR_INIT };
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    o.flags = flags;
    if (pith_model_open(&s.model, path, &o, &s.err)) fail_msg("%s", s.err.message);
    assert_int_equal(pith_session_create(&s.session, s.model, &s.err), PITH_OK);
    return s;
}

static void close_subject(subject *s) {
    pith_session_destroy(s->session);
    pith_model_close(s->model);
}

static pith_statistics count(const subject *s) {
    pith_statistics n = PITH_STATISTICS_INIT;
    assert_int_equal(pith_model_statistics(&n, s->model, NULL), PITH_OK);
    return n;
}

static void says(const subject *s, pith_status status, const char *text) {
    assert_int_equal(status, PITH_ERR_ARGUMENT);
    if (!strstr(s->err.message, text)) fail_msg("'%s' is not in: %s", text, s->err.message);
}

enum { TEXTS = 2, LENGTH = 7, MOST_INPUTS = 3, MOST_OUTPUTS = 4 };

/* Ids that differ by round, ones for the mask. */
typedef struct feed {
    const char *names[MOST_INPUTS];
    pith_tensor tensors[MOST_INPUTS];
    int64_t data[MOST_INPUTS][TEXTS * LENGTH];
    size_t count;
} feed;

static void fill_feed(feed *f, const pith_model *model, int round) {
    f->count = pith_model_input_count(model);
    assert_true(f->count <= MOST_INPUTS);
    for (size_t i = 0; i < f->count; i++) {
        const pith_port *port = pith_model_input(model, i);
        assert_int_equal(port->dtype, PITH_I64);
        f->names[i] = port->name;
        for (int k = 0; k < TEXTS * LENGTH; k++)
            f->data[i][k] = strstr(port->name, "mask")   ? 1
                            : strstr(port->name, "type") ? 0
                                                         : 5 + (k * 7 + round) % 11;
        f->tensors[i] = (pith_tensor){ .data = f->data[i],
                                       .bytes = sizeof f->data[i],
                                       .dtype = PITH_I64,
                                       .rank = 2,
                                       .dims = { TEXTS, LENGTH } };
    }
}

/* The same bits with everything bound as with nothing bound, with and without kept plans; nothing
 * is copied, and data that changes between runs is seen. */
static void test_same_bits(void **state) {
    (void)state;
    static const uint32_t flags[] = { 0, PITH_OPEN_NO_PLAN_REUSE };
    for (size_t n = 0; n < sizeof flags / sizeof *flags; n++) {
        subject plain = open_subject(BERT, flags[n]), bound = open_subject(BERT, flags[n]);
        pith_tensor expected[MOST_OUTPUTS], got[MOST_OUTPUTS];
        static char memory[MOST_OUTPUTS][1 << 16];
        static feed f;
        size_t outputs = pith_model_output_count(plain.model);
        assert_true(outputs <= MOST_OUTPUTS);
        fill_feed(&f, plain.model, 0);
        for (size_t i = 0; i < f.count; i++)
            assert_int_equal(
                pith_session_bind_input(bound.session, f.names[i], &f.tensors[i], NULL), PITH_OK);
        for (size_t i = 0; i < outputs; i++) {
            const pith_port *port = pith_model_output(bound.model, i);
            pith_tensor t = {
                .data = memory[i], .bytes = sizeof memory[i], .dtype = port->dtype, .rank = -1
            };
            assert_int_equal(pith_session_bind_output(bound.session, port->name, &t, NULL),
                             PITH_OK);
        }
        for (int round = 0; round < 4; round++) {
            fill_feed(&f, plain.model, round);
            pith_model_reset_statistics(bound.model);
            if (pith_session_run(plain.session, expected, f.names, f.tensors, f.count, NULL,
                                 &plain.err))
                fail_msg("%s", plain.err.message);
            if (pith_session_run(bound.session, got, NULL, NULL, 0, NULL, &bound.err))
                fail_msg("%s", bound.err.message);
            for (size_t i = 0; i < outputs; i++) {
                assert_ptr_equal(got[i].data, memory[i]);
                assert_int_equal(got[i].bytes, expected[i].bytes);
                assert_memory_equal(memory[i], expected[i].data, got[i].bytes);
            }
            assert_int_equal(count(&bound).tensors_bound, f.count + outputs);
            assert_int_equal(count(&bound).tensors_copied, 0);
        }
        /* Without bindings the session works as before. */
        pith_session_unbind(bound.session);
        says(&bound, pith_session_run(bound.session, got, NULL, NULL, 0, NULL, &bound.err),
             "missing inputs");
        memset(memory, 0x55, sizeof memory);
        assert_int_equal(
            pith_session_run(bound.session, got, f.names, f.tensors, f.count, NULL, NULL), PITH_OK);
        assert_memory_equal(got[0].data, expected[0].data, got[0].bytes);
        assert_int_equal(memory[0][0], 0x55);
        close_subject(&plain);
        close_subject(&bound);
    }
}

/* Values allocated one by one: the same bits; the outputs are copied to the caller. */
static void test_without_arena(void **state) {
    (void)state;
    subject plain = open_subject(BERT, 0),
            bare = open_subject(BERT, PITH_OPEN_NO_ARENA | PITH_OPEN_NO_PLAN_REUSE);
    pith_tensor expected[MOST_OUTPUTS], got[MOST_OUTPUTS];
    static feed f;
    static float memory[1 << 14];
    const pith_port *port = pith_model_output(bare.model, 0);
    pith_tensor t = { .data = memory, .bytes = sizeof memory, .dtype = port->dtype, .rank = -1 };
    fill_feed(&f, plain.model, 3);
    assert_int_equal(
        pith_session_run(plain.session, expected, f.names, f.tensors, f.count, NULL, NULL),
        PITH_OK);
    for (int round = 0; round < 4; round++) {
        if (round == 2)
            assert_int_equal(pith_session_bind_output(bare.session, port->name, &t, NULL), PITH_OK);
        assert_int_equal(
            pith_session_run(bare.session, got, f.names, f.tensors, f.count, NULL, NULL), PITH_OK);
        for (size_t i = 0; i < pith_model_output_count(plain.model); i++)
            assert_memory_equal(got[i].data, expected[i].data, expected[i].bytes);
        assert_int_equal(count(&bare).tensors_copied, round < 2 ? 0 : round - 1);
    }
    assert_int_equal(count(&bare).buffers_reused + count(&bare).plans_reused, 0);
    assert_int_equal(count(&bare).plans_made, 4);
    close_subject(&plain);
    close_subject(&bare);
}

/* A session that plans the graph again for fed defaults writes to bound memory, too. */
static void test_fed_defaults(void **state) {
    (void)state;
    subject s = open_subject(DEFAULTS, 0);
    float x[6] = { 1, 2, 3, 4, 5, 6 }, w[3] = { 3, 3, 3 }, y[6];
    pith_tensor out,
        tx = { .data = x, .bytes = sizeof x, .dtype = PITH_F32, .rank = 2, .dims = { 2, 3 } },
        tw = { .data = w, .bytes = sizeof w, .dtype = PITH_F32, .rank = 1, .dims = { 3 } };
    pith_tensor ty = {
        .data = y, .bytes = sizeof y, .dtype = PITH_F32, .rank = 2, .dims = { 2, 3 }
    };
    assert_int_equal(pith_session_bind_input(s.session, "x", &tx, &s.err), PITH_OK);
    assert_int_equal(pith_session_bind_input(s.session, "w", &tw, &s.err), PITH_OK);
    assert_int_equal(pith_session_bind_output(s.session, "y", &ty, &s.err), PITH_OK);
    for (int round = 0; round < 3; round++) {
        w[0] = w[1] = w[2] = (float)(round + 3);
        memset(y, 0, sizeof y);
        if (pith_session_run(s.session, &out, NULL, NULL, 0, NULL, &s.err))
            fail_msg("%s", s.err.message);
        assert_ptr_equal(out.data, y);
        for (int i = 0; i < 6; i++) assert_true(y[i] == x[i] * w[0] * w[0] + 2);
    }
    /* One that is given goes before one that is bound. */
    float ones[6] = { 1, 1, 1, 1, 1, 1 };
    const char *name = "x";
    pith_tensor other = {
        .data = ones, .bytes = sizeof ones, .dtype = PITH_F32, .rank = 2, .dims = { 2, 3 }
    };
    assert_int_equal(pith_session_run(s.session, &out, &name, &other, 1, NULL, &s.err), PITH_OK);
    for (int i = 0; i < 6; i++) assert_true(y[i] == w[0] * w[0] + 2);
    close_subject(&s);
}

static void test_mistakes(void **state) {
    (void)state;
    subject s = open_subject(DEFAULTS, 0);
    float x[6] = { 1, 2, 3, 4, 5, 6 }, y[6];
    pith_tensor out,
        good = { .data = x, .bytes = sizeof x, .dtype = PITH_F32, .rank = 2, .dims = { 2, 3 } },
        t = { .data = y, .bytes = sizeof y, .dtype = PITH_F32, .rank = 2, .dims = { 2, 3 } };
    says(&s, pith_session_bind_input(s.session, "z", &good, &s.err),
         "no input 'z'; it has 'x' float32");
    says(&s, pith_session_bind_output(s.session, "z", &t, &s.err),
         "no output 'z'; it has 'y' float32");
    good.dtype = PITH_I32;
    says(&s, pith_session_bind_input(s.session, "x", &good, &s.err),
         "input 'x' is int32; the model needs float32");
    good.dtype = PITH_F32, good.bytes = 20;
    says(&s, pith_session_bind_input(s.session, "x", &good, &s.err),
         "20 bytes of data do not hold the shape [2, 3]");
    good.bytes = sizeof x;
    assert_int_equal(pith_session_bind_input(s.session, "x", &good, &s.err), PITH_OK);
    t.dtype = PITH_F64;
    says(&s, pith_session_bind_output(s.session, "y", &t, &s.err),
         "'y' is float32; the memory bound to it is for float64");
    t.dtype = PITH_STRING;
    says(&s, pith_session_bind_output(s.session, "y", &t, &s.err),
         "tensors of numbers, not for string");
    t.dtype = PITH_F32, t.rank = 13;
    says(&s, pith_session_bind_output(s.session, "y", &t, &s.err), "rank 13");
    t.rank = 2, t.bytes = 23;
    says(&s, pith_session_bind_output(s.session, "y", &t, &s.err),
         "'y': 23 bytes do not hold the shape [2, 3]");
    t.data = NULL, t.bytes = sizeof y;
    says(&s, pith_session_bind_output(s.session, "y", &t, &s.err), "no memory to bind");
    t.data = y, t.bytes = 20, t.rank = -1;
    assert_int_equal(pith_session_bind_output(s.session, "y", &t, &s.err), PITH_OK);
    says(&s, pith_session_run(s.session, &out, NULL, NULL, 0, NULL, &s.err),
         "output 'y' is float32 [2, 3] and needs 24 bytes; the memory bound to it has 20");
    t.bytes = sizeof y, t.rank = 2, t.dims[0] = 3, t.dims[1] = 2;
    assert_int_equal(pith_session_bind_output(s.session, "y", &t, &s.err), PITH_OK);
    says(&s, pith_session_run(s.session, &out, NULL, NULL, 0, NULL, &s.err),
         "output 'y' has shape [2, 3]; the tensor bound to it has [3, 2]");
    assert_int_equal(pith_session_bind_output(s.session, "y", NULL, &s.err), PITH_OK);
    assert_int_equal(pith_session_run(s.session, &out, NULL, NULL, 0, NULL, &s.err), PITH_OK);
    assert_ptr_not_equal(out.data, y);
    assert_int_equal(pith_session_bind_input(s.session, "x", NULL, &s.err), PITH_OK);
    says(&s, pith_session_run(s.session, &out, NULL, NULL, 0, NULL, &s.err), "missing inputs: 'x'");
    close_subject(&s);

    s = open_subject(SEQUENCE, 0);
    t = (pith_tensor){
        .data = y, .bytes = sizeof y, .dtype = PITH_SEQUENCE, .rank = 1, .dims = { 1 }
    };
    says(&s, pith_session_bind_output(s.session, pith_model_output(s.model, 0)->name, &t, &s.err),
         "not for sequence");
    t.dtype = PITH_F32;
    says(&s, pith_session_bind_output(s.session, pith_model_output(s.model, 0)->name, &t, &s.err),
         "is sequence");
    close_subject(&s);
}

/* Two outputs must not share memory; one may lie where an input does, which is read first. */
static void test_shared_memory(void **state) {
    (void)state;
    subject s = open_subject(DEFAULTS, 0);
    float x[6] = { 1, 2, 3, 4, 5, 6 }, first[6];
    pith_tensor out,
        t = { .data = x, .bytes = sizeof x, .dtype = PITH_F32, .rank = 2, .dims = { 2, 3 } };
    assert_int_equal(pith_session_bind_input(s.session, "x", &t, &s.err), PITH_OK);
    assert_int_equal(pith_session_run(s.session, &out, NULL, NULL, 0, NULL, &s.err), PITH_OK);
    memcpy(first, out.data, sizeof first);
    assert_int_equal(pith_session_bind_output(s.session, "y", &t, &s.err), PITH_OK);
    assert_int_equal(pith_session_run(s.session, &out, NULL, NULL, 0, NULL, &s.err), PITH_OK);
    assert_memory_equal(x, first, sizeof x);
    assert_int_equal(count(&s).tensors_copied, 1);
    close_subject(&s);

    s = open_subject(BERT, 0);
    static float both[1 << 14];
    assert_int_equal(pith_model_output_count(s.model), 2);
    t = (pith_tensor){ .data = both, .bytes = sizeof both, .dtype = PITH_F32, .rank = -1 };
    assert_int_equal(
        pith_session_bind_output(s.session, pith_model_output(s.model, 0)->name, &t, &s.err),
        PITH_OK);
    t.data = both + 100, t.bytes = 400;
    says(&s, pith_session_bind_output(s.session, pith_model_output(s.model, 1)->name, &t, &s.err),
         "shares memory");
    close_subject(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),     cmocka_unit_test(test_without_arena),
        cmocka_unit_test(test_fed_defaults),  cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_shared_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
