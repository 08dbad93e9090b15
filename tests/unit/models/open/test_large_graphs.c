/* Graphs of tens of thousands of nodes of one kind: equal, chained, fanned out and in, folded, with
 * many initializers, outputs and branches. Opened, described and run at levels 0 and 3. A pass that
 * is quadratic in any of these takes minutes here, where ctest's limit ends it; times are not
 * asserted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "pith/pith.h"

enum { MANY = 50000, X = 2 }; /* X: elements of the input x, float32 [n] */

/* ---- protobuf ---- */

typedef struct bytes {
    char *data;
    size_t size, capacity;
} bytes;

static void put(bytes *b, const void *data, size_t size) {
    if (b->size + size > b->capacity)
        b->data = realloc(b->data, b->capacity = 2 * (b->size + size) + 64);
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void put_varint(bytes *b, uint64_t n) {
    do {
        uint8_t byte = (uint8_t)((n & 127) | (n > 127 ? 128 : 0));
        put(b, &byte, 1);
    } while (n >>= 7);
}

static void put_number(bytes *b, int field, int64_t n) {
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, (uint64_t)n);
}

static void put_bytes(bytes *b, int field, const void *data, size_t size) {
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, size);
    put(b, data, size);
}

static void put_text(bytes *b, int field, const char *text) {
    put_bytes(b, field, text, strlen(text));
}

/* The message of a field, which is freed. */
static void put_message(bytes *b, int field, bytes *message) {
    put_bytes(b, field, message->data, message->size);
    free(message->data);
    *message = (bytes){ 0 };
}

/* ---- models ---- */

enum { NODE = 1, INITIALIZER = 5, INPUT = 11, OUTPUT = 12 }; /* fields of a GraphProto */

/* "name%d", of which a call of `node` takes several: they last for eight further calls. */
static const char *name(const char *stem, int i) {
    static char names[8][32];
    static int next;
    char *text = names[next++ & 7];
    snprintf(text, sizeof names[0], "%s%d", stem, i);
    return text;
}

/* attributes: made so far, or NULL; freed. */
static void node(bytes *graph, const char *op, const char *a, const char *b, const char *out,
                 bytes *attributes) {
    bytes n = { 0 };
    if (a) put_text(&n, 1, a);
    if (b) put_text(&n, 1, b);
    put_text(&n, 2, out);
    put_text(&n, 4, op);
    if (attributes) {
        put(&n, attributes->data, attributes->size);
        free(attributes->data);
    }
    put_message(graph, NODE, &n);
}

static bytes int_attribute(const char *attribute, int64_t value) {
    bytes a = { 0 }, list = { 0 };
    put_text(&a, 1, attribute);
    put_number(&a, 3, value);
    put_number(&a, 20, 2);
    put_message(&list, 5, &a);
    return list;
}

static void tensor(bytes *graph, const char *tensor_name, int dtype, int64_t rows, int64_t columns,
                   const void *data, size_t size) {
    bytes t = { 0 };
    if (rows >= 0) put_number(&t, 1, rows);
    if (columns >= 0) put_number(&t, 1, columns);
    put_number(&t, 2, dtype);
    put_text(&t, 8, tensor_name);
    put_bytes(&t, 9, data, size);
    put_message(graph, INITIALIZER, &t);
}

static void number(bytes *graph, const char *tensor_name, float x) {
    tensor(graph, tensor_name, PITH_F32, 1, -1, &x, sizeof x);
}

static void port(bytes *graph, int field, const char *port_name, int dtype, const char *dim) {
    bytes p = { 0 }, type = { 0 }, elements = { 0 }, shape = { 0 }, d = { 0 };
    put_text(&p, 1, port_name);
    put_number(&elements, 1, dtype);
    if (dim) {
        put_text(&d, 2, dim);
        put_message(&shape, 1, &d);
        put_message(&elements, 2, &shape);
    }
    put_message(&type, 1, &elements);
    put_message(&p, 2, &type);
    put_message(graph, field, &p);
}

/* Opens and runs it on x = 1, 2; returns the first element of the first output. */
static float run_at(const bytes *model, int level, uint32_t flags) {
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_model *m = NULL;
    pith_session *session = NULL;
    float x[X] = { 1, 2 };
    pith_tensor in = { .data = x, .bytes = sizeof x, .dtype = PITH_F32, .rank = 1, .dims = { X } };
    options.optimization = level ? level : PITH_OPTIMIZATION_NONE;
    options.flags = flags;
    if (pith_model_open_memory(&m, model->data, model->size, &options, &err) ||
        pith_session_create(&session, m, &err)) {
        fail_msg("level %d: %s", level, err.message);
    }
    pith_tensor *out = calloc(pith_model_output_count(m), sizeof *out);
    if (pith_session_run(session, out, (const char *const[]){ "x" }, &in, 1, NULL, &err))
        fail_msg("level %d: %s", level, err.message);
    float result = *(const float *)out[0].data;
    free(out);
    pith_session_destroy(session);
    pith_model_close(m);
    return result;
}

/* The graph, which is freed, as a model; its first output begins with `wanted`. */
static void check(bytes *graph, float wanted) {
    bytes model = { 0 }, opset = { 0 };
    put_number(&opset, 2, 17);
    put_number(&model, 1, 8);
    put_message(&model, 8, &opset);
    put_message(&model, 7, graph);
    assert_true(run_at(&model, 0, 0) == wanted);
    assert_true(run_at(&model, 3, PITH_OPEN_DESCRIBE) == wanted);
    free(model.data);
}

static bytes begin(void) {
    bytes graph = { 0 };
    put_text(&graph, 2, "g");
    port(&graph, INPUT, "x", PITH_F32, "n");
    return graph;
}

static void sequence_port(bytes *graph, int field, const char *port_name) {
    bytes p = { 0 }, type = { 0 }, sequence = { 0 }, item = { 0 }, elements = { 0 };
    put_text(&p, 1, port_name);
    put_number(&elements, 1, PITH_F32);
    put_message(&item, 1, &elements);
    put_message(&sequence, 1, &item);
    put_message(&type, 4, &sequence);
    put_message(&p, 2, &type);
    put_message(graph, field, &p);
}

static void output(bytes *graph, const char *value) { port(graph, OUTPUT, value, PITH_F32, NULL); }

/* One node that reads stem0 … stem<count - 1>. */
static void join(bytes *graph, const char *op, const char *stem, int count, const char *out,
                 bytes *attributes) {
    bytes n = { 0 };
    for (int i = 0; i < count; i++) put_text(&n, 1, name(stem, i));
    put_text(&n, 2, out);
    put_text(&n, 4, op);
    if (attributes) {
        put(&n, attributes->data, attributes->size);
        free(attributes->data);
    }
    put_message(graph, NODE, &n);
}

/* ---- fans ---- */

/* Readers of x, one like the other, or each with a constant of its own; all of them read by one
 * node. */
static void equal_nodes(void **state) {
    (void)state;
    bytes graph = begin();
    for (int i = 0; i < MANY; i++) node(&graph, "Abs", "x", NULL, name("y", i), NULL);
    join(&graph, "Sum", "y", MANY, "sum", NULL);
    output(&graph, "sum");
    check(&graph, MANY);
}

static void equal_pairs(void **state) { /* Shape and Gather, as exporters write them before every
                                           Reshape */
    (void)state;
    bytes graph = begin(), gathered;
    static const int64_t zero = 0;
    for (int i = 0; i < MANY / 2; i++) {
        gathered = int_attribute("axis", 0);
        tensor(&graph, name("index", i), PITH_I64, 1, -1, &zero, sizeof zero);
        node(&graph, "Shape", "x", NULL, name("shape", i), NULL);
        node(&graph, "Gather", name("shape", i), name("index", i), name("size", i), &gathered);
        node(&graph, "Expand", "x", name("size", i), name("y", i), NULL);
    }
    join(&graph, "Sum", "y", MANY / 2, "sum", NULL);
    output(&graph, "sum");
    check(&graph, MANY / 2);
}

static void many_initializers(void **state) {
    (void)state;
    bytes graph = begin(), axis = int_attribute("axis", 0);
    for (int i = 0; i < MANY; i++) {
        number(&graph, name("c", i), (float)i);
        node(&graph, "Add", "x", name("c", i), name("y", i), NULL);
    }
    join(&graph, "Concat", "y", MANY, "all", &axis);
    output(&graph, "all");
    check(&graph, 1);
}

static void identities_of_one_value(void **state) {
    (void)state;
    bytes graph = begin();
    for (int i = 0; i < MANY; i++) {
        node(&graph, "Identity", "x", NULL, name("i", i), NULL);
        node(&graph, i % 2 ? "Neg" : "Abs", name("i", i), NULL, name("y", i), NULL);
    }
    join(&graph, "Max", "y", MANY, "most", NULL);
    output(&graph, "most");
    check(&graph, 1);
}

static void many_outputs(void **state) { /* each a second name of another value */
    (void)state;
    bytes graph = begin();
    for (int i = 0; i < MANY; i++) {
        number(&graph, name("c", i), (float)i);
        node(&graph, "Mul", "x", name("c", i), name("y", i), NULL);
        node(&graph, "Identity", name("y", i), NULL, name("z", i), NULL);
    }
    for (int i = MANY; i-- > 0;) output(&graph, name("z", i));
    check(&graph, MANY - 1);
}

/* ---- chains ---- */

static void chain(void **state) {
    (void)state;
    bytes graph = begin();
    node(&graph, "Neg", "x", NULL, "y0", NULL);
    for (int i = 1; i < MANY; i++) node(&graph, "Neg", name("y", i - 1), NULL, name("y", i), NULL);
    output(&graph, name("y", MANY - 1));
    check(&graph, 1);
}

static void identity_chain(void **state) {
    (void)state;
    bytes graph = begin();
    node(&graph, "Neg", "x", NULL, "y0", NULL);
    for (int i = 1; i < MANY; i++)
        node(&graph, "Identity", name("y", i - 1), NULL, name("y", i), NULL);
    output(&graph, name("y", MANY - 1));
    check(&graph, -1);
}

static void reshape_chain(void **state) { /* by a shape that is asked for anew each time */
    (void)state;
    bytes graph = begin();
    node(&graph, "Neg", "x", NULL, "y0", NULL);
    for (int i = 1; i < MANY / 2; i++) {
        node(&graph, "Shape", name("y", i - 1), NULL, name("s", i), NULL);
        node(&graph, "Reshape", name("y", i - 1), name("s", i), name("y", i), NULL);
    }
    output(&graph, name("y", MANY / 2 - 1));
    check(&graph, -1);
}

static void constant_chain(void **state) {
    (void)state;
    bytes graph = begin();
    number(&graph, "one", 1);
    number(&graph, "y0", 0);
    for (int i = 1; i < MANY; i++) node(&graph, "Add", name("y", i - 1), "one", name("y", i), NULL);
    node(&graph, "Add", "x", name("y", MANY - 1), "z", NULL);
    output(&graph, "z");
    check(&graph, MANY);
}

/* A weight through a chain of casts, each of which a product reads. */
static void cast_chain(void **state) {
    (void)state;
    enum { COUNT = MANY / 5 };
    bytes graph = begin();
    float eye[X * X] = { 1, 0, 0, 1 };
    tensor(&graph, "w0", PITH_F32, X, X, eye, sizeof eye);
    for (int i = 1; i <= COUNT; i++) {
        bytes to = int_attribute("to", i % 2 ? PITH_F64 : PITH_F32);
        node(&graph, "Cast", name("w", i - 1), NULL, name("w", i), &to);
        if (i % 2 == 0) node(&graph, "MatMul", "x", name("w", i), name("y", i / 2 - 1), NULL);
    }
    join(&graph, "Sum", "y", COUNT / 2, "sum", NULL);
    output(&graph, "sum");
    check(&graph, COUNT / 2);
}

/* Products and normalisations in a row, whose passes look back along it. */
static void dense_chain(void **state) {
    (void)state;
    enum { COUNT = MANY / 10 };
    bytes graph = begin();
    float eye[X * X] = { 1, 0, 0, 1 }, ones[X] = { 1, 1 };
    tensor(&graph, "w", PITH_F32, X, X, eye, sizeof eye);
    tensor(&graph, "g", PITH_F32, X, -1, ones, sizeof ones);
    node(&graph, "Neg", "x", NULL, "y0", NULL);
    for (int i = 1; i <= COUNT; i++) {
        node(&graph, "MatMul", name("y", i - 1), "w", name("p", i), NULL);
        node(&graph, "Add", name("p", i), "y0", name("s", i), NULL);
        node(&graph, "LayerNormalization", name("s", i), "g", name("y", i), NULL);
    }
    node(&graph, "Abs", name("y", COUNT), NULL, "a", NULL);
    node(&graph, "Ceil", "a", NULL, "z", NULL);
    output(&graph, "z");
    check(&graph, 1);
}

/* Values of growing size that die in another order than they are made: the buffer is in many
 * pieces. */
static void scattered_life_times(void **state) {
    (void)state;
    enum { COUNT = MANY / 5 };
    bytes graph = begin();
    for (int i = 0; i < COUNT; i++) {
        int64_t repeats = 1 + (int64_t)i * 37 % 101;
        tensor(&graph, name("r", i), PITH_I64, 1, -1, &repeats, sizeof repeats);
        node(&graph, "Tile", "x", name("r", i), name("t", i), NULL);
    }
    for (int i = 0; i < COUNT; i++) { /* read in a scattered order */
        bytes keep = int_attribute("keepdims", 1);
        node(&graph, "ReduceMax", name("t", (int)((int64_t)i * 7919 % COUNT)), NULL, name("m", i),
             &keep);
    }
    join(&graph, "Max", "m", COUNT, "most", NULL);
    output(&graph, "most");
    check(&graph, 2);
}

/* ---- branches ---- */

static bytes graph_attribute(const char *attribute, bytes *graph) {
    bytes a = { 0 }, list = { 0 };
    put_text(&a, 1, attribute);
    put_message(&a, 6, graph);
    put_number(&a, 20, 5);
    put_message(&list, 5, &a);
    return list;
}

/* A branch that adds y<level>, and inside of it further ones, all of which use values of the main
 * graph. */
static bytes branch(int level, int depth, const char *side) {
    bytes graph = { 0 };
    char out[32], inner[32];
    snprintf(out, sizeof out, "%s_%d", side, level);
    snprintf(inner, sizeof inner, "%s_in_%d", side, level);
    put_text(&graph, 2, out);
    if (level < depth) {
        bytes then_branch = branch(level + 1, depth, "t"), else_branch = { 0 };
        node(&else_branch, "Neg", name("y", level), NULL, "e", NULL);
        output(&else_branch, "e");
        bytes attributes = graph_attribute("then_branch", &then_branch),
              other = graph_attribute("else_branch", &else_branch);
        put(&attributes, other.data, other.size);
        free(other.data);
        node(&graph, "If", "yes", NULL, inner, &attributes);
        node(&graph, "Add", inner, name("y", level), out, NULL);
    } else {
        node(&graph, "Identity", name("y", level), NULL, out, NULL);
    }
    output(&graph, out);
    return graph;
}

static void nested_branches(void **state) { /* conditions known (folded away), and not */
    (void)state;
    enum { COUNT = 500, DEPTH = 20 };
    for (int known = 0; known < 2; known++) {
        bytes graph = begin();
        uint8_t yes = 1;
        if (known) {
            tensor(&graph, "yes", PITH_BOOL, -1, -1, &yes, 1);
        } else {
            bytes keep = int_attribute("keepdims", 0), to = int_attribute("to", PITH_BOOL);
            node(&graph, "ReduceMax", "x", NULL, "most", &keep);
            node(&graph, "Cast", "most", NULL, "yes", &to);
        }
        for (int i = 0; i <= DEPTH; i++)
            node(&graph, "Abs", i ? name("y", i - 1) : "x", NULL, name("y", i), NULL);
        for (int i = 0; i < COUNT; i++) {
            bytes then_branch = branch(1, DEPTH, "t"), else_branch = branch(1, 1, "e");
            bytes attributes = graph_attribute("then_branch", &then_branch),
                  other = graph_attribute("else_branch", &else_branch);
            put(&attributes, other.data, other.size);
            free(other.data);
            node(&graph, "If", "yes", NULL, name("b", i), &attributes);
        }
        join(&graph, "Sum", "b", COUNT, "sum", NULL);
        output(&graph, "sum");
        check(&graph, COUNT * DEPTH);
    }
}

/* ---- sequences ---- */

/* The body of a loop that adds x to a sequence and erases its first item, in a branch, where there
 * are more than most. */
static bytes growing_body(void) {
    bytes body = { 0 }, keep = { 0 }, erase = { 0 };
    put_text(&body, 2, "body");
    port(&body, INPUT, "i", PITH_I64, NULL);
    port(&body, INPUT, "going", PITH_BOOL, NULL);
    sequence_port(&body, INPUT, "s");
    node(&body, "SequenceInsert", "s", "x", "more", NULL);
    node(&body, "SequenceLength", "more", NULL, "n", NULL);
    node(&body, "Greater", "n", "most", "full", NULL);
    put_text(&keep, 2, "keep");
    node(&keep, "Identity", "more", NULL, "kept", NULL);
    sequence_port(&keep, OUTPUT, "kept");
    put_text(&erase, 2, "erase");
    node(&erase, "SequenceErase", "more", "zero", "fewer", NULL);
    sequence_port(&erase, OUTPUT, "fewer");
    bytes attributes = graph_attribute("then_branch", &erase),
          other = graph_attribute("else_branch", &keep);
    put(&attributes, other.data, other.size);
    free(other.data);
    node(&body, "If", "full", NULL, "t", &attributes);
    node(&body, "Identity", "going", NULL, "on", NULL);
    port(&body, OUTPUT, "on", PITH_BOOL, NULL);
    sequence_port(&body, OUTPUT, "t");
    return body;
}

/* The loop, and the length of what it gives. */
static bytes growing_model(int64_t rounds, int64_t most) {
    static const int64_t zero = 0;
    bytes graph = { 0 }, body = growing_body(), attributes = graph_attribute("body", &body),
          loop = { 0 }, model = { 0 };
    put_text(&graph, 2, "g");
    port(&graph, INPUT, "x", PITH_F32, "n");
    tensor(&graph, "rounds", PITH_I64, -1, -1, &rounds, sizeof rounds);
    tensor(&graph, "most", PITH_I64, -1, -1, &most, sizeof most);
    tensor(&graph, "zero", PITH_I64, -1, -1, &zero, sizeof zero);
    node(&graph, "SequenceEmpty", NULL, NULL, "empty", NULL);
    put_text(&loop, 1, "rounds");
    put_text(&loop, 1, "");
    put_text(&loop, 1, "empty");
    put_text(&loop, 2, "all");
    put_text(&loop, 4, "Loop");
    put(&loop, attributes.data, attributes.size);
    free(attributes.data);
    put_message(&graph, NODE, &loop);
    bytes to = int_attribute("to", PITH_F32), opset = { 0 };
    node(&graph, "SequenceLength", "all", NULL, "length", NULL);
    node(&graph, "Cast", "length", NULL, "y", &to);
    output(&graph, "y");
    put_number(&opset, 2, 17);
    put_number(&model, 1, 8);
    put_message(&model, 8, &opset);
    put_message(&model, 7, &graph);
    return model;
}

/* The most bytes that were held for `rounds` items, of which `most` are kept. */
static size_t grow_sequence(int64_t rounds, int64_t most, int64_t item) {
    bytes model = growing_model(rounds, most);
    pith_error err = PITH_ERROR_INIT;
    pith_model *m;
    pith_session *session = NULL;
    pith_tensor in = { .data = calloc((size_t)item, 4),
                       .bytes = (size_t)item * 4,
                       .dtype = PITH_F32,
                       .rank = 1 },
                out;
    in.dims[0] = item;
    size_t peak;
    if (pith_model_open_memory(&m, model.data, model.size, NULL, &err) ||
        pith_session_create(&session, m, &err) ||
        pith_session_run(session, &out, (const char *const[]){ "x" }, &in, 1, NULL, &err))
        fail_msg("%s", err.message);
    assert_true(*(const float *)out.data == (float)most);
    pith_model_bytes(m, &peak);
    pith_session_destroy(session);
    pith_model_close(m);
    free(in.data);
    free(model.data);
    return peak;
}

/* A loop that adds to a sequence copies what it adds, and holds little more than what is in it. */
static void growing_sequences(void **state) {
    (void)state;
    enum { ROUNDS = 2000, ITEM = 8192 };
    assert_in_range(grow_sequence(ROUNDS, ROUNDS, ITEM), ROUNDS * ITEM * 4,
                    ROUNDS * ITEM * 4 * 3 / 2);
    assert_in_range(grow_sequence(ROUNDS * 10, 20, ITEM), 20 * ITEM * 4, 16 << 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_nodes),       cmocka_unit_test(equal_pairs),
        cmocka_unit_test(many_initializers), cmocka_unit_test(identities_of_one_value),
        cmocka_unit_test(many_outputs),      cmocka_unit_test(chain),
        cmocka_unit_test(identity_chain),    cmocka_unit_test(reshape_chain),
        cmocka_unit_test(constant_chain),    cmocka_unit_test(cast_chain),
        cmocka_unit_test(dense_chain),       cmocka_unit_test(scattered_life_times),
        cmocka_unit_test(nested_branches),   cmocka_unit_test(growing_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
