/* test_gguf.c - weights in GGUF: the same vectors as from the numbers that the package gguf
 * decodes; damaged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "support/failing_alloc.h"
#include "formats/weights/gguf/gguf.h"
#include "pith/pith.h"

#define FOLDER PITH_TEST_DATA "/gguf/"

static const pith_str texts[] = { { "a b c", 5 }, { "b", 1 }, { "c c a b b a", 11 }, { "", 0 } };
enum { TEXTS = 4, DIM = 32 };

static pith_str whole;

static int read_whole(void **state) {
    (void)state;
    static char bytes[1 << 16];
    FILE *f = fopen(FOLDER "blocks/model.gguf", "rb");
    if (!f) return -1;
    whole = (pith_str){ bytes, fread(bytes, 1, sizeof bytes, f) };
    fclose(f);
    return whole.size < 10000;
}

static void embed(float *vectors, const char *path, const char *file) {
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_model *model;
    pith_error err = PITH_ERROR_INIT;
    options.model_file = file;
    if (pith_model_open(&model, path, &options, &err)) fail_msg("%s: %s", path, err.message);
    assert_int_equal(pith_embed_dim(model, NULL), DIM);
    assert_int_equal(pith_embed(vectors, model, texts, TEXTS, NULL, &err), PITH_OK);
    pith_model_close(model);
}

static void test_vectors(void **state) {
    (void)state;
    float ours[TEXTS * DIM], wanted[TEXTS * DIM];
    embed(wanted, FOLDER "decoded", NULL);
    embed(ours, FOLDER "blocks", NULL);
    assert_memory_equal(ours, wanted, sizeof ours);
    embed(ours, FOLDER "blocks", "model.gguf");
    assert_memory_equal(ours, wanted, sizeof ours);
}

/* A file by its own name: the vectors of its directory, with the pooling that it says and of length
 * 1. */
static void test_lone(void **state) {
    (void)state;
    float ours[TEXTS * DIM], wanted[TEXTS * DIM];
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    pith_model *model;
    pith_error err = PITH_ERROR_INIT;
    options.pooling = PITH_POOLING_CLS;
    options.normalize = 1;
    assert_int_equal(pith_model_open(&model, FOLDER "blocks", NULL, &err), PITH_OK);
    assert_int_equal(pith_embed(wanted, model, texts, TEXTS, &options, &err), PITH_OK);
    pith_model_close(model);
    embed(ours, FOLDER "blocks/model.gguf", NULL);
    assert_memory_equal(ours, wanted, sizeof ours);
    if (pith_model_open_memory(&model, whole.data, whole.size, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(pith_embed(ours, model, texts, TEXTS, NULL, &err), PITH_OK);
    assert_memory_equal(ours, wanted, sizeof ours);
    pith_model_close(model);
}

/* Every type: the numbers of the package gguf. */
static void test_kinds(void **state) {
    (void)state;
    pith__arena arena;
    pith__weights ours, wanted;
    const char *file;
    pith_error err = PITH_ERROR_INIT;
    pith__arena_init(&arena, &pith__allocator_default);
    pith__files files = { .arena = &arena };
    assert_int_equal(pith__weights_init(&ours, &arena, &err), PITH_OK);
    assert_int_equal(pith__weights_init(&wanted, &arena, &err), PITH_OK);
    assert_int_equal(pith__weights_read(&ours, &file, FOLDER, "kinds.gguf", &files, &err), PITH_OK);
    assert_int_equal(pith__weights_read(&wanted, &file, FOLDER, "kinds.safetensors", &files, &err),
                     PITH_OK);
    assert_int_equal(ours.count, 12);
    for (size_t i = 0; i < ours.count; i++) {
        const pith_tensor *a = &ours.items[i], *b = pith__weights_find(&wanted, ours.keys[i]);
        assert_non_null(b);
        assert_int_equal(a->bytes, b->bytes);
        if (memcmp(a->data, b->data, a->bytes))
            fail_msg("%.*s", (int)ours.keys[i].size, ours.keys[i].data);
    }
    pith__files_close(&files);
    pith__arena_free(&arena);
}

/* ---- files with faults ---- */

/* The bytes lie at the end of their own memory, so that reading beyond them shows under the address
 * sanitizer. */
static pith_status read_bytes(const char *bytes, size_t size, const pith_allocator *allocator,
                              pith_error *err) {
    pith__arena arena;
    pith__weights weights;
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    pith__arena_init(&arena, allocator);
    pith_status status = pith__weights_init(&weights, &arena, err);
    if (!status) status = pith__gguf_read(&weights, (pith_str){ copy, size }, "x.gguf", err);
    if (!status)
        for (size_t i = 0; i < weights.count; i++) { /* all of it is there */
            const pith_tensor *t = &weights.items[i];
            volatile char last = t->bytes ? ((const char *)t->data)[t->bytes - 1] : 0;
            (void)last;
        }
    pith__arena_free(&arena);
    free(copy);
    return status;
}

static pith_status read_checked(const char *bytes, size_t size) {
    pith_error err = PITH_ERROR_INIT;
    counter c = { .limit = (size_t)4 << 20 };
    const pith_allocator allocator = { count_alloc, count_free, &c };
    pith_status status = read_bytes(bytes, size, &allocator, &err);
    assert_int_equal(c.live, 0);
    assert_int_not_equal(status, PITH_ERR_MEMORY); /* no more than some times the file */
    assert_int_equal(status, err.code);
    if (status) assert_memory_equal(err.message, "x.gguf: ", 8);
    return status;
}

static void test_cut(void **state) {
    (void)state;
    assert_int_equal(read_checked(whole.data, whole.size), PITH_OK);
    for (size_t n = 0; n < whole.size; n += n < 3000 ? 1 : 97) {
        const pith_status status = read_checked(whole.data, n);
        /* padding at the end */
        assert_true(status == PITH_ERR_FORMAT || (status == PITH_OK && n > whole.size - 32));
    }
}

static void test_changed(void **state) {
    (void)state;
    static char copy[1 << 16];
    static const unsigned char bytes[] = { 0, 1, 0x7F, 0x80, 0xFF };
    size_t refused = 0;
    memcpy(copy, whole.data, whole.size);
    for (size_t i = 0; i < 3000; i++)
        for (size_t b = 0; b < sizeof bytes; b++) {
            copy[i] = (char)bytes[b];
            refused += read_checked(copy, whole.size) != PITH_OK;
            copy[i] = whole.data[i];
        }
    assert_true(refused > 2000);
}

/* Eight bytes at each place become numbers at the edges. */
static void test_edges(void **state) {
    (void)state;
    static char copy[1 << 16];
    static const uint64_t numbers[] = {
        0, UINT64_MAX, INT64_MAX, (uint64_t)1 << 32, (uint64_t)1 << 62, 1 << 20
    };
    memcpy(copy, whole.data, whole.size);
    for (size_t i = 0; i + 8 < 3000; i++)
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
            memcpy(copy + i, &numbers[n], 8);
            read_checked(copy, whole.size);
            memcpy(copy + i, whole.data + i, 8);
        }
}

static char *find(char *bytes, const char *text) {
    for (size_t i = 0; i + strlen(text) <= whole.size; i++)
        if (!memcmp(bytes + i, text, strlen(text))) return bytes + i;
    return NULL;
}

static void refused(const char *bytes, pith_status status, const char *says) {
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(read_bytes(bytes, whole.size, &pith__allocator_default, &err), status);
    if (!strstr(err.message, says)) fail_msg("'%s' does not say '%s'", err.message, says);
}

static void test_refused(void **state) {
    (void)state;
    static char copy[1 << 16];
    /* Behind the name: number of dimensions, 2 sizes, type, offset. */
    enum { TYPE = 4 + 16, OFFSET = TYPE + 4 };
    memcpy(copy, whole.data, whole.size);
    copy[0] = 'g';
    refused(copy, PITH_ERR_FORMAT, "not a GGUF file");
    memcpy(copy, whole.data, whole.size);
    copy[4] = 9;
    refused(copy, PITH_ERR_UNSUPPORTED, "version 9 of GGUF");
    memcpy(copy, whole.data, whole.size);
    find(copy, "general.architecture")[20 + 4 + 8] = 'X';
    refused(copy, PITH_ERR_UNSUPPORTED, "architecture 'Xert'");
    memcpy(copy, whole.data, whole.size);
    char *at = find(copy, "blk.1.ffn_up.weight") + strlen("blk.1.ffn_up.weight");
    at[TYPE] = 4;
    refused(copy, PITH_ERR_UNSUPPORTED,
            "tensor 'encoder.layer.1.intermediate.dense.weight': type 4");
    at[TYPE] = 2;
    at[4] = 31;
    refused(copy, PITH_ERR_FORMAT, "rows of 31 elements are no blocks of 32");
    at[4] = 32;
    memset(at + OFFSET, 0x11, 8);
    refused(copy, PITH_ERR_FORMAT, "reaches beyond the end");
    memcpy(copy, whole.data, whole.size);
    at = find(copy, "blk.1.ffn_up.weight");
    at[4] = '0';
    refused(copy, PITH_ERR_FORMAT, "listed twice");
}

/* Opens a copy of the file as a model and embeds with it. */
static pith_status use_bytes(const char *bytes, size_t size, const pith_allocator *allocator,
                             pith_error *err) {
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_model *model;
    float vectors[TEXTS * 1024];
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    options.call.allocator = allocator;
    pith_status status = pith_model_open_memory(&model, copy, size, &options, err);
    if (!status) {
        /* 0: it does not embed, and pith_embed says why */
        assert_in_range(pith_embed_dim(model, NULL), 0, 1024);
        status = pith_embed(vectors, model, texts, TEXTS, NULL, err);
        pith_model_close(model);
    }
    free(copy);
    return status;
}

/* Settings and tokenizer: each byte and each number changed gives an error or vectors. */
static void test_lone_changed(void **state) {
    (void)state;
    static char copy[1 << 16];
    static const unsigned char bytes[] = { 0, 1, 0x7F, 0xFF };
    size_t refused = 0, tried = 0;
    memcpy(copy, whole.data, whole.size);
    for (size_t i = 0; i < 1800; i++)
        for (size_t b = 0; b < sizeof bytes; b++) {
            pith_error err = PITH_ERROR_INIT;
            copy[i] = (char)bytes[b];
            refused += use_bytes(copy, whole.size, NULL, &err) != PITH_OK;
            tried++;
            copy[i] = whole.data[i];
        }
    assert_in_range(refused, tried / 4, tried);
    for (size_t n = 0; n < 1800; n += 7) {
        pith_error err = PITH_ERROR_INIT;
        assert_int_equal(use_bytes(whole.data, n, NULL, &err), PITH_ERR_FORMAT);
    }
}

static void refused_model(const char *bytes, pith_status status, const char *says) {
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(use_bytes(bytes, whole.size, NULL, &err), status);
    if (!strstr(err.message, says)) fail_msg("'%s' does not say '%s'", err.message, says);
}

static void test_lone_refused(void **state) {
    (void)state;
    static char copy[1 << 16];
    memcpy(copy, whole.data, whole.size);
    find(copy, "bert.embedding_length")[0] = 'X';
    refused_model(copy, PITH_ERR_FORMAT, "no usable setting 'bert.embedding_length'");
    memcpy(copy, whole.data, whole.size);
    find(copy, "general.architecture")[20 + 4 + 8] = 'X';
    refused_model(copy, PITH_ERR_UNSUPPORTED,
                  "architecture 'Xert'; GGUF is read for bert, nomic-bert");
    memcpy(copy, whole.data, whole.size);
    find(copy, "bert.pooling_type")[17 + 4] = 4;
    refused_model(copy, PITH_ERR_UNSUPPORTED, "bert.pooling_type 4");
    memcpy(copy, whole.data, whole.size);
    find(copy, "tokenizer.ggml.model")[20 + 4 + 8] = 'X';
    refused_model(copy, PITH_ERR_UNSUPPORTED, "a tokenizer of the kind 'Xert'");
    memcpy(copy, whole.data, whole.size);
    find(copy, "tokenizer.ggml.seperator_token_id")[33 + 4] = 100;
    refused_model(copy, PITH_ERR_FORMAT,
                  "'tokenizer.ggml.seperator_token_id' is 100, but there are 24 tokens");
    memcpy(copy, whole.data, whole.size);
    find(copy, "tokenizer.ggml.tokens")[21 + 4 + 4 + 8 + 8] = (char)0xFF;
    refused_model(copy, PITH_ERR_FORMAT, "token 0 is no UTF-8");
    memcpy(copy, whole.data, whole.size);
    find(copy, "bert.block_count")[16 + 4] = 3;
    refused_model(copy, PITH_ERR_NOT_FOUND, "encoder.layer.2.attention.self.query.weight");
}

/* The same of other architectures and tokenizers, at some places of their settings. */
static void test_others_changed(void **state) {
    (void)state;
    static const char *const names[] = { "bge-m3", "qwen3-fused", "gemma", "nomic", "roberta" };
    static const unsigned char bytes[] = { 0, 0xFF };
    static char copy[1 << 19];
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char path[512];
        snprintf(path, sizeof path, FOLDER "models/%s/model.gguf", names[n]);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        const size_t size = fread(copy, 1, sizeof copy, f);
        fclose(f);
        size_t refused = 0;
        for (size_t i = 8; i < 12000; i += i < 2400 ? 5 : 61)
            for (size_t b = 0; b < sizeof bytes; b++) {
                pith_error err = PITH_ERROR_INIT;
                const char was = copy[i];
                copy[i] = (char)bytes[b];
                refused += use_bytes(copy, size, NULL, &err) != PITH_OK;
                copy[i] = was;
            }
        assert_true(refused > 100);
        for (long at = 1; at < 3000; at += 97) {
            counter c = { .fail_at = at };
            const pith_allocator allocator = { count_alloc, count_free, &c };
            pith_error err = PITH_ERROR_INIT;
            const pith_status status = use_bytes(copy, size, &allocator, &err);
            assert_int_equal(c.live, 0);
            if (c.calls < at) break;
            assert_int_equal(status, PITH_ERR_MEMORY);
        }
    }
}

static void test_lone_memory(void **state) {
    (void)state;
    for (long at = 1;; at += 7) {
        counter c = { .fail_at = at };
        const pith_allocator allocator = { count_alloc, count_free, &c };
        pith_error err = PITH_ERROR_INIT;
        const pith_status status = use_bytes(whole.data, whole.size, &allocator, &err);
        assert_int_equal(c.live, 0);
        if (c.calls < at) break;
        assert_int_equal(status, PITH_ERR_MEMORY);
    }
}

static void test_memory(void **state) {
    (void)state;
    for (long at = 1;; at++) {
        counter c = { .fail_at = at };
        const pith_allocator allocator = { count_alloc, count_free, &c };
        pith_error err = PITH_ERROR_INIT;
        const pith_status status = read_bytes(whole.data, whole.size, &allocator, &err);
        assert_int_equal(c.live, 0);
        if (c.calls < at) break;
        assert_int_equal(status, PITH_ERR_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),      cmocka_unit_test(test_cut),
        cmocka_unit_test(test_changed),      cmocka_unit_test(test_edges),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_memory),
        cmocka_unit_test(test_lone),         cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_lone_changed), cmocka_unit_test(test_lone_refused),
        cmocka_unit_test(test_lone_memory),  cmocka_unit_test(test_others_changed),
    };
    return cmocka_run_group_tests(tests, read_whole, NULL);
}
