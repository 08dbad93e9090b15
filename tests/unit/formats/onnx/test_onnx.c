/* The ONNX reader: every tensor form against data written by onnx itself, graphs put together field
 * by field here, the networks of tests/data/models, and what must be refused. */
#include <glob.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/str.h"
#include "support/loader_test.h"
#include "formats/onnx/model_read.h"
#include "pith/session.h"

static pith_error err;

/* ---- writing protobuf ---- */

typedef struct message {
    size_t size;
    char data[4096];
} message;

static void put_varint(message *m, uint64_t v) {
    for (; v > 127; v >>= 7) m->data[m->size++] = (char)((v & 127) | 128);
    m->data[m->size++] = (char)v;
}

static void put_int(message *m, int field, uint64_t v) {
    put_varint(m, (uint64_t)field << 3);
    put_varint(m, v);
}

static void put_bytes(message *m, int field, const void *data, size_t size) {
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, size);
    if (size) memcpy(m->data + m->size, data, size);
    m->size += size;
}

static void put_str(message *m, int field, const char *text) {
    put_bytes(m, field, text, strlen(text));
}

static void put_message(message *m, int field, const message *inner) {
    put_bytes(m, field, inner->data, inner->size);
}

static void put_float(message *m, int field, float f) {
    put_varint(m, (uint64_t)field << 3 | 5);
    memcpy(m->data + m->size, &f, 4);
    m->size += 4;
}

/* inputs and outputs are separated by spaces, "-" is an empty name. */
static message node(const char *op_type, const char *inputs, const char *outputs) {
    message m = { 0 };
    const char *lists[] = { inputs, outputs };
    for (int field = 1; field <= 2; field++) {
        char copy[256], *rest = copy, *name;
        snprintf(copy, sizeof copy, "%s", lists[field - 1]);
        while ((name = strsep(&rest, " ")))
            if (*name) put_str(&m, field, *name == '-' ? "" : name);
    }
    put_str(&m, 3, "the node");
    put_str(&m, 4, op_type);
    return m;
}

/* A float tensor [count] of zeros. */
static message zeros(const char *name, int count) {
    static const float nothing[64];
    message m = { 0 };
    put_int(&m, 1, (uint64_t)count);
    put_int(&m, 2, PITH_F32);
    put_str(&m, 8, name);
    put_bytes(&m, 9, nothing, (size_t)count * 4);
    return m;
}

/* dims: negative numbers are left out, so the size has neither value nor name. */
static message value_info(const char *name, int dtype, int rank, const int64_t *dims,
                          const char *symbol) {
    message m = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 };
    for (int i = 0; i < rank; i++) {
        message dim = { 0 };
        if (dims[i] >= 0)
            put_int(&dim, 1, (uint64_t)dims[i]);
        else if (symbol)
            put_str(&dim, 2, symbol);
        put_message(&shape, 1, &dim);
    }
    put_int(&tensor, 1, (uint64_t)dtype);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_str(&m, 1, name);
    put_message(&m, 2, &type);
    return m;
}

static void put_port(message *graph, int field, const char *name) {
    message info = value_info(name, PITH_F32, 2, (int64_t[]){ -1, 3 }, "batch");
    put_message(graph, field, &info);
}

static void put_node(message *graph, message n) { put_message(graph, 1, &n); }

static message model(const message *graph, int ir_version) {
    message m = { 0 }, opset = { 0 };
    put_int(&m, 1, (uint64_t)ir_version);
    put_message(&m, 7, graph);
    put_str(&opset, 1, "");
    put_int(&opset, 2, 17);
    put_message(&m, 8, &opset);
    return m;
}

/* ---- reading ---- */

static pith_status read_model(pith__graph **graph, const message *m) {
    err = (pith_error)PITH_ERROR_INIT;
    *graph = NULL;
    /* The graph's strings point into the message, so it must stay. */
    char *copy = pith__arena_alloc(&arena, m->size);
    memcpy(copy, m->data, m->size);
    pith_status status =
        pith__onnx_read(graph, (pith_str){ copy, m->size }, NULL, &files, &arena, NULL, &err);
    if (!status) {
        pith_error check = PITH_ERROR_INIT;
        if (pith__graph_check(*graph, &check)) fail_msg("%s", check.message);
    }
    return status;
}

static pith__graph *read_graph(const message *graph) {
    pith__graph *g;
    message m = model(graph, 8);
    if (read_model(&g, &m)) fail_msg("%s", err.message);
    return g;
}

/* Reading fails, the message names the place. */
static void refuse(const message *graph, pith_status status, const char *text) {
    pith__graph *g;
    message m = model(graph, 8);
    assert_int_equal(read_model(&g, &m), status);
    if (!strstr(err.message, text)) fail_msg("'%s' does not name '%s'", err.message, text);
}

static pith__value *find(const pith__graph *graph, const char *name) {
    for (size_t i = 0; i < graph->value_count; i++)
        if (pith__str_is(graph->values[i]->name, name)) return graph->values[i];
    fail_msg("no value %s", name);
    return NULL;
}

static char *slurp(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *data = malloc(1 << 20);
    *size = fread(data, 1, 1 << 20, f);
    fclose(f);
    return data;
}

/* ---- tests ---- */

/* All dtypes, three forms each, at every alignment, in a buffer of exactly their size. */
static void tensors_in_every_form(void **state) {
    (void)state;
    glob_t found;
    assert_int_equal(glob(PITH_TEST_DATA "/tensors/[0-9]*.pb", 0, NULL, &found), 0);
    int seen[PITH_DTYPE_COUNT] = { 0 };
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *base = strrchr(found.gl_pathv[i], '/') + 1;
        char want_path[512];
        size_t size, want_size;
        snprintf(want_path, sizeof want_path, "%.*s.bin",
                 (int)(strrchr(found.gl_pathv[i], '-') - found.gl_pathv[i]), found.gl_pathv[i]);
        char *data = slurp(found.gl_pathv[i], &size), *want = slurp(want_path, &want_size);
        int dtype = atoi(base);
        for (size_t shift = 0; shift < 8; shift++) {
            char *shifted = malloc(size + shift);
            memcpy(shifted + shift, data, size);
            pith_tensor t;
            pith_str name;
            pith_status status = pith__onnx_read_value(
                &t, &name, (pith_str){ shifted + shift, size }, PITH_F32, NULL, &arena, &err);
            if (status) fail_msg("%s: %s", base, err.message);
            assert_int_equal(t.dtype, dtype);
            assert_int_equal(t.rank, 2);
            assert_int_equal(t.dims[0], 3);
            assert_int_equal(t.dims[1], 5);
            assert_true(name.size > 0 && strncmp(strchr(base, '-') + 1, name.data, name.size) == 0);
            if (dtype == PITH_STRING) {
                const pith_str *strings = t.data;
                const char *p = want;
                for (int k = 0; k < 15; p += strings[k++].size + 1)
                    assert_true(pith__str_is(strings[k], p));
                assert_int_equal(p - want, want_size);
            } else {
                int unit = pith__dtype_bits(dtype) / 8;
                assert_int_equal((uintptr_t)t.data % (size_t)(unit < 1   ? 1
                                                              : unit > 8 ? 8
                                                                         : unit),
                                 0);
                assert_int_equal(t.bytes, want_size);
                if (memcmp(t.data, want, want_size)) fail_msg("%s: other contents", base);
            }
            free(shifted);
        }
        /* Cut anywhere it is read or refused, within its bytes. */
        for (size_t n = 0; n < size; n++) {
            char *cut = malloc(n ? n : 1);
            memcpy(cut, data, n);
            pith_tensor t;
            pith__onnx_read_value(&t, NULL, (pith_str){ cut, n }, PITH_F32, NULL, &arena, &err);
            free(cut);
        }
        seen[dtype]++;
        free(data);
        free(want);
    }
    globfree(&found);
    for (int dtype = PITH_F32; dtype < PITH_DTYPE_COUNT; dtype++)
        assert_int_equal(seen[dtype], dtype == PITH_STRING ? 1 : 3);
}

static int32_t append(void *user, const void *data, size_t size) {
    message *m = user;
    assert_true(size <= sizeof m->data - m->size);
    memcpy(m->data + m->size, data, size);
    m->size += size;
    return 0;
}

static int32_t refuse_bytes(void *user, const void *data, size_t size) {
    (void)user, (void)data, (void)size;
    return -1;
}

static void assert_same(const pith_tensor *a, const pith_tensor *b) {
    assert_int_equal(a->dtype, b->dtype);
    if (a->dtype == PITH_NONE) return;
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
    int64_t count = pith__dims_count(a->dims, a->rank);
    const pith_tensor *x = a->data, *y = b->data;
    const pith_str *s = a->data, *t = b->data;
    for (int64_t i = 0; i < count; i++) {
        if (a->dtype == PITH_SEQUENCE)
            assert_same(&x[i], &y[i]);
        else if (a->dtype == PITH_STRING)
            assert_true(s[i].size == t[i].size && !memcmp(s[i].data, t[i].data, s[i].size));
    }
    if (a->dtype < PITH_DTYPE_COUNT && a->dtype != PITH_STRING && a->bytes)
        assert_memory_equal(a->data, b->data, a->bytes);
}

/* What is written is read again as the same value under the same name. */
static void assert_written(const pith_tensor *value, const char *name, int kind) {
    message m = { .size = 0 };
    const pith_writer writer = { append, NULL, &m };
    pith_tensor again;
    pith_str read;
    if (pith_value_write(value, name, kind, NULL, &writer, &err)) fail_msg("%s", err.message);
    if (pith__onnx_read_value(&again, &read, (pith_str){ m.data, m.size }, kind, NULL, &arena,
                              &err))
        fail_msg("%s", err.message);
    assert_same(value, &again);
    assert_true(pith__str_is(read, name ? name : ""));
}

static void values_written(void **state) {
    (void)state;
    float floats[6] = { 1, -2, 3, 4, 5, 6 };
    pith_str words[2] = { PITH_STR("one"), PITH_STR("") };
    pith_tensor matrix = {
        .data = floats, .bytes = 24, .dtype = PITH_F32, .rank = 2, .dims = { 2, 3 }
    };
    pith_tensor scalar = { .data = floats, .bytes = 4, .dtype = PITH_F32 };
    pith_tensor none = { .dtype = PITH_I64, .rank = 1, .dims = { 0 } };
    pith_tensor nibbles = {
        .data = floats, .bytes = 3, .dtype = PITH_U4, .rank = 1, .dims = { 5 }
    };
    pith_tensor strings = {
        .data = words, .bytes = sizeof words, .dtype = PITH_STRING, .rank = 1, .dims = { 2 }
    };
    pith_tensor items[] = { matrix, strings, scalar, none };
    pith_tensor sequence = { .data = items, .dtype = PITH_SEQUENCE, .rank = 1, .dims = { 4 } },
                empty = sequence;
    pith_tensor absent = { .dtype = PITH_NONE };
    const pith_tensor *const values[] = { &matrix,  &scalar,   &none,  &nibbles,
                                          &strings, &sequence, &empty, &absent };
    empty.dims[0] = 0;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        int own = values[i]->dtype;
        assert_written(values[i], i % 2 ? "a name longer than it need be" : NULL, own);
        assert_written(values[i], i % 2 ? NULL : "n", PITH_NONE);
    }
}

static void values_not_written(void **state) {
    (void)state;
    float number = 1;
    const pith_tensor good = {
        .data = &number, .bytes = 4, .dtype = PITH_F32, .rank = 1, .dims = { 1 }
    };
    pith_tensor bad[] = { good, good, good, good, good, good, good };
    bad[0].dims[0] = 2;
    bad[1].dims[0] = -1;
    bad[2].rank = PITH_MAX_RANK + 1;
    bad[3].data = NULL;
    bad[4].dtype = PITH_UNDEFINED;
    bad[5].dtype = PITH_NONE;
    bad[6] = (pith_tensor){ .data = &bad[0], .dtype = PITH_SEQUENCE, .rank = 1, .dims = { 1 } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        message m = { .size = 0 };
        const pith_writer writer = { append, NULL, &m };
        int kind = bad[i].dtype == PITH_SEQUENCE ? PITH_SEQUENCE : PITH_F32;
        assert_int_equal(pith_value_write(&bad[i], NULL, kind, NULL, &writer, &err),
                         PITH_ERR_ARGUMENT);
        assert_int_equal(m.size, 0);
    }
    message m = { .size = 0 };
    const pith_writer writer = { append, NULL, &m }, full = { refuse_bytes, NULL, NULL };
    assert_int_equal(pith_value_write(&good, NULL, PITH_F32, NULL, &full, &err), PITH_ERR_IO);
    assert_string_equal(err.message, "the value could not be written");
    assert_int_equal(pith_value_write(&good, NULL, PITH_F32, NULL, NULL, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_value_write(&good, NULL, PITH_SEQUENCE, NULL, &writer, &err),
                     PITH_ERR_ARGUMENT);
    assert_string_equal(err.message, "the value is no sequence");
}

static void sequences_and_optionals(void **state) {
    (void)state;
    static const struct {
        const char *file;
        int kind, dtype;
        int64_t count;
    } cases[] = {
        { "sequence.pb", PITH_SEQUENCE, PITH_SEQUENCE, 2 },
        { "sequence-empty.pb", PITH_SEQUENCE, PITH_SEQUENCE, 0 },
        { "optional-tensor.pb", PITH_NONE, PITH_I64, 1 },
        { "optional-none.pb", PITH_NONE, PITH_NONE, 0 },
        { "optional-sequence.pb", PITH_NONE, PITH_SEQUENCE, 2 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[512];
        size_t size;
        snprintf(path, sizeof path, PITH_TEST_DATA "/tensors/%s", cases[i].file);
        char *data = slurp(path, &size);
        pith_tensor t;
        pith_str name;
        assert_int_equal(pith__onnx_read_value(&t, &name, (pith_str){ data, size }, cases[i].kind,
                                               NULL, &arena, &err),
                         PITH_OK);
        assert_int_equal(t.dtype, cases[i].dtype);
        assert_written(&t, i < 2 ? "seq" : "opt", cases[i].kind);
        if (t.dtype == PITH_SEQUENCE) {
            assert_int_equal(t.rank, 1);
            assert_int_equal(t.dims[0], cases[i].count);
            const pith_tensor *items = t.data;
            if (cases[i].count) {
                assert_int_equal(items[1].dims[1], 3);
                assert_true(((const float *)items[1].data)[5] == 5);
            }
        } else if (t.dtype == PITH_I64) {
            assert_int_equal(*(const int64_t *)t.data, 7);
        }
        assert_true(pith__str_is(name, i < 2 ? "seq" : "opt"));
        free(data);
    }
}

static void refuse_tensor(const message *m, pith_status status, const char *text) {
    pith_tensor t = { .rank = 77 };
    err = (pith_error)PITH_ERROR_INIT;
    assert_int_equal(pith__onnx_read_value(&t, NULL, (pith_str){ m->data, m->size }, PITH_F32, NULL,
                                           &arena, &err),
                     status);
    if (!strstr(err.message, text)) fail_msg("'%s' does not name '%s'", err.message, text);
    assert_int_equal(t.rank, 77);
}

static message tensor(int64_t dim, uint64_t dtype) {
    message m = { 0 };
    put_int(&m, 1, (uint64_t)dim);
    put_int(&m, 2, dtype);
    put_str(&m, 8, "w");
    return m;
}

static void tensors_that_lie(void **state) {
    (void)state;
    message m = tensor(2, PITH_F32);
    refuse_tensor(&m, PITH_ERR_FORMAT, "tensor 'w': has no data");
    put_bytes(&m, 9, "1234567", 7);
    refuse_tensor(&m, PITH_ERR_FORMAT, "tensor 'w': has 7 bytes, but shape [2] of float32 needs 8");
    m = tensor(-1, PITH_F32);
    refuse_tensor(&m, PITH_ERR_FORMAT, "impossible shape [?]");
    m = tensor(INT64_MAX, PITH_F64);
    refuse_tensor(&m, PITH_ERR_FORMAT, "impossible shape");
    m = tensor((int64_t)1 << 40, PITH_I64);
    put_int(&m, 7, 1);
    refuse_tensor(&m, PITH_ERR_FORMAT, "has 1 numbers, but the shape needs 1099511627776");
    m = tensor(1, 77);
    refuse_tensor(&m, PITH_ERR_UNSUPPORTED, "data type 77");
    m = tensor(1, PITH_F32);
    put_bytes(&m, 3, "", 0);
    refuse_tensor(&m, PITH_ERR_UNSUPPORTED, "segmented");
    m = tensor(1, PITH_STRING);
    put_bytes(&m, 9, "x", 1);
    refuse_tensor(&m, PITH_ERR_FORMAT, "strings must not be in raw_data");
    m = tensor(1, PITH_F32);
    put_bytes(&m, 4, "123", 3);
    refuse_tensor(&m, PITH_ERR_FORMAT, "cut short");
    m = tensor(1, PITH_F32);
    for (int i = 0; i < PITH_MAX_RANK; i++) put_int(&m, 1, 1);
    refuse_tensor(&m, PITH_ERR_UNSUPPORTED, "dimensions");
    m = tensor(1, PITH_I32);
    put_bytes(&m, 5, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    refuse_tensor(&m, PITH_ERR_FORMAT, "too long");
    m = tensor(1, PITH_I32);
    put_varint(&m, 9 << 3 | 2);
    put_varint(&m, UINT64_MAX);
    refuse_tensor(&m, PITH_ERR_FORMAT, "beyond the end");
}

/* ---- external data ---- */

static message external(const char *location, const char *offset, const char *length) {
    static const char *const keys[] = { "location", "offset", "length" };
    const char *values[] = { location, offset, length };
    message graph = { 0 }, t = tensor(2, PITH_F32);
    for (int i = 0; i < 3; i++) {
        message entry = { 0 };
        if (!values[i]) continue;
        put_str(&entry, 1, keys[i]);
        put_str(&entry, 2, values[i]);
        put_message(&t, 13, &entry);
    }
    put_int(&t, 14, 1);
    put_message(&graph, 5, &t);
    put_port(&graph, 11, "x");
    put_node(&graph, node("Add", "x w", "y"));
    put_port(&graph, 12, "y");
    return graph;
}

static void external_data(void **state) {
    (void)state;
    static const float data[] = { 1, 2, 3, 4, 5 };
    char outside[] = "/tmp/pith-outside-XXXXXX", path[256], sub[256];
    put_file("data", data, sizeof data);
    snprintf(sub, sizeof sub, "%s/sub", dir);
    mkdir(sub, 0777);
    put_file("sub/data", data, sizeof data);
    int fd = mkstemp(outside);
    assert_int_equal(write(fd, data, sizeof data), sizeof data);
    close(fd);
    snprintf(path, sizeof path, "%s/link", dir);
    assert_int_equal(symlink(outside, path), 0);
    snprintf(path, sizeof path, "%s/inner", dir);
    assert_int_equal(symlink("sub/data", path), 0);
    static const struct {
        const char *location, *offset, *length;
        pith_status status;
        const char *text;
        float first;
    } cases[] = {
        { "data", NULL, NULL, PITH_OK, "", 1 },
        { "data", "4", "8", PITH_OK, "", 2 },
        { "data", "12", NULL, PITH_OK, "", 4 },
        { "sub/data", "8", "8", PITH_OK, "", 3 },
        { "inner", "0", "8", PITH_OK, "", 1 },
        { "data", "3", "8", PITH_OK, "", 0 }, /* not aligned: copied */
        { "data", "16", "8", PITH_ERR_FORMAT, "begins at byte 16 and has 8 bytes", 0 },
        { "data", "18446744073709551615", "8", PITH_ERR_FORMAT, "begins at byte", 0 },
        { "data", "18446744073709551616", "8", PITH_ERR_FORMAT, "offset", 0 },
        { "data", "-1", "8", PITH_ERR_FORMAT, "offset", 0 },
        { "data", "0", "12", PITH_ERR_FORMAT, "has 12 bytes, but the shape needs 8", 0 },
        { "missing", "0", "8", PITH_ERR_NOT_FOUND, "missing", 0 },
        { NULL, NULL, NULL, PITH_ERR_FORMAT, "is empty", 0 },
        { "../data", "0", "8", PITH_ERR_FORMAT, "points outside its folder", 0 },
        { "sub/../data", "0", "8", PITH_ERR_FORMAT, "points outside its folder", 0 },
        { "/etc/passwd", "0", "8", PITH_ERR_FORMAT, "is absolute", 0 },
        { "link", "0", "8", PITH_ERR_FORMAT, "outside the model's folder", 0 },
        { "sub", "0", "8", PITH_ERR_IO, "directory", 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        message graph = external(cases[i].location, cases[i].offset, cases[i].length),
                m = model(&graph, 8);
        pith__graph *g;
        pith_str bytes = { m.data, m.size };
        pith_status status = pith__onnx_read(&g, bytes, dir, &files, &arena, NULL, &err);
        assert_int_equal(status, cases[i].status);
        if (status && !strstr(err.message, cases[i].text))
            fail_msg("'%s' does not name '%s'", err.message, cases[i].text);
        if (status) continue;
        float first;
        memcpy(&first, find(g, "w")->type.data->data, sizeof first);
        if (cases[i].first != 0)
            assert_true(first == cases[i].first);
        else
            assert_memory_equal(&first, (const char *)data + 3, sizeof first);
    }
    message graph = external("data", "0", "8");
    refuse(&graph, PITH_ERR_UNSUPPORTED, "external data is not allowed here");
    unlink(outside);
}

/* A download cache: a folder of links into a folder of files. */
static void external_data_behind_links(void **state) {
    (void)state;
    static const float data[] = { 6, 7 };
    char path[300], folder[256];
    message graph = external("data", NULL, NULL), m = model(&graph, 8);
    static const char *const folders[] = { "blobs", "snapshot" };
    for (int i = 0; i < 2; i++) {
        snprintf(folder, sizeof folder, "%s/%s", dir, folders[i]);
        assert_int_equal(mkdir(folder, 0777), 0);
    }
    put_file("blobs/one", m.data, m.size);
    put_file("blobs/two", data, sizeof data);
    snprintf(path, sizeof path, "%s/data", folder);
    assert_int_equal(symlink("../blobs/two", path), 0);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    assert_int_equal(symlink("../blobs/one", path), 0);
    pith__files own = { .arena = &arena };
    pith_str bytes = { m.data, m.size };
    pith__graph *g;
    assert_int_equal(pith__onnx_read(&g, bytes, folder, &own, &arena, NULL, &err), PITH_ERR_FORMAT);
    assert_int_equal(pith__files_open(&bytes, &own, path, &err), PITH_OK);
    assert_int_equal(pith__onnx_read(&g, bytes, folder, &own, &arena, NULL, &err), PITH_OK);
    assert_true(*(const float *)find(g, "w")->type.data->data == 6);
    pith__files_close(&own);
}

/* ---- graphs ---- */

static void names_and_types(void **state) {
    (void)state;
    message g = { 0 }, w = zeros("w", 3),
            hint = value_info("m", PITH_F32, 1, (int64_t[]){ 9 }, NULL);
    put_str(&g, 2, "net");
    put_message(&g, 5, &w);
    put_port(&g, 11, "x");
    message free_dims = value_info("z", PITH_I64, 2, (int64_t[]){ -1, -1 }, NULL);
    put_message(&g, 11, &free_dims);
    put_node(&g, node("Neg", "m", "y")); /* before what it reads */
    put_node(&g, node("Add", "x w - z", "m - n"));
    put_port(&g, 12, "y");
    put_message(&g, 13, &hint);
    pith__graph *graph = read_graph(&g);
    assert_true(pith__str_is(graph->name, "net"));
    assert_int_equal(graph->ir_version, 8);
    assert_int_equal(graph->input_count, 2);
    assert_int_equal(graph->output_count, 1);
    assert_int_equal(graph->node_count, 2);
    assert_true(pith__str_is(graph->first->op_type, "Add"));
    assert_int_equal(graph->first->index, 1);
    assert_int_equal(graph->first->opset, 17);
    assert_int_equal(graph->first->input_count, 4);
    assert_null(graph->first->inputs[2]);
    assert_null(graph->first->outputs[1]);
    assert_int_equal(graph->first->output_count, 3);
    const pith__value *x = graph->inputs[0], *z = graph->inputs[1], *m = find(graph, "m");
    assert_int_equal(x->type.dtype, PITH_F32);
    assert_int_equal(x->type.rank, 2);
    assert_int_equal(x->type.dims[1], 3);
    assert_true(pith__dim_equal(x->type.dims[0], pith__dim_symbol(graph->dims, PITH_STR("batch"))));
    assert_true(pith__dim_equal(z->type.dims[0], z->type.dims[0]) &&
                !pith__dim_equal(z->type.dims[0], z->type.dims[1]));
    assert_int_equal(m->type.rank, -1);
    assert_int_equal(m->hint->dims[0], 9);
    assert_int_equal(find(graph, "w")->kind, PITH_VALUE_CONST);
    assert_int_equal(find(graph, "y")->output_uses, 1);
}

static void initializers_listed_as_inputs(void **state) {
    (void)state;
    message g = { 0 }, w = zeros("w", 3);
    put_port(&g, 11, "x");
    put_port(&g, 11, "w");
    put_message(&g, 5, &w);
    put_node(&g, node("Add", "x w", "y"));
    put_port(&g, 12, "y");
    for (int ir = 3; ir <= 4; ir++) {
        message m = model(&g, ir);
        pith__graph *graph;
        assert_int_equal(read_model(&graph, &m), PITH_OK);
        assert_int_equal(graph->input_count, ir - 2);
        assert_int_equal(find(graph, "w")->kind, ir == 3 ? PITH_VALUE_CONST : PITH_VALUE_INPUT);
        assert_non_null(find(graph, "w")->type.data);
    }
}

static void put_attr(message *n, message attr) { put_message(n, 5, &attr); }

static message attr(const char *name, int kind) {
    message m = { 0 };
    put_str(&m, 1, name);
    if (kind) put_int(&m, 20, (uint64_t)kind);
    return m;
}

static void attributes(void **state) {
    (void)state;
    for (int typed = 0; typed < 2; typed++) { /* early files have no type */
        message g = { 0 }, n = node("Op", "x", "y"), a, t = zeros("t", 2), packed = { 0 };
        a = attr("f", typed * 1), put_float(&a, 2, 1.5f), put_attr(&n, a);
        a = attr("i", typed * 2), put_int(&a, 3, (uint64_t)-7), put_attr(&n, a);
        a = attr("s", typed * 3), put_str(&a, 4, "text"), put_attr(&n, a);
        a = attr("t", typed * 4), put_message(&a, 5, &t), put_attr(&n, a);
        a = attr("fs", typed * 6), put_float(&a, 7, 1), put_float(&a, 7, 2),
        put_bytes(&a, 7, "\0\0\x40\x40", 4), put_attr(&n, a);
        put_varint(&packed, 300), put_varint(&packed, (uint64_t)-1);
        a = attr("is", typed * 7), put_message(&a, 8, &packed), put_int(&a, 8, 5), put_attr(&n, a);
        a = attr("ss", typed * 8), put_str(&a, 9, "a"), put_str(&a, 9, ""), put_attr(&n, a);
        a = attr("ts", typed * 9), put_message(&a, 10, &t), put_message(&a, 10, &t),
        put_attr(&n, a);
        if (typed) a = attr("none", 7), put_attr(&n, a);
        put_port(&g, 11, "x");
        put_node(&g, n);
        put_port(&g, 12, "y");
        const pith__node *node0 = read_graph(&g)->first;
        size_t count;
        assert_true(pith__node_float(node0, "f", 0) == 1.5f);
        assert_int_equal(pith__node_int(node0, "i", 0), -7);
        assert_true(pith__str_is(pith__node_str(node0, "s", ""), "text"));
        assert_int_equal(pith__node_tensor(node0, "t")->dims[0], 2);
        const float *floats = pith__node_floats(node0, "fs", &count);
        assert_true(count == 3 && floats[0] == 1 && floats[1] == 2 && floats[2] == 3);
        const int64_t *ints = pith__node_ints(node0, "is", &count);
        assert_true(count == 3 && ints[0] == 300 && ints[1] == -1 && ints[2] == 5);
        const pith_str *strings = pith__node_strs(node0, "ss", &count);
        assert_true(count == 2 && pith__str_is(strings[0], "a") && pith__str_is(strings[1], ""));
        assert_int_equal(pith__node_attr(node0, "ts")->count, 2);
        if (typed) assert_int_equal(pith__node_attr(node0, "none")->count, 0);
    }
}

/* A graph whose one node makes `output` from `inputs`. */
static message body(const char *inputs, const char *output) {
    message g = { 0 };
    put_node(&g, node("Add", inputs, output));
    put_port(&g, 12, output);
    return g;
}

static void subgraphs_and_captures(void **state) {
    (void)state;
    message inner = body("x a", "r"), innermost = { 0 }, n, a;
    /* then: a nested If whose branches read x (two levels up) and a (one level up); else: w and x.
     */
    put_node(&innermost, node("Neg", "x", "a"));
    n = node("If", "c", "q");
    a = attr("then_branch", 5), put_message(&a, 6, &inner), put_attr(&n, a);
    a = attr("else_branch", 5), put_message(&a, 6, &inner), put_attr(&n, a);
    put_node(&innermost, n);
    put_port(&innermost, 12, "q");
    message other = body("w x", "o"), g = { 0 }, w = zeros("w", 3);
    n = node("If", "c", "y");
    a = attr("then_branch", 5), put_message(&a, 6, &innermost), put_attr(&n, a);
    a = attr("else_branch", 5), put_message(&a, 6, &other), put_attr(&n, a);
    put_message(&g, 5, &w);
    put_port(&g, 11, "x");
    put_port(&g, 11, "c");
    put_node(&g, n);
    put_port(&g, 12, "y");
    const pith__graph *graph = read_graph(&g);
    const pith__node *outer = graph->first;
    assert_int_equal(outer->capture_count, 3); /* x, c, w */
    assert_int_equal(outer->input_count, 4);
    const pith__graph *then_graph = pith__node_graph(outer, "then_branch"),
                      *else_graph = pith__node_graph(outer, "else_branch");
    assert_int_equal(then_graph->capture_count, 3);
    assert_int_equal(else_graph->capture_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(pith__str_eq(then_graph->captures[i]->name, outer->inputs[1 + i]->name));
        assert_true(pith__str_eq(else_graph->captures[i]->name, outer->inputs[1 + i]->name));
    }
    const pith__node *nested = then_graph->last;
    assert_true(pith__str_is(nested->op_type, "If"));
    assert_int_equal(nested->capture_count, 2); /* x, a */
    assert_int_equal(nested->inputs[1]->kind, PITH_VALUE_CAPTURE);
    assert_int_equal(nested->inputs[2]->kind, PITH_VALUE_NODE);
    assert_ptr_equal(nested->graph, then_graph);
    assert_ptr_equal(then_graph->parent, graph);
}

static void functions(void **state) {
    (void)state;
    message f = { 0 }, opset = { 0 }, n = node("Scale", "a", "b"), a = { 0 }, g = { 0 },
            call = node("Double", "x", "y");
    put_str(&a, 1, "factor"), put_int(&a, 20, 1), put_str(&a, 21, "by"), put_attr(&n, a);
    put_str(&f, 1, "Double"), put_str(&f, 10, "my"), put_str(&f, 4, "a"), put_str(&f, 5, "b"),
        put_str(&f, 6, "by");
    a = attr("also", 2), put_int(&a, 3, 4), put_message(&f, 11, &a);
    put_message(&f, 7, &n);
    put_int(&opset, 2, 13), put_message(&f, 9, &opset);
    put_str(&call, 7, "my");
    put_port(&g, 11, "x");
    put_node(&g, call);
    put_port(&g, 12, "y");
    message m = model(&g, 8);
    put_message(&m, 25, &f);
    pith__graph *graph;
    assert_int_equal(read_model(&graph, &m), PITH_OK);
    assert_true(pith__str_is(graph->first->domain, "my"));
    assert_int_equal(graph->function_count, 1);
    const pith__function *fn = &graph->functions[0];
    assert_true(pith__str_is(fn->name, "Double") && pith__str_is(fn->domain, "my"));
    assert_int_equal(fn->attr_name_count, 1);
    assert_int_equal(fn->default_count, 1);
    assert_int_equal(fn->defaults[0].integer, 4);
    assert_int_equal(fn->body->first->opset, 13);
    assert_true(pith__str_is(fn->body->first->attrs[0].reference, "by"));
    assert_int_equal(fn->body->input_count, 1);
    assert_ptr_equal(fn->body->outputs[0], fn->body->first->outputs[0]);
}

static void graphs_that_lie(void **state) {
    (void)state;
    message g = { 0 }, w = zeros("w", 3), sparse = { 0 };
    put_port(&g, 11, "x");
    message bad = g;
    put_node(&bad, node("Add", "x nothing", "y"));
    refuse(&bad, PITH_ERR_FORMAT,
           "node 0 'the node' (Add): input 'nothing' is neither the output of a node");
    bad = g;
    put_node(&bad, node("Neg", "x", "y")), put_node(&bad, node("Neg", "x", "y"));
    refuse(&bad, PITH_ERR_FORMAT, "'y' is defined twice");
    bad = g;
    put_message(&bad, 5, &w), put_message(&bad, 5, &w);
    refuse(&bad, PITH_ERR_FORMAT, "'w' is defined twice");
    bad = g;
    put_port(&bad, 12, "y");
    refuse(&bad, PITH_ERR_FORMAT, "output 'y' is not the output of any node");
    bad = g;
    put_node(&bad, node("Add", "x b", "a")), put_node(&bad, node("Neg", "a", "b"));
    refuse(&bad, PITH_ERR_FORMAT, "cycle");
    bad = g;
    put_node(&bad, node("", "x", "y"));
    refuse(&bad, PITH_ERR_FORMAT, "has no operator type");
    bad = g;
    put_message(&sparse, 1, &w), put_message(&bad, 15, &sparse);
    refuse(&bad, PITH_ERR_UNSUPPORTED, "sparse initializer 'w'");
    bad = g;
    message n = node("Op", "x", "y"), a = attr("v", 11);
    put_message(&a, 22, &sparse), put_attr(&n, a), put_node(&bad, n);
    refuse(&bad, PITH_ERR_UNSUPPORTED, "attribute 'v': attribute type 11");
    bad = g;
    n = node("Op", "x", "y"), a = attr("v", 1), put_int(&a, 2, 1), put_attr(&n, a),
    put_node(&bad, n);
    refuse(&bad, PITH_ERR_FORMAT, "attribute 'v': a value of the wrong kind");
    bad = g;
    n = node("Op", "x", "y"), a = attr("g", 5), put_attr(&n, a), put_node(&bad, n);
    refuse(&bad, PITH_ERR_FORMAT, "attribute 'g': has no value");
    pith__graph *graph;
    err = (pith_error)PITH_ERROR_INIT;
    assert_int_equal(pith__onnx_read(&graph, PITH_STR("hello, this is no model"), NULL, &files,
                                     &arena, NULL, &err),
                     PITH_ERR_FORMAT);
    assert_non_null(strstr(err.message, "not an ONNX file"));
    assert_int_equal(pith__onnx_read(&graph, PITH_STR(""), NULL, &files, &arena, NULL, &err),
                     PITH_ERR_FORMAT);
}

static void subgraphs_too_deep(void **state) {
    (void)state;
    message g = body("x x", "y");
    for (int depth = 0; depth < 40; depth++) {
        message outer = { 0 }, n = node("If", "x", "y"), a = attr("g", 5);
        put_message(&a, 6, &g), put_attr(&n, a), put_node(&outer, n);
        put_port(&outer, 12, "y");
        g = outer;
    }
    put_port(&g, 11, "x");
    refuse(&g, PITH_ERR_UNSUPPORTED, "nested more than 32 deep");
}

/* The number of nodes that index.csv states for each network. */
static void exported_networks(void **state) {
    (void)state;
    FILE *index = fopen(PITH_TEST_DATA "/models/index.csv", "r");
    assert_non_null(index);
    char line[4096];
    int read = 0;
    while (fgets(line, sizeof line, index)) {
        char *rest = line, *fields[8];
        for (int i = 0; i < 8; i++) fields[i] = strsep(&rest, ",");
        char folder[512], path[600];
        snprintf(folder, sizeof folder, PITH_TEST_DATA "/models/%s", fields[0]);
        snprintf(path, sizeof path, "%s/model.onnx", folder);
        if (!pith__file_exists(path)) continue;
        pith_str bytes;
        pith__graph *graph;
        assert_int_equal(pith__files_open(&bytes, &files, path, &err), PITH_OK);
        if (pith__onnx_read(&graph, bytes, folder, &files, &arena, NULL, &err))
            fail_msg("%s: %s", fields[0], err.message);
        assert_int_equal(pith__graph_check(graph, &err), PITH_OK);
        assert_int_equal(graph->node_count, atoi(fields[7]));
        read++;
    }
    fclose(index);
    assert_true(read > 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_in_every_form),
        cmocka_unit_test(values_written),
        cmocka_unit_test(values_not_written),
        cmocka_unit_test(sequences_and_optionals),
        cmocka_unit_test(tensors_that_lie),
        cmocka_unit_test(external_data),
        cmocka_unit_test(external_data_behind_links),
        cmocka_unit_test(names_and_types),
        cmocka_unit_test(initializers_listed_as_inputs),
        cmocka_unit_test(attributes),
        cmocka_unit_test(subgraphs_and_captures),
        cmocka_unit_test(functions),
        cmocka_unit_test(graphs_that_lie),
        cmocka_unit_test(subgraphs_too_deep),
        cmocka_unit_test(exported_networks),
    };
    return cmocka_run_group_tests(tests, loader_setup, loader_teardown);
}
