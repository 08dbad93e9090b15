/* test_modules.c - the small JSON files of a model directory: what each key makes of the settings,
 * which are refused, and which length counts. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "models/modules/modules.h"
#include "support/loader_test.h"

static pith_error err;
static const char *route; /* that is asked for */

static const pith__modules usual = { .pooling = PITH_POOL_MEAN,
                                     .include_prompt = true,
                                     .dropped_id = -1 };

/* Reads the directory with one file in it (name NULL: none), which is removed afterwards. */
static pith_status read_with(pith__modules *m, const char *name, const char *text) {
    char path[512];
    if (name) put_file(name, text, strlen(text));
    err = (pith_error)PITH_ERROR_INIT;
    const pith__modules_source source = { .dir = dir,
                                          .route = route,
                                          .allocator = &pith__allocator_default };
    pith_status status = pith__modules_read(m, &source, &arena, &err);
    snprintf(path, sizeof path, "%s/%s", dir, name ? name : "");
    if (name) assert_int_equal(unlink(path), 0);
    assert_int_equal(status, err.code);
    return status;
}

static void expect(const char *name, const char *text, const pith__modules *wanted) {
    pith__modules m;
    if (read_with(&m, name, text)) fail_msg("%s: %s", text, err.message);
    if (m.pooling != wanted->pooling || m.normalize != wanted->normalize ||
        m.include_prompt != wanted->include_prompt || m.max_length != wanted->max_length ||
        m.lower_case != wanted->lower_case || m.truncate_dim != wanted->truncate_dim ||
        m.step_count != wanted->step_count || m.row_step_count != wanted->row_step_count ||
        !pith__str_eq(m.similarity, wanted->similarity) || !pith__str_eq(m.route, wanted->route) ||
        !pith__str_eq(m.folder, wanted->folder) || m.positions != wanted->positions ||
        m.pad_token_id != wanted->pad_token_id || m.prompt_count != wanted->prompt_count ||
        !pith__str_eq(m.default_prompt, wanted->default_prompt))
        fail_msg("%s %s: pooling %u, normalize %d, include_prompt %d, length %d, positions %d, pad "
                 "%d, %zu prompts",
                 name ? name : "", text, m.pooling, m.normalize, m.include_prompt, m.max_length,
                 m.positions, m.pad_token_id, m.prompt_count);
    for (size_t i = 0; i < m.prompt_count; i++)
        assert_true(pith__str_eq(m.prompts[i].name, wanted->prompts[i].name) &&
                    pith__str_eq(m.prompts[i].text, wanted->prompts[i].text));
}

static void refuse(const char *name, const char *text, pith_status status, const char *says) {
    pith__modules m;
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
        { "{\"max_position_embeddings\": 512, \"model_type\": \"bert\", \"pad_token_id\": 3}", 512,
          3 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"roberta\", \"pad_token_id\": 1}",
          512, 1 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"xlm-roberta\"}", 512, 0 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"xlm-roberta-xl\"}", 512, 0 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"camembert\", \"pad_token_id\": 5}",
          508, 5 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"mpnet\", \"pad_token_id\": 0}", 512,
          0 },
        { "{\"max_position_embeddings\": 4098, \"model_type\": \"longformer\"}", 4096, 0 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"roberta-prelayernorm\"}", 512, 0 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"data2vec-text\"}", 512, 0 },
        { "{\"max_position_embeddings\": 514, \"model_type\": \"ibert\"}", 512, 0 },
        { "{\"max_position_embeddings\": 2, \"model_type\": \"roberta\"}", 2, 0 },
        { "{\"max_position_embeddings\": 3, \"model_type\": \"roberta\"}", 1, 0 },
        { "{\"model_type\": 5, \"pad_token_id\": \"x\", \"other\": {\"pad_token_id\": 7}}", 0, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith__modules m = usual;
        m.positions = cases[i].positions;
        m.pad_token_id = cases[i].pad;
        expect("config.json", cases[i].text, &m);
    }
    refuse("config.json", "{\"max_position_embeddings\": \"512\"}", PITH_ERR_FORMAT,
           "max_position_embeddings");
    refuse("config.json", "{} x", PITH_ERR_FORMAT, "config.json:1");
}

static void lengths(void **state) {
    (void)state;
    static const char *const names[] = { "bert",   "roberta",     "distilbert", "camembert",
                                         "albert", "xlm-roberta", "xlnet" };
    pith__modules m = usual;
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
    expect("sentence_bert_config.json", "{\"max_seq_length\": null, \"do_lower_case\": null}",
           &usual);
    expect("sentence_bert_config.json",
           "{\"transformer_task\": \"feature-extraction\", \"module_output_name\": "
           "\"token_embeddings\"}",
           &usual);
    expect("sentence_bert_config.json",
           "{\"transformer_task\": null, \"module_output_name\": null}", &usual);
    static const char odd[] =
        "{\"modality_config\": {\"text\": {\"method\": \"forward\", \"method_output_name\": %s}}}";
    char text[200];
    snprintf(text, sizeof text, odd, "\"last_hidden_state\"");
    expect("sentence_bert_config.json", text, &usual);
    snprintf(text, sizeof text, odd, "[\"last_hidden_state\"]");
    expect("sentence_bert_config.json", text, &usual);
    snprintf(text, sizeof text, odd, "\"pooler_output\"");
    refuse("sentence_bert_config.json", text, PITH_ERR_UNSUPPORTED,
           "method_output_name 'pooler_output'");
    snprintf(text, sizeof text, odd, "[\"last_hidden_state\", \"last_hidden_state\"]");
    refuse("sentence_bert_config.json", text, PITH_ERR_UNSUPPORTED, "a path of several names");
    refuse("sentence_bert_config.json",
           "{\"modality_config\": {\"text\": {\"method\": \"get_text_features\"}}}",
           PITH_ERR_UNSUPPORTED, "method 'get_text_features'");
    refuse("sentence_bert_config.json", "{\"modality_config\": {\"message\": {}}}",
           PITH_ERR_UNSUPPORTED, "chat templates");
    refuse("sentence_bert_config.json",
           "{\"processing_kwargs\": {\"text\": {\"add_special_tokens\": false}}}",
           PITH_ERR_UNSUPPORTED, "processing_kwargs.text.add_special_tokens: this setting");
    refuse("sentence_bert_config.json",
           "{\"processing_kwargs\": {\"text\": {\"truncation\": false}}}", PITH_ERR_UNSUPPORTED,
           "truncation");
    m.max_length = 40;
    expect("sentence_bert_config.json",
           "{\"processing_kwargs\": {\"text\": {\"max_length\": 40, \"padding\": true, "
           "\"truncation\": true}}, "
           "\"max_seq_length\": 7}",
           &m);
    expect(
        "sentence_bert_config.json",
        "{\"tokenizer_args\": {\"model_max_length\": 40, \"use_fast\": 1}, \"max_seq_length\": 7}",
        &m);
    m.max_length = 256;
    pith__modules lower = usual;
    lower.lower_case = true;
    expect("sentence_bert_config.json", "{\"do_lower_case\": true}", &lower);
    refuse("sentence_bert_config.json", "{\"transformer_task\": \"any-to-any\"}",
           PITH_ERR_UNSUPPORTED,
           "transformer_task 'any-to-any' is not supported; supported are feature-extraction, "
           "fill-mask, "
           "sequence-classification and text-generation");
    refuse("sentence_bert_config.json", "{\"module_output_name\": \"x\"}", PITH_ERR_UNSUPPORTED,
           "module_output_name 'x' is not supported; supported are token_embeddings, scores and "
           "causal_logits");
    refuse("sentence_bert_config.json", "{\"transformer_task\": 3}", PITH_ERR_FORMAT,
           "transformer_task");
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
    static const pith__prompt two[] = { { PITH_STR("q"), PITH_STR("find: ") },
                                        { PITH_STR("d"), PITH_STR("") } };
    pith__modules m = usual;
    m.prompts = two;
    m.prompt_count = 2;
    expect(file,
           "{\"prompts\": {\"q\": \"find: \", \"x\": null, \"d\": \"\"}, \"default_prompt_name\": "
           "null}",
           &m);
    /* the last counts */
    expect(file, "{\"prompts\": {\"q\": \"first\", \"d\": \"\", \"q\": \"find: \"}}", &m);
    m.default_prompt = PITH_STR("d");
    expect(file,
           "{\"default_prompt_name\": \"d\", \"prompts\": {\"q\": \"find: \", \"d\": \"\"}, \"y\": "
           "[1]}",
           &m);
    expect(file, "{\"prompts\": null, \"default_prompt_name\": null}", &usual);
    m = usual;
    m.truncate_dim = 64;
    m.similarity = PITH_STR("dot");
    expect(file, "{\"truncate_dim\": 64, \"similarity_fn_name\": \"dot\"}", &m);
    expect(file, "{\"truncate_dim\": null, \"similarity_fn_name\": null}", &usual);
    refuse(file, "{\"truncate_dim\": 0}", PITH_ERR_FORMAT, "truncate_dim");
    refuse(file, "{\"prompts\": {\"q\": \"\"}, \"default_prompt_name\": \"d\"}", PITH_ERR_FORMAT,
           "default_prompt_name 'd' is not the name of a prompt");
    refuse(file, "{\"prompts\": {\"q\": 1}}", PITH_ERR_FORMAT, "prompts.q");
    refuse(file, "{\"default_prompt_name\": 1}", PITH_ERR_FORMAT, "default_prompt_name");
}

#define ST "sentence_transformers.models."
#define AND(a, b) ((a) | (b) << PITH_POOL_BITS)

static void put_modules(const char *type, const char *path) {
    char text[512];
    int size =
        snprintf(text, sizeof text,
                 "[{\"type\": \"sentence_transformers.models.Transformer\", \"path\": \"\", "
                 "\"idx\": 0}, %s{\"type\": \"%s\", "
                 "\"path\": \"%s\"}]",
                 strstr(type, "Pooling") ? "" : "{\"type\": \"" ST "Pooling\", \"path\": \"p\"}, ",
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
        { "{\"pooling_mode_mean_tokens\": true, \"pooling_mode_cls_token\": false}",
          PITH_POOL_MEAN },
        { "{\"pooling_mode_mean_sqrt_len_tokens\": true}", PITH_POOL_MEAN_SQRT },
        { "{\"pooling_mode_weightedmean_tokens\": true}", PITH_POOL_WEIGHTED },
        { "{\"pooling_mode_lasttoken\": true}", PITH_POOL_LAST },
        { "{\"pooling_mode_lasttoken\": true, \"pooling_mode_max_tokens\": true}",
          AND(PITH_POOL_MAX, PITH_POOL_LAST) },
        { "{\"pooling_mode_lasttoken\": true, \"pooling_mode_lasttoken\": false, "
          "\"pooling_mode_cls_token\": true}",
          PITH_POOL_CLS },
        { "{\"pooling_mode\": \"cls\"}", PITH_POOL_CLS },
        { "{\"pooling_mode\": \"max\"}", PITH_POOL_MAX },
        { "{\"pooling_mode\": \"mean\", \"pooling_mode_cls_token\": true}", PITH_POOL_MEAN },
        { "{\"pooling_mode\": \"mean_sqrt_len_tokens\"}", PITH_POOL_MEAN_SQRT },
        { "{\"pooling_mode\": \"weightedmean\"}", PITH_POOL_WEIGHTED },
        { "{\"pooling_mode\": [\"lasttoken\"]}", PITH_POOL_LAST },
        { "{\"pooling_mode\": [\"cls\", \"mean\", \"lasttoken\"]}",
          AND(PITH_POOL_CLS, AND(PITH_POOL_MEAN, PITH_POOL_LAST)) },
        { "{\"pooling_mode\": [\"mean\", \"cls\", \"mean\"]}",
          AND(PITH_POOL_MEAN, AND(PITH_POOL_CLS, PITH_POOL_MEAN)) },
        { "{\"pooling_mode_cls_token\": false}", PITH_POOL_MEAN },
        { "{}", PITH_POOL_MEAN },
    };
    static const char nine[] = "{\"pooling_mode\": [\"cls\", \"cls\", \"cls\", \"cls\", \"cls\", "
                               "\"cls\", \"cls\", \"cls\", \"cls\"]}";
    char path[512];
    snprintf(path, sizeof path, "%s/p", dir);
    mkdir(path, 0777);
    put_modules(ST "Pooling", "p");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith__modules m = usual;
        m.pooling = cases[i].pooling;
        expect("p/config.json", cases[i].text, &m);
    }
    refuse("p/config.json", "{\"pooling_mode\": \"median\"}", PITH_ERR_UNSUPPORTED,
           "pooling mode 'median' is not supported");
    refuse("p/config.json", "{\"pooling_mode\": []}", PITH_ERR_FORMAT,
           "the list of pooling modes is empty");
    refuse("p/config.json", nine, PITH_ERR_UNSUPPORTED, "more than 8 pooling modes");
    refuse("p/config.json", "{\"pooling_mode_cls_token\": 1}", PITH_ERR_FORMAT,
           "pooling_mode_cls_token");
    pith__modules m = usual;
    m.include_prompt = false;
    expect("p/config.json", "{\"include_prompt\": false, \"pooling_mode\": \"mean\"}", &m);
    refuse(NULL, "", PITH_ERR_NOT_FOUND,
           "modules.json names the folder 'p', but p/config.json is not there");
}

static void modules(void **state) {
    (void)state;
    static const char normalize[] =
        "{\"module_input_name\": \"sentence_embedding\", \"module_output_name\": "
        "\"sentence_embedding\", \"x\": 1}";
    pith__modules m = usual;
    char path[512];
    snprintf(path, sizeof path, "%s/n", dir);
    mkdir(path, 0777);
    put_file("p/config.json", "{}", 2);
    m.normalize = true;
    put_modules(ST "Normalize", "n");
    expect(NULL, "", &m);
    expect("n/config.json", normalize, &m);
    expect("n/config.json", "{\"module_input_name\": null}", &m);
    refuse("n/config.json", "{\"module_input_name\": \"x\"}", PITH_ERR_UNSUPPORTED,
           "module_input_name 'x'");
    refuse("n/config.json", "{\"module_output_name\": \"x\"}", PITH_ERR_UNSUPPORTED,
           "module_output_name 'x'");
    put_modules(ST "Normalize", "");
    expect(NULL, "", &m);
    put_modules(ST "Dropout", "");
    m = usual;
    expect(NULL, "", &m);
    expect("modules.json", "[]", &usual);
}

#define ENTRY(type, path) "{\"type\": \"" ST type "\", \"path\": \"" path "\"}"
#define POOLED ENTRY("Transformer", "") ", " ENTRY("Pooling", "p")

static void lists(void **state) {
    (void)state;
    static const struct {
        const char *text;
        pith_status status;
        const char *says;
    } cases[] = {
        { "[{\"type\": \"custom_st.Transformer\", \"path\": \"\"}]", PITH_ERR_UNSUPPORTED,
          "'custom_st.Transformer' is code that comes with the model" },
        { "[{\"type\": \"" ST "Odd\", \"path\": \"2\"}]", PITH_ERR_UNSUPPORTED,
          "Odd' is not supported; supported are Asym, CLIPModel, CNN, Dense, Dropout, "
          "HierarchicalTokenPooling, "
          "LayerNorm, LogitScore, LSTM, MLMTransformer, "
          "MultiVectorMask, "
          "Normalize, Pooling, Router, SparseAutoEncoder, SparseStaticEmbedding, SpladePooling, "
          "StaticEmbedding, "
          "Transformer, WeightedLayerPooling, WordWeights" },
        { "[{\"path\": \"2\"}]", PITH_ERR_UNSUPPORTED, "module ''" },
        { "[" ENTRY("WordEmbeddings", "0") "]", PITH_ERR_UNSUPPORTED,
          "WordEmbeddings' is not supported: " },
        { "[" ENTRY("Pooling", "p") "]", PITH_ERR_UNSUPPORTED, "no module has made vectors yet" },
        { "[" POOLED ", " ENTRY("Pooling", "p") "]", PITH_ERR_UNSUPPORTED,
          "module Pooling (folder 'p'): it is a module of tokens' vectors, but stands where there "
          "is one vector" },
        { "[" POOLED ", " ENTRY("Transformer", "") "]", PITH_ERR_UNSUPPORTED,
          "module Transformer (next to modules.json): it is a module of texts" },
        { "[" POOLED ", " ENTRY("Dense", "d") "]", PITH_ERR_NOT_FOUND,
          "d/config.json is not there" },
        { "[" ENTRY("Transformer", "") ", " ENTRY("Normalize", "n") "]", PITH_ERR_UNSUPPORTED,
          "module Normalize" },
        { "[" ENTRY("Transformer", "") ", " ENTRY("Pooling", "..") "]", PITH_ERR_FORMAT,
          "outside its folder" },
        { "[{\"type\": 1}]", PITH_ERR_FORMAT, "type" },
    };
    put_file("p/config.json", "{}", 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse("modules.json", cases[i].text, cases[i].status, cases[i].says);
    pith__modules m = usual;
    m.pooling = 0; /* a vector for each token */
    m.folder = PITH_STR("0_BERT");
    expect("modules.json", "[" ENTRY("Transformer", "0_BERT") "]", &m);
}

static void denses(void **state) {
    (void)state;
    static const char file[] = "d/config.json";
    char path[512];
    snprintf(path, sizeof path, "%s/d", dir);
    mkdir(path, 0777);
    put_modules(ST "Pooling", "p");
    put_file("modules.json", "[" POOLED ", " ENTRY("Dense", "d") "]",
             strlen("[" POOLED ", " ENTRY("Dense", "d") "]"));
    pith__modules m = usual;
    m.step_count = 1;
    expect(file, "{\"in_features\": 4, \"out_features\": 2, \"bias\": false}", &m);
    expect(file,
           "{\"in_features\": 4, \"out_features\": 2, \"activation_function\": "
           "\"torch.nn.modules.activation.GELU\"}",
           &m);
    expect(
        file,
        "{\"in_features\": 4, \"out_features\": 2, \"module_input_name\": \"sentence_embedding\"}",
        &m);
    refuse(file,
           "{\"in_features\": 4, \"out_features\": 2, \"activation_function\": "
           "\"torch.nn.modules.activation.Mish\"}",
           PITH_ERR_UNSUPPORTED,
           "activation_function 'torch.nn.modules.activation.Mish' is not supported");
    refuse(file,
           "{\"in_features\": 4, \"out_features\": 2, \"activation_function\": \"os.system\"}",
           PITH_ERR_UNSUPPORTED, "'os.system'");
    refuse(file,
           "{\"in_features\": 4, \"out_features\": 2, \"activation_function\": \"evil.GELU\"}",
           PITH_ERR_UNSUPPORTED, "'evil.GELU'");
    refuse(file, "{\"in_features\": 4}", PITH_ERR_FORMAT, "in_features is 4 and out_features 0");
    refuse(file, "{\"in_features\": 4, \"out_features\": 9999999}", PITH_ERR_FORMAT,
           "out_features 9999999");
    refuse(file, "{\"in_features\": 4, \"out_features\": 2, \"module_input_name\": \"x\"}",
           PITH_ERR_UNSUPPORTED, "module_input_name 'x'");
    refuse(file, "{\"in_features\": 4, \"out_features\": 2, \"module_output_name\": \"x\"}",
           PITH_ERR_UNSUPPORTED, "module_output_name 'x'");
    refuse(file,
           "{\"in_features\": 4, \"out_features\": 2, \"module_input_name\": \"token_embeddings\"}",
           PITH_ERR_UNSUPPORTED, "module Dense (folder 'd'): it is a module of tokens' vectors");
}

/* By task, by mapping, by default. */
static void routes(void **state) {
    (void)state;
    static const char file[] = "r/router_config.json",
                      list[] = "[" POOLED ", " ENTRY("Router", "r") "]";
    static const char start[] =
        "{\"types\": {\"q_0\": \"" ST "Normalize\"}, \"structure\": {\"query\": [\"q_0\"], "
        "\"document\": []}, \"parameters\": {";
    static const struct {
        const char *asked, *parameters, *route, *says;
    } cases[] = {
        { NULL, "\"default_route\": \"document\"", "document", NULL },
        { NULL, "\"default_route\": null", "query", NULL }, /* the first */
        { "query", "\"default_route\": \"document\"", "query", NULL },
        { "document", "", "document", NULL },
        { "q", "\"route_mappings\": {\"('q', 'text')\": \"query\"}", "query", NULL },
        { "q", "\"route_mappings\": {\"('q', None)\": \"query\"}", "query", NULL },
        { "other", "\"route_mappings\": {\"(None, 'text')\": \"document\"}", "document", NULL },
        { NULL, "\"route_mappings\": {\"(None, None)\": \"document\"}", "document", NULL },
        { NULL, "\"allow_empty_key\": false", NULL, "the model has no default route; name one" },
        { "other", "", NULL, "there is no route 'other'; the model has: query, document" },
        { NULL, "\"default_route\": \"x\"", NULL, "there is no route 'x'" },
    };
    char path[512], text[1024];
    snprintf(path, sizeof path, "%s/r", dir);
    mkdir(path, 0777);
    put_file("modules.json", list, sizeof list - 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith__modules m = usual;
        route = cases[i].asked;
        snprintf(text, sizeof text, "%s%s}}", start, cases[i].parameters);
        if (cases[i].says) {
            refuse(file, text, PITH_ERR_ARGUMENT, cases[i].says);
            continue;
        }
        m.route = pith__str_of(cases[i].route);
        m.normalize = strcmp(cases[i].route, "query") == 0;
        expect(file, text, &m);
    }
    route = NULL;
    refuse(file, "{\"types\": {}, \"structure\": {\"a\": [\"x\"]}, \"parameters\": {}}",
           PITH_ERR_FORMAT, "the structure names the module 'x', which has no type");
    refuse(file,
           "{\"types\": {\"x\": \"" ST
           "Router\"}, \"structure\": {\"a\": [\"x\"]}, \"parameters\": {}}",
           PITH_ERR_UNSUPPORTED, "a Router within a Router");
    refuse(file,
           "{\"types\": {\"../x\": \"" ST
           "Pooling\"}, \"structure\": {\"a\": [\"../x\"]}, \"parameters\": {}}",
           PITH_ERR_UNSUPPORTED, "module Pooling");
    refuse(NULL, "", PITH_ERR_NOT_FOUND, "r/config.json is not there");
    put_modules(ST "Pooling", "p");
    route = "query";
    refuse(NULL, "", PITH_ERR_ARGUMENT,
           "the model has no routes, so there is none of the name 'query'");
    route = NULL;
}

/* The flag, else the directory's limit, else the tokenizer's; none goes beyond the positions. */
static void which_length(void **state) {
    (void)state;
    static const int32_t cases[][5] = {
        /* limit, positions, flag, tokenizer: length */
        { 0, 0, 0, 0, 0 },         { 0, 0, 0, 77, 77 },        { 256, 0, 0, 77, 256 },
        { 256, 0, 99, 77, 99 },    { 256, 0, 512, 77, 512 },   { 0, 512, 0, 0, 512 },
        { 0, 512, 0, 600, 512 },   { 0, 512, 0, 512, 512 },    { 0, 512, 0, 511, 511 },
        { 600, 512, 0, 300, 512 }, { 256, 512, 1000, 0, 512 }, { 256, 512, 1, 0, 1 },
        { 256, 512, -1, 0, 256 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pith__modules m = { .max_length = cases[i][0], .positions = cases[i][1] };
        assert_int_equal(pith__modules_max_length(&m, cases[i][2], cases[i][3]), cases[i][4]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions), cmocka_unit_test(lengths), cmocka_unit_test(prompts),
        cmocka_unit_test(poolings),  cmocka_unit_test(modules), cmocka_unit_test(which_length),
        cmocka_unit_test(lists),     cmocka_unit_test(denses),  cmocka_unit_test(routes),
    };
    return cmocka_run_group_tests(tests, loader_setup, loader_teardown);
}
