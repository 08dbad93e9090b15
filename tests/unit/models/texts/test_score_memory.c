/* test_score_memory.c - opening checkpoints with tasks, and scoring with them, while the n-th
 * allocation or one request of an arena fails: the status is PITH_ERR_MEMORY or the scores are the
 * same, nothing leaks, and a model that was opened stays usable. And memory limits, which hold. */
#include "support/arena_fails.h"
#include "support/failing_alloc.h"
#include "support/score_test.h"

static cases all;
static float wanted[CASES * LABELS], got[CASES * LABELS];

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

/* Where there is no tokenizer, opening is all that can be done. */
static pith_status work(counter *c, const char *dir, int threads, size_t *labels, pith_error *err) {
    pith_allocator allocator = { count_alloc, count_free, c };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_score_options score = PITH_SCORE_OPTIONS_INIT;
    pith_model *model = NULL;
    options.call.allocator = &allocator;
    options.pool_blocks = -1; /* freeing pooled blocks would make up for a failure */
    score.call.threads = threads;
    memset(got, 0, sizeof got);
    *labels = 0;
    pith_status status = pith_model_open(&model, dir, &options, err);
    if (status) return status;
    *labels = pith_label_count(model);
    if (*labels) status = pith_classify(got, model, all.texts, all.pairs, CASES, &score, err);
    if (*labels == 1 && !status)
        status = pith_rerank(got, model, all.texts[0], all.pairs, CASES, &score, err);
    if (status) { /* the failure was passed: the model works */
        long fail_at = c->fail_at;
        c->fail_at = 0;
        assert_int_equal(*labels == 1
                             ? pith_rerank(got, model, all.texts[0], all.pairs, CASES, &score, NULL)
                             : pith_classify(got, model, all.texts, all.pairs, CASES, &score, NULL),
                         PITH_OK);
        assert_memory_equal(got, wanted, CASES * *labels * sizeof *got);
        c->fail_at = fail_at;
    }
    pith_model_close(model);
    return status;
}

static void fail_each(const char *dir, bool for_good) {
    counter c = { 0 };
    size_t labels;
    pith_error err = PITH_ERROR_INIT;
    if (work(&c, dir, 1, &labels, &err)) fail_msg("%s", err.message);
    assert_true(labels > 0);
    assert_int_equal(c.live, 0);
    memcpy(wanted, got, sizeof got);
    long count = c.calls, passed = 0;
    for (long n = 1; n <= count; n++) {
        c = (counter){ .fail_at = n, .for_good = for_good };
        err = (pith_error)PITH_ERROR_INIT;
        pith_status status = work(&c, dir, 1, &labels, &err);
        bool reported = status == PITH_ERR_MEMORY && err.code == PITH_ERR_MEMORY && err.message[0];
        bool same = !status && !for_good && !memcmp(got, wanted, sizeof got);
        passed += same; /* checks of debug builds may go without memory */
        if (!reported && !same)
            fail_msg("%s: allocation %ld of %ld: status %d, '%s'", dir, n, count, (int)status,
                     err.message);
        if (atomic_load(&c.live))
            fail_msg("%s: allocation %ld of %ld: %ld leak", dir, n, count, atomic_load(&c.live));
    }
    print_message("%s: %ld allocations, %ld not needed\n", dir, count, passed);
    assert_true(passed <= count / 20);
}

static void test_allocations(void **state) {
    (void)state;
    static const char *const dirs[] = { TASKS "cross-modernbert", TASKS "cross-bert-onnx",
                                        TASKS "labels-bert", TASKS "../rerankers/logit-qwen2" };
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        fail_each(dirs[i], false);
        fail_each(dirs[i], true);
    }
}

static void work_refused(const void *dir) {
    counter c = { .freed = arena_fails_freed };
    size_t labels;
    pith_error err = PITH_ERROR_INIT;
    pith_status status = work(&c, dir, 1, &labels, &err);
    if (!arena_fails.fail_at && !status) memcpy(wanted, got, sizeof got);
    bool reported = status == PITH_ERR_MEMORY && err.code == PITH_ERR_MEMORY && err.message[0];
    bool same = !status && !memcmp(got, wanted, sizeof got);
    if (!c.live && (arena_fails.fail_at ? arena_fails.refused && (reported || same) : same)) return;
    arena_fails_show();
    fail_msg("%s: request %ld: status %d, '%s', %ld leak", (const char *)dir, arena_fails.fail_at,
             (int)status, err.message, c.live);
}

/* Every place that asks an arena, in every form of task. */
static void test_arenas(void **state) {
    (void)state;
    static const char *const names[] = { "cross-bert",
                                         "cross-modernbert",
                                         "labels-bert",
                                         "roberta",
                                         "deberta",
                                         "qwen3",
                                         "modernbert-cls",
                                         "bert-masked",
                                         "electra-masked",
                                         "modernbert-masked",
                                         "modernbert-token",
                                         "colbert",
                                         "../rerankers/logit-qwen3",
                                         "../rerankers/logit-qwen2",
                                         "../rerankers/mxbai-qwen2",
                                         "../rerankers/logit-qwen3-onnx" };
    size_t count = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char dir[600];
        snprintf(dir, sizeof dir, TASKS "%s", names[i]);
        count += arena_fails_each(work_refused, dir);
    }
    print_message("%zu places\n", count);
    assert_true(count > 500);
}

/* Under every limit from what is too little to open to what is enough at once: the same scores, or
 * an error that names the limit. */
static void test_limits(void **state) {
    (void)state;
    enum { MANY = 25 * CASES, STEPS = 40 };
    static float free_scores[MANY], scores[MANY];
    static pith_str texts[MANY], pairs[MANY];
    for (int i = 0; i < MANY; i++)
        texts[i] = all.texts[i * 7 % CASES], pairs[i] = all.pairs[i * 5 % CASES];
    size_t most = 0;
    int done = 0, failed = 0;
    for (int i = 0; i <= STEPS; i++) {
        pith_open_options options = PITH_OPEN_OPTIONS_INIT;
        pith_score_options score = PITH_SCORE_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        pith_model *model = NULL;
        score.call.threads = 2;
        score.batch_tokens = 512;
        options.memory_limit = i ? most * (size_t)i / STEPS : (size_t)1 << 40;
        pith_status status = pith_model_open(&model, TASKS "cross-bert", &options, &err);
        if (!status)
            status =
                pith_classify(i ? scores : free_scores, model, texts, pairs, MANY, &score, &err);
        if (!i) pith_model_bytes(model, &most);
        pith_model_close(model);
        if (status) {
            char limit[128];
            snprintf(limit, sizeof limit,
                     "raise pith_open_options.memory_limit: the memory limit is %zu bytes: ",
                     options.memory_limit);
            assert_int_equal(status, PITH_ERR_MEMORY);
            if (strncmp(err.message, limit, strlen(limit))) fail_msg("%s", err.message);
            failed++;
        } else if (i) {
            assert_memory_equal(scores, free_scores, sizeof scores);
            done++;
        }
    }
    print_message("%zu bytes are enough at once; of %d limits %d were enough\n", most, STEPS, done);
    assert_true(failed > 0 && done > STEPS / 8);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_allocations),
                                        cmocka_unit_test(test_arenas),
                                        cmocka_unit_test(test_limits) };
    return cmocka_run_group_tests(tests, open_cases, close_cases);
}
