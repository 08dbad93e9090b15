/* test_embed_weights.c - the embedder over every directory in tests/data/hf: all run packed, many
 * texts give the bits of each alone, and a text's vector is the mean of the rows that a session
 * computes of it. */
#include <dirent.h>

#include "support/embed_test.h"

#define DIRECTORY PITH_BINARY_DIR "/weights-forms"

enum { TEXTS = 7, WIDTH_MAX = 64, WORDS_MAX = 48, DESCRIPTION_MAX = 1 << 20 };
static const int lengths[TEXTS] = { 45, 1, 17, 30, 2, 0, 9 };

static void make_directory(const char *name) {
    static const char *const files[] = { "config.json", "model.safetensors",
                                         "model.safetensors.index.json",
                                         "model-00001-of-00002.safetensors",
                                         "model-00002-of-00002.safetensors" };
    char path[700], target[700];
    mkdir(DIRECTORY, 0777);
    word_tokenizer(DIRECTORY "/tokenizer.json");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, DIRECTORY "/%s", files[i]);
        snprintf(target, sizeof target, PITH_TEST_DATA "/hf/%s/%s", name, files[i]);
        unlink(path);
        if (!access(target, R_OK)) assert_int_equal(symlink(target, path), 0);
    }
}

static void make_texts(pith_str *texts) {
    static char words[TEXTS][WORDS_MAX * 4];
    uint32_t random = 1;
    for (int i = 0; i < TEXTS; i++) {
        words[i][0] = 0;
        for (int k = 0; k < lengths[i]; k++) {
            random = random * 1664525u + 1013904223u;
            sprintf(words[i] + strlen(words[i]), "w%u ", 5 + (random >> 16) % 90);
        }
        texts[i] = pith__str_of(words[i]);
    }
}

static int32_t append(void *user, const void *text, size_t size) {
    char *all = user;
    size_t used = strlen(all), room = DESCRIPTION_MAX - 1 - used;
    memcpy(all + used, text, size < room ? size : room);
    all[used + (size < room ? size : room)] = 0;
    return 0;
}

/* Networks whose scores have terms of queries or keys with distances, or are capped: their
 * attention runs one text at a time. */
static bool attention_is_apart(const char *name) {
    return !strncmp(name, "deberta", 7) || !strncmp(name, "bert-relative", 13) ||
           !strcmp(name, "gemma2");
}

static void check_packed(const pith_model *model, const char *name) {
    static char description[DESCRIPTION_MAX];
    pith_error err = PITH_ERROR_INIT;
    description[0] = 0;
    if (pith_model_describe(model, PITH_DESCRIBE_JSON, NULL,
                            &(pith_writer){ append, NULL, description }, &err))
        fail_msg("%s", err.message);
    if (!strstr(description, "\"ragged\": true, \"ragged_reason\": \"\""))
        fail_msg("%s does not run packed", name);
    char *steps = strstr(description, "\"steps\": [");
    assert_non_null(steps);
    if (!strstr(steps, attention_is_apart(name) ? "\"EachText\"" : "\"Attention\"") ||
        strstr(steps, "\"Softmax\"") ||
        (strstr(steps, "\"EachText\"") && !attention_is_apart(name)))
        fail_msg("%s: attention is not fused: %.2000s", name, steps);
}

/* The mean of the rows of one text. */
static void mean_of_rows(double *vector, size_t dim, const pith_model *model, pith_session *session,
                         pith_str text) {
    static int64_t data[3][WORDS_MAX];
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    const char *names[3];
    pith_tensor inputs[3], output;
    if (pith_tokenize(&tokens, pith_model_tokenizer(model), text, NULL, &options, &err))
        fail_msg("%s", err.message);
    size_t count = pith_model_input_count(model), n = tokens.count;
    assert_true(count <= 3 && n <= WORDS_MAX);
    for (size_t i = 0; i < count; i++) {
        names[i] = pith_model_input(model, i)->name;
        for (size_t t = 0; t < n; t++)
            data[i][t] = !strcmp(names[i], "input_ids") ? tokens.ids[t]
                                                        : !strcmp(names[i], "attention_mask");
        inputs[i] = (pith_tensor){
            .data = data[i], .bytes = n * 8, .dtype = PITH_I64, .rank = 2, .dims = { 1, (int64_t)n }
        };
    }
    pith_tokens_free(&tokens);
    if (pith_session_run(session, &output, names, inputs, count, NULL, &err))
        fail_msg("%s", err.message);
    const float *rows = output.data;
    for (size_t d = 0; d < dim; d++) {
        vector[d] = 0;
        for (size_t t = 0; t < n; t++) vector[d] += rows[t * dim + d];
        vector[d] /= (double)n;
    }
}

static void check_model(const char *name) {
    static float together[TEXTS * WIDTH_MAX], alone[WIDTH_MAX];
    double wanted[WIDTH_MAX], worst = 0;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_session *session;
    pith_str texts[TEXTS];
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    make_directory(name);
    make_texts(texts);
    open.flags = PITH_OPEN_DESCRIBE;
    if (pith_model_open(&model, DIRECTORY, &open, &err)) fail_msg("%s: %s", name, err.message);
    if (pith_session_create(&session, model, &err)) fail_msg("%s: %s", name, err.message);
    check_packed(model, name);
    size_t dim = pith_embed_dim(model, NULL);
    assert_true(dim > 0 && dim <= WIDTH_MAX);
    options.call.threads = 2;
    embed(together, model, texts, TEXTS, &options);
    options.call.threads = 1;
    for (size_t i = 0; i < TEXTS; i++) {
        embed(alone, model, &texts[i], 1, &options);
        if (memcmp(alone, together + i * dim, dim * sizeof(float)))
            fail_msg("%s: text %zu depends on others", name, i);
        mean_of_rows(wanted, dim, model, session, texts[i]);
        for (size_t d = 0; d < dim; d++) worst = fmax(worst, fabs((double)alone[d] - wanted[d]));
    }
    print_message("%s: %zu floats, largest difference %.3g\n", name, dim, worst);
    if (!(worst <= 1e-5)) fail_msg("%s differs from its graph by %g", name, worst);
    pith_session_destroy(session);
    pith_model_close(model);
}

static int is_folder(const struct dirent *entry) { return !strchr(entry->d_name, '.'); }

static void test_all(void **state) {
    (void)state;
    struct dirent **entries;
    int count = scandir(PITH_TEST_DATA "/hf", &entries, is_folder, alphasort);
    assert_true(count >= 30);
    for (int i = 0; i < count; i++) {
        check_model(entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_all) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
