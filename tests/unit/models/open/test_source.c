/* test_source.c - a source keeps its files as they were when it was opened: replaced, added and
 * removed ones change nothing for models, exports and checks that start from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <pthread.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/open/held_files.h"
#include "pith/pith.h"
#include "support/failing_alloc.h"

#define DIR PITH_BINARY_DIR "/source-model"
#define ONNX PITH_TEST_DATA "/models/bert-base-script17-sdpa/model.onnx"

static const char *const files[] = { "config.json", "model.safetensors" };
enum { FILES = sizeof files / sizeof *files, THREADS = 4 };

static pith_error err;

static void put(const char *path, const void *bytes, size_t size) {
    unlink(path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void copy(const char *to, const char *from) {
    pith__file file;
    assert_int_equal(pith__file_open(&file, from, false, NULL, NULL), PITH_OK);
    put(to, file.data, file.size);
    pith__file_close(&file);
}

static void make(void) {
    char to[600], from[600];
    mkdir(DIR, 0777);
    for (int i = 0; i < FILES; i++) {
        snprintf(to, sizeof to, DIR "/%s", files[i]);
        snprintf(from, sizeof from, PITH_TEST_DATA "/hf/bert/%s", files[i]);
        copy(to, from);
    }
}

static void spoil(void) {
    put(DIR "/config.json", "{}", 2);
    put(DIR "/model.safetensors", "nonsense", 8);
    mkdir(DIR "/onnx", 0777);
    put(DIR "/model.onnx", "new", 3);
    put(DIR "/onnx/model.onnx", "new", 3);
}

static void clear(void) {
    static const char *const all[] = { "/config.json", "/model.safetensors", "/model.onnx",
                                       "/onnx/model.onnx", "/model.onnx.data" };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char path[600];
        snprintf(path, sizeof path, DIR "%s", all[i]);
        unlink(path);
    }
    rmdir(DIR "/onnx");
    rmdir(DIR);
}

/* The bytes of a file that was written. */
typedef struct gathered {
    char *bytes;
    size_t size;
} gathered;

static int32_t gather(void *user, const void *data, size_t size) {
    gathered *g = user;
    g->bytes = realloc(g->bytes, g->size + size + 1);
    assert_non_null(g->bytes);
    memcpy(g->bytes + g->size, data, size);
    g->size += size;
    return 0;
}

static gathered exported(const pith_source *source) {
    gathered g = { NULL, 0 };
    const pith_writer writer = { gather, NULL, &g };
    if (pith_source_export(source, NULL, &writer, NULL, NULL, &err)) fail_msg("%s", err.message);
    return g;
}

static pith_source *opened(const char *path, uint32_t flags) {
    pith_source *source = NULL;
    pith_source_options o = PITH_SOURCE_OPTIONS_INIT;
    o.flags = flags;
    if (pith_source_open(&source, path, &o, &err)) fail_msg("%s", err.message);
    return source;
}

static void replaced_files_have_no_effect(void **state) {
    (void)state;
    for (uint32_t flags = 0; flags <= PITH_OPEN_COPY; flags += PITH_OPEN_COPY) {
        pith_model *model;
        size_t findings;
        pith_check_options checks = PITH_CHECK_OPTIONS_INIT;
        checks.runs = 1;
        clear();
        make();
        pith_source *source = opened(DIR, flags);
        gathered before = exported(source);
        spoil();
        gathered after = exported(source);
        clear();
        gathered gone = exported(source);
        assert_int_equal(before.size, after.size);
        assert_memory_equal(before.bytes, after.bytes, before.size);
        assert_int_equal(before.size, gone.size);
        assert_memory_equal(before.bytes, gone.bytes, before.size);
        free(before.bytes);
        free(after.bytes);
        free(gone.bytes);
        assert_int_equal(pith_source_check_fusions(&findings, source, &checks, &err), PITH_OK);
        assert_int_equal(findings, 0);
        if (pith_model_open_source(&model, source, NULL, &err)) fail_msg("%s", err.message);
        pith_source_close(source);
        pith_session *session;
        assert_int_equal(pith_session_create(&session, model, &err), PITH_OK);
        pith_session_destroy(session);
        pith_model_close(model);
    }
}

/* External data is held from the start, and so are a tokenizer and modules. */
static void second_files_are_held(void **state) {
    (void)state;
    static const char *const external =
        PITH_TEST_DATA "/models/bert-base-script14-eager-external/model.onnx";
    static const char *const chain = PITH_TEST_DATA "/modules/chain";
    static const char *const parts[] = { "tokenizer.json",
                                         "tokenizer_config.json",
                                         "sentence_bert_config.json",
                                         "modules.json",
                                         "config.json",
                                         "model.safetensors",
                                         "1_Pooling/config.json",
                                         "2_LayerNorm/config.json",
                                         "2_LayerNorm/model.safetensors",
                                         "3_Dropout/config.json",
                                         "4_Normalize/config.json",
                                         "5_Dense/config.json",
                                         "5_Dense/model.safetensors",
                                         "6_LayerNorm/config.json",
                                         "6_LayerNorm/model.safetensors",
                                         "7_Dropout/config.json",
                                         "config_sentence_transformers.json" };
    enum { PARTS = sizeof parts / sizeof *parts };
    const pith_str text = { "a cat sat", 9 };
    float wanted[256], got[256];
    char to[600], from[600];
    pith_model *model;
    clear();
    mkdir(DIR, 0777);
    copy(DIR "/model.onnx", external);
    snprintf(from, sizeof from, "%s.data", external);
    copy(DIR "/model.onnx.data", from);
    pith_source *source = opened(DIR "/model.onnx", 0);
    put(DIR "/model.onnx.data", "new", 3);
    if (pith_model_open_source(&model, source, NULL, &err)) fail_msg("%s", err.message);
    pith_model_close(model);
    unlink(DIR "/model.onnx.data");
    if (pith_model_open_source(&model, source, NULL, &err)) fail_msg("%s", err.message);
    pith_model_close(model);
    pith_source_close(source);
    source = opened(DIR "/model.onnx", 0);
    assert_int_equal(pith_model_open_source(&model, source, NULL, &err), PITH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "model.onnx.data\" is missing"));
    pith_source_close(source);
    clear();

    mkdir(DIR "-chain", 0777);
    for (int i = 0; i < PARTS; i++) {
        snprintf(to, sizeof to, DIR "-chain/%s", parts[i]);
        snprintf(from, sizeof from, "%s/%s", chain, parts[i]);
        char *slash = strrchr(to, '/');
        *slash = 0;
        mkdir(to, 0777);
        *slash = '/';
        copy(to, from);
    }
    if (pith_model_open(&model, DIR "-chain", NULL, &err)) fail_msg("%s", err.message);
    const size_t dim = pith_embed_dim(model, NULL);
    assert_true(dim && dim <= 256);
    assert_int_equal(pith_embed(wanted, model, &text, 1, NULL, &err), PITH_OK);
    pith_model_close(model);
    source = opened(DIR "-chain", 0);
    for (int i = 0; i < PARTS; i++) {
        snprintf(to, sizeof to, DIR "-chain/%s", parts[i]);
        unlink(to);
    }
    if (pith_model_open_source(&model, source, NULL, &err)) fail_msg("%s", err.message);
    pith_source_close(source);
    assert_int_equal(pith_embed(got, model, &text, 1, NULL, &err), PITH_OK);
    assert_memory_equal(wanted, got, dim * sizeof *got);
    pith_model_close(model);
}

static void sources_tell_what_they_are(void **state) {
    (void)state;
    pith_source_info info = PITH_SOURCE_INFO_INIT;
    pith_source *source = NULL;
    make();
    source = opened(DIR, 0);
    assert_int_equal(pith_source_report(&info, source, &err), PITH_OK);
    assert_string_equal(info.format, "safetensors");
    assert_string_equal(info.path, DIR);
    assert_string_equal(info.file, "model.safetensors");
    assert_int_equal(info.directory, 1);
    assert_true(info.bytes > 1000);
    assert_int_equal(pith_source_verify(source, NULL, &err), PITH_ERR_IO);
    info.size = 0;
    assert_int_equal(pith_source_report(&info, source, &err), PITH_ERR_ARGUMENT);
    pith_source_close(source);
    info = (pith_source_info)PITH_SOURCE_INFO_INIT;
    source = opened(ONNX, 0);
    assert_int_equal(pith_source_report(&info, source, &err), PITH_OK);
    assert_string_equal(info.format, "onnx");
    assert_string_equal(info.file, "");
    pith_source_close(source);
    pith_source_close(NULL);
}

static void memory_is_a_source(void **state) {
    (void)state;
    pith_source *source = NULL;
    pith__file file;
    pith_model *model;
    gathered text = { NULL, 0 };
    const pith_writer writer = { gather, NULL, &text };
    assert_int_equal(pith__file_open(&file, ONNX, false, NULL, NULL), PITH_OK);
    assert_int_equal(pith_source_open_memory(&source, file.data, file.size, NULL, &err), PITH_OK);
    if (pith_model_open_source(&model, source, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(pith_source_convert(source, NULL, &writer, NULL, &err), PITH_OK);
    assert_true(text.size > 1000);
    free(text.bytes);
    assert_int_equal(pith_source_verify(source, NULL, &err), PITH_ERR_FORMAT);
    pith_source_close(source);
    pith_model_close(model);
    pith__file_close(&file);
}

static void faults_are_told(void **state) {
    (void)state;
    pith_source *source = NULL;
    pith_model *model = NULL;
    pith_source_options o = PITH_SOURCE_OPTIONS_INIT;
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    pith_call call = PITH_CALL_INIT;
    const int stop = 1;
    make();
    assert_int_equal(pith_source_open(&source, DIR "/none", NULL, &err), PITH_ERR_NOT_FOUND);
    assert_int_equal(pith_source_open(&source, NULL, NULL, &err), PITH_ERR_ARGUMENT);
    o.flags = 1u << 9;
    assert_int_equal(pith_source_open(&source, DIR, &o, &err), PITH_ERR_ARGUMENT);
    o.flags = PITH_SOURCE_FILE;
    assert_int_equal(pith_source_open(&source, DIR, &o, &err), PITH_ERR_IO);
    assert_string_equal(err.message, DIR ": is a directory");
    o.flags = 0;
    o.model_file = "other.onnx";
    assert_int_equal(pith_source_open(&source, DIR, &o, &err), PITH_ERR_NOT_FOUND);
    assert_int_equal(pith_source_open_memory(&source, "x", 1, &o, &err), PITH_ERR_ARGUMENT);
    o.model_file = NULL;
    o.call.cancel = &stop;
    assert_int_equal(pith_source_open(&source, DIR, &o, &err), PITH_ERR_CANCELLED);
    o.call.cancel = NULL;
    o.memory_limit = 4000;
    assert_int_equal(pith_source_open(&source, DIR, &o, &err), PITH_ERR_MEMORY);
    assert_null(source);
    o.memory_limit = 200000;
    o.flags = PITH_SOURCE_FILE;
    assert_int_equal(pith_source_open(&source, ONNX, &o, &err), PITH_OK);
    assert_int_equal(pith_model_open_source(&model, source, NULL, &err), PITH_ERR_MEMORY);
    call.cancel = &stop;
    open.call.cancel = &stop;
    assert_int_equal(pith_model_open_source(&model, source, &open, &err), PITH_ERR_CANCELLED);
    open.call.cancel = NULL;
    open.route = "query";
    assert_int_equal(pith_model_open_source(&model, source, &open, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "pith_open_options.route"));
    assert_int_equal(pith_source_verify(source, &call, &err), PITH_ERR_FORMAT);
    pith_source_close(source);
}

/* Whichever request for memory is refused: the error says so, and nothing is left. */
static void refused_memory_is_told(void **state) {
    (void)state;
    make();
    for (uint32_t flags = 0; flags <= PITH_OPEN_COPY; flags += PITH_OPEN_COPY) {
        pith_status status = PITH_ERR_MEMORY;
        long n = 1;
        for (; status; n++) {
            counter c = { .fail_at = n };
            const pith_allocator allocator = { count_alloc, count_free, &c };
            pith_source_options o = PITH_SOURCE_OPTIONS_INIT;
            pith_source *source = NULL;
            o.flags = flags;
            o.call.allocator = &allocator;
            status = pith_source_open(&source, DIR, &o, &err);
            if (status && status != PITH_ERR_MEMORY) fail_msg("request %ld: %s", n, err.message);
            if (!status) { pith_source_close(source); }
            assert_int_equal(atomic_load(&c.live), 0);
        }
        assert_true(n > 3);
    }
}

/* ---- held files by themselves ---- */

static void large_files_are_noted(void **state) {
    (void)state;
    static const char *const large = DIR "/model.onnx", *const small = DIR "/config.json";
    pith__arena arena;
    pith__held_files held;
    pith__file file;
    clear();
    make();
    put(large, "large", 5);
    assert_int_equal(truncate(large, (17 << 20)), 0);
    pith__arena_init(&arena, &pith__allocator_default);
    assert_int_equal(pith__held_files_begin(&held, &arena, true, &err), PITH_OK);
    assert_int_equal(pith__held_files_add(&held, DIR, NULL, NULL, &err), PITH_OK);
    put(small, "{}", 2);
    assert_int_equal(held.held.open(&held.held, &file, small, NULL, &err), PITH_OK);
    assert_true(file.size > 2 && file.held);
    pith__file_close(&file);
    assert_int_equal(truncate(large, (18 << 20)), 0);
    assert_int_equal(held.held.open(&held.held, &file, large, NULL, &err), PITH_ERR_IO);
    assert_string_equal(err.message,
                        DIR "/model.onnx: the file has changed since the source was opened");
    unlink(large);
    assert_int_equal(held.held.open(&held.held, &file, large, NULL, &err), PITH_ERR_IO);
    assert_string_equal(err.message, DIR "/model.onnx: the file is gone, which was there when the "
                                         "source was opened");
    put(DIR "/onnx", "new", 3);
    bool there = true;
    assert_int_equal(held.held.there(&held.held, &there, DIR "/onnx", &err), PITH_OK);
    assert_false(there);
    unlink(DIR "/onnx");
    pith__held_files_end(&held);
    pith__arena_free(&arena);
}

/* ---- threads ---- */

static void *use(void *source) {
    pith_error own = PITH_ERROR_INIT;
    pith_model *model;
    for (int i = 0; i < 5; i++) {
        if (pith_model_open_source(&model, source, NULL, &own)) return source;
        pith_model_close(model);
    }
    return NULL;
}

static void threads_share_a_source(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    void *failed;
    make();
    pith_source *source = opened(DIR, PITH_OPEN_COPY);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, source), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    pith_source_close(source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaced_files_have_no_effect),
        cmocka_unit_test(second_files_are_held),
        cmocka_unit_test(sources_tell_what_they_are),
        cmocka_unit_test(memory_is_a_source),
        cmocka_unit_test(faults_are_told),
        cmocka_unit_test(refused_memory_is_told),
        cmocka_unit_test(large_files_are_noted),
        cmocka_unit_test(threads_share_a_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
