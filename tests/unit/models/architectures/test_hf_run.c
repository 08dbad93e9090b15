/* What a directory with safetensors computes, against the outputs of transformers in double
 * precision, as written and fully optimised, of several texts of different lengths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pith/pith.h"

enum { BATCH = 3, LENGTH = 45, HIDDEN_MAX = 32 };

/* tests/data/hf: the width of the rows. */
static const struct {
    const char *name;
    int hidden;
} models[] = {
    { "bert", 32 },
    { "bert-f16", 32 },
    { "bert-bf16", 32 },
    { "roberta", 32 },
    { "distilbert", 32 },
    { "mpnet", 32 },
    { "modernbert", 16 },
    { "modernbert-biased", 16 },
    { "qwen3", 16 },
    { "qwen3-window", 16 },
    { "qwen3-llama3", 16 },
    { "qwen2", 16 },
    { "embedding-gemma", 16 },
    { "gemma3", 16 },
    { "nomic", 16 },
    { "nomic-plain", 16 },
    { "nomic-stretched", 16 },
    { "gte", 16 },
    { "gte-apart", 16 },
    { "jina-v2", 16 },
    { "jina-v2-slopes", 24 },
    { "jina-v2-code", 16 },
    { "jina-v3", 16 },
    { "jina-v3-task", 16 },
    { "jina-xlm-absolute", 16 },
    { "deberta-v3", 16 },
    { "deberta-v2-apart", 16 },
    { "deberta-v2-near", 16 },
    { "albert", 16 },
    { "electra", 16 },
    { "bert-relative-key", 16 },
    { "bert-relative-key-query", 16 },
    { "ernie", 16 },
    { "llama", 16 },
    { "mistral", 16 },
    { "gemma", 16 },
    { "gemma2", 16 },
    { "t5", 16 },
    { "t5-gated", 16 },
    { "mt5", 16 },
    { "umt5", 16 },
    { "nomic-native", 16 },
    { "jina-v3-native", 16 },
    { "eurobert", 16 },
    { "gte-native", 16 },
    { "qwen3-both-ways", 16 },
    { "modernbert-5", 16 },
};

static void read_all(const char *name, const char *file, void *to, size_t bytes) {
    char path[512];
    snprintf(path, sizeof path, PITH_TEST_DATA "/hf/%s/%s", name, file);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing", path);
    assert_int_equal(fread(to, 1, bytes, f), bytes);
    fclose(f);
}

/* Largest difference over all real tokens. */
static float difference(const char *name, int hidden, int32_t optimization) {
    static const char *const names[] = { "input_ids", "attention_mask", "token_type_ids" };
    static int64_t data[3][BATCH][LENGTH];
    static float want[BATCH * LENGTH * HIDDEN_MAX];
    const size_t want_bytes = sizeof(float) * BATCH * LENGTH * (size_t)hidden;
    char path[512];
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_session *session;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    options.optimization = optimization ? optimization : PITH_OPTIMIZATION_NONE;
    snprintf(path, sizeof path, PITH_TEST_DATA "/hf/%s", name);
    if (pith_model_open(&model, path, &options, &err)) fail_msg("%s: %s", name, err.message);
    size_t count = pith_model_input_count(model);
    pith_tensor inputs[3], output;
    for (size_t i = 0; i < count; i++) {
        char file[64];
        snprintf(file, sizeof file, "%s.i64", names[i]);
        read_all(name, file, data[i], sizeof data[i]);
        inputs[i] = (pith_tensor){ .data = data[i],
                                   .bytes = sizeof data[i],
                                   .dtype = PITH_I64,
                                   .rank = 2,
                                   .dims = { BATCH, LENGTH } };
    }
    read_all(name, "last_hidden_state.f32", want, want_bytes);
    if (pith_session_create(&session, model, &err)) fail_msg("%s: %s", name, err.message);
    if (pith_session_run(session, &output, names, inputs, count, NULL, &err))
        fail_msg("%s: %s", name, err.message);
    assert_int_equal(output.dtype, PITH_F32);
    assert_int_equal(output.bytes, want_bytes);
    const float *got = output.data;
    float largest = 0;
    for (int b = 0; b < BATCH; b++) {
        for (int s = 0; s < LENGTH; s++) {
            for (int h = 0; h < hidden && data[1][b][s]; h++) {
                float d =
                    fabsf(got[(b * LENGTH + s) * hidden + h] - want[(b * LENGTH + s) * hidden + h]);
                if (!(d <= largest)) largest = d;
            }
        }
    }
    pith_session_destroy(session);
    pith_model_close(model);
    return largest;
}

static void equal_to_transformers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const char *name = models[i].name;
        for (int32_t optimization = 0; optimization <= 3; optimization += 3) {
            float d = difference(name, models[i].hidden, optimization);
            print_message("%s, level %d: %g\n", name, (int)optimization, (double)d);
            /* Values reach 4.3; f32 rounding through two or three layers gives a few 1e-6. */
            if (!(d <= 4e-6f))
                fail_msg("%s, level %d: differs by %g", name, (int)optimization, (double)d);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(equal_to_transformers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
