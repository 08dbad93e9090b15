/* test_embed_memory.c - opening a model, describing, tokenising, embedding and running it while the
 * n-th allocation fails, for every n: the status is PITH_ERR_MEMORY each time, nothing leaks, and
 * what was opened stays usable. And memory limits, which hold. */
#include <stdatomic.h>

#include "support/arena_fails.h"
#include "support/embed_test.h"
#include "support/failing_alloc.h"
#include "support/source_test.h"

#define DIR PITH_BINARY_DIR "/tiny-model"
#define MEMORY_PITH PITH_BINARY_DIR "/memory.pith"

static const char tokenizer_json[] =
    "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [{\"id\": "
    "1, \"content\": "
    "\"[CLS]\","
    " \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
    "\"special\": true}],"
    " \"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, "
    "\"handle_chinese_chars\": true,"
    " \"strip_accents\": null, \"lowercase\": true}, \"pre_tokenizer\": {\"type\": "
    "\"BertPreTokenizer\"},"
    " \"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 2], \"cls\": "
    "[\"[CLS]\", 1]},"
    " \"decoder\": null, \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\","
    " \"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100, \"vocab\": "
    "{\"[PAD]\": 0, \"[CLS]\": 1,"
    " \"[SEP]\": 2, \"[UNK]\": 3, \"a\": 4, \"cat\": 5, \"sat\": 6, \"##s\": 7}}}";
/* That of the weights, with an activation that is none of the defaults. */
static const char config_json[] =
    "{\"hidden_act\": \"gelu_new\", \"hidden_size\": 32, \"intermediate_size\": 64, "
    "\"layer_norm_eps\": 1e-12,"
    " \"max_position_embeddings\": 48, \"model_type\": \"bert\", \"num_attention_heads\": 4, "
    "\"num_hidden_layers\": 2,"
    " \"pad_token_id\": 0, \"type_vocab_size\": 2, \"vocab_size\": 128}";
static const char modules_json[] =
    "[{\"idx\": 0, \"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"
    " {\"idx\": 1, \"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"},"
    " {\"idx\": 2, \"path\": \"2_Normalize\", \"type\": "
    "\"sentence_transformers.models.Normalize\"}]";
static const char pooling_json[] =
    "{\"word_embedding_dimension\": 32, \"pooling_mode_cls_token\": true,"
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
    pith__file file;
    snprintf(path, sizeof path, PITH_TEST_DATA "/hf/bert/%s", name);
    assert_int_equal(pith__file_open(&file, path, false, NULL, NULL), PITH_OK);
    write_file(name, file.data, file.size);
    pith__file_close(&file);
}

static int make_directory(void **state) {
    (void)state;
    mkdir(DIR, 0777);
    mkdir(DIR "/1_Pooling", 0777);
    remove(DIR "/sentence_bert_config.json");
    remove(DIR "/sentence_roberta_config.json");
    remove(DIR "/tokenizer_config.json");
    write_file("config.json", config_json, sizeof config_json - 1);
    copy_file("model.safetensors");
    write_file("tokenizer.json", tokenizer_json, sizeof tokenizer_json - 1);
    write_file("modules.json", modules_json, sizeof modules_json - 1);
    write_file("1_Pooling/config.json", pooling_json, sizeof pooling_json - 1);
    write_file("config_sentence_transformers.json", prompts_json, sizeof prompts_json - 1);
    return 0;
}

enum { TEXTS = 5, WIDTH_MAX = 2048, TOKENS = 5, PORTS = 4 };
static const pith_str texts[TEXTS] = {
    { "a cat sat", 9 }, { "", 0 }, { "cats", 4 }, { "A dog?", 6 }, { "[CLS] a", 7 }
};
static float wanted[TEXTS * WIDTH_MAX], got[TEXTS * WIDTH_MAX];

static int32_t drop_text(void *user, const void *text, size_t size) {
    (void)user, (void)text, (void)size;
    return 0;
}

/* user: a FILE, or NULL to drop it. */
static int32_t write_piece(void *user, const void *data, size_t size) {
    return user && fwrite(data, 1, size, user) != size;
}

/* A session of its own on two rows, one of them padded. */
static pith_status run_session(const pith_model *model, pith_error *err) {
    static int64_t ids[2][TOKENS] = { { 1, 4, 5, 6, 2 }, { 1, 4, 2, 0, 0 } },
                   mask[2][TOKENS] = { { 1, 1, 1, 1, 1 }, { 1, 1, 1, 0, 0 } }, types[2][TOKENS];
    pith_session *session = NULL;
    pith_run_options options = PITH_RUN_OPTIONS_INIT;
    pith_tensor inputs[PORTS], outputs[PORTS];
    const char *names[PORTS];
    size_t count = pith_model_input_count(model);
    assert_true(count <= PORTS && pith_model_output_count(model) <= PORTS);
    for (size_t i = 0; i < count; i++) {
        names[i] = pith_model_input(model, i)->name;
        void *data = !strcmp(names[i], "input_ids")        ? ids
                     : !strcmp(names[i], "attention_mask") ? mask
                                                           : types;
        inputs[i] = (pith_tensor){
            .data = data, .bytes = sizeof ids, .dtype = PITH_I64, .rank = 2, .dims = { 2, TOKENS }
        };
    }
    options.call.threads = 2;
    pith_status status = pith_session_create(&session, model, err);
    for (int i = 0; i < 2 && !status; i++)
        status = pith_session_run(session, outputs, names, inputs, count, &options, err);
    pith_session_destroy(session);
    return status;
}

static pith_status tokenize(const pith_model *model, const pith_allocator *allocator,
                            const char *dir, pith_error *err) {
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith_tokenizer *own = NULL;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    options.call.allocator = allocator;
    pith_status status =
        pith_tokenize(&tokens, pith_model_tokenizer(model), texts[0], &texts[3], NULL, err);
    if (!status) status = pith_tokenizer_open(&own, dir, &options, err);
    if (!status) status = pith_tokenize(&tokens, own, texts[4], NULL, NULL, err);
    pith_tokenizer_close(own);
    pith_tokens_free(&tokens); /* they outlive their tokenizer */
    return status;
}

static pith_status work(counter *c, const char *dir, int threads, pith_error *err) {
    pith_allocator allocator = { count_alloc, count_free, c };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_embed_options embed_options = PITH_EMBED_OPTIONS_INIT;
    pith_model *model = NULL;
    options.call.allocator = &allocator;
    options.pool_blocks = -1; /* freeing pooled blocks would make up for a failure */
    options.flags = PITH_OPEN_DESCRIBE;
    embed_options.call.threads = threads;
    if (!strcmp(dir, DIR) || strstr(dir, "pool-prompt")) embed_options.prompt_name = "query";
    memset(got, 0, sizeof got);
    pith_status status = pith_model_open(&model, dir, &options, err);
    if (status) return status;
    size_t bytes = TEXTS * pith_embed_dim(model, &embed_options) * sizeof *got;
    assert_in_range(bytes, 1, sizeof got);
    status = pith_embed(got, model, texts, TEXTS, &embed_options, err);
    if (!status)
        status = pith_model_describe(model, PITH_DESCRIBE_JSON, NULL,
                                     &(pith_writer){ drop_text, NULL, NULL }, err);
    if (!status) status = tokenize(model, &allocator, dir, err);
    if (!status) status = run_session(model, err);
    if (!status)
        status = pith_model_save(model, NULL, &(pith_writer){ write_piece, NULL, NULL }, err);
    if (status) { /* the failure was passed: the model works */
        long fail_at = c->fail_at;
        c->fail_at = 0;
        assert_int_equal(pith_embed(got, model, texts, TEXTS, &embed_options, NULL), PITH_OK);
        assert_memory_equal(got, wanted, bytes);
        c->fail_at = fail_at;
    }
    pith_model_close(model);
    return status;
}

/* step: every step-th allocation. */
static void fail_each(const char *dir, int threads, bool for_good, long step) {
    counter c = { 0 };
    pith_error err = PITH_ERROR_INIT;
    if (work(&c, dir, threads, &err)) fail_msg("%s", err.message);
    assert_int_equal(c.live, 0);
    memcpy(wanted, got, sizeof got);
    long count = c.calls;
    for (long n = 1; n <= count; n += step) {
        c = (counter){ .fail_at = n, .for_good = for_good };
        err = (pith_error)PITH_ERROR_INIT;
        pith_status status = work(&c, dir, threads, &err);
        if (status != PITH_ERR_MEMORY || err.code != PITH_ERR_MEMORY || !err.message[0])
            fail_msg("%s: allocation %ld of %ld: status %d, '%s'", dir, n, count, (int)status,
                     err.message);
        if (atomic_load(&c.live))
            fail_msg("%s: allocation %ld of %ld: %ld leak", dir, n, count, atomic_load(&c.live));
    }
    print_message("%s: %ld allocations\n", strrchr(dir, '/') + 1, count);
}

static void test_safetensors(void **state) {
    (void)state;
    fail_each(DIR, 1, false, 1);
    fail_each(DIR, 1, true, 1);
}

/* As exported, as another engine fused it, with quantised products, with rotary positions; with a
 * graph that pools. */
static const char *const networks[] = {
    "bert-base-script14-eager",      "bert-base-script14-eager-fused",
    "bert-base-script14-eager-int8", "modernbert-base-dynamo20-sdpa",
    "bert-pool-script17-sdpa",       "bert-base-script14-eager-qdq"
};

static void test_networks(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        char dir[600];
        snprintf(dir, sizeof dir, "%s/memory-%s", PITH_BINARY_DIR, networks[i]);
        network_directory(dir, networks[i], "null");
        fail_each(dir, 1, false, 1);
        fail_each(dir, 1, true, 3);
    }
}

static pith_model *open_any(const char *path) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    if (pith_model_open(&model, path, NULL, &err)) fail_msg("%s", err.message);
    return model;
}

static void save_model(const char *path) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = open_any(DIR);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    if (pith_model_save(model, NULL, &(pith_writer){ write_piece, NULL, f }, &err))
        fail_msg("%s", err.message);
    pith_model_close(model);
    assert_int_equal(fclose(f), 0);
}

/* The same out of a compiled file. */
static void test_compiled(void **state) {
    (void)state;
    save_model(MEMORY_PITH);
    fail_each(MEMORY_PITH, 1, false, 1);
    fail_each(MEMORY_PITH, 1, true, 3);
    remove(MEMORY_PITH);
}

/* A family's weights with the tokenizer above. */
static void weights_directory(const char *dir, const char *family) {
    static const char *const names[] = { "config.json",
                                         "model.safetensors",
                                         "model.safetensors.index.json",
                                         "model-00001-of-00002.safetensors",
                                         "model-00002-of-00002.safetensors",
                                         "tokenizer.json" };
    mkdir(dir, 0777);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[700], target[700];
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        snprintf(target, sizeof target, PITH_TEST_DATA "/hf/%s/%s", family, names[i]);
        if (!strcmp(names[i], "tokenizer.json"))
            snprintf(target, sizeof target, DIR "/tokenizer.json");
        unlink(path);
        if (!access(target, R_OK)) assert_int_equal(symlink(target, path), 0);
    }
}

/* Opens and works while one request of an arena is refused. It is reported, or nothing but
 * knowledge about sizes is lost: the vectors are the same. */
static void work_refused(const void *dir) {
    counter c = { .freed = arena_fails_freed };
    pith_error err = PITH_ERROR_INIT;
    pith_status status = work(&c, dir, 1, &err);
    if (!arena_fails.fail_at && !status) memcpy(wanted, got, sizeof got);
    bool reported = status == PITH_ERR_MEMORY && err.code == PITH_ERR_MEMORY && err.message[0];
    bool same = !status && !memcmp(got, wanted, sizeof got);
    if (!c.live && (arena_fails.fail_at ? arena_fails.refused && (reported || same) : same)) return;
    arena_fails_show();
    fail_msg("%s: request %ld: status %d, '%s', %ld leak", (const char *)dir, arena_fails.fail_at,
             (int)status, err.message, c.live);
}

/* Every place that asks an arena, from every place that calls it, in all families of networks. */
static void test_arenas(void **state) {
    (void)state;
    static const char *const families[] = {
        "roberta",      "distilbert",      "mpnet",
        "bert-f16",     "albert",          "bert-relative-key-query",
        "deberta-v3",   "gemma3",          "gte-apart",
        "jina-v2-code", "jina-v3-task",    "modernbert",
        "nomic-plain",  "nomic-stretched", "qwen3-window"
    };
    char dir[600];
    size_t count = arena_fails_each(work_refused, DIR);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        snprintf(dir, sizeof dir, "%s/memory-%s", PITH_BINARY_DIR, families[i]);
        weights_directory(dir, families[i]);
        count += arena_fails_each(work_refused, dir);
    }
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        snprintf(dir, sizeof dir, "%s/memory-%s", PITH_BINARY_DIR, networks[i]);
        network_directory(dir, networks[i], "null");
        count += arena_fails_each(work_refused, dir);
    }
    static const char *const modules[] = { "chain",      "dense-residual",      "dense-tokens",
                                           "lower",      "model2vec-quantized", "asym",
                                           "old-layout", "pool-prompt",         "router-first",
                                           "static",     "torch-shards" };
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        snprintf(dir, sizeof dir, PITH_TEST_DATA "/modules/%s", modules[i]);
        count += arena_fails_each(work_refused, dir);
    }
    save_model(MEMORY_PITH);
    count += arena_fails_each(work_refused, MEMORY_PITH);
    remove(MEMORY_PITH);
    print_message("%zu places\n", count);
    assert_true(count > 1000);
}

/* ---- written files ---- */

#define WRITTEN PITH_BINARY_DIR "/memory.onnx"

/* Rows whose norm has no beta, which EmbedLayerNormalization wants; a Softmax over two axes, which
 * no opset that is written has; and a mode that has another name in older opsets. */
static const char *const written_texts[] = {
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "rows (int64[N,S] ids, int64[N,S] places) => (float[N,S,2] y)\n"
    "<float[2,2] words = {0,1,2,3}, float[2,2] rows = {1,0,0,1}, float[2] gamma = {1,2}>\n"
    "{ a = Gather(words, ids) b = Gather(rows, places) s = Add(a, b)\n"
    "  y = LayerNormalization(s, gamma) }\n",
    "<ir_version: 6, opset_import: [\"\" : 11]>\n"
    "softmax (float[N,S,2] x) => (float[N,S,2] y) { y = Softmax<axis = 1>(x) }\n",
    "<ir_version: 9, opset_import: [\"\" : 20]>\n"
    "samples (float[N,1,4,4] x, float[N,2,2,2] at) => (float[N,1,2,2] y)\n"
    "{ y = GridSample<mode = \"linear\">(x, at) }\n",
};

typedef struct written_way {
    const char *model;
    int32_t contrib, dtype;
    bool optimize, quantize;
} written_way;

static uint64_t written_hash, written_wanted;

static int write_file_piece(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, user) != size;
}

static int write_hashed(void *user, const void *data, size_t size) {
    (void)user;
    for (size_t i = 0; i < size; i++)
        written_hash = (written_hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return 0;
}

static pith_status write_from(const pith_source *source, const written_way *way,
                              const pith_allocator *allocator, pith_error *err) {
    const pith_writer writer = { .write = write_hashed };
    if (way->optimize) {
        pith_optimize_options o = PITH_OPTIMIZE_OPTIONS_INIT;
        o.contrib = way->contrib;
        o.dtype = way->dtype;
        o.call.allocator = allocator;
        return pith_source_optimize(source, &o, &writer, NULL, NULL, err);
    }
    if (way->quantize) {
        pith_quantize_model_options o = PITH_QUANTIZE_MODEL_OPTIONS_INIT;
        o.rows = 1;
        o.call.allocator = allocator;
        return pith_source_quantize(source, &o, &writer, NULL, NULL, err);
    }
    pith_export_options o = PITH_EXPORT_OPTIONS_INIT;
    o.contrib = way->contrib;
    o.dtype = way->dtype;
    o.call.allocator = allocator;
    return pith_source_export(source, &o, &writer, NULL, NULL, err);
}

static pith_status write_as(const written_way *way, const pith_allocator *allocator,
                            pith_error *err) {
    pith_source_options o = PITH_SOURCE_OPTIONS_INIT;
    pith_source *source;
    o.call.allocator = allocator;
    pith_status status = pith_source_open(&source, way->model, &o, err);
    if (status) return status;
    status = write_from(source, way, allocator, err);
    pith_source_close(source);
    return status;
}

/* Writes a file while one request of an arena is refused: that is reported, or the file is the
 * same. */
static void write_refused(const void *context) {
    const written_way *way = context;
    counter c = { .freed = arena_fails_freed };
    const pith_allocator allocator = { count_alloc, count_free, &c };
    pith_error err = PITH_ERROR_INIT;
    written_hash = 1469598103934665603u;
    pith_status status = write_as(way, &allocator, &err);
    if (!arena_fails.fail_at) written_wanted = written_hash;
    bool reported = status == PITH_ERR_MEMORY && err.code == PITH_ERR_MEMORY && err.message[0];
    bool same = !status && written_hash == written_wanted;
    if (!c.live && (arena_fails.fail_at ? reported || same : same)) return;
    arena_fails_show();
    fail_msg("%s: request %ld: status %d, '%s', %ld leak", way->model, arena_fails.fail_at,
             (int)status, err.message, c.live);
}

static void test_written(void **state) {
    (void)state;
    static const written_way ways[] = {
        { WRITTEN, 1, PITH_F32, false, false }, { WRITTEN, 0, PITH_F32, false, false },
        { WRITTEN, 0, PITH_F16, true, false },  { DIR, 1, PITH_F16, false, false },
        { DIR, 0, PITH_F32, true, false },      { DIR, 0, PITH_F32, false, true }
    };
    size_t count = 0;
    for (size_t t = 0; t < sizeof written_texts / sizeof *written_texts; t++) {
        FILE *text = fopen(WRITTEN ".txt", "wb"), *model = fopen(WRITTEN, "wb");
        pith_error err = PITH_ERROR_INIT;
        assert_true(text && model);
        assert_true(fputs(written_texts[t], text) >= 0 && !fclose(text));
        const pith_writer writer = { .write = write_file_piece, .user = model };
        if (WITH_SOURCE(WRITTEN ".txt", PITH_SOURCE_FILE,
                        pith_source_convert(source, NULL, &writer, NULL, &err)))
            fail_msg("%s", err.message);
        assert_int_equal(fclose(model), 0);
        for (size_t w = 0; w < 3; w++) count += arena_fails_each(write_refused, &ways[w]);
    }
    for (size_t w = 3; w < sizeof ways / sizeof *ways; w++)
        count += arena_fails_each(write_refused, &ways[w]);
    remove(WRITTEN ".txt");
    remove(WRITTEN);
    print_message("%zu places\n", count);
    assert_true(count > 100); /* those of opening were met above */
}

/* Where threads come and go the count of allocations is not fixed: a failure that is met is
 * reported. */
static void test_threads(void **state) {
    (void)state;
    counter c = { 0 };
    pith_error err = PITH_ERROR_INIT;
    if (work(&c, DIR, 2, &err)) fail_msg("%s", err.message);
    memcpy(wanted, got, sizeof got);
    long count = c.calls;
    for (long n = 1; n <= count; n++) {
        c = (counter){ .fail_at = n };
        pith_status status = work(&c, DIR, 2, &err);
        if (status != (c.calls >= n ? PITH_ERR_MEMORY : PITH_OK))
            fail_msg("allocation %ld: status %d", n, (int)status);
        assert_int_equal(c.live, 0);
    }
}

/* ---- limits ---- */

/* Counts the bytes that are out, beside the library's own count. */
typedef struct meter {
    atomic_size_t held, peak;
} meter;

static void *metered_alloc(void *user, size_t bytes) {
    meter *m = user;
    size_t *memory = malloc(bytes + 16);
    if (!memory) return NULL;
    size_t held = atomic_fetch_add(&m->held, bytes) + bytes, peak = atomic_load(&m->peak);
    while (held > peak && !atomic_compare_exchange_weak(&m->peak, &peak, held)) {}
    *memory = bytes;
    return memory + 2;
}

static void metered_free(void *user, void *memory) {
    meter *m = user;
    if (!memory) return;
    atomic_fetch_sub(&m->held, ((size_t *)memory)[-2]);
    free((size_t *)memory - 2);
}

/* Many texts under every limit from what is too little to open to what is enough at once: the same
 * bytes or an error that names the limit, and never more memory than it. */
static void test_limits(void **state) {
    (void)state;
    enum { MANY = 300, STEPS = 40 };
    static float free_vectors[MANY * 64], vectors[MANY * 64];
    static pith_str many[MANY];
    for (int i = 0; i < MANY; i++) many[i] = texts[i * 7 % TEXTS];
    int opened = 0, done = 0;
    size_t most = 0;
    for (int i = 0; i <= STEPS; i++) {
        meter m = { 0 };
        pith_allocator allocator = { metered_alloc, metered_free, &m };
        pith_open_options options = PITH_OPEN_OPTIONS_INIT;
        pith_embed_options embed_options = PITH_EMBED_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        pith_model *model = NULL;
        embed_options.call.threads = 2;
        embed_options.batch_tokens = 512; /* enough at once to have something to give up */
        options.call.allocator = &allocator;
        /* first without, to see how much is enough */
        options.memory_limit = i ? most * (size_t)i / STEPS : 0;
        pith_status status = pith_model_open(&model, DIR, &options, &err);
        if (!status) {
            opened++;
            assert_int_equal(pith_embed_dim(model, NULL), 64);
            status =
                pith_embed(i ? vectors : free_vectors, model, many, MANY, &embed_options, &err);
            size_t peak, held = pith_model_bytes(model, &peak);
            assert_true(held <= peak && held >= atomic_load(&m.held));
            pith_model_trim(model);
            assert_true(pith_model_bytes(model, NULL) <= held);
            pith_model_close(model);
        }
        assert_int_equal(m.held, 0);
        if (!i) most = m.peak;
        if (status) {
            char limit[128];
            snprintf(limit, sizeof limit,
                     "raise pith_open_options.memory_limit: the memory limit is %zu bytes: ",
                     options.memory_limit);
            assert_int_equal(status, PITH_ERR_MEMORY);
            if (strncmp(err.message, limit, strlen(limit))) fail_msg("%s", err.message);
        } else if (i) {
            done++;
            assert_memory_equal(vectors, free_vectors, sizeof vectors);
        }
        if (i) assert_true(m.peak <= options.memory_limit);
    }
    print_message("%zu bytes are enough at once; of %d limits below %d opened and %d embedded\n",
                  most, STEPS, opened - 1, done);
    /* some are too little; less at once does with much less */
    assert_true(opened < STEPS && done > STEPS / 8);
}

/* ---- what the small files say ---- */

static void expect(const char *file, const char *text, pith_status code, const char *says) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    write_file(file, text, strlen(text));
    /* the graph alone is of use */
    assert_int_equal(pith_model_open(&model, DIR, NULL, &err), PITH_OK);
    pith_status status = pith_embed(got, model, texts, TEXTS, NULL, &err);
    pith_model_close(model);
    make_directory(NULL);
    assert_int_equal(status, code);
    if (says && !strstr(err.message, says)) fail_msg("'%s' does not say '%s'", err.message, says);
}

#define TRANSFORMER "{\"type\": \"sentence_transformers.models.Transformer\", \"path\": \"\"}, "

static void test_damaged_files(void **state) {
    (void)state;
    expect("modules.json", modules_json, PITH_OK, NULL);
    expect("modules.json", "[{\"type\": \"sentence_transformers.models.BoW\", \"path\": \"2\"}]",
           PITH_ERR_UNSUPPORTED, "BoW");
    expect("modules.json",
           "[" TRANSFORMER
           "{\"type\": \"sentence_transformers.models.Pooling\", \"path\": \"../..\"}]",
           PITH_ERR_FORMAT, "..");
    expect("modules.json", "{", PITH_ERR_FORMAT, "modules.json");
    expect("1_Pooling/config.json", "{\"pooling_mode_mean_tokens\": false}", PITH_OK, NULL);
    expect("1_Pooling/config.json", "{\"pooling_mode_mean_tokens\": 3}", PITH_ERR_FORMAT,
           "pooling_mode_mean_tokens");
    expect("1_Pooling/config.json", "{\"pooling_mode\": \"mean\"}", PITH_OK, NULL);
    expect("1_Pooling/config.json", "{\"pooling_mode\": [\"mean\", \"cls\"]}", PITH_OK, NULL);
    expect("1_Pooling/config.json", "{\"pooling_mode\": \"odd\"}", PITH_ERR_UNSUPPORTED, "'odd'");
    expect("sentence_bert_config.json", "{\"do_lower_case\": true}", PITH_OK, NULL);
    expect("sentence_bert_config.json", "{\"max_seq_length\": null, \"do_lower_case\": false}",
           PITH_OK, NULL);
    expect("sentence_bert_config.json", "{\"max_seq_length\": 1e30}", PITH_OK, NULL);
    expect("sentence_bert_config.json", "{\"max_seq_length\": 1000000000000000019884624838656}",
           PITH_OK, NULL);
    expect("sentence_bert_config.json", "{\"max_seq_length\": -1}", PITH_ERR_FORMAT,
           "max_seq_length: -1 is not");
    expect("sentence_bert_config.json", "{\"max_seq_length\": 0.5}", PITH_ERR_FORMAT,
           "max_seq_length");
    expect("sentence_bert_config.json", "{\"max_seq_length\": NaN}", PITH_ERR_FORMAT,
           "max_seq_length");
    expect("sentence_bert_config.json", "{\"do_lower_case\": true, \"do_lower_case\": false}",
           PITH_OK, NULL);
    expect("sentence_bert_config.json", "{\"transformer_task\": \"fill-mask\"}",
           PITH_ERR_UNSUPPORTED, "fill-mask");
    expect("sentence_roberta_config.json", "{\"max_seq_length\": []}", PITH_ERR_FORMAT,
           "sentence_roberta_config.json");
    expect("tokenizer_config.json", "{\"model_max_length\": -1}", PITH_ERR_FORMAT,
           "tokenizer_config.json");
    expect("tokenizer_config.json", "{\"model_max_length\": 1e30}", PITH_OK, NULL);
    expect("tokenizer_config.json", "{\"do_lower_case\": \"no\"}", PITH_ERR_FORMAT,
           "do_lower_case");
    expect("modules.json",
           "[" TRANSFORMER
           "{\"type\": \"sentence_transformers.models.Normalize\", \"path\": \"2\"}]",
           PITH_ERR_UNSUPPORTED, "module Normalize");
    expect("modules.json",
           "[" TRANSFORMER
           "{\"type\": \"sentence_transformers.models.Pooling\", \"path\": \"1_Gone\"}]",
           PITH_ERR_NOT_FOUND, "1_Gone/config.json is not there");
    expect("1_Pooling/config.json",
           "{\"pooling_mode_cls_token\": true, \"pooling_mode_cls_token\": false}", PITH_OK, NULL);
    expect("config_sentence_transformers.json", "{\"prompts\": 3}", PITH_ERR_FORMAT, "prompts");
    expect("config_sentence_transformers.json", "{\"default_prompt_name\": \"q\"}", PITH_ERR_FORMAT,
           "'q'");
    expect("tokenizer.json", "{}", PITH_ERR_FORMAT, "tokenizer.json");
}

/* Both spellings of one pooling give the same vectors. */
static void test_pooling_by_name(void **state) {
    (void)state;
    static const char named[] =
        "{\"embedding_dimension\": 32, \"pooling_mode\": [\"cls\", \"mean\"]}";
    static float vectors[2][TEXTS * 64];
    pith_error err = PITH_ERROR_INIT;
    for (int i = 0; i < 2; i++) {
        pith_model *model = NULL;
        if (i) write_file("1_Pooling/config.json", named, sizeof named - 1);
        assert_int_equal(pith_model_open(&model, DIR, NULL, &err), PITH_OK);
        assert_int_equal(pith_embed_dim(model, NULL), 64);
        assert_int_equal(pith_embed(vectors[i], model, texts, TEXTS, NULL, &err), PITH_OK);
        pith_model_close(model);
    }
    make_directory(NULL);
    assert_memory_equal(vectors[0], vectors[1], sizeof vectors[0]);
}

/* Sum of squares of a vector. */
static double energy(const float *vector, size_t dim) {
    double sum = 0;
    for (size_t i = 0; i < dim; i++) sum += (double)vector[i] * (double)vector[i];
    return sum;
}

/* Every choice that is checked against the model, at its edges; and what normalisation and the cut
 * make of a vector. */
static void test_dense(void **state) {
    (void)state;
    enum { WIDTH = 32 };
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = open_any(DIR);
    static const int32_t wrong[][2] = {
        { -1, 0 }, { PITH_POOLING_LAST + 1, 0 }, { 0, -1 }, { 0, 2 * WIDTH + 1 }
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
        o.pooling += wrong[i][0];
        o.dim = wrong[i][1];
        assert_int_equal(pith_embed(got, model, texts, TEXTS, &o, &err), PITH_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, wrong[i][0] ? "pooling" : "dim"));
        if (!wrong[i][0]) assert_int_equal(pith_embed_dim(model, &o), 0);
    }
    for (int pooling = PITH_POOLING_CLS; pooling <= PITH_POOLING_LAST; pooling++)
        for (int32_t dim = WIDTH; dim > 0; dim -= WIDTH - 1) { /* whole, and one component */
            pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
            o.pooling = pooling;
            o.dim = dim;
            o.normalize = PITH_CHOICE_NO;
            assert_int_equal(pith_embed_dim(model, &o), dim);
            assert_int_equal(pith_embed(got, model, texts, TEXTS, &o, &err), PITH_OK);
            if (dim == WIDTH) memcpy(wanted, got, sizeof got);
            for (int t = 0; t < TEXTS; t++)
                assert_memory_equal(got + t * dim, wanted + t * WIDTH, (size_t)dim * 4);
            o.normalize = 1;
            assert_int_equal(pith_embed(got, model, texts, TEXTS, &o, &err), PITH_OK);
            for (int t = 0; t < TEXTS; t++)
                assert_float_equal(energy(got + t * dim, (size_t)dim), 1, 1e-5);
            assert_true(fabs(energy(wanted, WIDTH) - 1) > 1e-3);
        }
    pith_model_close(model);

    char dir[600];
    snprintf(dir, sizeof dir, "%s/memory-pooled", PITH_BINARY_DIR);
    network_directory(dir, "bert-pool-script17-sdpa", "null");
    model = open_any(dir);
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    size_t dim = pith_embed_dim(model, &o);
    o.dim = (int32_t)dim;
    assert_int_equal(pith_embed(got, model, texts, TEXTS, &o, &err), PITH_OK);
    o.dim++;
    assert_int_equal(pith_embed(got, model, texts, TEXTS, &o, &err), PITH_ERR_ARGUMENT);
    o.dim = 0;
    for (o.pooling = PITH_POOLING_CLS; o.pooling <= PITH_POOLING_LAST; o.pooling++) {
        assert_int_equal(pith_embed(got, model, texts, TEXTS, &o, &err), PITH_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, "graph pools already"));
    }
    pith_model_close(model);
}

static void test_options(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    assert_int_equal(pith_model_open(&model, DIR, NULL, &err), PITH_OK);
    size_t full = pith_embed_dim(model, NULL);
    o.pooling = PITH_POOLING_CLS;
    /* the directory says cls and mean, end to end */
    assert_int_equal(pith_embed_dim(model, &o) * 2, full);
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

    /* Whoever is the first to find a bad one. */
    pith_str bad[64] = { texts[0] };
    float *many = malloc(64 * full * sizeof *many);
    for (size_t i = 1; i < 64; i++)
        bad[i] = i % 2 ? (pith_str){ "a\xff", 2 } : (pith_str){ "\xc0", 1 };
    for (int i = 0; i < 50; i++) {
        assert_int_equal(pith_embed(many, model, bad, 64, NULL, &err), PITH_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, "text 1:"));
    }
    free(many);
    int stop = 1;
    o.call.cancel = &stop;
    assert_int_equal(pith_embed(got, model, texts, TEXTS, &o, &err), PITH_ERR_CANCELLED);
    o.call.size = 0;
    assert_int_equal(pith_embed(got, model, texts, TEXTS, &o, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_embed(NULL, model, NULL, 0, NULL, &err), PITH_OK);
    pith_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_safetensors),
        cmocka_unit_test(test_networks),
        cmocka_unit_test(test_compiled),
        cmocka_unit_test(test_arenas),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_limits),
        cmocka_unit_test_setup(test_damaged_files, make_directory),
        cmocka_unit_test(test_pooling_by_name),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_dense),
    };
    return cmocka_run_group_tests(tests, make_directory, NULL);
}
