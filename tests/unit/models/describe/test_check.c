/* test_check.c - the comparison of fusions with the model as written: right models pass, a broken
 * pass is found and named, and a model opened with PITH_OPEN_CHECK does without it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/opt/pass.h"
#include "support/source_test.h"
#include "pith/pith.h"

#define BERT PITH_TEST_DATA "/models/bert-base-script17-eager/model.onnx"

static bool broken;

extern const pith__pass __real_pith__pass_gelu;

/* The right pass, and if `broken` a wrong epsilon in every normalisation. */
static pith_status break_epsilon(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node && broken; node = node->next) {
        if (!pith__str_is(node->op_type, "LayerNormalization") ||
            pith__node_float(node, "epsilon", 0) > 0.4f)
            continue;
        if (pith__node_set_float(node, "epsilon", 0.5f)) return PITH_ERR_MEMORY;
        ++*changes;
    }
    return __real_pith__pass_gelu.run(o, changes);
}

const pith__pass __wrap_pith__pass_gelu = { .name = "gelu", .level = 2, .run = break_epsilon };

static char found_pass[64], found_node[256];
static int32_t found_level;
static size_t warnings;

static void note(void *user, const pith_check_finding *f) {
    (void)user;
    snprintf(found_pass, sizeof found_pass, "%s", f->pass);
    snprintf(found_node, sizeof found_node, "%s", f->node);
    if (!found_level) found_level = f->level;
    assert_true(f->difference > f->allowed);
}

static size_t check_model(const char *path, int32_t runs) {
    pith_error err = PITH_ERROR_INIT;
    pith_check_options options = PITH_CHECK_OPTIONS_INIT;
    size_t findings = 99;
    options.finding = note;
    options.runs = runs;
    if (WITH_SOURCE(path, 0, pith_source_check_fusions(&findings, source, &options, &err)))
        fail_msg("%s: %s", path, err.message);
    return findings;
}

static void test_right_models_pass(void **state) {
    (void)state;
    static const char *const models[] = {
        "models/bert-base-dynamo20-sdpa",  "models/modernbert-base-dynamo20-sdpa",
        "models/qwen3-last-script17-sdpa", "models/bert-pool-script17-sdpa-int8",
        "models/phi-base-script16",        "families/levit-script12",
        "families/jina-v2-script17-qdq",   "families/qwen2-dynamo20-f16",
        "families/mobilenet-v2-script17",
    };
    broken = false;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char path[512];
        snprintf(path, sizeof path, PITH_TEST_DATA "/%s/model.onnx", models[i]);
        if (check_model(path, 0)) fail_msg("%s: pass %s, %s", models[i], found_pass, found_node);
    }
}

static void test_broken_pass_is_named(void **state) {
    (void)state;
    broken = true;
    found_level = 0;
    assert_int_equal(check_model(BERT, 2), 2); /* levels 2 and 3 */
    assert_int_equal(found_level, 2);
    assert_string_equal(found_pass, "gelu");
    assert_non_null(strstr(found_node, "LayerNorm"));
    broken = false;
}

static void warn(void *user, pith_log_level level, const char *message) {
    (void)user;
    if (level != PITH_LOG_WARNING) return;
    warnings++;
    assert_non_null(strstr(message, "pass gelu is left out"));
}

static void run_model(float *y, const pith_open_options *options) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_session *session;
    int64_t ids[5] = { 5, 9, 11, 7, 6 }, ones[5] = { 1, 1, 1, 1, 1 }, zeros[5] = { 0 };
    const char *names[3];
    pith_tensor in[3], out[4];
    if (pith_model_open(&model, BERT, options, &err)) fail_msg("%s", err.message);
    size_t count = pith_model_input_count(model);
    assert_in_range(count, 1, 3);
    for (size_t i = 0; i < count; i++) {
        names[i] = pith_model_input(model, i)->name;
        in[i] = (pith_tensor){ .data = !strcmp(names[i], "input_ids")        ? ids
                                       : !strcmp(names[i], "attention_mask") ? ones
                                                                             : zeros,
                               .bytes = sizeof ids,
                               .dtype = PITH_I64,
                               .rank = 2,
                               .dims = { 1, 5 } };
    }
    if (pith_session_create(&session, model, &err) ||
        pith_session_run(session, out, names, in, count, NULL, &err))
        fail_msg("%s", err.message);
    memcpy(y, out[0].data, 5 * 32 * sizeof *y);
    pith_session_destroy(session);
    pith_model_close(model);
}

static void test_open_does_without(void **state) {
    (void)state;
    static float right[160], wrong[160], mended[160];
    const pith_log log = { warn, NULL };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    run_model(right, &options);
    broken = true;
    run_model(wrong, &options);
    options.flags = PITH_OPEN_CHECK;
    options.call.log = &log;
    warnings = 0;
    run_model(mended, &options);
    assert_int_equal(warnings, 1);
    broken = false;
    float apart = 0, close = 0;
    for (int i = 0; i < 160; i++) {
        float a = right[i] - wrong[i], b = right[i] - mended[i];
        if (a * a > apart) apart = a * a;
        if (b * b > close) close = b * b;
    }
    assert_true(apart > 1e-4f && close < 1e-9f);
}

static void test_refusals(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    size_t findings;
    pith_check_options options = PITH_CHECK_OPTIONS_INIT;
    options.runs = -1;
    assert_int_equal(
        WITH_SOURCE(BERT, 0, pith_source_check_fusions(&findings, source, &options, &err)),
        PITH_ERR_ARGUMENT);
    options.runs = 0;
    assert_int_equal(WITH_SOURCE("/nowhere.onnx", 0,
                                 pith_source_check_fusions(&findings, source, &options, &err)),
                     PITH_ERR_NOT_FOUND);
    const int stop = 1;
    options.call.cancel = &stop;
    assert_int_equal(
        WITH_SOURCE(BERT, 0, pith_source_check_fusions(&findings, source, &options, &err)),
        PITH_ERR_CANCELLED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_models_pass),
        cmocka_unit_test(test_broken_pass_is_named),
        cmocka_unit_test(test_open_does_without),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
