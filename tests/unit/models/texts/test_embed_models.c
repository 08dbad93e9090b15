/* test_embed_models.c - the embedder over every kind of encoder in tests/data/models: each text's
 * vector against the same graph run on that text alone through a session, pooled here; and many
 * texts at once against one at a time, bit by bit. */
#include <dirent.h>
#include <math.h>
#include "support/embed_test.h"

#define DIRECTORY PITH_BINARY_DIR "/model-forms"

enum { TEXTS = 8, WIDTH_MAX = 4096, DESCRIPTION_MAX = 1 << 20 };
static const char *const words[TEXTS] = { "a b c",        "abc dab", "",      "d d d d d d d d d",
                                          "what is this", "c",       "z a z", "y b y y a" };
static float together[TEXTS][WIDTH_MAX], alone[TEXTS][WIDTH_MAX];

static void make_directory(const char *name) { network_directory(DIRECTORY, name, "null"); }

/* The first output that embedding would take, of one text; mean over tokens if it has a row a
 * token. */
static void reference(double *vector, size_t dim, const pith_model *model, pith_session *session,
                      pith_str text) {
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    const char *names[3];
    pith_tensor inputs[3], outputs[4];
    static int64_t data[3][64];
    if (pith_tokenize(&tokens, pith_model_tokenizer(model), text, NULL, &options, &err))
        fail_msg("%s", err.message);
    size_t count = pith_model_input_count(model), n = tokens.count;
    assert_true(count <= 3 && pith_model_output_count(model) <= 4 && n <= 64);
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
    if (pith_session_run(session, outputs, names, inputs, count, NULL, &err))
        fail_msg("%s", err.message);
    const pith_tensor *out = &outputs[0];
    for (size_t i = 0; i < pith_model_output_count(model); i++)
        if (!strcmp(pith_model_output(model, i)->name, "sentence_embedding")) out = &outputs[i];
    assert_int_equal(out->dtype, PITH_F32);
    assert_int_equal(out->dims[out->rank - 1], dim);
    const float *x = out->data;
    size_t rows = out->rank == 3 ? n : 1;
    for (size_t d = 0; d < dim; d++) {
        vector[d] = 0;
        for (size_t r = 0; r < rows; r++) vector[d] += x[r * dim + d];
        vector[d] /= (double)rows;
    }
}

static int32_t append(void *user, const void *text, size_t size) {
    char *all = user;
    size_t used = strlen(all), room = DESCRIPTION_MAX - 1 - used;
    memcpy(all + used, text, size < room ? size : room);
    all[used + (size < room ? size : room)] = 0;
    return 0;
}

/* All run laid end to end, quantised ones too. */
static void check_ragged(const pith_model *model, const char *name) {
    static char description[DESCRIPTION_MAX];
    pith_error err = PITH_ERROR_INIT;
    description[0] = 0;
    if (pith_model_describe(model, PITH_DESCRIBE_JSON, NULL,
                            &(pith_writer){ append, NULL, description }, &err))
        fail_msg("%s", err.message);
    const char *expected = "\"ragged\": true, \"ragged_reason\": \"\"";
    const char *said = strstr(description, "\"ragged\": ");
    assert_non_null(said);
    if (strncmp(said, expected, strlen(expected))) fail_msg("%s: %.200s", name, said);
}

/* False if this build cannot open the model. */
static bool check_model(const char *name) {
    static double wanted[WIDTH_MAX];
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_session *session;
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    pith_str texts[TEXTS];
    make_directory(name);
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    open.flags = PITH_OPEN_DESCRIBE;
    pith_status status = pith_model_open(&model, DIRECTORY, &open, &err);
    if (status == PITH_ERR_UNSUPPORTED) {
        print_message("%s: %s\n", name, err.message);
        return false;
    }
    if (status || pith_session_create(&session, model, &err)) fail_msg("%s: %s", name, err.message);
    if (!strchr(name, '/')) check_ragged(model, name); /* test_fusion knows the families */
    size_t dim = pith_embed_dim(model, NULL);
    if (!dim) {
        if (pith_embed(together[0], model, NULL, 0, NULL, &err))
            fail_msg("%s: %s", name, err.message);
        fail_msg("%s: no dim", name);
    }
    assert_true(dim <= WIDTH_MAX);
    for (int i = 0; i < TEXTS; i++) texts[i] = pith__str_of(words[i]);
    options.call.threads = 2;
    if (pith_embed(together[0], model, texts, TEXTS, &options, &err))
        fail_msg("%s: %s", name, err.message);
    double worst = 0;
    for (int i = 0; i < TEXTS; i++) {
        options.call.threads = 1;
        if (pith_embed(alone[0], model, &texts[i], 1, &options, &err))
            fail_msg("%s: %s", name, err.message);
        if (memcmp(alone[0], together[0] + (size_t)i * dim, dim * sizeof(float)))
            fail_msg("%s: text %d depends on others", name, i);
        reference(wanted, dim, model, session, texts[i]);
        for (size_t d = 0; d < dim; d++)
            worst = fmax(worst, fabs((double)alone[0][d] - wanted[d]) / (1 + fabs(wanted[d])));
    }
    print_message("%s: %zu floats, largest difference %.3g\n", name, dim, worst);
    if (worst > 1e-5) fail_msg("%s differs from its graph by %g", name, worst);
    pith_session_destroy(session);
    pith_model_close(model);
    return true;
}

static int is_model(const struct dirent *entry) {
    return entry->d_name[0] != '.' && strchr(entry->d_name, '-') != NULL;
}

static void test_models(void **state) {
    (void)state;
    struct dirent **entries;
    int count = scandir(PITH_TEST_DATA "/models", &entries, is_model, alphasort), wanted = 0,
        checked = 0;
    assert_true(count > 30);
    for (int i = 0; i < count; i++) {
        /* its data must lie beside the file */
        bool external = strstr(entries[i]->d_name, "external") != NULL;
        wanted += !external;
        checked += !external && check_model(entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    assert_int_equal(checked, wanted);
}

/* Text encoders of every family; images and sequences of rows are no text. */
static void test_families(void **state) {
    static const char *const others[] = { "clip-vision", "convnext",      "dinov2", "efficientnet",
                                          "gru",         "levit",         "lstm",   "mobilenet",
                                          "resnet",      "siglip-vision", "vit" };
    (void)state;
    struct dirent **entries;
    int count = scandir(PITH_TEST_DATA "/families", &entries, is_model, alphasort), checked = 0;
    for (int i = 0; i < count; i++) {
        char name[300];
        bool text = true;
        for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
            text = text && strncmp(entries[i]->d_name, others[k], strlen(others[k]));
        snprintf(name, sizeof name, "families/%s", entries[i]->d_name);
        if (text) assert_true(check_model(name));
        checked += text;
        free(entries[i]);
    }
    free(entries);
    assert_true(checked > 35);
}

/* One network by its file, by its directory, from onnx/ below it, read instead of mapped, and from
 * memory. */
static void test_places(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    pith_str text = pith__str_of("a b c");
    make_directory("bert-base-script17-sdpa");
    mkdir(DIRECTORY "/below", 0777);
    mkdir(DIRECTORY "/below/onnx", 0777);
    unlink(DIRECTORY "/below/tokenizer.json");
    unlink(DIRECTORY "/below/onnx/model.onnx");
    assert_int_equal(symlink("../tokenizer.json", DIRECTORY "/below/tokenizer.json"), 0);
    assert_int_equal(symlink("../../model.onnx", DIRECTORY "/below/onnx/model.onnx"), 0);
    static const char *const places[] = { DIRECTORY, DIRECTORY "/model.onnx", DIRECTORY "/below",
                                          DIRECTORY "/below/onnx/model.onnx", DIRECTORY };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        options.flags = i == 4 ? PITH_OPEN_COPY : 0;
        if (pith_model_open(&model, places[i], &options, &err)) fail_msg("%s", err.message);
        embed(i ? alone[0] : together[0], model, &text, 1, NULL);
        assert_int_equal(pith_embed_dim(model, NULL), 32);
        if (i) assert_memory_equal(alone[0], together[0], 32 * sizeof(float));
        pith_model_close(model);
    }
    pith__file file;
    assert_int_equal(pith__file_open(&file, DIRECTORY "/model.onnx", false, NULL, &err), PITH_OK);
    assert_int_equal(pith_model_open_memory(&model, file.data, file.size, NULL, &err), PITH_OK);
    assert_int_equal(pith_model_input_count(model), 3);
    assert_string_equal(pith_model_input(model, 0)->name, "input_ids");
    assert_int_equal(pith_model_input(model, 0)->rank, 2);
    assert_int_equal(pith_model_input(model, 0)->dims[0], -1);
    assert_null(pith_model_tokenizer(model));
    assert_int_equal(pith_embed(alone[0], model, &text, 1, NULL, &err), PITH_ERR_NOT_FOUND);
    pith_model_close(model);
    pith__file_close(&file);
}

/* What a session refuses, and that it works afterwards. */
static void test_session(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    pith_session *session = NULL;
    make_directory("bert-base-script17-sdpa");
    assert_int_equal(pith_model_open(&model, DIRECTORY, NULL, &err), PITH_OK);
    assert_int_equal(pith_session_create(&session, model, &err), PITH_OK);
    int64_t ids[4] = { 2, 5, 6, 3 }, ones[4] = { 1, 1, 1, 1 }, zeros[4] = { 0 };
    const char *names[] = { "input_ids", "attention_mask", "token_type_ids", "input_ids",
                            "nonsense" };
    pith_tensor outputs[4], inputs[5];
    int64_t *const data[] = { ids, ones, zeros, ids, ids };
    for (int i = 0; i < 5; i++)
        inputs[i] = (pith_tensor){
            .data = data[i], .bytes = sizeof ids, .dtype = PITH_I64, .rank = 2, .dims = { 1, 4 }
        };
    assert_int_equal(pith_session_run(session, outputs, names, inputs, 2, NULL, &err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "'token_type_ids' int64 [batch, sequence]"));
    assert_int_equal(pith_session_run(session, outputs, names, inputs, 4, NULL, &err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "twice"));
    assert_int_equal(pith_session_run(session, outputs, names + 2, inputs + 2, 3, NULL, &err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "nonsense"));
    inputs[1].dims[1] = 5;
    assert_int_equal(pith_session_run(session, outputs, names, inputs, 3, NULL, &err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "attention_mask"));
    inputs[1].dims[1] = 3;
    assert_int_not_equal(pith_session_run(session, outputs, names, inputs, 3, NULL, &err), PITH_OK);
    inputs[1].dims[1] = -4;
    assert_int_equal(pith_session_run(session, outputs, names, inputs, 3, NULL, &err),
                     PITH_ERR_ARGUMENT);
    inputs[1].dims[1] = 4;
    inputs[1].dtype = PITH_F32;
    assert_int_equal(pith_session_run(session, outputs, names, inputs, 3, NULL, &err),
                     PITH_ERR_ARGUMENT);
    inputs[1].dtype = PITH_I64;
    if (pith_session_run(session, outputs, names, inputs, 3, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(outputs[0].dims[1], 4);
    pith_session_destroy(session);
    pith_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
