/* test_tasks.c - the outputs of checkpoints' tasks (tests/data/tasks) beside transformers, in
 * double precision, as written and fully optimised; and packed, where many texts give the bits of
 * each alone. */
#include "models/heads/dense_request.h"
#include "models/model.h"
#include "support/score_test.h"

#define DIRECTORY PITH_BINARY_DIR "/tasks-forms"

enum { BATCH = 3, LENGTH = 12, WIDTH_MAX = 96, TEXTS = 7, WORDS_MAX = 48 };

/* per_token: a row for each token, not one for each text. */
static const struct task {
    const char *name, *output;
    int width;
    bool per_token;
} tasks[] = {
    { "roberta", "logits", 2, false },
    { "camembert", "logits", 2, false },
    { "mpnet", "logits", 2, false },
    { "albert", "logits", 2, false },
    { "electra", "logits", 2, false },
    { "deberta", "logits", 2, false },
    { "modernbert-cls", "logits", 2, false },
    { "qwen2", "logits", 2, false },
    { "qwen3", "logits", 1, false },
    { "nomic", "logits", 2, false },
    { "gte", "logits", 2, false },
    { "jina-v2", "logits", 1, false },
    { "jina-xlm", "logits", 1, false },
    { "bert-masked", "logits", 96, true },
    { "roberta-masked", "logits", 96, true },
    { "distilbert-masked", "logits", 96, true },
    { "mpnet-masked", "logits", 96, true },
    { "albert-masked", "logits", 96, true },
    { "electra-masked", "logits", 96, true },
    { "deberta-masked", "logits", 96, true },
    { "modernbert-masked", "logits", 96, true },
    { "bert-token", "logits", 3, true },
    { "modernbert-token", "logits", 3, true },
    { "colbert", "token_embeddings", 8, true },
};

/* ---- values ---- */

static int64_t inputs_data[3][BATCH][LENGTH];
static const char *const input_names[] = { "input_ids", "attention_mask", "token_type_ids" };

static void read_inputs(int64_t data[3][BATCH][LENGTH]) {
    for (int i = 0; i < 3; i++) {
        char path[600];
        snprintf(path, sizeof path, TASKS "%s.i64", input_names[i]);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        assert_int_equal(fread(data[i], sizeof(int64_t), BATCH * LENGTH, f), BATCH * LENGTH);
        fclose(f);
    }
}

/* Runs the model on a batch; data holds rows for all three inputs, of which it takes those it has.
 */
static const float *run(pith_session *session, const pith_model *model, const struct task *t,
                        int64_t *const *data, int64_t batch, int64_t length) {
    const char *names[3];
    pith_tensor inputs[3], outputs[2];
    pith_error err = PITH_ERROR_INIT;
    size_t count = pith_model_input_count(model);
    assert_true(count <= 3 && pith_model_output_count(model) == 2);
    for (size_t i = 0; i < count; i++) {
        names[i] = pith_model_input(model, i)->name;
        int at = 0;
        while (strcmp(names[i], input_names[at])) at++;
        inputs[i] = (pith_tensor){ .data = data[at],
                                   .bytes = (size_t)(batch * length) * 8,
                                   .dtype = PITH_I64,
                                   .rank = 2,
                                   .dims = { batch, length } };
    }
    if (pith_session_run(session, outputs, names, inputs, count, NULL, &err))
        fail_msg("%s: %s", t->name, err.message);
    assert_string_equal(pith_model_output(model, 1)->name, t->output);
    assert_int_equal(outputs[1].dtype, PITH_F32);
    assert_int_equal(outputs[1].bytes,
                     (batch * (t->per_token ? length : 1) * t->width) * (int64_t)sizeof(float));
    return outputs[1].data;
}

static float difference(const struct task *t, int32_t level) {
    static float wanted[BATCH * LENGTH * WIDTH_MAX];
    int64_t(*data)[BATCH][LENGTH] = inputs_data, *rows[] = { data[0][0], data[1][0], data[2][0] };
    const int64_t per_text = t->per_token ? LENGTH : 1;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_session *session;
    char path[600];
    options.optimization = level ? level : PITH_OPTIMIZATION_NONE;
    snprintf(path, sizeof path, TASKS "%s", t->name);
    pith_model *model = open_task(path, &options);
    if (pith_session_create(&session, model, &err)) fail_msg("%s: %s", t->name, err.message);
    read_scores(wanted, t->name, "logits.f32", (size_t)(BATCH * per_text * t->width));
    const float *got = run(session, model, t, rows, BATCH, LENGTH);
    float largest = 0;
    for (int64_t i = 0; i < BATCH * per_text * t->width; i++) {
        int64_t row = i / t->width;
        if (t->per_token && !data[1][row / LENGTH][row % LENGTH]) continue;
        float d = fabsf(got[i] - wanted[i]);
        if (!(d <= largest)) largest = d;
    }
    pith_session_destroy(session);
    pith_model_close(model);
    return largest;
}

static void test_values(void **state) {
    (void)state;
    read_inputs(inputs_data);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        for (int32_t level = 0; level <= 3; level += 3) {
            float d = difference(&tasks[i], level);
            print_message("%s, level %d: %g\n", tasks[i].name, (int)level, (double)d);
            if (!(d <= 1e-5f))
                fail_msg("%s, level %d: differs by %g", tasks[i].name, (int)level, (double)d);
        }
}

/* ---- packed ---- */

static void make_directory(const char *name) {
    static const char *const files[] = { "config.json", "model.safetensors" };
    char path[700], target[700];
    mkdir(DIRECTORY, 0777);
    word_tokenizer(DIRECTORY "/tokenizer.json");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, DIRECTORY "/%s", files[i]);
        snprintf(target, sizeof target, TASKS "%s/%s", name, files[i]);
        unlink(path);
        assert_int_equal(symlink(target, path), 0);
    }
}

static void make_texts(pith_str *texts) {
    static const int lengths[TEXTS] = { 20, 1, 12, 8, 2, 0, 9 };
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

/* The row of each text, or the mean of its tokens' rows. */
static void pooled(float *vectors, const pith_model *m, const struct task *t, const pith_str *texts,
                   size_t count) {
    pith_error err = PITH_ERROR_INIT;
    const pith__text_view *view;
    pith__dense_request request = { .pooling =
                                        t->per_token ? PITH_POOLING_MEAN : PITH_POOLING_MODEL,
                                    .vectors = vectors };
    pith__head_use use = { .request = &request };
    pith__encode_job job = { .texts = texts, .count = count, .prompt_name = "", .threads = 2 };
    int output = 1;
    assert_int_equal(pith__head_find(&use.head, "dense", &err), PITH_OK);
    if (pith__text_view_get(&view, m, &output, 1, true, NULL, &err))
        fail_msg("%s: %s", t->name, err.message);
    if (!view->ragged) fail_msg("%s does not run packed: %s", t->name, view->ragged_reason.data);
    if (pith__encoder_run(view->encoder, &job, &use, 1, &err))
        fail_msg("%s: %s", t->name, err.message);
}

/* The same from a session, of one text. */
static void pooled_alone(double *vector, pith_session *session, const pith_model *model,
                         const struct task *t, pith_str text) {
    static int64_t data[3][WORDS_MAX];
    int64_t *rows[] = { data[0], data[1], data[2] };
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith_error err = PITH_ERROR_INIT;
    if (pith_tokenize(&tokens, pith_model_tokenizer(model), text, NULL, NULL, &err))
        fail_msg("%s", err.message);
    size_t n = tokens.count;
    assert_true(n > 0 && n <= WORDS_MAX);
    for (size_t i = 0; i < n; i++) data[0][i] = tokens.ids[i], data[1][i] = 1, data[2][i] = 0;
    pith_tokens_free(&tokens);
    const float *got = run(session, model, t, rows, 1, (int64_t)n);
    size_t count = t->per_token ? n : 1;
    for (int d = 0; d < t->width; d++) {
        vector[d] = 0;
        for (size_t i = 0; i < count; i++) vector[d] += got[i * (size_t)t->width + (size_t)d];
        vector[d] /= (double)count;
    }
}

static void check_packed(const struct task *t) {
    static float together[TEXTS * WIDTH_MAX], alone[WIDTH_MAX];
    double wanted[WIDTH_MAX], worst = 0;
    const size_t width = (size_t)t->width;
    pith_str texts[TEXTS];
    pith_error err = PITH_ERROR_INIT;
    pith_session *session;
    make_directory(t->name);
    make_texts(texts);
    pith_model *model = open_task(DIRECTORY, NULL);
    if (pith_session_create(&session, model, &err)) fail_msg("%s: %s", t->name, err.message);
    pooled(together, model, t, texts, TEXTS);
    for (size_t i = 0; i < TEXTS; i++) {
        pooled(alone, model, t, &texts[i], 1);
        if (memcmp(alone, together + i * width, width * sizeof *alone))
            fail_msg("%s: text %zu depends on others", t->name, i);
        pooled_alone(wanted, session, model, t, texts[i]);
        for (size_t d = 0; d < width; d++) worst = fmax(worst, fabs((double)alone[d] - wanted[d]));
    }
    print_message("%s: largest difference %.3g\n", t->name, worst);
    if (!(worst <= 1e-5)) fail_msg("%s differs from its graph by %g", t->name, worst);
    pith_session_destroy(session);
    pith_model_close(model);
}

static void test_packed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) check_packed(&tasks[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_values),
                                        cmocka_unit_test(test_packed) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
