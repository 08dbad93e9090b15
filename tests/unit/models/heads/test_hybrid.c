/* test_hybrid.c - BM42 and miniCOIL: tiny models in their layouts beside fastembed's classes
 * (tests/data/hybrid), equal bits however a text is encoded, and damaged files. */
#include <dirent.h>

#include "base/formats/json.h"
#include "base/half.h"
#include "base/os/file.h"
#include "base/str.h"
#include "support/encode_test.h"
#include "support/failing_alloc.h"

#define BM42 PITH_TEST_DATA "/hybrid/bm42"
#define MINICOIL PITH_TEST_DATA "/hybrid/minicoil"
#define COPY PITH_BINARY_DIR "/hybrid-copy"
#define COMPILED PITH_BINARY_DIR "/hybrid.pith"
#define MATRICES "minicoil.triplet.model.npy"
#define WORDS "minicoil.triplet.model.vocab"
enum { LINES = 40, ENTRIES = 200 };

typedef struct expected {
    int32_t indices[ENTRIES];
    double values[ENTRIES];
    size_t count;
} expected;

typedef struct line {
    pith_str text;
    double alpha, k, b, avg_len; /* -1: the default */
    expected roles[2];
} line;

static line lines[LINES];
static size_t line_count;
static pith__arena arena;

static void read_vector(pith__json *j, expected *e) {
    pith_str key;
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        size_t n = 0;
        const bool indices = pith__str_is(key, "indices");
        for (pith__json_array(j); pith__json_next_item(j); n++) {
            assert_true(n < ENTRIES);
            if (indices)
                e->indices[n] = (int32_t)pith__json_int(j);
            else
                e->values[n] = pith__json_double(j);
        }
        e->count = n;
    }
}

static double *read_number(line *l, pith_str key) {
    if (pith__str_is(key, "alpha")) return &l->alpha;
    if (pith__str_is(key, "k")) return &l->k;
    if (pith__str_is(key, "b")) return &l->b;
    return pith__str_is(key, "avg_len") ? &l->avg_len : NULL;
}

static void read_lines(const char *model) {
    char path[700];
    pith__file file;
    pith_error err = PITH_ERROR_INIT;
    snprintf(path, sizeof path, "%s/expected.jsonl", model);
    assert_int_equal(pith__file_open(&file, path, true, &pith__allocator_default, &err), PITH_OK);
    const char *p = (const char *)file.data, *end = p + file.size;
    line_count = 0;
    for (const char *stop; p < end && (stop = memchr(p, '\n', (size_t)(end - p))); p = stop + 1) {
        pith__json j;
        pith_str key;
        line *l = &lines[line_count++];
        assert_true(line_count <= LINES);
        pith__json_init(&j, (pith_str){ p, (size_t)(stop - p) }, "expected.jsonl", &arena, &err);
        l->alpha = l->k = l->b = l->avg_len = -1;
        for (pith__json_object(&j); pith__json_next_key(&j, &key);) {
            double *number = read_number(l, key);
            if (number)
                *number = pith__json_double(&j);
            else if (pith__str_is(key, "text"))
                l->text = pith__json_copy(&j, &arena, pith__json_string(&j));
            else
                read_vector(
                    &j,
                    &l->roles[pith__str_is(key, "query") ? PITH_ROLE_QUERY : PITH_ROLE_DOCUMENT]);
        }
        if (j.failed) fail_msg("%s", err.message);
    }
    pith__file_close(&file);
    assert_true(line_count >= 15);
}

static void check_vector(const pith_sparse_rows *rows, size_t row, const expected *e,
                         double tolerance, size_t number) {
    const int64_t begin = rows->offsets[row];
    if (rows->offsets[row + 1] - begin != (int64_t)e->count)
        fail_msg("line %zu: %lld entries, not %zu", number,
                 (long long)(rows->offsets[row + 1] - begin), e->count);
    for (size_t k = 0; k < e->count; k++) {
        const double value = (double)rows->values[begin + (int64_t)k];
        assert_int_equal(rows->indices[begin + (int64_t)k], e->indices[k]);
        if (!(fabs(value - e->values[k]) <= tolerance))
            fail_msg("line %zu, entry %zu: %.9g instead of %.9g", number, k, value, e->values[k]);
    }
}

static pith_encoded *encode_line(const pith_model *model, const line *l, int role) {
    pith_encode_options options = PITH_ENCODE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_encoded *e = NULL;
    options.what = PITH_ENCODE_SPARSE;
    options.role = role;
    if (l->alpha >= 0) options.alpha = l->alpha;
    if (l->k >= 0) options.k = l->k == 0 ? -1 : l->k; /* -1 stands for 0 there */
    if (l->b >= 0) options.b = l->b == 0 ? -1 : l->b;
    if (l->avg_len >= 0) options.avg_len = l->avg_len;
    if (pith_encode(&e, model, &l->text, 1, &options, &err)) fail_msg("%s", err.message);
    return e;
}

/* directory: with the lines. */
static void check_model(const char *path, const char *directory, double tolerance) {
    read_lines(directory);
    pith_model *model = encode_open(path);
    assert_true(pith_encode_can(model) & PITH_ENCODE_SPARSE);
    for (int role = 0; role < 2; role++) {
        size_t entries = 0;
        for (size_t i = 0; i < line_count; i++) {
            pith_encoded *e = encode_line(model, &lines[i], role);
            check_vector(&e->sparse, 0, &lines[i].roles[role], tolerance, i);
            entries += lines[i].roles[role].count;
            pith_encoded_free(e);
        }
        assert_true(entries > 40);
    }
    pith_model_close(model);
}

static void test_bm42(void **state) {
    (void)state;
    check_model(BM42, BM42, 5e-7);
}

/* A graph without an output for dense vectors, attention.onnx, gives the same sparse ones. */
static void test_attention_only(void **state) {
    (void)state;
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    float vector[8];
    const pith_str text = PITH_STR("dog");
    open.model_file = "attention.onnx";
    read_lines(BM42);
    if (pith_model_open(&model, BM42, &open, &err)) fail_msg("%s", err.message);
    assert_int_equal(pith_encode_can(model), PITH_ENCODE_SPARSE);
    for (int role = 0; role < 2; role++)
        for (size_t i = 0; i < line_count; i++) {
            pith_encoded *e = encode_line(model, &lines[i], role);
            check_vector(&e->sparse, 0, &lines[i].roles[role], 5e-7, i);
            pith_encoded_free(e);
        }
    assert_int_equal(pith_embed_dim(model, NULL), 0);
    assert_int_equal(pith_embed_max_length(model, NULL), 64);
    assert_int_equal(pith_embed(vector, model, &text, 1, NULL, &err), PITH_ERR_UNSUPPORTED);
    assert_non_null(
        strstr(err.message, "the model has no dense vectors: its graph gives attention only"));
    encode_refuses(model, PITH_ENCODE_DENSE, PITH_ROLE_DOCUMENT, PITH_ERR_UNSUPPORTED,
                   "no dense vectors");
    encode_refuses(model, PITH_ENCODE_TOKENS, PITH_ROLE_DOCUMENT, PITH_ERR_UNSUPPORTED,
                   "attention only");
    encode_refuses(model, PITH_ENCODE_MULTI_VECTOR, PITH_ROLE_QUERY, PITH_ERR_UNSUPPORTED,
                   "attention only");
    pith_model_close(model);
}

/* Queries need the words alone; only what is asked for beside them runs the network. */
static void test_query_words(void **state) {
    (void)state;
    pith_statistics s = PITH_STATISTICS_INIT;
    pith_error err = PITH_ERROR_INIT;
    read_lines(BM42);
    pith_model *model = encode_open(BM42);
    for (size_t i = 0; i < line_count; i++)
        pith_encoded_free(encode_line(model, &lines[i], PITH_ROLE_QUERY));
    assert_int_equal(pith_model_statistics(&s, model, &err), PITH_OK);
    assert_int_equal(s.batches, 0);
    assert_int_equal(s.texts, line_count);
    pith_encoded_free(encode_all(model, &lines[0].text, 1, PITH_ENCODE_SPARSE | PITH_ENCODE_DENSE,
                                 PITH_ROLE_QUERY, NULL));
    pith_encoded_free(encode_line(model, &lines[0], PITH_ROLE_DOCUMENT));
    assert_int_equal(pith_model_statistics(&s, model, &err), PITH_OK);
    assert_int_equal(s.batches, 2);
    pith_model_close(model);
}

static void test_minicoil(void **state) {
    (void)state;
    check_model(MINICOIL, MINICOIL, 5e-6);
}

/* Alone, in batches, reversed, and beside other kinds, with any number of threads. */
static void check_bits(const char *path, int role) {
    enum { COPIES = 8 };
    static pith_str texts[COPIES * LINES];
    read_lines(path);
    const size_t count = COPIES * line_count;
    pith_model *model = encode_open(path);
    for (size_t i = 0; i < count; i++) texts[i] = lines[(count - 1 - i) % line_count].text;
    for (int threads = 1; threads <= 3; threads++) {
        pith_embed_options embed = PITH_EMBED_OPTIONS_INIT;
        embed.call.threads = threads;
        const uint32_t what =
            PITH_ENCODE_SPARSE | (threads == 2 ? PITH_ENCODE_DENSE | PITH_ENCODE_TOKENS : 0);
        pith_encoded *all = encode_all(model, texts, count, what, role, &embed);
        for (size_t i = 0; i < count; i++) {
            pith_encoded *one = encode_all(model, &texts[i], 1, PITH_ENCODE_SPARSE, role, NULL);
            const int64_t begin = all->sparse.offsets[i];
            const size_t n = (size_t)(all->sparse.offsets[i + 1] - begin);
            assert_int_equal(one->sparse.offsets[1], n);
            if (n) {
                assert_memory_equal(one->sparse.indices, all->sparse.indices + begin,
                                    n * sizeof(int32_t));
                assert_memory_equal(one->sparse.values, all->sparse.values + begin,
                                    n * sizeof(float));
            }
            pith_encoded_free(one);
        }
        pith_encoded_free(all);
    }
    pith_model_close(model);
}

static void test_bits(void **state) {
    (void)state;
    for (int role = 0; role < 2; role++) {
        check_bits(BM42, role);
        check_bits(MINICOIL, role);
    }
}

static void test_numbers(void **state) {
    (void)state;
    static const struct {
        size_t offset;
        double value;
        const char *says;
    } rows[] = {
        { offsetof(pith_encode_options, alpha), -1, "alpha is -1; it must be above 0" },
        { offsetof(pith_encode_options, alpha), (double)NAN, "alpha is" },
        { offsetof(pith_encode_options, k), (double)NAN, "k is" },
        { offsetof(pith_encode_options, b), 1.5, "b is 1.5; it must be at least 0 and at most 1" },
        { offsetof(pith_encode_options, avg_len), -1, "avg_len is -1; it must be above 0" },
        { offsetof(pith_encode_options, avg_len), (double)INFINITY, "avg_len is inf" },
    };
    const pith_str text = PITH_STR("dog");
    pith_model *model = encode_open(MINICOIL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pith_encode_options options = PITH_ENCODE_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        pith_encoded *e;
        options.what = PITH_ENCODE_SPARSE;
        memcpy((char *)&options + rows[i].offset, &rows[i].value, sizeof rows[i].value);
        assert_int_equal(pith_encode(&e, model, &text, 1, &options, &err), PITH_ERR_ARGUMENT);
        if (!strstr(err.message, rows[i].says))
            fail_msg("'%s' is not in '%s'", rows[i].says, err.message);
    }
    pith_model_close(model);
}

/* ---- damaged files ---- */

static void copy_links(const char *from, const char *to) {
    char path[1500], target[1500];
    mkdir(to, 0777);
    DIR *dir = opendir(from);
    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir));) {
        if (d->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", to, d->d_name);
        snprintf(target, sizeof target, "%s/%s", from, d->d_name);
        unlink(path);
        assert_int_equal(symlink(target, path), 0);
    }
    closedir(dir);
}

static void put_bytes(const char *name, const void *data, size_t size) {
    char path[700];
    snprintf(path, sizeof path, COPY "/%s", name);
    unlink(path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

/* An array of zeros with this header and so many bytes. */
static void put_matrices(const char *header, size_t bytes) {
    static char data[8192];
    memset(data, 0, sizeof data);
    memcpy(data, "\x93NUMPY\x01", 7);
    data[8] = (char)strlen(header);
    memcpy(data + 10, header, strlen(header));
    assert_true(10 + strlen(header) + bytes <= sizeof data);
    put_bytes(MATRICES, data, 10 + strlen(header) + bytes);
}

static void expect_refused(pith_status status, const char *message) {
    pith_model *model = encode_open(COPY);
    encode_refuses(model, PITH_ENCODE_SPARSE, PITH_ROLE_DOCUMENT, status, message);
    pith_model_close(model);
}

static void test_damaged_matrices(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t bytes;
        const char *says;
    } rows[] = {
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (9, 8, 4), }", 1151,
          "has 1151 bytes behind its header" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (9, 8, 4), }", 1153,
          "has 1153 bytes behind its header" },
        { "{'descr': '<f2', 'fortran_order': False, 'shape': (9, 8, 4), }", 1152,
          "has 1152 bytes behind its header" },
        { "{'descr': '<f4', 'fortran_order': True, 'shape': (9, 8, 4), }", 1152, "in C order" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (9, 8, 4), }", 2304,
          "float32 or float16" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (9, 32), }", 1152,
          "[words, inputs, outputs]" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (9, 8, 4, 1), }", 1152,
          "[words, inputs, outputs]" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 8, 4), }", 0,
          "[words, inputs, outputs]" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999, 9999999999), "
          "}",
          0, "its shape" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (8, 8, 4), }", 1024,
          "vocab has 8 words" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (9, 4, 8), }", 1152,
          "the matrices of miniCOIL need 4 numbers, but the vectors of the model have 8" },
        { "", 8, "[words, inputs, outputs]" },
    };
    copy_links(MINICOIL, COPY);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_matrices(rows[i].header, rows[i].bytes);
        expect_refused(PITH_ERR_FORMAT, rows[i].says);
    }
    put_bytes(MATRICES, "\x93NUMPY\x03", 7);
    expect_refused(PITH_ERR_FORMAT, "is not a .npy file");
    put_bytes(MATRICES, "\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF....", 16);
    expect_refused(PITH_ERR_FORMAT, "is not a .npy file");
    put_bytes(MATRICES, "", 0);
    expect_refused(PITH_ERR_FORMAT, "is not a .npy file");
}

static void test_damaged_words(void **state) {
    (void)state;
    static const struct {
        const char *name, *data, *says;
    } rows[] = {
        { WORDS, "{\"vocab\": [\"dog\"], \"stem_mapping\": {\"cat\": \"cats\"}}",
          "'cat' stands for 'cats'" },
        { WORDS, "{\"vocab\": [1]}", WORDS ":1: vocab[0]" },
        { WORDS, "{\"vocab\": [\"a\"]", WORDS ":1" },
        { WORDS, "", WORDS },
        { WORDS, NULL, WORDS },
        { "stopwords.txt", "the\n\xFF\n", "stopwords.txt: is not UTF-8" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        copy_links(MINICOIL, COPY);
        put_bytes(rows[i].name, rows[i].data ? rows[i].data : "",
                  rows[i].data ? strlen(rows[i].data) : 0);
        if (!rows[i].data) unlink(COPY "/" WORDS);
        expect_refused(rows[i].data ? PITH_ERR_FORMAT : PITH_ERR_NOT_FOUND, rows[i].says);
    }
}

/* Matrices of float16 have the numbers of float32. */
static void test_half(void **state) {
    (void)state;
    pith__file file;
    pith_error err = PITH_ERROR_INIT;
    enum { NUMBERS = 9 * 8 * 4 };
    static char data[128 + 4 * NUMBERS];
    static const char header[] = "{'descr': '<f2', 'fortran_order': False, 'shape': (9, 8, 4), }";
    float numbers[NUMBERS];
    uint16_t halves[NUMBERS];
    read_lines(MINICOIL);
    assert_int_equal(
        pith__file_open(&file, MINICOIL "/" MATRICES, true, &pith__allocator_default, &err),
        PITH_OK);
    assert_int_equal(file.size, sizeof data);
    memcpy(data, file.data, sizeof data);
    pith__file_close(&file);
    memcpy(numbers, data + 128, sizeof numbers);
    for (size_t i = 0; i < NUMBERS; i++)
        numbers[i] = pith__f32_of_f16(halves[i] = pith__f16_of_f32(numbers[i]));
    memcpy(data + 128, numbers, sizeof numbers);
    pith_encoded *results[2];
    pith_model *models[2];
    for (int i = 0; i < 2; i++) {
        copy_links(MINICOIL, COPY);
        if (i) {
            memset(data, 0, 128);
            memcpy(data, "\x93NUMPY\x01", 7);
            data[8] = sizeof header - 1;
            memcpy(data + 10, header, sizeof header - 1);
            memcpy(data + 10 + sizeof header - 1, halves, sizeof halves);
        }
        put_bytes(MATRICES, data, i ? 10 + sizeof header - 1 + sizeof halves : sizeof data);
        models[i] = encode_open(COPY);
        results[i] =
            encode_all(models[i], &lines[0].text, 1, PITH_ENCODE_SPARSE, PITH_ROLE_DOCUMENT, NULL);
    }
    assert_true(results[0]->sparse.offsets[1] > 8);
    encode_same_sparse(&results[0]->sparse, &results[1]->sparse, 1);
    for (int i = 0; i < 2; i++) {
        pith_encoded_free(results[i]);
        pith_model_close(models[i]);
    }
}

static int32_t write_piece(void *file, const void *data, size_t size) {
    return fwrite(data, 1, size, file) != size;
}

/* What fastembed gives, out of a compiled file, whose directory is not needed. */
static void test_compiled(void **state) {
    (void)state;
    static const char *const paths[] = { BM42, MINICOIL };
    pith_error err = PITH_ERROR_INIT;
    for (int i = 0; i < 2; i++) {
        pith_model *model = encode_open(paths[i]);
        FILE *f = fopen(COMPILED, "wb");
        assert_non_null(f);
        if (pith_model_save(model, NULL, &(pith_writer){ write_piece, NULL, f }, &err))
            fail_msg("%s", err.message);
        assert_int_equal(fclose(f), 0);
        pith_model_close(model);
        check_model(COMPILED, paths[i], i ? 5e-6 : 5e-7);
        remove(COMPILED);
    }
}

/* Any allocation may fail: the call fails with PITH_ERR_MEMORY or gives the same, and nothing
 * leaks. */
static void check_memory(const char *path) {
    read_lines(path);
    for (long n = 0, calls = 1; n <= calls; n++) {
        counter c = { .fail_at = 0 };
        pith_allocator allocator = { count_alloc, count_free, &c };
        pith_open_options open = PITH_OPEN_OPTIONS_INIT;
        pith_encode_options options = PITH_ENCODE_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        pith_model *model = NULL;
        pith_encoded *e = NULL;
        open.call.allocator = &allocator;
        options.what = PITH_ENCODE_SPARSE;
        if (pith_model_open(&model, path, &open, &err)) fail_msg("%s", err.message);
        const long before = c.calls;
        c.fail_at = n ? before + n : 0;
        pith_status status = pith_encode(&e, model, &lines[0].text, 1, &options, &err);
        if (!n) calls = c.calls - before; /* how many there are */
        if (status) assert_int_equal(status, PITH_ERR_MEMORY);
        if (!status) check_vector(&e->sparse, 0, &lines[0].roles[0], 5e-6, 0);
        if (!status) pith_encoded_free(e);
        pith_model_close(model);
        assert_int_equal(c.live, 0);
        assert_true(calls > 5);
    }
}

static void test_memory(void **state) {
    (void)state;
    check_memory(BM42);
    check_memory(MINICOIL);
}

static int setup(void **state) {
    (void)state;
    pith__arena_init(&arena, &pith__allocator_default);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    pith__arena_free(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bm42),
        cmocka_unit_test(test_attention_only),
        cmocka_unit_test(test_query_words),
        cmocka_unit_test(test_minicoil),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_damaged_matrices),
        cmocka_unit_test(test_damaged_words),
        cmocka_unit_test(test_half),
        cmocka_unit_test(test_compiled),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
