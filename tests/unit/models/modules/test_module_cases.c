/* test_module_cases.c - the model directories of tests/data/modules against the vectors of
 * sentence-transformers and Model2Vec; the same bits alone, in another order, with other threads
 * and chunks, and from a compiled file. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>

#include "support/module_texts.h"

enum { DIM_MAX = 64, CASES_LEAST = 26, LEVEL_MAX = 3 };

typedef struct module_case {
    char dir[256], file[64], prompt[32], route[32];
    float want[TEXTS][DIM_MAX], got[TEXTS][DIM_MAX];
    size_t dim;
} module_case;

/* The value of "key=" in the name of the file of expected vectors, up to the next dot; empty if
 * there is none. */
static void take_value(char *value, const char *file, const char *key) {
    const char *at = strstr(file, key);
    value[0] = 0;
    if (at) sscanf(at + strlen(key), "%31[^.]", value);
}

static void read_want(module_case *c) {
    char path[400];
    static float numbers[TEXTS * DIM_MAX];
    snprintf(path, sizeof path, "%s/%s", c->dir, c->file);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(numbers, sizeof *numbers, TEXTS * DIM_MAX, f);
    fclose(f);
    c->dim = n / TEXTS;
    assert_true(n % TEXTS == 0 && c->dim);
    for (size_t i = 0; i < n; i++) c->want[i / c->dim][i % c->dim] = numbers[i];
}

static pith_embed_options embed_options(const module_case *c) {
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    options.prompt_name = c->prompt[0] ? c->prompt : NULL;
    options.call.threads = 1;
    return options;
}

static void embed(float (*rows)[DIM_MAX], const pith_model *m, const module_case *c,
                  const pith_str *in, size_t count, const pith_embed_options *options) {
    static float vectors[TEXTS * DIM_MAX];
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(pith_embed_dim(m, options), c->dim);
    if (pith_embed(vectors, m, in, count, options, &err)) fail_msg("%s: %s", c->dir, err.message);
    for (size_t i = 0; i < count; i++)
        memcpy(rows[i], vectors + i * c->dim, c->dim * sizeof(float));
}

/* The largest difference of a component, both vectors scaled to length 1. */
static double difference(const module_case *c) {
    double worst = 0;
    for (int i = 0; i < TEXTS; i++) {
        double a = 0, b = 0;
        for (size_t d = 0; d < c->dim; d++) {
            a += (double)c->got[i][d] * c->got[i][d];
            b += (double)c->want[i][d] * c->want[i][d];
        }
        for (size_t d = 0; d < c->dim; d++)
            worst = fmax(worst, fabs(c->got[i][d] / fmax(sqrt(a), 1e-12) -
                                     c->want[i][d] / fmax(sqrt(b), 1e-12)));
    }
    return worst;
}

static void expect_rows(float (*rows)[DIM_MAX], const module_case *c, int first, int count,
                        const char *how) {
    for (int i = 0; i < count; i++)
        if (memcmp(rows[i], c->got[first + i], c->dim * sizeof(float)))
            fail_msg("%s %s: text %d has other bits %s", c->dir, c->file, first + i, how);
}

static void same_bits(const pith_model *m, const module_case *c) {
    static float rows[TEXTS][DIM_MAX];
    pith_embed_options options = embed_options(c);
    pith_str turned[TEXTS];
    for (int i = 0; i < TEXTS; i++) {
        embed(rows, m, c, &texts[i], 1, &options);
        expect_rows(rows, c, i, 1, "alone");
        turned[TEXTS - 1 - i] = texts[i];
    }
    embed(rows, m, c, turned, TEXTS, &options);
    for (int i = 0; i < TEXTS; i++) expect_rows(&rows[TEXTS - 1 - i], c, i, 1, "in another order");
    options.call.threads = 3;
    options.batch_tokens = 5;
    embed(rows, m, c, texts, TEXTS, &options);
    expect_rows(rows, c, 0, TEXTS, "with other threads and chunks");
}

typedef struct saved_file {
    char *bytes;
    size_t size;
} saved_file;

static int32_t make_room(void *user, uint64_t total) {
    saved_file *s = user;
    s->bytes = malloc(total);
    return !s->bytes;
}

static int32_t append(void *user, const void *data, size_t size) {
    saved_file *s = user;
    memcpy(s->bytes + s->size, data, size);
    s->size += size;
    return 0;
}

static void same_bits_compiled(const pith_model *m, const module_case *c) {
    static float rows[TEXTS][DIM_MAX];
    const pith_embed_options options = embed_options(c);
    pith_error err = PITH_ERROR_INIT;
    saved_file s = { NULL, 0 };
    pith_model *again;
    if (pith_model_save(m, NULL, &(pith_writer){ append, make_room, &s }, &err))
        fail_msg("%s: %s", c->dir, err.message);
    if (pith_model_open_memory(&again, s.bytes, s.size, NULL, &err))
        fail_msg("%s: %s", c->dir, err.message);
    embed(rows, again, c, texts, TEXTS, &options);
    expect_rows(rows, c, 0, TEXTS, "from a compiled file");
    pith_model_close(again);
    free(s.bytes);
}

static void check(module_case *c) {
    take_value(c->prompt, c->file, ".prompt=");
    take_value(c->route, c->file, ".route=");
    read_want(c);
    for (int level = 0; level <= LEVEL_MAX; level += LEVEL_MAX) {
        pith_open_options open = PITH_OPEN_OPTIONS_INIT;
        const pith_embed_options options = embed_options(c);
        pith_error err = PITH_ERROR_INIT;
        pith_model *m;
        open.optimization = level ? level : PITH_OPTIMIZATION_NONE;
        open.route = c->route[0] ? c->route : NULL;
        if (pith_model_open(&m, c->dir, &open, &err)) fail_msg("%s: %s", c->dir, err.message);
        embed(c->got, m, c, texts, TEXTS, &options);
        double d = difference(c);
        print_message("%s %s, level %d: %.2g\n", strrchr(c->dir, '/') + 1, c->file, level, d);
        if (!(d <= 1e-6)) fail_msg("%s %s, level %d: differs by %g", c->dir, c->file, level, d);
        same_bits(m, c);
        if (level) same_bits_compiled(m, c);
        pith_model_close(m);
    }
}

static void cases(void **state) {
    (void)state;
    static module_case c;
    int count = 0;
    DIR *folder = opendir(PITH_TEST_DATA "/modules");
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (strchr(entry->d_name, '.')) continue;
        snprintf(c.dir, sizeof c.dir, PITH_TEST_DATA "/modules/%.100s", entry->d_name);
        DIR *files = opendir(c.dir);
        assert_non_null(files);
        for (const struct dirent *file; (file = readdir(files));) {
            if (strncmp(file->d_name, "expected", 8) != 0) continue;
            snprintf(c.file, sizeof c.file, "%.60s", file->d_name);
            check(&c);
        }
        closedir(files);
        count++;
    }
    closedir(folder);
    assert_true(count >= CASES_LEAST);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(cases) };
    return cmocka_run_group_tests(tests, read_texts, NULL);
}
