/* Damaged and hostile files, and memory that runs out: cut at every byte, 10,000 flipped bits,
 * every allocation failing. The answer is an error or a result, within bounded memory, and nothing
 * is left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/failing_alloc.h"
#include "formats/onnx/model_read.h"
#include "formats/weights/safetensors/safetensors.h"
#include "models/checkpoint/hf_build.h"
#include "pith/pith.h"

/* An exporter's graph with all weights in another file, so that it is nearly all header; and the
 * smallest network. */
#define HEADER_DIR PITH_TEST_DATA "/models/bert-base-script14-eager-external"
#define FLIPS 10000

static char *slurp(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing", path);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *data = malloc(*size);
    assert_int_equal(fread(data, 1, *size, f), *size);
    fclose(f);
    return data;
}

static uint32_t random_number(uint32_t *state) { return *state = *state * 1664525 + 1013904223; }

/* Reads an ONNX file from an exact copy, with memory up to limit. A graph that is read keeps its
 * invariants. */
static pith_status read_onnx(const char *data, size_t size, size_t limit, size_t *used) {
    char *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    pith__arena arena;
    pith_error err = PITH_ERROR_INIT;
    pith__graph *graph;
    pith__arena_init(&arena, NULL);
    arena.limit = limit;
    pith__files files = { .arena = &arena };
    pith_status status =
        pith__onnx_read(&graph, (pith_str){ copy, size }, HEADER_DIR, &files, &arena, NULL, &err);
    if (used) *used = arena.total;
    arena.limit = 0;
    if (!status && pith__graph_check(graph, &err)) fail_msg("%s", err.message);
    if (status) assert_true(err.code == status && err.message[0]);
    pith__files_close(&files);
    pith__arena_free(&arena);
    free(copy);
    return status;
}

static void onnx_cut_at_every_byte(void **state) {
    (void)state;
    size_t size;
    char *data = slurp(HEADER_DIR "/model.onnx", &size);
    assert_int_equal(read_onnx(data, size, 0, NULL), PITH_OK);
    for (size_t n = 0; n < size; n++) {
        pith_status status = read_onnx(data, n, 8 << 20, NULL);
        /* Only what comes after the graph, the import of opsets, may be missing. */
        if (n + 32 < size) assert_int_equal(status, PITH_ERR_FORMAT);
    }
    free(data);
}

static void onnx_with_flipped_bits(void **state) {
    (void)state;
    size_t size, used;
    uint32_t random = 1;
    char *data = slurp(HEADER_DIR "/model.onnx", &size);
    read_onnx(data, size, 0, &used);
    for (int i = 0; i < FLIPS; i++) {
        size_t bit = (size_t)random_number(&random) % (size * 8);
        data[bit / 8] ^= (char)(1 << bit % 8);
        read_onnx(data, size, 2 * used, NULL);
        data[bit / 8] ^= (char)(1 << bit % 8);
    }
    free(data);
}

/* With a limit, the arena asks for exact sizes: each step of the limit fails at another request. */
static int out_of_memory_everywhere(const char *path, size_t step) {
    size_t size, used;
    char *data = slurp(path, &size);
    int failed = 0;
    assert_int_equal(read_onnx(data, size, 0, &used), PITH_OK);
    for (size_t limit = 1; limit < used; limit += step) {
        pith_status status = read_onnx(data, size, limit, NULL);
        if (status) assert_int_equal(status, PITH_ERR_MEMORY);
        failed += status != PITH_OK;
    }
    free(data);
    return failed;
}

static void onnx_out_of_memory_everywhere(void **state) {
    (void)state;
    static const char *const small[] = {
        "if_seq", "loop13_seq", "loop16_seq_none",
        "if_opt", "scan_sum",   "sequence_map_identity_1_sequence_1_tensor_expanded"
    };
    assert_true(out_of_memory_everywhere(
                    PITH_TEST_DATA "/models/bert-base-script14-eager-fused/model.onnx", 48) > 500);
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        char path[400];
        snprintf(path, sizeof path, PITH_TEST_DATA "/control/%s.onnx", small[i]);
        assert_true(out_of_memory_everywhere(path, 8) > 50);
    }
    assert_true(out_of_memory_everywhere(
                    PITH_SOURCE_DIR "/tests/fuzz/corpus/onnx/function-captures.onnx", 8) > 50);
}

static pith_status read_safetensors(const char *data, size_t size) {
    char *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    pith__arena arena;
    pith_error err = PITH_ERROR_INIT;
    pith__weights weights;
    pith__arena_init(&arena, NULL);
    pith_status status = pith__weights_init(&weights, &arena, &err);
    if (!status) status = pith__safetensors_read(&weights, (pith_str){ copy, size }, "w", &err);
    for (size_t i = 0; !status && i < weights.count; i++) {
        volatile char first = weights.items[i].bytes ? ((const char *)weights.items[i].data)[0] : 0;
        volatile char last = weights.items[i].bytes
                                 ? ((const char *)weights.items[i].data)[weights.items[i].bytes - 1]
                                 : 0;
        (void)first;
        (void)last;
    }
    pith__arena_free(&arena);
    free(copy);
    return status;
}

static void safetensors_damaged(void **state) {
    (void)state;
    size_t size;
    uint32_t random = 2;
    uint64_t header;
    char *data = slurp(PITH_TEST_DATA "/hf/bert/model.safetensors", &size);
    memcpy(&header, data, sizeof header);
    assert_int_equal(read_safetensors(data, size), PITH_OK);
    for (size_t n = 0; n < 8 + header; n++)
        assert_int_equal(read_safetensors(data, n), PITH_ERR_FORMAT);
    assert_int_equal(read_safetensors(data, size - 1), PITH_ERR_FORMAT);
    for (int i = 0; i < FLIPS; i++) {
        size_t bit = (size_t)random_number(&random) % ((8 + header) * 8);
        data[bit / 8] ^= (char)(1 << bit % 8);
        read_safetensors(data, size);
        data[bit / 8] ^= (char)(1 << bit % 8);
    }
    free(data);
}

/* config.json with one bit wrong beside good weights: built or refused by name. */
static void flip_config(const char *model) {
    char dir[] = "/tmp/pith-hostile-XXXXXX", path[512], command[96], target[512];
    size_t size;
    int built = 0, refused = 0;
    snprintf(path, sizeof path, PITH_TEST_DATA "/hf/%s/config.json", model);
    char *data = slurp(path, &size);
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    snprintf(target, sizeof target, PITH_TEST_DATA "/hf/%s/model.safetensors", model);
    assert_int_equal(symlink(target, path), 0);
    snprintf(path, sizeof path, "%s/config.json", dir);
    for (size_t bit = 0; bit < size * 8; bit++) {
        data[bit / 8] ^= (char)(1 << bit % 8);
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(data, 1, size, f), size);
        fclose(f);
        data[bit / 8] ^= (char)(1 << bit % 8);
        pith__arena arena;
        pith_error err = PITH_ERROR_INIT;
        pith__graph *graph;
        pith__arena_init(&arena, NULL);
        arena.limit = (size_t)64 << 20;
        pith__files files = { .arena = &arena };
        pith_status status = pith__hf_build(&graph, dir, &files, &arena, NULL, &err);
        if (!status && pith__graph_check(graph, &err)) fail_msg("%s", err.message);
        if (status) assert_true(err.code == status && err.message[0]);
        *(status ? &refused : &built) += 1;
        pith__files_close(&files);
        pith__arena_free(&arena);
    }
    assert_true(built > 100 && refused > 100);
    free(data);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static void config_with_flipped_bits(void **state) {
    static const char *const models[] = { "mpnet",        "albert",     "deberta-v3",
                                          "gemma3",       "gte",        "jina-v2-code",
                                          "jina-v3-task", "modernbert", "nomic-stretched",
                                          "qwen3-window" };
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) flip_config(models[i]);
}

/* Opens a directory and runs it once on a few tokens. */
static pith_status open_and_run(const char *path, const pith_allocator *allocator) {
    static int64_t ids[2][5] = { { 5, 6, 7, 8, 9 }, { 5, 6, 7, 1, 1 } },
                   mask[2][5] = { { 1, 1, 1, 1, 1 }, { 1, 1, 1, 0, 0 } };
    static int64_t types[2][5];
    static const char *const names[] = { "input_ids", "attention_mask", "token_type_ids" };
    int64_t(*const data[])[5] = { ids, mask, types };
    pith_tensor inputs[3], outputs[2];
    pith_error err = PITH_ERROR_INIT;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_model *model = NULL;
    pith_session *session = NULL;
    options.call.allocator = allocator;
    pith_run_options run = PITH_RUN_OPTIONS_INIT;
    run.call.threads = 1;
    for (int i = 0; i < 3; i++)
        inputs[i] = (pith_tensor){
            .data = data[i], .bytes = sizeof ids, .dtype = PITH_I64, .rank = 2, .dims = { 2, 5 }
        };
    pith_status status = pith_model_open(&model, path, &options, &err);
    if (!status) status = pith_session_create(&session, model, &err);
    if (!status)
        status = pith_session_run(session, outputs, names, inputs, pith_model_input_count(model),
                                  &run, &err);
    pith_session_destroy(session);
    pith_model_close(model);
    if (status && !err.message[0]) fail_msg("status %d without message", status);
    return status;
}

static void every_allocation_fails(void **state) {
    (void)state;
    static const char *const paths[] = { PITH_TEST_DATA "/hf/bert", PITH_TEST_DATA
                                         "/models/bert-base-script17-eager/model.onnx" };
    for (size_t k = 0; k < 2; k++) {
        counter c = { 0 };
        const pith_allocator allocator = { count_alloc, count_free, &c };
        assert_int_equal(open_and_run(paths[k], &allocator), PITH_OK);
        assert_int_equal(c.live, 0);
        long made = c.calls;
        assert_true(made > 10);
        for (long i = 1; i <= made; i++) {
            c = (counter){ .fail_at = i };
            pith_status status = open_and_run(paths[k], &allocator);
            /* The optimiser does without a simplification it has no memory for. */
            if (status != PITH_ERR_MEMORY && status != PITH_OK)
                fail_msg("%s: allocation %ld of %ld failed, status %d", paths[k], i, made, status);
            assert_int_equal(c.live, 0);
        }
    }
}

/* Opens an ONNX file from memory and, if it asks for nothing but the ids and mask of a small
 * encoder, runs it. */
static pith_status open_memory_and_run(const char *data, size_t size,
                                       const pith_allocator *allocator, bool *ran) {
    static int64_t ids[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } },
                   mask[2][3] = { { 1, 1, 1 }, { 1, 1, 0 } };
    static const char *const names[] = { "ids", "mask" };
    pith_tensor inputs[2], output[4];
    pith_error err = PITH_ERROR_INIT;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_run_options run = PITH_RUN_OPTIONS_INIT;
    pith_model *model = NULL;
    pith_session *session = NULL;
    options.call.allocator = allocator;
    options.memory_limit = 1 << 24;
    run.call.threads = 1;
    for (int i = 0; i < 2; i++)
        inputs[i] = (pith_tensor){ .data = i ? mask : ids,
                                   .bytes = sizeof ids,
                                   .dtype = PITH_I64,
                                   .rank = 2,
                                   .dims = { 2, 3 } };
    pith_status status = pith_model_open_memory(&model, data, size, &options, &err);
    if (!status && pith_model_output_count(model) <= 4) {
        status = pith_session_create(&session, model, &err);
        if (!status) status = pith_session_run(session, output, names, inputs, 2, &run, &err);
        *ran = !status;
    }
    if (status && !err.message[0]) fail_msg("status %d without message", status);
    pith_session_destroy(session);
    pith_model_close(model);
    return status;
}

/* The whole way from bytes to results, one bit wrong at a time. */
static void models_with_flipped_bits(void **state) {
    (void)state;
    size_t size;
    uint32_t random = 3;
    int ran_count = 0, refused = 0;
    char *data = slurp(PITH_SOURCE_DIR "/tests/fuzz/corpus/onnx/encoder.onnx", &size);
    counter c = { .limit = (size_t)1 << 26 };
    const pith_allocator allocator = { count_alloc, count_free, &c };
    bool ran = false;
    assert_int_equal(open_memory_and_run(data, size, &allocator, &ran), PITH_OK);
    assert_true(ran);
    for (int i = 0; i < FLIPS; i++) {
        size_t bit = (size_t)random_number(&random) % (size * 8);
        data[bit / 8] ^= (char)(1 << bit % 8);
        ran = false;
        refused += open_memory_and_run(data, size, &allocator, &ran) != PITH_OK;
        ran_count += ran;
        data[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_equal(c.live, 0);
    }
    assert_true(ran_count > FLIPS / 10 && refused > FLIPS / 10);
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(onnx_cut_at_every_byte),        cmocka_unit_test(onnx_with_flipped_bits),
        cmocka_unit_test(onnx_out_of_memory_everywhere), cmocka_unit_test(safetensors_damaged),
        cmocka_unit_test(config_with_flipped_bits),      cmocka_unit_test(every_allocation_fails),
        cmocka_unit_test(models_with_flipped_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
