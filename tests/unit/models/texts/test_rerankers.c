/* test_rerankers.c - language models that judge documents, beside sentence-transformers and
 * mxbai-rerank. */
#include "support/score_test.h"

#define RERANKERS PITH_TEST_DATA "/rerankers/"
static cases all;

static const struct kind {
    const char *name, *from; /* the directory, and the one with its scores */
    int short_length;        /* of short.f32 */
    bool instructed, raw;
} kinds[] = {
    { "logit-qwen3", "logit-qwen3", 90, true, true },
    { "logit-qwen2", "logit-qwen2", 60, true, true },
    { "logit-gemma3", "logit-gemma3", 60, true, true },
    { "label-qwen3", "label-qwen3", 60, false, true },
    { "mxbai-qwen2", "mxbai-qwen2", 40, true, false },
    { "logit-qwen3-onnx", "logit-qwen3", 90, true, true },
    { "mxbai-qwen2-onnx", "mxbai-qwen2", 40, true, false },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const char *path_of(const char *name, const char *file) {
    static char path[700];
    snprintf(path, sizeof path, RERANKERS "%s%s%s", name, file ? "/" : "", file ? file : "");
    return path;
}

static void judge(float *scores, const pith_model *model, const pith_score_options *options) {
    pith_error err = PITH_ERROR_INIT;
    for (int i = 0; i < CASES; i++)
        if (pith_rerank(&scores[i], model, all.texts[i], &all.pairs[i], 1, options, &err))
            fail_msg("%s", err.message);
}

static void compare(const struct kind *k, const char *file, const pith_model *model,
                    const pith_score_options *o) {
    float scores[CASES], wanted[CASES];
    FILE *f = fopen(path_of(k->from, file), "rb");
    assert_non_null(f);
    assert_int_equal(fread(wanted, sizeof *wanted, CASES, f), CASES);
    fclose(f);
    judge(scores, model, o);
    for (int i = 0; i < CASES; i++)
        if (!(fabs(scores[i] - wanted[i]) <= 1e-5))
            fail_msg("%s %s %d: %.9g, not %.9g", k->name, file, i, scores[i], wanted[i]);
}

static void compare_all(const struct kind *k, const pith_model *model) {
    pith_score_options o = PITH_SCORE_OPTIONS_INIT;
    assert_int_equal(pith_label_count(model), 1);
    compare(k, "scores.f32", model, NULL);
    o.max_length = k->short_length;
    compare(k, "short.f32", model, &o);
    o.max_length = 0;
    o.activation = PITH_ACTIVATION_NONE;
    if (k->raw) compare(k, "raw.f32", model, &o);
    o.activation = PITH_ACTIVATION_MODEL;
    o.instruction = "Find what rhymes";
    if (k->instructed) compare(k, "other.f32", model, &o);
}

static void test_scores(void **state) {
    (void)state;
    for (int i = 0; i < KINDS; i++)
        for (int level = 0; level <= 3; level++) {
            pith_open_options open = PITH_OPEN_OPTIONS_INIT;
            open.optimization = level ? level : PITH_OPTIMIZATION_NONE;
            pith_model *model = open_task(path_of(kinds[i].name, NULL), &open);
            compare_all(&kinds[i], model);
            pith_model_close(model);
        }
}

/* All documents at once, in another order, with any number of threads: the bits of each alone. */
static void test_bits(void **state) {
    (void)state;
    float alone[CASES], together[CASES];
    pith_str turned[CASES];
    pith_error err = PITH_ERROR_INIT;
    for (int i = 0; i < KINDS; i++) {
        pith_model *model = open_task(path_of(kinds[i].name, NULL), NULL);
        for (int c = 0; c < CASES; c++) {
            turned[c] = all.pairs[CASES - 1 - c];
            if (pith_rerank(&alone[c], model, all.texts[0], &all.pairs[c], 1, NULL, &err))
                fail_msg("%s", err.message);
        }
        for (int threads = 1; threads <= 4; threads++) {
            pith_score_options o = PITH_SCORE_OPTIONS_INIT;
            o.call.threads = threads;
            o.batch_tokens = threads * 150;
            if (pith_rerank(together, model, all.texts[0], turned, CASES, &o, &err))
                fail_msg("%s", err.message);
            for (int c = 0; c < CASES; c++)
                assert_memory_equal(&together[c], &alone[CASES - 1 - c], sizeof *alone);
        }
        pith_model_close(model);
    }
}

static void test_compiled(void **state) {
    (void)state;
    char path[] = "/tmp/pith-rerankers-XXXXXX", line[1000];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (int i = 0; i < KINDS; i++) {
        snprintf(line, sizeof line, PITH_BINARY_DIR "/pith compile -m %s -o %s >/dev/null",
                 path_of(kinds[i].name, NULL), path);
        assert_int_equal(system(line), 0);
        pith_model *model = open_task(path, NULL);
        compare_all(&kinds[i], model);
        pith_model_close(model);
    }
    remove(path);
}

/* ---- what is refused ---- */

#define EDITED PITH_BINARY_DIR "/reranker"

/* A copy of a directory with one file written anew (NULL: without the file). */
static void edit(const char *name, const char *file, const char *text) {
    char line[2000];
    snprintf(line, sizeof line, "rm -rf " EDITED " && cp -r %s " EDITED, path_of(name, NULL));
    assert_int_equal(system(line), 0);
    snprintf(line, sizeof line, EDITED "/%s", file);
    if (text)
        write_text(line, text);
    else
        assert_int_equal(remove(line), 0);
}

static void refuse(const char *path, const pith_score_options *o, pith_status code,
                   const char *says) {
    float score;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    pith_status status = pith_model_open(&model, path, NULL, &err);
    if (!status) status = pith_rerank(&score, model, all.texts[0], all.pairs, 1, o, &err);
    if (status != code || !strstr(err.message, says))
        fail_msg("%s: status %d, '%s'", says, (int)status, err.message);
    pith_model_close(model);
}

static void refuse_template(const char *text, const char *says) {
    edit("logit-qwen3", "chat_template.jinja", text);
    refuse(EDITED, NULL, PITH_ERR_UNSUPPORTED, says);
}

static void test_refused(void **state) {
    (void)state;
    pith_score_options o = PITH_SCORE_OPTIONS_INIT;
    float score;
    pith_error err = PITH_ERROR_INIT;
    edit("logit-qwen3", "1_LogitScore/config.json", "{\"false_token_id\": 3}");
    refuse(EDITED, NULL, PITH_ERR_FORMAT,
           "module LogitScore (folder '1_LogitScore'): config.json: true_token_id is missing");
    edit("logit-qwen3", "1_LogitScore/config.json", "{\"true_token_id\": 423}");
    refuse(EDITED, NULL, PITH_ERR_FORMAT,
           "module LogitScore names token 423, but config.json has a vocab_size of 423");
    edit("logit-qwen3", "1_LogitScore/config.json",
         "{\"true_token_id\": 4, \"module_input_name\": \"logits\"}");
    refuse(EDITED, NULL, PITH_ERR_UNSUPPORTED, "module_input_name 'logits' is not supported");
    edit("logit-qwen3", "1_LogitScore/config.json", "{\"true_token_id\": -1}");
    refuse(EDITED, NULL, PITH_ERR_FORMAT, "true_token_id: -1 is no id");
    edit("logit-qwen3", "1_LogitScore/config.json", NULL);
    refuse(EDITED, NULL, PITH_ERR_NOT_FOUND, "1_LogitScore/config.json is not there");
    edit("logit-qwen3", "sentence_bert_config.json", "{}");
    refuse(EDITED, NULL, PITH_ERR_UNSUPPORTED,
           "it needs a Transformer whose transformer_task is text-generation");
    edit("logit-qwen3", "modules.json",
         "[{\"path\": \"\", \"type\": "
         "\"sentence_transformers.base.modules.transformer.Transformer\"}]");
    refuse(EDITED, NULL, PITH_ERR_UNSUPPORTED, "which only a module LogitScore makes scores of");
    edit("logit-qwen3", "chat_template.jinja", NULL);
    refuse(EDITED, NULL, PITH_ERR_NOT_FOUND, "modality_config.message asks for a chat template");
    edit("logit-qwen2", "sentence_bert_config.json",
         "{\"transformer_task\": \"text-generation\", \"processing_kwargs\": {\"chat_template\": "
         "{\"tools\": []}}}");
    refuse(EDITED, NULL, PITH_ERR_UNSUPPORTED,
           "chat_template.tools: this setting of the chat template");
    o.instruction = "anything";
    refuse(path_of("label-qwen3", NULL), &o, PITH_ERR_ARGUMENT,
           "the model's chat template has no place for one");
    o.max_length = 3;
    refuse(path_of("mxbai-qwen2", NULL), &o, PITH_ERR_ARGUMENT,
           "3 tokens are left for a query and a document");
    pith_model *model = open_task(path_of("logit-qwen3", NULL), NULL);
    assert_int_equal(pith_embed(&score, model, all.texts, 1, NULL, &err), PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "the modules make scores of pairs of texts, not vectors"));
    pith_model_close(model);
}

#define QUERY "{{ (messages | selectattr('role', 'eq', 'query') | first).content }}"
#define DOCUMENT "{{ messages[-1].content }}"

static void test_templates_refused(void **state) {
    (void)state;
    refuse_template("{{ messages[0].content }}", "it leaves the document of a pair out");
    refuse_template(DOCUMENT, "it leaves the query of a pair out");
    refuse_template("a\n{% macro x() %}{% endmacro %}",
                    "chat_template.jinja: chat template, line 2: 'macro' is not run here");
    refuse_template("{% set ns = namespace(a=1) %}", "the function 'namespace' is not run here");
    refuse_template(QUERY DOCUMENT "{{ strftime_now('%Y') }}",
                    "the function 'strftime_now' is not run here");
    refuse_template("{{ messages[0].content.strip() }}", "the method 'strip' is not run here");
    refuse_template("{{ messages[0].content | upper }}", "the filter 'upper' is not run here");
    refuse_template("{{ messages[1:] }}", "slices are not run");
    refuse_template("{% if messages[0].content == 'a' %}{% endif %}",
                    "it compares the text of a message");
    refuse_template("{% if messages[0].content %}{% endif %}",
                    "it asks whether the text of a message is empty");
    refuse_template("{% for x in messages %}", "a block 'for' is not of the form that is run here");
    refuse_template("{% if true %}", "a block 'if' does not end");
    refuse_template("{{ 'a", "a tag does not end");
    refuse_template("{{ 1 }}", "it writes something other than a string");
    refuse_template("{% for a in [1, 2, 3, 4, 5, 6, 7, 8, 9] %}" QUERY DOCUMENT "{% endfor %}",
                    "it writes messages more than 16 times");
    refuse_template("{{ (messages | selectattr('role', 'eq', 'nobody') | first).content }}",
                    "it reads a member of what is not there");
    refuse_template("{% set (x) = 1 %}", "'set' is run for a name only");
    refuse_template("{{ ((((((((((((((((((((((((((((((((((((((((1 }}",
                    "it is nested more than 32 deep");
    static char text[1 << 17];
    size_t n = 0;
    n += (size_t)snprintf(text + n, sizeof text - n, "{%% set x = 'ab' %%}");
    for (int i = 0; i < 60; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "{%% set x = x ~ x %%}");
    refuse_template(text, "it makes too many values");
    n = 0;
    for (int i = 0; i < 20; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{%% for a in [1, 2, 3, 4, 5, 6, 7, 8] %%}");
    for (int i = 0; i < 20; i++) n += (size_t)snprintf(text + n, sizeof text - n, "{%% endfor %%}");
    refuse_template(text, "it ");
    memset(text, 'a', sizeof text - 1);
    refuse_template(text, "it is longer than 65536 bytes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_compiled),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_templates_refused),
    };
    cases_open_file(&all, RERANKERS "pairs.jsonl");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cases_close(&all);
    return failed;
}
