/* test_embed_padding.c - padding changes no bit. The embedder computes none, whatever the
 * tokenizer's file says of it; a session that is given padded rows and their mask gives each token
 * the bytes it has alone: padded on the right in every network, on the left in those that number
 * positions from the mask or the ids. A graph that numbers its columns (BERT and DistilBERT do, and
 * rotary positions are columns too) gives a text padded on the left other positions, so there is
 * nothing to be equal to. */
#include <dirent.h>

#include "support/embed_test.h"

#define DIRECTORY PITH_BINARY_DIR "/padding-forms"

enum { ROWS = 4, LENGTH = 12, OUTPUTS = 4, WIDTH_MAX = 4096 };
static const char *const words[ROWS] = { "a b c", "abc dab d", "", "d d d d d c b a" };

static bool has(const char *name, const char *part) { return strstr(name, part) != NULL; }

static bool numbers_from_mask(const char *name) {
    return has(name, "roberta-") || has(name, "mpnet-");
}

static pith_model *open_network(const char *name, const char *padding) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    network_directory(DIRECTORY, name, padding);
    if (pith_model_open(&model, DIRECTORY, NULL, &err)) fail_msg("%s: %s", name, err.message);
    return model;
}

/* ---- the embedder ---- */

static void check_sections(const char *name) {
    static const char *const sections[] = {
        "null",
        "{\"strategy\": \"BatchLongest\", \"direction\": \"Right\", \"pad_to_multiple_of\": null, "
        "\"pad_id\": 0,"
        " \"pad_type_id\": 0, \"pad_token\": \"z\"}",
        "{\"strategy\": {\"Fixed\": 16}, \"direction\": \"Left\", \"pad_to_multiple_of\": 8, "
        "\"pad_id\": 0,"
        " \"pad_type_id\": 0, \"pad_token\": \"z\"}",
    };
    static float first[ROWS * WIDTH_MAX], vectors[ROWS * WIDTH_MAX];
    pith_str texts[ROWS];
    for (int i = 0; i < ROWS; i++) texts[i] = pith__str_of(words[i]);
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++) {
        pith_model *model = open_network(name, sections[s]);
        pith_embed_stats stats = { 0 };
        pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
        size_t bytes = ROWS * pith_embed_dim(model, NULL) * sizeof(float);
        assert_in_range(bytes, 1, sizeof vectors);
        options.stats = &stats;
        embed(s ? vectors : first, model, texts, ROWS, &options);
        assert_int_equal(stats.padded_tokens, 0);
        assert_int_equal(stats.tokens, 5 + 9 + 2 + 10);
        if (s) assert_memory_equal(vectors, first, bytes);
        pith_model_close(model);
    }
}

/* ---- sessions ---- */

typedef struct rows {
    int64_t ids[ROWS * LENGTH], mask[ROWS * LENGTH], types[ROWS * LENGTH];
    int first[ROWS], count[ROWS]; /* where a row's tokens stand */
} rows;

static void fill(rows *r, const pith_model *model, int64_t pad, bool left) {
    pith_tokens tokens = PITH_TOKENS_INIT;
    memset(r, 0, sizeof *r);
    for (int i = 0; i < ROWS; i++) {
        pith_error err = PITH_ERROR_INIT;
        if (pith_tokenize(&tokens, pith_model_tokenizer(model), pith__str_of(words[i]), NULL, NULL,
                          &err))
            fail_msg("%s", err.message);
        r->count[i] = (int)tokens.count;
        r->first[i] = left ? LENGTH - r->count[i] : 0;
        assert_in_range(tokens.count, 1, LENGTH - 1);
        for (int t = 0; t < LENGTH; t++) {
            bool real = t >= r->first[i] && t < r->first[i] + r->count[i];
            r->ids[i * LENGTH + t] = real ? tokens.ids[t - r->first[i]] : pad;
            r->mask[i * LENGTH + t] = real;
        }
    }
    pith_tokens_free(&tokens);
}

/* `count` columns from `begin` on of `rows_wanted` rows. */
static void run(pith_tensor *outputs, pith_session *session, const pith_model *model, rows *r,
                int row, int rows_wanted, int begin, int count) {
    pith_error err = PITH_ERROR_INIT;
    const char *names[3];
    pith_tensor inputs[3];
    size_t n = pith_model_input_count(model), at = (size_t)(row * LENGTH + begin);
    assert_true(n <= 3 && pith_model_output_count(model) <= OUTPUTS);
    for (size_t i = 0; i < n; i++) {
        names[i] = pith_model_input(model, i)->name;
        int64_t *data = has(names[i], "mask") ? r->mask : has(names[i], "type") ? r->types : r->ids;
        inputs[i] = (pith_tensor){ .data = data + at,
                                   .bytes = (size_t)(rows_wanted * count) * 8,
                                   .dtype = PITH_I64,
                                   .rank = 2,
                                   .dims = { rows_wanted, count } };
    }
    if (pith_session_run(session, outputs, names, inputs, n, NULL, &err))
        fail_msg("%s", err.message);
}

/* The output's floats for a row (of its tokens, where it has a row a token). */
static const float *row_of(const pith_tensor *t, int row, int first, int count, size_t *floats) {
    size_t width = (size_t)t->dims[t->rank - 1];
    assert_int_equal(t->dtype, PITH_F32);
    *floats = (t->rank == 3 ? (size_t)count : 1) * width;
    return (const float *)t->data + (size_t)row * (t->rank == 3 ? (size_t)t->dims[1] : 1) * width +
           (t->rank == 3 ? (size_t)first : 0) * width;
}

static void check_side(const char *name, const pith_model *model, bool left) {
    pith_error err = PITH_ERROR_INIT;
    pith_session *padded = NULL, *alone = NULL;
    pith_tensor all[OUTPUTS], one[OUTPUTS];
    static rows r;
    fill(&r, model, numbers_from_mask(name) ? 1 : 0, left);
    assert_int_equal(pith_session_create(&padded, model, &err), PITH_OK);
    assert_int_equal(pith_session_create(&alone, model, &err), PITH_OK);
    run(all, padded, model, &r, 0, ROWS, 0, LENGTH);
    for (int i = 0; i < ROWS; i++) {
        run(one, alone, model, &r, i, 1, r.first[i], r.count[i]);
        for (size_t o = 0; o < pith_model_output_count(model); o++) {
            size_t floats, floats_alone;
            const float *x = row_of(&all[o], i, r.first[i], r.count[i], &floats),
                        *y = row_of(&one[o], 0, 0, r.count[i], &floats_alone);
            assert_int_equal(floats, floats_alone);
            /* The first column of a row padded on the left is padding: a pooler takes that. */
            if (left && all[o].rank == 2 && has(pith_model_output(model, o)->name, "pooler"))
                continue;
            if (memcmp(x, y, floats * sizeof *x))
                fail_msg("%s, padded %s, row %d, output %s: other bytes", name,
                         left ? "left" : "right", i, pith_model_output(model, o)->name);
        }
    }
    pith_session_destroy(padded);
    pith_session_destroy(alone);
}

static int is_model(const struct dirent *entry) {
    /* Its data must lie beside the external one's file; quantised ones see the whole batch when
     * they are run. */
    return has(entry->d_name, "-") && !has(entry->d_name, "external") &&
           !has(entry->d_name, "int8") && entry->d_name[0] != '.';
}

static void test_networks(void **state) {
    (void)state;
    struct dirent **entries;
    int count = scandir(PITH_TEST_DATA "/models", &entries, is_model, alphasort), left = 0;
    assert_true(count > 30);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        check_sections(name);
        pith_model *model = open_network(name, "null");
        check_side(name, model, false);
        if (numbers_from_mask(name)) check_side(name, model, true), left++;
        pith_model_close(model);
        free(entries[i]);
    }
    free(entries);
    assert_true(left >= 4);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_networks) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
