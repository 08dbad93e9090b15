/* test_compiled.c - models compiled and opened again: the same vectors bit by bit, the same file
 * from its own file, and damage of every kind as an error or a result. What their graphs compute is
 * compared by `pith verify --compiled` over the conformance suite. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/compiled/compiled.h"
#include "formats/compiled/graph_bytes.h"
#include "support/embed_test.h"

#define DIRECTORY PITH_BINARY_DIR "/compiled-forms"

enum { TEXTS = 5, WIDTH_MAX = 4096, HEADER = 48, ENTRY = 32 };

static const char prompts_json[] =
    "{\"prompts\": {\"query\": \"a b \"}, \"default_prompt_name\": \"query\"}";
static const char *const words[TEXTS] = { "a b c", "abc dab", "", "d d d d d d d d d",
                                          "what is this" };
static pith_str texts[TEXTS];

typedef struct bytes {
    unsigned char *data; /* 64-byte aligned */
    size_t size;
    uint64_t total;
} bytes;

static int32_t make_room(void *user, uint64_t total) {
    bytes *b = user;
    assert_null(b->data);
    b->data = aligned_alloc(64, (total + 63) & ~(uint64_t)63);
    b->total = total;
    return !b->data;
}

static int32_t append(void *user, const void *data, size_t size) {
    bytes *b = user;
    assert_true(b->size + size <= b->total);
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return 0;
}

static bytes save(const pith_model *model) {
    bytes b = { NULL, 0, 0 };
    pith_error err = PITH_ERROR_INIT;
    if (pith_model_save(model, NULL, &(pith_writer){ append, make_room, &b }, &err))
        fail_msg("%s", err.message);
    return b;
}

/* A model of tests/data/models with a tokenizer and a prompt beside it. */
static pith_model *open_with_tokenizer(const char *name) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    network_directory(DIRECTORY, name, "null");
    FILE *f = fopen(DIRECTORY "/config_sentence_transformers.json", "w");
    assert_non_null(f);
    fputs(prompts_json, f);
    fclose(f);
    if (pith_model_open(&model, DIRECTORY, NULL, &err)) fail_msg("%s: %s", name, err.message);
    return model;
}

static pith_model *open_bytes(const bytes *b) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    if (pith_model_open_memory(&model, b->data, b->size, NULL, &err)) fail_msg("%s", err.message);
    return model;
}

/* ---- the same model ---- */

static void compare(const char *name) {
    static float wanted[TEXTS * WIDTH_MAX], got[TEXTS * WIDTH_MAX];
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = open_with_tokenizer(name);
    size_t dim = pith_embed_dim(model, NULL), length = pith_embed_max_length(model, NULL);
    assert_true(dim > 0 && dim <= WIDTH_MAX);
    embed(wanted, model, texts, TEXTS, NULL);
    bytes file = save(model);
    pith_model_close(model);

    model = open_bytes(&file);
    assert_int_equal(pith_embed_dim(model, NULL), dim);
    assert_int_equal(pith_embed_max_length(model, NULL), length);
    embed(got, model, texts, TEXTS, NULL);
    if (memcmp(got, wanted, TEXTS * dim * sizeof *got)) fail_msg("%s: other vectors", name);
    bytes again = save(model);
    assert_int_equal(again.size, file.size);
    assert_memory_equal(again.data, file.data, file.size);
    pith_model_close(model);
    free(again.data);

    unsigned char *odd = malloc(file.size + 1); /* a host that does not align */
    memcpy(odd + 1, file.data, file.size);
    if (pith_model_open_memory(&model, odd + 1, file.size, NULL, &err)) fail_msg("%s", err.message);
    memset(got, 0, sizeof got);
    embed(got, model, texts, TEXTS, NULL);
    assert_memory_equal(got, wanted, TEXTS * dim * sizeof *got);
    pith_model_close(model);
    free(odd);
    free(file.data);
}

static void test_models(void **state) {
    (void)state;
    DIR *dir = opendir(PITH_TEST_DATA "/models");
    struct dirent *entry;
    size_t compared = 0;
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        char path[700];
        struct stat st;
        snprintf(path, sizeof path, PITH_TEST_DATA "/models/%s/model.onnx", entry->d_name);
        if (entry->d_name[0] == '.' || stat(path, &st) || strstr(entry->d_name, "rerank") ||
            strstr(entry->d_name, "external"))
            continue;
        compare(entry->d_name);
        compared++;
    }
    closedir(dir);
    assert_true(compared > 25);
}

static void test_no_encoder(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT, again = PITH_ERROR_INIT;
    pith_model *model;
    float x;
    assert_int_equal(pith_model_open(&model, PITH_TEST_DATA "/control/if.onnx", NULL, &err),
                     PITH_OK);
    assert_int_equal(pith_embed(&x, model, texts, 1, NULL, &err), PITH_ERR_NOT_FOUND);
    bytes file = save(model);
    pith_model_close(model);
    model = open_bytes(&file);
    assert_int_equal(pith_embed(&x, model, texts, 1, NULL, &again), PITH_ERR_NOT_FOUND);
    assert_string_equal(err.message, again.message);
    pith_model_close(model);
    free(file.data);
}

static int32_t refuse(void *user, const void *data, size_t size) {
    (void)data;
    size_t *left = user;
    if (size > *left) return 1;
    *left -= size;
    return 0;
}

static void test_full_disk(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = open_with_tokenizer("bert-base-script17-sdpa");
    for (size_t room = 0; room < 100000; room += 9973) {
        size_t left = room;
        assert_int_equal(pith_model_save(model, NULL, &(pith_writer){ refuse, NULL, &left }, &err),
                         PITH_ERR_IO);
    }
    pith_model_close(model);
}

/* ---- damage ---- */

typedef struct outcome {
    size_t refused, embedded;
} outcome;

/* An error or a result. */
static void try_file(const bytes *b, outcome *o) {
    pith_error err = PITH_ERROR_INIT;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_model *model;
    static float vectors[2 * WIDTH_MAX];
    options.memory_limit = 64 << 20;
    if (pith_model_open_memory(&model, b->data, b->size, &options, &err)) {
        assert_true(err.message[0] != 0);
        o->refused++;
        return;
    }
    size_t dim = pith_embed_dim(model, NULL);
    if (dim && dim <= WIDTH_MAX && !pith_embed(vectors, model, texts, 2, NULL, &err)) o->embedded++;
    pith_model_close(model);
}

static bytes small_file(void) {
    pith_model *model = open_with_tokenizer("bert-base-script17-sdpa");
    bytes file = save(model);
    pith_model_close(model);
    return file;
}

static void test_cut(void **state) {
    (void)state;
    bytes file = small_file();
    size_t whole = file.size;
    for (size_t size = 0; size < whole; size += size < 1024 ? 1 : 997) {
        outcome o = { 0, 0 };
        unsigned char *exact = aligned_alloc(64, (size + 64) & ~(size_t)63);
        memcpy(exact, file.data, size);
        try_file(&(bytes){ exact, size, size }, &o);
        assert_int_equal(o.refused, 1);
        free(exact);
    }
    free(file.data);
}

static void flip(bytes *file, size_t bit) { file->data[bit / 8] ^= (unsigned char)(1u << bit % 8); }

static pith_status verify(const bytes *file) {
    return pith__compiled_verify((pith_str){ (const char *)file->data, file->size }, NULL, NULL,
                                 NULL);
}

/* A bit of header or table is an error at opening; one of the contents is found by verifying and
 * harmless else. */
static void test_flipped_bits(void **state) {
    (void)state;
    bytes file = small_file();
    pith__compiled c;
    outcome o = { 0, 0 };
    size_t head = HEADER;
    assert_int_equal(
        pith__compiled_open(&c, (pith_str){ (const char *)file.data, file.size }, NULL), PITH_OK);
    assert_int_equal(verify(&file), PITH_OK);
    for (int kind = 1; kind < PITH_SECTION_COUNT; kind++) head += c.sections[kind].data ? ENTRY : 0;
    for (size_t bit = 0; bit < head * 8; bit++) {
        flip(&file, bit);
        try_file(&file, &o);
        flip(&file, bit);
    }
    assert_int_equal(o.refused, head * 8);
    for (int kind = 1; kind < PITH_SECTION_COUNT; kind++) {
        size_t begin = (size_t)((const unsigned char *)c.sections[kind].data - file.data) * 8;
        size_t step = kind == PITH_SECTION_WEIGHTS ? 9973 : 61;
        for (size_t bit = begin; bit < begin + c.sections[kind].size * 8; bit += step) {
            flip(&file, bit);
            assert_int_equal(verify(&file), PITH_ERR_FORMAT);
            try_file(&file, &o);
            flip(&file, bit);
        }
    }
    assert_true(o.refused > head * 8 && o.embedded > 0);
    free(file.data);
}

/* Small constants, which are read at open, lie before the large ones. */
static void test_order_of_weights(void **state) {
    (void)state;
    bytes file = small_file();
    pith__compiled c;
    pith_error err = PITH_ERROR_INIT;
    pith__constant_spans_in weights;
    const char *last_small = NULL, *first_large = NULL;
    assert_int_equal(
        pith__compiled_open(&c, (pith_str){ (const char *)file.data, file.size }, &err), PITH_OK);
    assert_int_equal(pith__constant_spans_open(&weights, c.sections[PITH_SECTION_WEIGHTS], &err),
                     PITH_OK);
    for (uint32_t i = 0; i < weights.count; i++) {
        pith_str span = pith__constant_spans_get(&weights, i);
        if (span.size < 256 && (!last_small || span.data > last_small)) last_small = span.data;
        if (span.size >= 4096 && (!first_large || span.data < first_large)) first_large = span.data;
    }
    assert_true(last_small && first_large && last_small < first_large);
    free(file.data);
}

/* The graph's section read with less memory than it takes, a few bytes more each time. */
static void test_memory_runs_out(void **state) {
    (void)state;
    bytes file = small_file();
    pith__compiled c;
    pith_error err = PITH_ERROR_INIT;
    pith__constant_spans_in weights;
    size_t used = SIZE_MAX, refused = 0;
    assert_int_equal(
        pith__compiled_open(&c, (pith_str){ (const char *)file.data, file.size }, &err), PITH_OK);
    assert_int_equal(pith__constant_spans_open(&weights, c.sections[PITH_SECTION_WEIGHTS], &err),
                     PITH_OK);
    for (size_t limit = 0; limit < used; limit += limit < 8192 ? 16 : 48) {
        pith__bytes_in in = { .bytes = c.sections[PITH_SECTION_GRAPH],
                              .what = "graph",
                              .err = &err };
        pith__graph *graph;
        pith__arena arena;
        pith__arena_init(&arena, &pith__allocator_default);
        arena.limit = limit;
        pith_status status = pith__graph_read(&graph, &in, &weights, &arena, NULL);
        if (status) assert_int_equal(status, limit ? PITH_ERR_MEMORY : PITH_OK);
        if (!limit) used = arena.total;
        refused += status != PITH_OK;
        pith__arena_free(&arena);
    }
    assert_true(refused > 500);
    free(file.data);
}

static void test_other_version(void **state) {
    (void)state;
    bytes file = small_file();
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    file.data[8] = PITH_COMPILED_VERSION + 1;
    assert_int_equal(pith_model_open_memory(&model, file.data, file.size, NULL, &err),
                     PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "compile the model again"));
    free(file.data);
}

/* The first place of the string in the section. */
static unsigned char *find(bytes *file, pith__section kind, const char *what) {
    pith__compiled c;
    assert_int_equal(
        pith__compiled_open(&c, (pith_str){ (const char *)file->data, file->size }, NULL), PITH_OK);
    const char *begin = c.sections[kind].data,
               *at = memmem(begin, c.sections[kind].size, what, strlen(what));
    assert_non_null(at);
    return file->data + (at - (const char *)file->data);
}

/* The reason why a model does not embed is an error and a message, or neither. */
static void check_without_reason(const bytes *file) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    assert_int_equal(pith_model_open_memory(&model, file->data, file->size, NULL, &err),
                     PITH_ERR_FORMAT);
    assert_non_null(strstr(err.message, "an error without a reason"));
    free(file->data);
}

static void test_error_without_reason(void **state) {
    (void)state;
    enum { CODE_BEFORE_FIRST_INPUT = 16 };
    bytes file = small_file();
    unsigned char *code = find(&file, PITH_SECTION_MODEL, "input_ids") - CODE_BEFORE_FIRST_INPUT;
    assert_int_equal(*code, PITH_OK);
    *code = PITH_ERR_MEMORY;
    check_without_reason(&file);

    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    assert_int_equal(pith_model_open(&model, PITH_TEST_DATA "/control/if.onnx", NULL, &err),
                     PITH_OK);
    file = save(model);
    pith_model_close(model);
    /* the reason ends before it begins */
    *find(&file, PITH_SECTION_MODEL, "the model has no directory") = 0;
    check_without_reason(&file);
}

/* The rank of the output for texts cannot be told: which axes to remove is only known when it runs.
 */
static void test_output_of_unknown_rank(void **state) {
    (void)state;
    enum { NAME = 7, INPUTS_BEHIND_NAME = NAME + 16 };
    bytes file = small_file();
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    float vector[WIDTH_MAX];
    unsigned char *inputs = find(&file, PITH_SECTION_TEXT, "Squeeze") + INPUTS_BEHIND_NAME;
    memset(inputs + 4, 0, 4); /* the first value, input_ids */
    if (pith_model_open_memory(&model, file.data, file.size, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(pith_embed(vector, model, texts, 1, NULL, &err), PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "does not have 2 axes"));
    pith_model_close(model);
    free(file.data);
}

int main(void) {
    for (int i = 0; i < TEXTS; i++) texts[i] = pith__str_of(words[i]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_no_encoder),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_flipped_bits),
        cmocka_unit_test(test_other_version),
        cmocka_unit_test(test_error_without_reason),
        cmocka_unit_test(test_output_of_unknown_rank),
        cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_order_of_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
