/* operator_models.h - models of one node with an operator of a program, written by the test, and
 * runs of them: through include/pith alone. */
#ifndef PITH_TESTS_UNIT_SUPPORT_OPERATOR_MODELS_H
#define PITH_TESTS_UNIT_SUPPORT_OPERATOR_MODELS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "pith/op.h"
#include "pith/pith.h"

/* ---- models: x of unknown shape and one node, or two ---- */

typedef struct message {
    unsigned char bytes[512];
    size_t size;
} message;

static inline void put_varint(message *m, uint64_t value) {
    for (; value > 127; value >>= 7) m->bytes[m->size++] = (unsigned char)(value | 128);
    m->bytes[m->size++] = (unsigned char)value;
}

static inline void put_number(message *m, int field, int64_t value) {
    put_varint(m, (uint64_t)field << 3);
    put_varint(m, (uint64_t)value);
}

static inline void put(message *m, int field, const void *bytes, size_t size) {
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, size);
    assert_true(m->size + size < sizeof m->bytes);
    memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static inline void put_text(message *m, int field, const char *text) {
    put(m, field, text, strlen(text));
}

static inline void put_float(message *m, int field, float value) {
    put_varint(m, (uint64_t)field << 3 | 5);
    memcpy(m->bytes + m->size, &value, 4);
    m->size += 4;
}

static inline void put_port(message *graph, int field, const char *name, int dtype) {
    message tensor = { .size = 0 }, type = { .size = 0 }, port = { .size = 0 };
    put_number(&tensor, 1, dtype);
    put(&type, 1, tensor.bytes, tensor.size);
    put_text(&port, 1, name);
    if (dtype) put(&port, 2, type.bytes, type.size);
    put(graph, field, port.bytes, port.size);
}

/* y = op(x), or op(x, x2) if two; attributes: NULL, or those of put_attributes. */
static inline message model_of(const char *op, int dtype, int inputs, const message *attributes) {
    message node = { .size = 0 }, graph = { .size = 0 }, model = { .size = 0 },
            opset = { .size = 0 };
    put_text(&node, 1, "x");
    if (inputs > 1) put_text(&node, 1, "x2");
    put_text(&node, 2, "y");
    put_text(&node, 3, "mine");
    put_text(&node, 4, op);
    put_text(&node, 7, "example");
    for (size_t at = 0; attributes && at < attributes->size;) {
        const size_t n = attributes->bytes[at];
        put(&node, 5, attributes->bytes + at + 1, n);
        at += n + 1;
    }
    put(&graph, 1, node.bytes, node.size);
    put_text(&graph, 2, "g");
    put_port(&graph, 11, "x", dtype);
    if (inputs > 1) put_port(&graph, 11, "x2", dtype);
    put_port(&graph, 12, "y", 0);
    put_text(&opset, 1, "example");
    put_number(&opset, 2, 1);
    put_number(&model, 1, 8);
    put(&model, 7, graph.bytes, graph.size);
    put(&model, 8, opset.bytes, opset.size);
    return model;
}

/* Adds an attribute of type kind (1 float, 2 int, 3 string, 7 ints). */
static inline void put_attribute(message *list, const char *name, int kind, float f, int64_t i,
                                 const char *s) {
    message a = { .size = 0 };
    put_text(&a, 1, name);
    if (kind == 1) put_float(&a, 2, f);
    if (kind == 2) put_number(&a, 3, i);
    if (kind == 3) put_text(&a, 4, s);
    for (int64_t k = 0; kind == 7 && k < i; k++) put_number(&a, 8, k + 5);
    put_number(&a, 20, kind);
    list->bytes[list->size++] = (unsigned char)a.size;
    memcpy(list->bytes + list->size, a.bytes, a.size);
    list->size += a.size;
}

/* set: NULL, or the model's own operators. */
static inline pith_status open_with(pith_model **model, const message *bytes,
                                    const pith_operator_set *set, pith_error *err) {
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    o.operators = set;
    *err = (pith_error)PITH_ERROR_INIT;
    return pith_model_open_memory(model, bytes->bytes, bytes->size, &o, err);
}

static inline pith_status open_bytes(pith_model **model, const message *bytes, pith_error *err) {
    return open_with(model, bytes, NULL, err);
}

static inline pith_model *opened(const message *bytes) {
    pith_error err;
    pith_model *model;
    if (open_bytes(&model, bytes, &err)) fail_msg("%s", err.message);
    return model;
}

static inline void refused(const message *bytes, pith_status code, const char *says) {
    pith_error err;
    pith_model *model;
    assert_int_equal(open_bytes(&model, bytes, &err), code);
    if (!strstr(err.message, says)) fail_msg("'%s' does not say '%s'", err.message, says);
}

/* Runs it on 0, 1, 2, … of [2, count / 2]; y must have room for what comes out. */
static inline pith_status run(const pith_model *model, float *y, int64_t *y_count, int64_t count,
                              int inputs, pith_error *err) {
    static const char *const names[] = { "x", "x2" };
    pith_session *session;
    pith_tensor in[2], out;
    float *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = (float)i;
    for (int i = 0; i < 2; i++)
        in[i] = (pith_tensor){ .data = x,
                               .bytes = (size_t)count * 4,
                               .dtype = PITH_F32,
                               .rank = 2,
                               .dims = { 2, count / 2 } };
    *err = (pith_error)PITH_ERROR_INIT;
    pith_status status = pith_session_create(&session, model, err);
    assert_int_equal(status, PITH_OK);
    status = pith_session_run(session, &out, names, in, (size_t)inputs, NULL, err);
    if (!status) {
        *y_count = pith_shape_count(out.dims, out.rank);
        memcpy(y, out.data, out.bytes);
    }
    pith_session_destroy(session);
    free(x);
    return status;
}

static inline void registered(const pith_operator *op) {
    pith_error err = PITH_ERROR_INIT;
    if (pith_register_op(op, &err)) fail_msg("%s", err.message);
}

#endif
