/* test_embed_memory.c - opening a model directory and embedding while the n-th allocation fails, for every n: the
 * status is PITH_ERR_MEMORY each time, nothing leaks, and what was opened stays usable. */
#include <stdatomic.h>
#include <sys/stat.h>

#include "embed_test.h"

#define DIR PITH_BINARY_DIR "/tiny-model"

static const char tokenizer_json[] =
    "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [{\"id\": 1, \"content\": "
    "\"[CLS]\","
    " \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": true}],"
    " \"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true,"
    " \"strip_accents\": null, \"lowercase\": true}, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},"
    " \"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 2], \"cls\": [\"[CLS]\", 1]},"
    " \"decoder\": null, \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\","
    " \"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100, \"vocab\": {\"[PAD]\": 0, \"[CLS]\": 1,"
    " \"[SEP]\": 2, \"[UNK]\": 3, \"a\": 4, \"cat\": 5, \"sat\": 6, \"##s\": 7}}}";
static const char modules_json[] =
    "[{\"idx\": 0, \"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"
    " {\"idx\": 1, \"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"},"
    " {\"idx\": 2, \"path\": \"2_Normalize\", \"type\": \"sentence_transformers.models.Normalize\"}]";
static const char pooling_json[] = "{\"word_embedding_dimension\": 32, \"pooling_mode_cls_token\": true,"
                                   " \"pooling_mode_mean_tokens\": true}";
static const char prompts_json[] =
    "{\"prompts\": {\"query\": \"cat \", \"plain\": \"\"}, \"default_prompt_name\": null}";

static void write_file(const char *name, const void *data, size_t size) {
    char path[600];
    snprintf(path, sizeof path, DIR "/%s", name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void copy_file(const char *name) {
    char path[600];
    pith_file file;
    snprintf(path, sizeof path, PITH_TEST_DATA "/hf/bert/%s", name);
    assert_int_equal(pith_file_open(&file, path, false, NULL, NULL), PITH_OK);
    write_file(name, file.data, file.size);
    pith_file_close(&file);
}

static int make_directory(void **state) {
    (void)state;
    mkdir(DIR, 0777);
    mkdir(DIR "/1_Pooling", 0777);
    copy_file("config.json");
    copy_file("model.safetensors");
    write_file("tokenizer.json", tokenizer_json, sizeof tokenizer_json - 1);
    write_file("modules.json", modules_json, sizeof modules_json - 1);
    write_file("1_Pooling/config.json", pooling_json, sizeof pooling_json - 1);
    write_file("config_sentence_transformers.json", prompts_json, sizeof prompts_json - 1);
    return 0;
}

/* Fails from the n-th allocation on (once, or for good) and counts blocks. */
typedef struct counter {
    atomic_long made, live;
    long fail_at;
    bool for_good;
} counter;

static void *counted_alloc(void *user, size_t bytes) {
    counter *c = user;
    long n = atomic_fetch_add(&c->made, 1) + 1;
    if (c->fail_at && (n == c->fail_at || (c->for_good && n > c->fail_at))) return NULL;
    void *memory = malloc(bytes);
    if (memory) atomic_fetch_add(&c->live, 1);
    return memory;
}

static void counted_free(void *user, void *memory) {
    counter *c = user;
    if (memory) atomic_fetch_sub(&c->live, 1);
    free(memory);
}

enum { TEXTS = 5, WIDTH_MAX = 2048 };
static const pith_str texts[TEXTS] = {
    { "a cat sat", 9 }, { "", 0 }, { "cats", 4 }, { "A dog?", 6 }, { "[CLS] a", 7 }
};
static float wanted[TEXTS * WIDTH_MAX], got[TEXTS * WIDTH_MAX];

static pith_status work(counter *c, int threads, pith_error *err) {
    pith_allocator allocator = { counted_alloc, counted_free, c };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_embed_options embed_options = PITH_EMBED_OPTIONS_INIT;
    pith_model *model = NULL;
    options.allocator = &allocator;
    embed_options.threads = threads;
    embed_options.prompt_name = "query";
    memset(got, 0, sizeof got);
    pith_status status = pith_model_open(&model, DIR, &options, err);
    if (status) return status;
    assert_true(pith_embed_dim(model, &embed_options) <= WIDTH_MAX);
    status = pith_embed(got, model, texts, TEXTS, &embed_options, err);
    if (status) { /* the failure was passed: the model works */
        long fail_at = c->fail_at;
        c->fail_at = 0;
        assert_int_equal(pith_embed(got, model, texts, TEXTS, &embed_options, NULL), PITH_OK);
        assert_memory_equal(got, wanted, TEXTS * pith_embed_dim(model, &embed_options) * sizeof *got);
        c->fail_at = fail_at;
    }
    pith_model_close(model);
    return status;
}

static void fail_each(int threads, bool for_good) {
    counter c = { 0 };
    pith_error err = PITH_ERROR_INIT;
    if (work(&c, threads, &err)) fail_msg("%s", err.message);
    assert_int_equal(c.live, 0);
    memcpy(wanted, got, sizeof got);
    long count = c.made, met = 0;
    for (long n = 1; n <= count; n++) {
        c = (counter){ .fail_at = n, .for_good = for_good };
        err = (pith_error)PITH_ERROR_INIT;
        pith_status status = work(&c, threads, &err);
        if (status && (status != PITH_ERR_MEMORY || err.code != PITH_ERR_MEMORY || !err.message[0]))
            fail_msg("allocation %ld of %ld: status %d, '%s'", n, count, (int)status, err.message);
        if (atomic_load(&c.live)) fail_msg("allocation %ld of %ld: %ld blocks leak", n, count, atomic_load(&c.live));
        if (!status) assert_memory_equal(got, wanted, sizeof got);
        met += status == PITH_ERR_MEMORY;
    }
    print_message("%ld allocations, %ld failures reported\n", count, met);
    if (for_good)
        assert_int_equal(met, count);
    else
        assert_true(met * 2 > count); /* a check of the graph may be done without, for one */
}

static void test_once(void **state) {
    (void)state;
    fail_each(1, false);
    fail_each(2, false);
}

static void test_for_good(void **state) {
    (void)state;
    fail_each(1, true);
}

/* ---- what the small files say ---- */

static void expect(const char *file, const char *text, pith_status code, const char *says) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    write_file(file, text, strlen(text));
    assert_int_equal(pith_model_open(&model, DIR, NULL, &err), PITH_OK); /* the graph alone is of use */
    pith_status status = pith_embed(got, model, texts, TEXTS, NULL, &err);
    pith_model_close(model);
    make_directory(NULL);
    assert_int_equal(status, code);
    if (says && !strstr(err.message, says)) fail_msg("'%s' does not say '%s'", err.message, says);
}

static void test_damaged_files(void **state) {
    (void)state;
    expect("modules.json", modules_json, PITH_OK, NULL);
    expect("modules.json", "[{\"type\": \"x.Dense\", \"path\": \"2\"}]", PITH_ERR_UNSUPPORTED, "Dense");
    expect("modules.json", "[{\"type\": \"x.Pooling\", \"path\": \"../..\"}]", PITH_ERR_FORMAT, "..");
    expect("modules.json", "{", PITH_ERR_FORMAT, "modules.json");
    expect("1_Pooling/config.json", "{\"pooling_mode_mean_tokens\": false}", PITH_ERR_UNSUPPORTED, "1_Pooling");
    expect("1_Pooling/config.json", "{\"pooling_mode_mean_tokens\": 3}", PITH_ERR_FORMAT, "pooling_mode_mean_tokens");
    expect("sentence_bert_config.json", "{\"do_lower_case\": true}", PITH_ERR_UNSUPPORTED, "do_lower_case");
    expect("sentence_bert_config.json", "{\"max_seq_length\": null, \"do_lower_case\": false}", PITH_OK, NULL);
    expect("tokenizer.json", "{}", PITH_ERR_FORMAT, "tokenizer.json");
}

static void test_options(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    assert_int_equal(pith_model_open(&model, DIR, NULL, &err), PITH_OK);
    size_t full = pith_embed_dim(model, NULL);
    o.pooling = PITH_POOLING_CLS;
    assert_int_equal(pith_embed_dim(model, &o) * 2, full); /* the directory says cls and mean, end to end */
    o.dim = 5;
    assert_int_equal(pith_embed_dim(model, &o), 5);
    o.dim = (int32_t)full;
    assert_int_equal(pith_embed_dim(model, &o), 0);
    assert_int_equal(pith_embed(got, model, texts, TEXTS, &o, &err), PITH_ERR_ARGUMENT);

    o = (pith_embed_options)PITH_EMBED_OPTIONS_INIT;
    o.prompt_name = "nobody";
    assert_int_equal(pith_embed(got, model, texts, 1, &o, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "query, plain"));
    o.prompt_name = "query";
    pith_str with = { "cat a cat sat", 13 };
    assert_int_equal(pith_embed(got, model, texts, 1, &o, &err), PITH_OK);
    assert_int_equal(pith_embed(wanted, model, &with, 1, NULL, &err), PITH_OK);
    assert_memory_equal(got, wanted, full * sizeof *got);
    o.prompt_name = "";
    assert_int_equal(pith_embed(wanted, model, texts, 1, &o, &err), PITH_OK);
    assert_memory_not_equal(got, wanted, full * sizeof *got);

    pith_str bad[3] = { texts[0], { "a\xff", 2 }, { "\xc0", 1 } };
    assert_int_equal(pith_embed(got, model, bad, 3, NULL, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "text 1"));
    int stop = 1;
    o.cancel = &stop;
    assert_int_equal(pith_embed(got, model, texts, TEXTS, &o, &err), PITH_ERR_CANCELLED);
    o.size = 0;
    assert_int_equal(pith_embed(got, model, texts, TEXTS, &o, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_embed(NULL, model, NULL, 0, NULL, &err), PITH_OK);
    pith_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_for_good),
        cmocka_unit_test_setup(test_damaged_files, make_directory),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, make_directory, NULL);
}
