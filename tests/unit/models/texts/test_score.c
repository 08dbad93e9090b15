/* test_score.c - rerankers and classifiers beside sentence-transformers and transformers, with the
 * same bits in every way of running them, and what is refused. */
#include "support/score_test.h"

#define EDITED PITH_BINARY_DIR "/score-edited"
#define COMPILED PITH_BINARY_DIR "/score.pith"

/* Numbers below 5 in f32 on either side. */
static const float near_enough = 1e-5f;

static const char *const rerankers[] = { "cross-bert", "cross-bert-onnx", "cross-xlm-roberta",
                                         "cross-distilbert", "cross-modernbert" };
enum { RERANKERS = sizeof rerankers / sizeof *rerankers };

static cases all;

static int open_cases(void **state) {
    (void)state;
    cases_open(&all);
    return 0;
}

static int close_cases(void **state) {
    (void)state;
    cases_close(&all);
    return 0;
}

static void classify(float *scores, const pith_model *model, const pith_str *pairs,
                     int activation) {
    pith_error err = PITH_ERROR_INIT;
    pith_score_options options = PITH_SCORE_OPTIONS_INIT;
    options.activation = activation;
    if (pith_classify(scores, model, all.texts, pairs, CASES, &options, &err))
        fail_msg("%s", err.message);
}

/* One score for each pair. */
static void rerank(float *scores, const pith_model *model, int activation) {
    pith_error err = PITH_ERROR_INIT;
    pith_score_options options = PITH_SCORE_OPTIONS_INIT;
    options.activation = activation;
    for (int i = 0; i < CASES; i++)
        if (pith_rerank(&scores[i], model, all.texts[i], &all.pairs[i], 1, &options, &err))
            fail_msg("%s", err.message);
}

static void check(const char *name, const char *file, const float *scores, size_t count) {
    static float wanted[CASES * LABELS];
    read_scores(wanted, name, file, count);
    float worst = 0;
    for (size_t i = 0; i < count; i++) {
        float d = fabsf(scores[i] - wanted[i]);
        if (!(d <= near_enough))
            fail_msg("%s/%s: score %zu is %.9g, not %.9g", name, file, i, (double)scores[i],
                     (double)wanted[i]);
        if (d > worst) worst = d;
    }
    print_message("%s/%s: largest difference %.2g\n", name, file, (double)worst);
}

/* ---- values ---- */

static void test_rerank(void **state) {
    (void)state;
    float scores[CASES];
    for (int i = 0; i < RERANKERS; i++) {
        char path[600];
        snprintf(path, sizeof path, TASKS "%s", rerankers[i]);
        pith_model *model = open_task(path, NULL);
        assert_int_equal(pith_label_count(model), 1);
        rerank(scores, model, PITH_ACTIVATION_MODEL);
        check(rerankers[i], "rerank.f32", scores, CASES);
        rerank(scores, model, PITH_ACTIVATION_NONE);
        check(rerankers[i], "logits.f32", scores, CASES);
        rerank(scores, model, PITH_ACTIVATION_SOFTMAX);
        for (int k = 0; k < CASES; k++) assert_true(scores[k] == 1);
        pith_model_close(model);
    }
}

static void test_classify(void **state) {
    (void)state;
    float scores[CASES * LABELS];
    pith_model *model = open_task(TASKS "labels-bert", NULL);
    assert_int_equal(pith_label_count(model), LABELS);
    classify(scores, model, NULL, PITH_ACTIVATION_MODEL);
    check("labels-bert", "text.f32", scores, CASES * LABELS);
    classify(scores, model, all.pairs, PITH_ACTIVATION_MODEL);
    check("labels-bert", "pair.f32", scores, CASES * LABELS);
    classify(scores, model, NULL, PITH_ACTIVATION_SIGMOID);
    check("labels-bert", "several.f32", scores, CASES * LABELS);
    classify(scores, model, NULL, PITH_ACTIVATION_NONE);
    check("labels-bert", "logits.f32", scores, CASES * LABELS);
    pith_model_close(model);
    model = open_task(TASKS "cross-bert", NULL);
    classify(scores, model, NULL, PITH_ACTIVATION_MODEL);
    check("cross-bert", "text.f32", scores, CASES);
    pith_model_close(model);
}

static void test_label_names(void **state) {
    (void)state;
    pith_model *model = open_task(TASKS "labels-bert", NULL);
    assert_string_equal(pith_label_name(model, 0), "negative");
    assert_string_equal(pith_label_name(model, 2), "positive \"so\"");
    assert_string_equal(pith_label_name(model, 3), "");
    assert_string_equal(pith_label_name(model, SIZE_MAX), "");
    pith_model_close(model);
    edit_task(EDITED, "labels-bert", "\"id2label\": {\"2\": \"c\", \"0\": 7}", "id2label");
    model = open_task(EDITED, NULL); /* a hole, and a name that is no string */
    assert_int_equal(pith_label_count(model), LABELS);
    assert_string_equal(pith_label_name(model, 0), "7");
    assert_string_equal(pith_label_name(model, 1), "");
    assert_string_equal(pith_label_name(model, 2), "c");
    pith_model_close(model);
}

/* What config.json says decides, and what it does not say. */
static void test_activations(void **state) {
    (void)state;
    static const struct {
        const char *name, *more, *drop, *file;
        bool reranks;
    } rows[] = {
        { "cross-bert",
          "\"sentence_transformers\": {\"activation_fn\": \"torch.nn.modules.linear.Identity\"}",
          NULL, "logits.f32", true },
        { "cross-bert",
          "\"sbert_ce_default_activation_function\": \"torch.nn.modules.linear.Identity\"", NULL,
          "logits.f32", true },
        { "cross-bert",
          "\"sbert_ce_default_activation_function\": \"torch.nn.modules.linear.Identity\", "
          "\"sentence_transformers\": "
          "{\"version\": \"5\", \"activation_fn\": \"torch.nn.modules.activation.Sigmoid\"}",
          NULL, "rerank.f32", true },
        { "cross-bert", "\"sentence_transformers\": {\"activation_fn\": null}", NULL, "rerank.f32",
          true },
        { "cross-bert", "\"sentence_transformers\": 3, \"problem_type\": null", NULL, "rerank.f32",
          true },
        { "cross-bert", "", "id2label", "rerank.f32", true },
        { "cross-bert", "", "id2label", "text.f32", false },
        { "labels-bert", "\"problem_type\": \"multi_label_classification\"", NULL, "several.f32",
          false },
        { "labels-bert", "\"problem_type\": \"single_label_classification\"", NULL, "text.f32",
          false },
        { "labels-bert", "\"problem_type\": \"regression\"", NULL, "logits.f32", false },
        { "labels-bert",
          "\"sentence_transformers\": {\"activation_fn\": \"torch.nn.modules.linear.Identity\"}",
          NULL, "text.f32", false }, /* that is for rerankers */
        { "labels-bert", "\"architectures\": \"BertForSequenceClassification\"", "architectures",
          "text.f32", false },
    };
    float scores[CASES * LABELS];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        edit_task(EDITED, rows[i].name, rows[i].more, rows[i].drop);
        pith_model *model = open_task(EDITED, NULL);
        if (rows[i].reranks)
            rerank(scores, model, PITH_ACTIVATION_MODEL);
        else
            classify(scores, model, NULL, PITH_ACTIVATION_MODEL);
        check(rows[i].name, rows[i].file, scores, CASES * pith_label_count(model));
        pith_model_close(model);
    }
}

/* The small files that sentence-transformers 5.7.0 writes beside a cross-encoder. */
static void test_saved_by_sentence_transformers(void **state) {
    (void)state;
    float scores[CASES];
    edit_task(EDITED, "cross-bert", "", NULL);
    write_text(EDITED "/config_sentence_transformers.json",
               "{\"__version__\": {\"pytorch\": \"2.15.0\"}, \"activation_fn\": "
               "\"torch.nn.modules.linear.Identity\", "
               "\"default_prompt_name\": null, \"model_type\": \"CrossEncoder\", \"prompts\": {}}");
    write_text(EDITED "/modules.json",
               "[{\"idx\": 0, \"name\": \"0\", \"path\": \"\", \"type\": "
               "\"sentence_transformers.base.modules.transformer.Transformer\"}]");
    write_text(
        EDITED "/sentence_bert_config.json",
        "{\"transformer_task\": \"sequence-classification\", \"modality_config\": {\"text\": "
        "{\"method\": "
        "\"forward\", \"method_output_name\": \"logits\"}}, \"module_output_name\": \"scores\"}");
    pith_model *model = open_task(EDITED, NULL);
    rerank(scores, model, PITH_ACTIVATION_MODEL);
    check("cross-bert", "logits.f32", scores, CASES);
    pith_model_close(model);
}

/* ---- bits ---- */

/* All scores of all models: pairs by rerankers, texts and pairs by the classifier. */
static void score_all(float (*rows)[DIM]) {
    float *scores = rows[0];
    memset(rows, 0, sizeof *rows);
    assert_true(CASES * (RERANKERS + 2 * LABELS) <= DIM);
    for (int i = 0; i < RERANKERS; i++, scores += CASES) {
        char path[600];
        snprintf(path, sizeof path, TASKS "%s", rerankers[i]);
        pith_model *model = open_task(path, NULL);
        classify(scores, model, all.pairs, PITH_ACTIVATION_MODEL);
        pith_model_close(model);
    }
    pith_model *model = open_task(TASKS "labels-bert", NULL);
    classify(scores, model, NULL, PITH_ACTIVATION_MODEL);
    classify(scores + CASES * LABELS, model, all.pairs, PITH_ACTIVATION_MODEL);
    pith_model_close(model);
}

static void test_isas(void **state) {
    (void)state;
    static float rows[1][DIM], again[1][DIM];
    static const char *const isas[] = { "scalar", "avx2", "avx512" };
    score_all(rows);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        check_under_isa(isas[i], (const float(*)[DIM])rows, again, 1);
}

/* Many pairs together, in another order, cut into chunks of any size, on any number of threads: the
 * bits of each alone. */
static void check_bits(const char *name) {
    enum { MANY = 7 * CASES };
    static float alone[CASES * LABELS], together[MANY * LABELS];
    static pith_str texts[MANY], pairs[MANY];
    static const int threads[] = { 1, 2, 5 }, tokens[] = { 0, 1, 40, 4096 };
    pith_error err = PITH_ERROR_INIT;
    char path[600];
    snprintf(path, sizeof path, TASKS "%s", name);
    pith_model *model = open_task(path, NULL);
    size_t labels = pith_label_count(model);
    for (size_t i = 0; i < CASES; i++)
        assert_int_equal(
            pith_classify(alone + i * labels, model, &all.texts[i], &all.pairs[i], 1, NULL, &err),
            PITH_OK);
    for (size_t i = 0; i < MANY; i++) {
        texts[i] = all.texts[i * 5 % CASES];
        pairs[i] = all.pairs[i * 5 % CASES];
    }
    for (size_t t = 0; t < 3; t++)
        for (size_t k = 0; k < 4; k++) {
            pith_score_options options = PITH_SCORE_OPTIONS_INIT;
            options.call.threads = threads[t];
            options.batch_tokens = tokens[k];
            memset(together, 0xFF, sizeof together);
            assert_int_equal(pith_classify(together, model, texts, pairs, MANY, &options, &err),
                             PITH_OK);
            for (size_t i = 0; i < MANY; i++)
                if (memcmp(together + i * labels, alone + i * 5 % CASES * labels,
                           labels * sizeof *alone))
                    fail_msg("%s: pair %zu on %d threads differs", name, i, threads[t]);
        }
    pith_model_close(model);
}

static void test_bits(void **state) {
    (void)state;
    for (int i = 0; i < RERANKERS; i++) check_bits(rerankers[i]);
    check_bits("labels-bert");
}

/* One query with all documents: the scores of pairs. Level 0 runs each alone. */
static void test_query(void **state) {
    (void)state;
    pith_str queries[CASES];
    float scores[CASES], wanted[CASES], plain[CASES];
    pith_error err = PITH_ERROR_INIT;
    pith_open_options as_written = PITH_OPEN_OPTIONS_INIT;
    as_written.optimization = PITH_OPTIMIZATION_NONE;
    for (int i = 0; i < CASES; i++) queries[i] = all.texts[0];
    for (int i = 0; i < RERANKERS; i++) {
        char path[600];
        snprintf(path, sizeof path, TASKS "%s", rerankers[i]);
        pith_model *model = open_task(path, NULL), *slow = open_task(path, &as_written);
        assert_int_equal(pith_classify(wanted, model, queries, all.pairs, CASES, NULL, &err),
                         PITH_OK);
        assert_int_equal(pith_rerank(scores, model, all.texts[0], all.pairs, CASES, NULL, &err),
                         PITH_OK);
        assert_memory_equal(scores, wanted, sizeof wanted);
        assert_int_equal(pith_rerank(plain, slow, all.texts[0], all.pairs, CASES, NULL, &err),
                         PITH_OK);
        for (int k = 0; k < CASES; k++) assert_true(fabsf(plain[k] - wanted[k]) <= near_enough);
        pith_model_close(slow);
        pith_model_close(model);
    }
}

/* ---- compiled ---- */

static int32_t write_piece(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, user) != size;
}

/* A compiled file keeps the scores, the labels and what turns logits into scores. */
static void check_compiled(const char *path, size_t labels) {
    float wanted[2][CASES * LABELS], scores[2][CASES * LABELS];
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = open_task(path, NULL);
    FILE *f = fopen(COMPILED, "wb");
    assert_non_null(f);
    if (pith_model_save(model, NULL, &(pith_writer){ write_piece, NULL, f }, &err))
        fail_msg("%s: %s", path, err.message);
    assert_int_equal(fclose(f), 0);
    pith_model *compiled = open_task(COMPILED, NULL);
    assert_int_equal(pith_label_count(compiled), labels);
    for (size_t i = 0; i <= labels; i++)
        assert_string_equal(pith_label_name(compiled, i), pith_label_name(model, i));
    classify(wanted[0], model, NULL, PITH_ACTIVATION_MODEL);
    classify(scores[0], compiled, NULL, PITH_ACTIVATION_MODEL);
    classify(wanted[1], model, all.pairs, PITH_ACTIVATION_NONE);
    classify(scores[1], compiled, all.pairs, PITH_ACTIVATION_NONE);
    for (int i = 0; i < 2; i++)
        assert_memory_equal(scores[i], wanted[i], CASES * labels * sizeof(float));
    if (labels == 1) {
        rerank(wanted[0], model, PITH_ACTIVATION_MODEL);
        rerank(scores[0], compiled, PITH_ACTIVATION_MODEL);
        assert_memory_equal(scores[0], wanted[0], CASES * sizeof(float));
    }
    pith_model_close(compiled);
    pith_model_close(model);
    remove(COMPILED);
}

static void test_compiled(void **state) {
    (void)state;
    for (int i = 0; i < RERANKERS; i++) {
        char path[600];
        snprintf(path, sizeof path, TASKS "%s", rerankers[i]);
        check_compiled(path, 1);
    }
    check_compiled(TASKS "labels-bert", LABELS);
    edit_task(EDITED, "cross-bert",
              "\"sbert_ce_default_activation_function\": \"torch.nn.Identity\"", NULL);
    check_compiled(EDITED, 1);
    edit_task(EDITED, "labels-bert",
              "\"problem_type\": \"regression\", \"id2label\": {\"2\": \"c\"}", "id2label");
    check_compiled(EDITED, LABELS);
}

/* ---- what is refused ---- */

static void refused(const char *path, bool reranks, pith_status code, const char *says) {
    float scores[CASES * LABELS];
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = open_task(path, NULL);
    pith_status status =
        reranks ? pith_rerank(scores, model, all.texts[0], all.pairs, CASES, NULL, &err)
                : pith_classify(scores, model, all.texts, NULL, CASES, NULL, &err);
    if (status != code || !strstr(err.message, says))
        fail_msg("%s: status %d, '%s'", path, (int)status, err.message);
    assert_int_equal(err.code, code);
    if (!reranks) assert_int_equal(pith_label_count(model), 0);
    pith_model_close(model);
}

static void test_models(void **state) {
    (void)state;
    refused("all-MiniLM-L6-v2", false, PITH_ERR_UNSUPPORTED, "not a classifier");
    refused("all-MiniLM-L6-v2", true, PITH_ERR_UNSUPPORTED, "not a classifier");
    refused(TASKS "splade-distilbert", false, PITH_ERR_UNSUPPORTED, "not a classifier");
    edit_task(EDITED, "splade-distilbert", "\"architectures\": [\"Qwen3ForCausalLM\"]",
              "architectures");
    refused(EDITED, false, PITH_ERR_UNSUPPORTED, "a causal language model");
    refused(TASKS "bert-token", false, PITH_ERR_NOT_FOUND, "tokenizer.json");
    refused(TASKS "labels-bert", true, PITH_ERR_UNSUPPORTED, "gives 3 scores");
    edit_task(EDITED, "labels-bert", "\"id2label\": {\"0\": \"a\", \"1\": \"b\"}", "id2label");
    refused(EDITED, false, PITH_ERR_FORMAT,
            "config.json has 2 labels, but the model's output 'logits' gives 3");
    edit_task(EDITED, "cross-bert", "\"sbert_ce_default_activation_function\": \"torch.nn.Tanh\"",
              NULL);
    refused(EDITED, true, PITH_ERR_UNSUPPORTED, "the activation 'torch.nn.Tanh' is not known");
    edit_task(EDITED, "cross-bert", "\"sbert_ce_default_activation_function\": 3", NULL);
    refused(EDITED, true, PITH_ERR_FORMAT, "config.json");
    edit_task(EDITED, "cross-bert",
              "\"sentence_transformers\": {\"activation_fn\": \"torch.\\ud800\"}", NULL);
    refused(EDITED, true, PITH_ERR_UNSUPPORTED, "activation");
    edit_task(EDITED, "cross-bert", "", NULL);
    write_text(EDITED "/config_sentence_transformers.json",
               "{\"activation_fn\": \"torch.my.Own\", \"model_type\": \"CrossEncoder\"}");
    write_text(EDITED "/modules.json",
               "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"}]");
    write_text(EDITED "/sentence_bert_config.json",
               "{\"transformer_task\": \"sequence-classification\"}");
    refused(EDITED, true, PITH_ERR_UNSUPPORTED,
            "config_sentence_transformers.json: the activation 'torch.my.Own'");
    static const char *const names[] = { "{\"x\": \"a\"}", "{\"-1\": \"a\"}", "{\"\": \"a\"}",
                                         "{\"100000\": \"a\"}",
                                         "{\"18446744073709551616\": \"a\"}" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char more[100];
        snprintf(more, sizeof more, "\"id2label\": %s", names[i]);
        edit_task(EDITED, "labels-bert", more, "id2label");
        refused(EDITED, false, PITH_ERR_FORMAT, "is not the number of a label");
    }
}

static void test_options(void **state) {
    (void)state;
    static const struct {
        pith_score_options options;
        const char *says;
    } rows[] = {
        { { .call = { .size = sizeof(pith_score_options), .threads = -1 } }, "threads" },
        { { .call = { .size = sizeof(pith_score_options) }, .max_length = -1 }, "max_length" },
        { { .call = { .size = sizeof(pith_score_options) }, .batch_tokens = -1 }, "batch_tokens" },
        { { .call = { .size = sizeof(pith_score_options) }, .activation = -1 },
          "activation is -1" },
        { { .call = { .size = sizeof(pith_score_options) },
            .activation = PITH_ACTIVATION_SOFTMAX + 1 },
          "activation is 4" },
        { { .call = { .size = 3 } }, "size" },
    };
    float scores[CASES];
    pith_model *model = open_task(TASKS "cross-bert", NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pith_error err = PITH_ERROR_INIT;
        assert_int_equal(
            pith_rerank(scores, model, all.texts[0], all.pairs, CASES, &rows[i].options, &err),
            PITH_ERR_ARGUMENT);
        if (!strstr(err.message, rows[i].says)) fail_msg("%s", err.message);
        assert_int_equal(
            pith_classify(scores, model, all.texts, NULL, CASES, &rows[i].options, NULL),
            PITH_ERR_ARGUMENT);
    }
    pith_model_close(model);
}

static void test_calls(void **state) {
    (void)state;
    float scores[CASES], wanted[CASES];
    pith_error err = PITH_ERROR_INIT;
    pith_embed_stats stats = { 0 };
    pith_score_options options = PITH_SCORE_OPTIONS_INIT;
    volatile int cancel = 1;
    pith_model *model = open_task(TASKS "cross-bert", NULL);
    assert_int_equal(pith_rerank(NULL, model, all.texts[0], NULL, 0, NULL, &err), PITH_OK);
    assert_int_equal(pith_classify(NULL, model, NULL, NULL, 0, NULL, &err), PITH_OK);
    options.call.cancel = &cancel;
    assert_int_equal(pith_rerank(scores, model, all.texts[0], all.pairs, CASES, &options, &err),
                     PITH_ERR_CANCELLED);
    cancel = 0;
    options.stats = &stats;
    assert_int_equal(pith_classify(wanted, model, all.texts, all.pairs, CASES, &options, &err),
                     PITH_OK);
    assert_int_equal(stats.texts, CASES);
    assert_true(stats.truncated >= 3 && stats.truncated < CASES && stats.tokens <= CASES * 24);
    options.max_length = 9; /* both are cut: other scores */
    stats = (pith_embed_stats){ 0 };
    assert_int_equal(pith_classify(scores, model, all.texts, all.pairs, CASES, &options, &err),
                     PITH_OK);
    assert_true(stats.tokens <= CASES * 9);
    assert_memory_not_equal(scores, wanted, sizeof scores);
    pith_str bad = { "a\xFF", 2 };
    assert_int_equal(pith_rerank(scores, model, all.texts[0], &bad, 1, NULL, &err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "text 0"));
    assert_int_equal(pith_rerank(scores, model, bad, all.pairs, CASES, NULL, &err),
                     PITH_ERR_ARGUMENT);
    assert_string_equal(err.message, "query: invalid UTF-8 at byte 1");
    assert_int_equal(pith_classify(scores, model, all.texts, all.pairs, CASES, NULL, NULL),
                     PITH_OK);
    assert_memory_equal(scores, wanted, sizeof scores);
    pith_model_close(model);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        static float rows[1][DIM];
        cases_open(&all);
        score_all(rows);
        return save_vectors(argv[1], (const float(*)[DIM])rows, 1);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rerank),
        cmocka_unit_test(test_classify),
        cmocka_unit_test(test_label_names),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_saved_by_sentence_transformers),
        cmocka_unit_test(test_isas),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_compiled),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_calls),
    };
    return cmocka_run_group_tests(tests, open_cases, close_cases);
}
