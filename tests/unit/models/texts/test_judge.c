/* test_judge.c - a language model that judges documents, beside the code of Qwen3-Reranker's model
 * card. */
#include "support/score_test.h"

#define JUDGE TASKS "judge-qwen3"
static cases all;

static void judge(float *scores, const pith_model *model, const pith_score_options *options) {
    pith_error err = PITH_ERROR_INIT;
    for (int i = 0; i < CASES; i++)
        if (pith_rerank(&scores[i], model, all.texts[i], &all.pairs[i], 1, options, &err))
            fail_msg("%s", err.message);
}

static void check(const char *file, const float *scores) {
    float wanted[CASES];
    read_scores(wanted, "judge-qwen3", file, CASES);
    for (int i = 0; i < CASES; i++)
        if (!(fabs(scores[i] - wanted[i]) <= 1e-5))
            fail_msg("%s %d: %g, not %g", file, i, scores[i], wanted[i]);
}

static void test_scores(void **state) {
    (void)state;
    float scores[CASES], logits[CASES];
    for (int level = 0; level <= 3; level++) {
        pith_open_options open = PITH_OPEN_OPTIONS_INIT;
        pith_score_options o = PITH_SCORE_OPTIONS_INIT;
        open.optimization = level ? level : PITH_OPTIMIZATION_NONE;
        pith_model *model = open_task(JUDGE, &open);
        judge(scores, model, NULL);
        check("judge.f32", scores);
        o.max_length = 80;
        judge(scores, model, &o);
        check("short.f32", scores);
        o.max_length = 0;
        o.instruction = "Find what rhymes";
        judge(scores, model, &o);
        check("other.f32", scores);
        o.instruction = NULL;
        o.activation = PITH_ACTIVATION_NONE; /* the logit of "yes" minus that of "no" */
        judge(logits, model, &o);
        judge(scores, model, NULL);
        for (int i = 0; i < CASES; i++)
            assert_true(fabs(1 / (1 + exp(-(double)logits[i])) - scores[i]) < 1e-6);
        pith_model_close(model);
    }
}

/* All documents at once, with any number of threads: the bits of each alone. */
static void test_bits(void **state) {
    (void)state;
    float alone[CASES], together[CASES];
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = open_task(JUDGE, NULL);
    for (int i = 0; i < CASES; i++)
        if (pith_rerank(&alone[i], model, all.texts[0], &all.pairs[i], 1, NULL, &err))
            fail_msg("%s", err.message);
    for (int threads = 1; threads <= 4; threads++) {
        pith_score_options o = PITH_SCORE_OPTIONS_INIT;
        o.call.threads = threads;
        o.batch_tokens = 300;
        if (pith_rerank(together, model, all.texts[0], all.pairs, CASES, &o, &err))
            fail_msg("%s", err.message);
        assert_memory_equal(together, alone, sizeof alone);
    }
    pith_model_close(model);
}

static void test_compiled(void **state) {
    (void)state;
    char path[] = "/tmp/pith-judge-XXXXXX";
    float scores[CASES];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    char line[700];
    snprintf(line, sizeof line, PITH_BINARY_DIR "/pith compile -m " JUDGE " -o %s >/dev/null",
             path);
    assert_int_equal(system(line), 0);
    pith_model *model = open_task(path, NULL);
    judge(scores, model, NULL);
    check("judge.f32", scores);
    pith_model_close(model);
    remove(path);
}

static void test_refused(void **state) {
    (void)state;
    float score;
    pith_error err = PITH_ERROR_INIT;
    pith_score_options o = PITH_SCORE_OPTIONS_INIT;
    pith_model *model = open_task(JUDGE, NULL);
    o.max_length = 40;
    assert_int_equal(pith_rerank(&score, model, all.texts[0], all.pairs, 1, &o, &err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(
        err.message, "texts are cut at 40 tokens, but the model's own words around them are"));
    o.max_length = 0;
    o.instruction = "\xff";
    assert_int_equal(pith_rerank(&score, model, all.texts[0], all.pairs, 1, &o, &err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "instruction: is not UTF-8"));
    pith_model_close(model);
    model = open_task(TASKS "cross-bert", NULL);
    o.instruction = "anything";
    assert_int_equal(pith_rerank(&score, model, all.texts[0], all.pairs, 1, &o, &err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "only rerankers that are language models read one"));
    pith_model_close(model);
    /* an embedder has modules.json: it answers no questions */
    edit_task(PITH_BINARY_DIR "/judge-embedder", "judge-qwen3", "\"model_type\": \"qwen3\"",
              "model_type");
    write_text(PITH_BINARY_DIR "/judge-embedder/modules.json",
               "[{\"idx\": 0, \"name\": \"0\", \"path\": \"\", \"type\": "
               "\"sentence_transformers.models.Transformer\"}]");
    model = open_task(PITH_BINARY_DIR "/judge-embedder", NULL);
    assert_int_equal(pith_rerank(&score, model, all.texts[0], all.pairs, 1, NULL, &err),
                     PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "a causal language model"));
    pith_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_compiled),
        cmocka_unit_test(test_refused),
    };
    cases_open(&all);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cases_close(&all);
    return failed;
}
