/* test_modules.c - the small JSON files of a model directory: what each key makes of the settings, which are refused,
 * and which length counts. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "hf/modules.h"
#include "loader_test.h"

static pith_error err;

static const pith_modules usual = { .pooling = PITH_POOL_MEAN, .include_prompt = true };

/* Reads the directory with one file in it (name NULL: none), which is removed afterwards. */
static pith_status read_with(pith_modules *m, const char *name, const char *text) {
    char path[512];
    if (name) put_file(name, text, strlen(text));
    err = (pith_error)PITH_ERROR_INIT;
    pith_status status = pith_modules_read(m, dir, NULL, &arena, &err);
    snprintf(path, sizeof path, "%s/%s", dir, name ? name : "");
    if (name) assert_int_equal(unlink(path), 0);
    assert_int_equal(status, err.code);
    return status;
}

static void expect(const char *name, const char *text, const pith_modules *wanted) {
    pith_modules m;
    if (read_with(&m, name, text)) fail_msg("%s: %s", text, err.message);
    if (m.pooling != wanted->pooling || m.normalize != wanted->normalize ||
        m.include_prompt != wanted->include_prompt || m.max_length != wanted->max_length ||
        m.positions != wanted->positions || m.pad_token_id != wanted->pad_token_id ||
        m.prompt_count != wanted->prompt_count || !pith_str_eq(m.default_prompt, wanted->default_prompt))
        fail_msg("%s %s: pooling %u, normalize %d, include_prompt %d, length %d, positions %d, pad %d, %zu prompts",
                 name ? name : "", text, m.pooling, m.normalize, m.include_prompt, m.max_length, m.positions,
                 m.pad_token_id, m.prompt_count);
    for (size_t i = 0; i < m.prompt_count; i++)
        assert_true(pith_str_eq(m.prompts[i].name, wanted->prompts[i].name) &&
                    pith_str_eq(m.prompts[i].text, wanted->prompts[i].text));
}

static void refuse(const char *name, const char *text, pith_status status, const char *says) {
    pith_modules m;
    pith_status got = read_with(&m, name, text);
    if (got != status || !strstr(err.message, says))
        fail_msg("%s: %d '%s', not %d '%s'", text, got, err.message, status, says);
}

/* config.json: the positions, less those that families keep for padding. */
static void positions(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int32_t positions, pad;
    } cases[] = {
        { "{}", 0, 0 },
        { "{\"max_position_embeddings\": 512, \"pad_token_id\": 0}", 512, 0 },
        { "{\"max_position_embeddings\": null, \"pad_token_id\": null}", 0, 0 },
        { "{\"max_position_embeddings\": -1}", 0, 0 },
        { "{\"max_position_embeddings\": 1}", 1, 0 },
        { "{\"max_position_embeddings\": 1073741823}", (1 << 30) - 1, 0 },
        { "{\"max_position_embeddings\": 1073741824}", 0, 0 },
        { "{\"max_position_embeddings\": 512, \"model_type\": \"bert\", \"pad_token_id\": 3}", 512, 3 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"roberta\", \"pad_token_id\": 1}", 512, 1 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"xlm-roberta\"}", 512, 0 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"xlm-roberta-xl\"}", 512, 0 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"camembert\", \"pad_token_id\": 5}", 508, 5 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"mpnet\", \"pad_token_id\": 0}", 513, 0 },
        { "{\"max_position_embeddings\": 4098, \"model_type\": \"longformer\"}", 4096, 0 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"roberta-prelayernorm\"}", 512, 0 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"data2vec-text\"}", 512, 0 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"ibert\"}", 512, 0 },
        { "{\"max_position_embeddings\": 2, \"model_type\": \"roberta\"}", 2, 0 },
        { "{\"max_position_embeddings\": 3, \"model_type\": \"roberta\"}", 1, 0 },
        { "{\"model_type\": 5, \"pad_token_id\": \"x\", \"other\": {\"pad_token_id\": 7}}", 0, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith_modules m = usual;
        m.positions = cases[i].positions;
        m.pad_token_id = cases[i].pad;
        expect("config.json", cases[i].text, &m);
    }
    refuse("config.json", "{\"max_position_embeddings\": \"512\"}", PITH_ERR_FORMAT, "max_position_embeddings");
    refuse("config.json", "{} x", PITH_ERR_FORMAT, "config.json:1");
}

static void lengths(void **state) {
    (void)state;
    static const char *const names[] = {
        "bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"
    };
    pith_modules m = usual;
    char file[64];
    expect(NULL, "", &usual);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(file, sizeof file, "sentence_%s_config.json", names[i]);
        m.max_length = 256;
        expect(file, "{\"max_seq_length\": 256, \"do_lower_case\": false, \"other\": [true]}", &m);
    }
    m.max_length = 1 << 30;
    expect("sentence_bert_config.json", "{\"max_seq_length\": 1073741824}", &m);
    expect("sentence_bert_config.json", "{\"max_seq_length\": 1073741825}", &usual);
    expect("sentence_bert_config.json", "{\"max_seq_length\": null, \"do_lower_case\": null}", &usual);
    expect("sentence_bert_config.json",
           "{\"transformer_task\": \"feature-extraction\", \"module_output_name\": \"token_embeddings\"}", &usual);
    expect("sentence_bert_config.json", "{\"transformer_task\": null, \"module_output_name\": null}", &usual);
    refuse("sentence_bert_config.json", "{\"do_lower_case\": true}", PITH_ERR_UNSUPPORTED, "do_lower_case");
    refuse("sentence_bert_config.json", "{\"transformer_task\": \"fill-mask\"}", PITH_ERR_UNSUPPORTED,
           "transformer_task 'fill-mask' is not supported; supported is 'feature-extraction'");
    refuse("sentence_bert_config.json", "{\"module_output_name\": \"x\"}", PITH_ERR_UNSUPPORTED,
           "module_output_name 'x' is not supported; supported is 'token_embeddings'");
    refuse("sentence_bert_config.json", "{\"transformer_task\": 3}", PITH_ERR_FORMAT, "transformer_task");
    /* The first that is there counts. */
    put_file("sentence_roberta_config.json", "{\"max_seq_length\": 9}", 21);
    m.max_length = 8;
    expect("sentence_bert_config.json", "{\"max_seq_length\": 8}", &m);
    m.max_length = 9;
    expect("sentence_xlnet_config.json", "{\"max_seq_length\": 7}", &m);
    char path[512];
    snprintf(path, sizeof path, "%s/sentence_roberta_config.json", dir);
    assert_int_equal(unlink(path), 0);
}

static void prompts(void **state) {
    (void)state;
    static const char file[] = "config_sentence_transformers.json";
    static const pith_prompt two[] = { { PITH_STR("q"), PITH_STR("find: ") }, { PITH_STR("d"), PITH_STR("") } };
    pith_modules m = usual;
    m.prompts = two;
    m.prompt_count = 2;
    expect(file, "{\"prompts\": {\"q\": \"find: \", \"x\": null, \"d\": \"\"}, \"default_prompt_name\": null}", &m);
    expect(file, "{\"prompts\": {\"q\": \"first\", \"d\": \"\", \"q\": \"find: \"}}", &m); /* the last counts */
    m.default_prompt = PITH_STR("d");
    expect(file, "{\"default_prompt_name\": \"d\", \"prompts\": {\"q\": \"find: \", \"d\": \"\"}, \"y\": [1]}", &m);
    expect(file, "{\"prompts\": null, \"default_prompt_name\": null}", &usual);
    refuse(file, "{\"prompts\": {\"q\": \"\"}, \"default_prompt_name\": \"d\"}", PITH_ERR_FORMAT,
           "default_prompt_name 'd' is not the name of a prompt");
    refuse(file, "{\"prompts\": {\"q\": 1}}", PITH_ERR_FORMAT, "prompts.q");
    refuse(file, "{\"default_prompt_name\": 1}", PITH_ERR_FORMAT, "default_prompt_name");
}

static void put_modules(const char *type, const char *path) {
    char text[256];
    int size = snprintf(text, sizeof text,
                        "[{\"type\": \"x.Transformer\", \"path\": \"\", \"idx\": 0}, {\"type\": \"%s\", "
                        "\"path\": \"%s\"}]",
                        type, path);
    put_file("modules.json", text, (size_t)size);
}

static void poolings(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t pooling;
    } cases[] = {
        { "{\"pooling_mode_cls_token\": true}", PITH_POOL_CLS },
        { "{\"pooling_mode_max_tokens\": true, \"word_embedding_dimension\": 8}", PITH_POOL_MAX },
        { "{\"pooling_mode_mean_tokens\": true, \"pooling_mode_cls_token\": false}", PITH_POOL_MEAN },
        { "{\"pooling_mode_mean_sqrt_len_tokens\": true}", PITH_POOL_MEAN_SQRT },
        { "{\"pooling_mode_weightedmean_tokens\": true}", PITH_POOL_WEIGHTED },
        { "{\"pooling_mode_lasttoken\": true}", PITH_POOL_LAST },
        { "{\"pooling_mode_lasttoken\": true, \"pooling_mode_max_tokens\": true}", PITH_POOL_LAST | PITH_POOL_MAX },
        { "{\"pooling_mode_lasttoken\": true, \"pooling_mode_lasttoken\": false, \"pooling_mode_cls_token\": true}",
          PITH_POOL_CLS },
        { "{\"pooling_mode\": \"cls\"}", PITH_POOL_CLS },
        { "{\"pooling_mode\": \"max\"}", PITH_POOL_MAX },
        { "{\"pooling_mode\": \"mean\", \"pooling_mode_cls_token\": true}", PITH_POOL_MEAN },
        { "{\"pooling_mode\": \"mean_sqrt_len_tokens\"}", PITH_POOL_MEAN_SQRT },
        { "{\"pooling_mode\": \"weightedmean\"}", PITH_POOL_WEIGHTED },
        { "{\"pooling_mode\": [\"lasttoken\"]}", PITH_POOL_LAST },
        { "{\"pooling_mode\": [\"cls\", \"mean\", \"lasttoken\"]}", PITH_POOL_CLS | PITH_POOL_MEAN | PITH_POOL_LAST },
    };
    static const char *const refusals[][2] = {
        { "{\"pooling_mode\": [\"mean\", \"mean\"]}", "pooling mode 'mean' is unknown, repeated or out of order" },
        { "{\"pooling_mode\": [\"mean\", \"cls\"]}", "pooling mode 'cls' is unknown, repeated or out of order" },
        { "{\"pooling_mode\": [\"lasttoken\", \"cls\"]}", "pooling mode 'cls' is unknown, repeated or out of order" },
        { "{\"pooling_mode\": \"median\"}", "pooling mode 'median' is unknown, repeated or out of order" },
        { "{\"pooling_mode\": []}", "no supported pooling mode" },
        { "{}", "no supported pooling mode" },
    };
    char path[512];
    snprintf(path, sizeof path, "%s/p", dir);
    mkdir(path, 0777);
    put_modules("sentence_transformers.models.Pooling", "p");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith_modules m = usual;
        m.pooling = cases[i].pooling;
        expect("p/config.json", cases[i].text, &m);
    }
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        refuse("p/config.json", refusals[i][0], PITH_ERR_UNSUPPORTED, refusals[i][1]);
    refuse("p/config.json", "{\"pooling_mode_cls_token\": 1}", PITH_ERR_FORMAT, "pooling_mode_cls_token");
    pith_modules m = usual;
    m.include_prompt = false;
    expect("p/config.json", "{\"include_prompt\": false, \"pooling_mode\": \"mean\"}", &m);
    refuse(NULL, "", PITH_ERR_NOT_FOUND, "modules.json names the folder 'p', but p/config.json is not there");
}

static void modules(void **state) {
    (void)state;
    static const char normalize[] = "{\"module_input_name\": \"sentence_embedding\", \"module_output_name\": "
                                    "\"sentence_embedding\", \"x\": 1}";
    pith_modules m = usual;
    char path[512];
    snprintf(path, sizeof path, "%s/n", dir);
    mkdir(path, 0777);
    m.normalize = true;
    put_modules("sentence_transformers.models.Normalize", "n");
    expect(NULL, "", &m);
    expect("n/config.json", normalize, &m);
    expect("n/config.json", "{\"module_input_name\": null}", &m);
    refuse("n/config.json", "{\"module_input_name\": \"x\"}", PITH_ERR_UNSUPPORTED, "module_input_name 'x'");
    refuse("n/config.json", "{\"module_output_name\": \"x\"}", PITH_ERR_UNSUPPORTED, "module_output_name 'x'");
    put_modules("Normalize", "");
    expect(NULL, "", &m);
    put_modules("Transformer", ".");
    expect(NULL, "", &usual);
    expect("modules.json", "[]", &usual);

    static const struct {
        const char *text;
        pith_status status;
        const char *says;
    } cases[] = {
        { "[{\"type\": \"x.Transformer\", \"path\": \"0\"}]", PITH_ERR_UNSUPPORTED, "folder '0'" },
        { "[{\"type\": \"x.Dense\", \"path\": \"2\"}]", PITH_ERR_UNSUPPORTED, "module 'x.Dense'" },
        { "[{\"path\": \"2\"}]", PITH_ERR_UNSUPPORTED, "module ''" },
        { "[{\"type\": \"x.Pooling\"}]", PITH_ERR_FORMAT, "the module Pooling has no path" },
        { "[{\"type\": \"x.Pooling\", \"path\": \"p\"}, {\"type\": \"x.Pooling\", \"path\": \"p\"}]",
          PITH_ERR_UNSUPPORTED, "module 'x.Pooling' comes after another Pooling" },
        { "[{\"type\": \"x.Pooling\", \"path\": \"p\"}, {\"type\": \"Transformer\", \"path\": \"\"}]",
          PITH_ERR_UNSUPPORTED, "module 'Transformer' comes after another Pooling" },
        { "[{\"type\": \"x.Normalize\", \"path\": \"n\"}, {\"type\": \"x.Normalize\", \"path\": \"n\"}]",
          PITH_ERR_UNSUPPORTED, "module 'x.Normalize' comes after another Normalize" },
        { "[{\"type\": 1}]", PITH_ERR_FORMAT, "type" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse("modules.json", cases[i].text, cases[i].status, cases[i].says);
}

/* The flag, else the directory's limit, else the tokenizer's; none goes beyond the positions. */
static void which_length(void **state) {
    (void)state;
    static const int32_t cases[][5] = {
        /* limit, positions, flag, tokenizer: length */
        { 0, 0, 0, 0, 0 },        { 0, 0, 0, 77, 77 },       { 256, 0, 0, 77, 256 },     { 256, 0, 99, 77, 99 },
        { 256, 0, 512, 77, 512 }, { 0, 512, 0, 0, 512 },     { 0, 512, 0, 600, 512 },    { 0, 512, 0, 512, 512 },
        { 0, 512, 0, 511, 511 },  { 600, 512, 0, 300, 512 }, { 256, 512, 1000, 0, 512 }, { 256, 512, 1, 0, 1 },
        { 256, 512, -1, 0, 256 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pith_modules m = { .max_length = cases[i][0], .positions = cases[i][1] };
        assert_int_equal(pith_modules_max_length(&m, cases[i][2], cases[i][3]), cases[i][4]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions), cmocka_unit_test(lengths), cmocka_unit_test(prompts),
        cmocka_unit_test(poolings),  cmocka_unit_test(modules), cmocka_unit_test(which_length),
    };
    return cmocka_run_group_tests(tests, loader_setup, loader_teardown);
}
