/* Model directories without ONNX file: what is built from config.json and safetensors, and what is
 * refused by name. The numbers such a graph gives are compared with transformers in test_hf_run. */
#include <string.h>
#include <unistd.h>

#include "formats/weights/safetensors/safetensors.h"
#include "models/checkpoint/hf.h"
#include "support/loader_test.h"

static pith_error err;

static void families(void **state) {
    (void)state;
    static const struct {
        const char *name, *model_type;
        size_t inputs;
    } cases[] = {
        { "bert", "bert", 3 },
        { "bert-f16", "bert", 3 },
        { "bert-bf16", "bert", 3 },
        { "roberta", "roberta", 2 },
        { "distilbert", "distilbert", 2 },
        { "mpnet", "mpnet", 2 },
        { "albert", "albert", 3 },
        { "electra", "electra", 3 },
        { "embedding-gemma", "gemma3_text", 2 },
        { "gte", "new", 3 },
        { "gte-apart", "gte", 2 },
        { "modernbert", "modernbert", 2 },
        { "nomic", "nomic_bert", 3 },
        { "nomic-plain", "nomic_bert", 2 },
        { "qwen3", "qwen3", 2 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[512];
        pith__graph *graph;
        snprintf(path, sizeof path, PITH_TEST_DATA "/hf/%s", cases[i].name);
        if (pith__hf_build(&graph, path, &files, &arena, NULL, &err))
            fail_msg("%s: %s", cases[i].name, err.message);
        if (pith__graph_check(graph, &err)) fail_msg("%s: %s", cases[i].name, err.message);
        assert_int_equal(graph->input_count, cases[i].inputs);
        static const char *const names[] = { "input_ids", "attention_mask", "token_type_ids" };
        for (size_t k = 0; k < graph->input_count; k++) {
            assert_true(pith__str_is(graph->inputs[k]->name, names[k]));
            assert_int_equal(graph->inputs[k]->type.dtype, PITH_I64);
            assert_true(pith__dim_equal(graph->inputs[k]->type.dims[1],
                                        pith__dim_symbol(graph->dims, PITH_STR("sequence"))));
        }
        assert_int_equal(graph->output_count, 1);
        assert_true(pith__str_is(graph->outputs[0]->name, "last_hidden_state"));
        assert_true(pith__str_is(graph->name, cases[i].model_type) &&
                    pith__str_is(graph->producer, "safetensors"));
        assert_int_equal(graph->opset_count, 1);
        assert_true(pith__str_is(graph->opsets[0].domain, "") &&
                    graph->opsets[0].version == PITH_OPSET_NEWEST);
    }
}

/* The nodes of one operator in a graph; the last of them. */
static size_t count_nodes(const pith__graph *graph, const char *op, const pith__node **last) {
    size_t count = 0;
    for (const pith__node *n = graph->first; n; n = n->next)
        if (pith__str_is(n->op_type, op)) {
            count++;
            *last = n;
        }
    return count;
}

/* MPNet's table of buckets: exact up to 7, then wider and wider; those of keys behind the query
 * come second. */
static void relative_buckets(void **state) {
    (void)state;
    static const int64_t begins[] = { 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91 };
    enum { REACH = 49 };
    pith__graph *graph;
    const pith_tensor *table = NULL;
    if (pith__hf_build(&graph, PITH_TEST_DATA "/hf/mpnet", &files, &arena, NULL, &err))
        fail_msg("%s", err.message);
    for (const pith__node *n = graph->first; n; n = n->next)
        if (pith__str_is(n->op_type, "Gather") && n->inputs[0]->type.data &&
            n->inputs[0]->type.data->dtype == PITH_I64)
            table = n->inputs[0]->type.data;
    assert_non_null(table);
    assert_int_equal(table->bytes, (2 * REACH + 1) * sizeof(int64_t));
    for (int64_t d = -REACH; d <= REACH; d++) {
        int64_t bucket = d > 0 ? 16 : 0;
        for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
            bucket += (d < 0 ? -d : d) >= begins[i];
        assert_int_equal(((const int64_t *)table->data)[d + REACH], bucket);
    }
}

/* A copy of tests/data/hf/bert with one text of config.json replaced. */
static pith_status build_changed(pith__graph **graph, pith__files *own, const char *from,
                                 const char *to) {
    char config[4096] = { 0 }, changed[4096];
    FILE *f = fopen(PITH_TEST_DATA "/hf/bert/config.json", "r");
    assert_non_null(f);
    assert_true(fread(config, 1, sizeof config - 1, f) > 0);
    fclose(f);
    char *at = strstr(config, from);
    assert_non_null(at);
    *at = 0;
    snprintf(changed, sizeof changed, "%s%s%s", config, to, at + strlen(from));
    put_file("config.json", changed, strlen(changed));
    err = (pith_error)PITH_ERROR_INIT;
    return pith__hf_build(graph, dir, own, &arena, NULL, &err);
}

static void refuse_config(const char *from, const char *to, pith_status status, const char *text) {
    pith__graph *graph;
    pith__files own = { .arena = &arena };
    pith_status got = build_changed(&graph, &own, from, to);
    if (got != status || !strstr(err.message, text))
        fail_msg("%d '%s', not %d '%s'", got, err.message, status, text);
    pith__files_close(&own);
}

/* Each size at the edges of what is taken. */
static void sizes_out_of_range(void) {
    static const struct {
        const char *key;
        long long value, limit;
    } sizes[] = {
        { "hidden_size", 32, 1 << 20 },    { "num_hidden_layers", 2, 1 << 12 },
        { "num_attention_heads", 4, 32 },  { "intermediate_size", 64, 1 << 24 },
        { "vocab_size", 128, INT32_MAX },  { "max_position_embeddings", 48, 1 << 20 },
        { "type_vocab_size", 2, 1 << 20 },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const long long wrong[] = { 0, -1, sizes[i].limit + 1 };
        char from[64], to[64], says[128];
        snprintf(from, sizeof from, "\"%s\": %lld", sizes[i].key, sizes[i].value);
        for (size_t k = 0; k < 3; k++) {
            snprintf(to, sizeof to, "\"%s\": %lld", sizes[i].key, wrong[k]);
            snprintf(says, sizeof says, "%s is %lld; it must be between 1 and %lld", sizes[i].key,
                     wrong[k], sizes[i].limit);
            refuse_config(from, to, PITH_ERR_FORMAT, says);
        }
        snprintf(to, sizeof to, "\"%s\": %lld", sizes[i].key, sizes[i].limit);
        pith__graph *graph;
        pith__files own = { .arena = &arena };
        build_changed(&graph, &own, from, to); /* what follows may be refused, the size itself is
                                                  not */
        assert_null(strstr(err.message, "it must be between"));
        pith__files_close(&own);
    }
}

/* What each setting makes of the graph. */
static void settings(void) {
    static const struct {
        const char *act, *op, *approximate;
    } acts[] = {
        { "gelu", "Gelu", "none" },     { "gelu_fast", "Gelu", "tanh" },
        { "gelu_new", "Gelu", "tanh" }, { "gelu_pytorch_tanh", "Gelu", "tanh" },
        { "relu", "Relu", "" },         { "tanh", "Tanh", "" },
    };
    pith__graph *graph;
    const pith__node *node = NULL;
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        char to[64];
        pith__files own = { .arena = &arena };
        snprintf(to, sizeof to, "\"%s\"", acts[i].act);
        if (build_changed(&graph, &own, "\"gelu\"", to)) fail_msg("%s", err.message);
        assert_int_equal(count_nodes(graph, acts[i].op, &node), 2);
        assert_true(pith__str_is(pith__node_str(node, "approximate", ""), acts[i].approximate));
        assert_true(
            pith__str_is(node->name, acts[i].op[0] == 'G'   ? "encoder.layer.1.activation/Gelu"
                                     : acts[i].op[0] == 'R' ? "encoder.layer.1.activation/Relu"
                                                            : "encoder.layer.1.activation/Tanh"));
        pith__files_close(&own);
    }
    pith__files own = { .arena = &arena };
    if (build_changed(&graph, &own, "\"hidden_act\": \"gelu\"", "\"activation\": \"relu\""))
        fail_msg("%s", err.message);
    assert_int_equal(count_nodes(graph, "Relu", &node), 2);
    pith__files_close(&own);
    own = (pith__files){ .arena = &arena };
    if (build_changed(&graph, &own, "\"layer_norm_eps\": 1e-12", "\"layer_norm_eps\": 0.25"))
        fail_msg("%s", err.message);
    assert_int_equal(count_nodes(graph, "LayerNormalization", &node), 5);
    assert_true(pith__node_float(node, "epsilon", 0) == 0.25f);
    assert_int_equal(pith__node_int(node, "axis", 0), -1);
    assert_int_equal(count_nodes(graph, "Softmax", &node), 2);
    assert_int_equal(pith__node_int(node, "axis", 0), -1);
    pith__files_close(&own);
}

static void configs_that_do_not_fit(void **state) {
    (void)state;
    static char weights[1 << 20];
    FILE *f = fopen(PITH_TEST_DATA "/hf/bert/model.safetensors", "rb");
    assert_non_null(f);
    size_t size = fread(weights, 1, sizeof weights, f);
    fclose(f);
    pith__graph *graph;
    assert_int_equal(pith__hf_build(&graph, dir, &files, &arena, NULL, &err), PITH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "config.json"));
    refuse_config("\"bert\"", "\"falcon\"", PITH_ERR_UNSUPPORTED,
                  "architecture \"falcon\" is not supported; supported are albert, bert, "
                  "camembert, clip, clip_text_model, "
                  "clip_vision_model, deberta-v2, distilbert, electra, ernie, eurobert, gemma, "
                  "gemma2, gemma3_text, gte, "
                  "jina_embeddings_v3, llama, mistral, modernbert, mpnet, mt5, new, nomic_bert, "
                  "qwen2, qwen3, resnet, roberta, "
                  "siglip, siglip_text_model, siglip_vision_model, t5, umt5, vit, "
                  "xlm-roberta");
    refuse_config("\"bert\"", "\"bert\"", PITH_ERR_NOT_FOUND,
                  "no weights; looked for model.safetensors and pytorch_model.bin");
    put_file("model.safetensors", weights, size);
    refuse_config("\"hidden_size\": 32", "\"hidden_size\": 64", PITH_ERR_FORMAT,
                  "model.safetensors: tensor 'embeddings.word_embeddings.weight' has shape [128, "
                  "32]; config.json "
                  "asks for [128, 64]");
    refuse_config("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", PITH_ERR_NOT_FOUND,
                  "tensor 'encoder.layer.2.attention.self.query.weight' is missing; config.json "
                  "asks for shape [32, 32]");
    refuse_config("\"num_attention_heads\": 4", "\"num_attention_heads\": 5", PITH_ERR_FORMAT,
                  "not a multiple");
    sizes_out_of_range();
    settings();
    refuse_config("\"gelu\"", "\"mish\"", PITH_ERR_UNSUPPORTED, "activation \"mish\"");
    refuse_config("\"is_decoder\": false", "\"is_decoder\": true", PITH_ERR_UNSUPPORTED,
                  "is_decoder");
    refuse_config("\"hidden_size\": 32", "\"hidden_size\": \"32\"", PITH_ERR_FORMAT,
                  "hidden_size: expected a number, found a string");
    refuse_config("\"gelu\",", "\"gelu\"", PITH_ERR_FORMAT, "config.json:");
    refuse_config("\"vocab_size\": 128",
                  "\"position_embedding_type\": \"relative\", \"vocab_size\": 128",
                  PITH_ERR_UNSUPPORTED,
                  "position_embedding_type \"relative\" is not supported; supported are absolute, "
                  "relative_key, relative_key_query");
}

static void refuse_weights(const char *header, size_t data_size, pith_status status,
                           const char *text) {
    char file[1024];
    uint64_t size = strlen(header);
    memcpy(file, &size, sizeof size);
    memcpy(file + 8, header, size);
    memset(file + 8 + size, 1, data_size);
    /* An exact copy: reading past the end shows under the address sanitizer. */
    char *copy = malloc(8 + size + data_size);
    memcpy(copy, file, 8 + size + data_size);
    pith__weights w;
    assert_int_equal(pith__weights_init(&w, &arena, &err), PITH_OK);
    pith_status got =
        pith__safetensors_read(&w, (pith_str){ copy, 8 + size + data_size }, "w.safetensors", &err);
    if (got != status || (status && !strstr(err.message, text)))
        fail_msg("%d '%s', not %d '%s'", got, err.message, status, text);
    free(copy);
}

static void headers_that_lie(void **state) {
    (void)state;
    refuse_weights("{\"__metadata__\":{\"a\":\"b\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_"
                   "offsets\":[0,8]}}",
                   8, PITH_OK, "");
#define U8(name, size, from, to)                                                                   \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" size "],\"data_offsets\":[" from "," to "]}"
    /* Not aligned, and not in the order of the data; tensors without elements anywhere between
     * others. */
    refuse_weights(
        "{" U8("z", "3", "5", "8") ",\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[1,5]}"
                                   "," U8("b", "1", "0", "1") "," U8("e", "0", "5", "5") "," U8(
                                       "f", "0", "8", "8") "}",
        8, PITH_OK, "");
    refuse_weights("{" U8("a", "4", "1", "5") "}", 5, PITH_ERR_FORMAT,
                   "'a' begins at byte 1, where byte 0 is next");
    refuse_weights("{" U8("a", "4", "0", "4") "," U8("b", "4", "5", "9") "}", 9, PITH_ERR_FORMAT,
                   "leave a hole");
    refuse_weights("{" U8("a", "4", "0", "4") "," U8("b", "4", "3", "7") "}", 7, PITH_ERR_FORMAT,
                   "overlap");
    refuse_weights("{" U8("a", "4", "0", "4") "," U8("b", "4", "0", "4") "}", 4, PITH_ERR_FORMAT,
                   "overlap");
    refuse_weights("{" U8("a", "4", "0", "4") "," U8("e", "0", "2", "2") "}", 4, PITH_ERR_FORMAT,
                   "'e' begins");
    refuse_weights("{" U8("a", "4", "0", "4") "}", 6, PITH_ERR_FORMAT,
                   "2 bytes belong to no tensor");
    refuse_weights("{}", 1, PITH_ERR_FORMAT, "1 bytes belong to no tensor");
    refuse_weights("{" U8("a", "4", "4294967296", "4294967300") "}", 4, PITH_ERR_FORMAT,
                   "reach beyond");
    refuse_weights("{" U8("a", "4", "0,2", "4") "}", 4, PITH_ERR_FORMAT, "3 offsets instead of 2");
    refuse_weights("{\"__metadata__\":{\"a\":1}}", 0, PITH_ERR_FORMAT, "expected a string");
    refuse_weights("{}  ", 0, PITH_OK, "");
    refuse_weights(
        "{\"a\":{\"more\":[{\"dtype\":1}],\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
        1, PITH_OK, "");
    refuse_weights("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7,
                   PITH_ERR_FORMAT, "a: data_offsets reach beyond the file");
    refuse_weights("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8,
                   PITH_ERR_FORMAT, "reach beyond");
    refuse_weights("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8,
                   PITH_ERR_FORMAT, "reach beyond");
    refuse_weights("{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
                   PITH_ERR_FORMAT, "has 8 bytes, but shape [3] of float32 needs 12");
    refuse_weights("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,8]}}", 8,
                   PITH_ERR_UNSUPPORTED, "negative");
    refuse_weights(
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}", 8,
        PITH_ERR_FORMAT, "the shape is too large");
    refuse_weights("{\"a\":{\"dtype\":\"Q4\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
                   PITH_ERR_UNSUPPORTED, "a: dtype \"Q4\"");
    refuse_weights("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, PITH_ERR_FORMAT, "reach beyond");
    refuse_weights("{\"a\":{}}", 8, PITH_ERR_UNSUPPORTED, "dtype \"\"");
    refuse_weights("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{"
                   "\"dtype\":\"U8\",\"shape\":["
                   "1],\"data_offsets\":[0,1]}}",
                   1, PITH_ERR_FORMAT, "twice");
    refuse_weights("[]", 0, PITH_ERR_FORMAT, "w.safetensors:1: expected an object");
    pith__weights w;
    assert_int_equal(pith__weights_init(&w, &arena, &err), PITH_OK);
    static const char *const short_files[] = { "", "\0\0\0",
                                               ("\xff\xff\xff\xff\xff\xff\xff\xff"
                                                "{}"),
                                               "\x03\0\0\0\0\0\0\0{}", "\x02\0\0\0\0\0\0\0" };
    static const size_t sizes[] = { 0, 3, 10, 10, 8 };
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(
            pith__safetensors_read(&w, (pith_str){ short_files[i], sizes[i] }, "w", &err),
            PITH_ERR_FORMAT);
        assert_non_null(strstr(err.message, "the header is damaged"));
    }
}

/* Tensors of every dtype, with data at odd and even places: what is read is what was written. */
static void every_dtype(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int dtype;
        size_t size;
    } dtypes[] = {
        { "F32", PITH_F32, 4 },        { "F16", PITH_F16, 2 },   { "BF16", PITH_BF16, 2 },
        { "F64", PITH_F64, 8 },        { "I64", PITH_I64, 8 },   { "I32", PITH_I32, 4 },
        { "I16", PITH_I16, 2 },        { "I8", PITH_I8, 1 },     { "U64", PITH_U64, 8 },
        { "U32", PITH_U32, 4 },        { "U16", PITH_U16, 2 },   { "U8", PITH_U8, 1 },
        { "C64", PITH_C64, 8 },        { "BOOL", PITH_BOOL, 1 }, { "F8_E4M3", PITH_F8E4M3FN, 1 },
        { "F8_E5M2", PITH_F8E5M2, 1 },
    };
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        for (size_t before = 0; before < 9; before++) { /* bytes of another tensor */
            char header[256];
            size_t size = 6 * dtypes[i].size;
            int n = snprintf(header, sizeof header,
                             "{\"b\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[0,%zu]},"
                             "\"a\":{\"dtype\":\"%s\",\"shape\":[2,3],\"data_offsets\":[%zu,%zu]}}",
                             before, before, dtypes[i].name, before, before + size);
            uint64_t length = (uint64_t)n;
            size_t all = 8 + length + before + size;
            char *file = malloc(all);
            memcpy(file, &length, 8);
            memcpy(file + 8, header, length);
            /* valid bools */
            for (size_t k = 0; k < before + size; k++) file[8 + length + k] = (char)(k & 1);
            pith__weights w;
            assert_int_equal(pith__weights_init(&w, &arena, &err), PITH_OK);
            if (pith__safetensors_read(&w, (pith_str){ file, all }, "w", &err))
                fail_msg("%s", err.message);
            const pith_tensor *a = pith__weights_find(&w, PITH_STR("a"));
            assert_non_null(a);
            assert_int_equal(w.count, 2);
            assert_int_equal(a->dtype, dtypes[i].dtype);
            assert_int_equal(a->bytes, size);
            assert_int_equal(a->rank, 2);
            assert_true(a->dims[0] == 2 && a->dims[1] == 3);
            assert_memory_equal(a->data, file + 8 + length + before, size);
            assert_true(pith__constant_lies_anywhere(a) ||
                        (uintptr_t)a->data % dtypes[i].size == 0);
            free(file);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(families),
                                        cmocka_unit_test(relative_buckets),
                                        cmocka_unit_test(configs_that_do_not_fit),
                                        cmocka_unit_test(headers_that_lie),
                                        cmocka_unit_test(every_dtype) };
    return cmocka_run_group_tests(tests, loader_setup, loader_teardown);
}
