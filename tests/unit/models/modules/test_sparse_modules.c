/* test_sparse_modules.c - the sparse encoders of tests/data/sparse_modules against the vectors of
 * sentence-transformers; the same bits in any order and number of threads, and from a compiled
 * file; and what such models refuse. */
#include <dirent.h>

#include "support/encode_test.h"
#include "support/module_texts.h"

#define CASES_DIR PITH_TEST_DATA "/sparse_modules"
#define COMPILED PITH_BINARY_DIR "/sparse-module.pith"
enum { WIDTH_MAX = 64, CASES_LEAST = 6, LEVEL_MAX = 3 };

typedef struct sparse_case {
    char dir[300], file[64], route[32];
    float want[TEXTS * WIDTH_MAX];
    size_t width;
} sparse_case;

static void read_want(sparse_case *c) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", c->dir, c->file);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(c->want, sizeof *c->want, TEXTS * WIDTH_MAX, f);
    fclose(f);
    assert_true(n && n % TEXTS == 0);
    c->width = n / TEXTS;
    const char *route = strstr(c->file, ".route=");
    c->route[0] = 0;
    if (route) sscanf(route + 7, "%31[^.]", c->route);
}

/* Every number that is not 0 is there, and no other; differences count beside the vector's length.
 */
static void check(const sparse_case *c, const pith_sparse_rows *rows, int level) {
    double worst = 0;
    for (size_t i = 0; i < TEXTS; i++) {
        const float *want = c->want + i * c->width;
        int64_t at = rows->offsets[i];
        double length = 0;
        for (size_t k = 0; k < c->width; k++) length += (double)want[k] * (double)want[k];
        length = fmax(sqrt(length), 1e-12);
        for (size_t k = 0; k < c->width; k++) {
            if (want[k] == 0) continue;
            if (at == rows->offsets[i + 1] || rows->indices[at] != (int32_t)k)
                fail_msg("%s %s, level %d, text %zu: component %zu is not there", c->dir, c->file,
                         level, i, k);
            worst = fmax(worst, fabs((double)rows->values[at++] - (double)want[k]) / length);
        }
        if (at != rows->offsets[i + 1])
            fail_msg("%s %s, text %zu: more than are wanted", c->dir, c->file, i);
    }
    print_message("%s %s, level %d: %.2g\n", strrchr(c->dir, '/') + 1, c->file, level, worst);
    if (!(worst <= 1e-6)) fail_msg("%s %s, level %d: differs by %g", c->dir, c->file, level, worst);
}

static void same_bits(const pith_model *m, const pith_encoded *all) {
    pith_str turned[TEXTS];
    pith_embed_options embed = PITH_EMBED_OPTIONS_INIT;
    embed.call.threads = 3;
    embed.batch_tokens = 5;
    for (int i = 0; i < TEXTS; i++) turned[i] = texts[TEXTS - 1 - i];
    pith_encoded *other =
        encode_all(m, turned, TEXTS, PITH_ENCODE_SPARSE, PITH_ROLE_DOCUMENT, &embed);
    for (int i = 0; i < TEXTS; i++) {
        const int64_t a = all->sparse.offsets[i], b = other->sparse.offsets[TEXTS - 1 - i];
        const int64_t n = all->sparse.offsets[i + 1] - a;
        assert_int_equal(other->sparse.offsets[TEXTS - i] - b, n);
        if (!n) continue;
        assert_memory_equal(all->sparse.indices + a, other->sparse.indices + b,
                            (size_t)n * sizeof(int32_t));
        assert_memory_equal(all->sparse.values + a, other->sparse.values + b,
                            (size_t)n * sizeof(float));
    }
    pith_encoded_free(other);
}

static int32_t write_piece(void *file, const void *data, size_t size) {
    return fwrite(data, 1, size, file) != size;
}

static void same_bits_compiled(const pith_model *m, const pith_encoded *all) {
    pith_error err = PITH_ERROR_INIT;
    FILE *f = fopen(COMPILED, "wb");
    assert_non_null(f);
    if (pith_model_save(m, NULL, &(pith_writer){ write_piece, NULL, f }, &err))
        fail_msg("%s", err.message);
    assert_int_equal(fclose(f), 0);
    pith_model *again = encode_open(COMPILED);
    pith_encoded *e = encode_all(again, texts, TEXTS, PITH_ENCODE_SPARSE, PITH_ROLE_DOCUMENT, NULL);
    encode_same_sparse(&e->sparse, &all->sparse, TEXTS);
    pith_encoded_free(e);
    pith_model_close(again);
}

static pith_model *open_case(const char *dir, const char *route, int level) {
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_model *m = NULL;
    open.optimization = level ? level : PITH_OPTIMIZATION_NONE;
    open.route = route[0] ? route : NULL;
    if (pith_model_open(&m, dir, &open, &err)) fail_msg("%s: %s", dir, err.message);
    return m;
}

static void run_case(sparse_case *c) {
    read_want(c);
    for (int level = 0; level <= LEVEL_MAX; level += LEVEL_MAX) {
        pith_model *m = open_case(c->dir, c->route, level);
        pith_encoded *e = encode_all(m, texts, TEXTS, PITH_ENCODE_SPARSE, PITH_ROLE_DOCUMENT, NULL);
        check(c, &e->sparse, level);
        same_bits(m, e);
        if (level) same_bits_compiled(m, e);
        pith_encoded_free(e);
        pith_model_close(m);
    }
}

static void test_cases(void **state) {
    (void)state;
    static sparse_case c;
    int count = 0;
    DIR *folder = opendir(CASES_DIR);
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (strchr(entry->d_name, '.')) continue;
        snprintf(c.dir, sizeof c.dir, CASES_DIR "/%.100s", entry->d_name);
        DIR *files = opendir(c.dir);
        assert_non_null(files);
        for (const struct dirent *file; (file = readdir(files));) {
            if (strncmp(file->d_name, "expected", 8) != 0) continue;
            snprintf(c.file, sizeof c.file, "%.60s", file->d_name);
            run_case(&c);
        }
        closedir(files);
        count++;
    }
    closedir(folder);
    assert_true(count >= CASES_LEAST);
}

/* Codes of an autoencoder are vectors too, with zeros between them; words with a weight of their
 * own are not. */
static void test_dense(void **state) {
    (void)state;
    float vector[WIDTH_MAX];
    pith_error err = PITH_ERROR_INIT;
    pith_model *m = open_case(CASES_DIR "/code", "", LEVEL_MAX);
    assert_int_equal(pith_encode_can(m) & (PITH_ENCODE_DENSE | PITH_ENCODE_SPARSE),
                     PITH_ENCODE_DENSE | PITH_ENCODE_SPARSE);
    assert_int_equal(pith_embed_dim(m, NULL), 24);
    pith_encoded *e =
        encode_all(m, texts, 1, PITH_ENCODE_SPARSE | PITH_ENCODE_DENSE, PITH_ROLE_DOCUMENT, NULL);
    if (pith_embed(vector, m, texts, 1, NULL, &err)) fail_msg("%s", err.message);
    assert_memory_equal(vector, e->dense, 24 * sizeof *vector);
    int64_t at = 0;
    for (int32_t i = 0; i < 24; i++) {
        const bool there = at < e->sparse.offsets[1] && e->sparse.indices[at] == i;
        assert_true(there ? vector[i] == e->sparse.values[at] && vector[i] > 0 : vector[i] == 0);
        at += there;
    }
    assert_int_equal(at, 4);
    pith_encoded_free(e);
    pith_model_close(m);
    m = open_case(CASES_DIR "/static", "", LEVEL_MAX);
    assert_int_equal(pith_encode_can(m) & (PITH_ENCODE_TOKENS | PITH_ENCODE_SPARSE),
                     PITH_ENCODE_SPARSE);
    assert_int_equal(pith_embed(vector, m, texts, 1, NULL, &err), PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "the modules make sparse vectors, not dense ones"));
    pith_model_close(m);
}

/* A text without tokens has no weights. */
static void test_empty(void **state) {
    (void)state;
    const pith_str none = PITH_STR("");
    pith_model *m = open_case(CASES_DIR "/static", "", LEVEL_MAX);
    pith_encoded *e = encode_all(m, &none, 1, PITH_ENCODE_SPARSE, PITH_ROLE_QUERY, NULL);
    assert_int_equal(e->sparse.offsets[1], 0);
    pith_encoded_free(e);
    pith_model_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases), cmocka_unit_test(test_dense),
                                        cmocka_unit_test(test_empty) };
    return cmocka_run_group_tests(tests, read_texts, NULL);
}
