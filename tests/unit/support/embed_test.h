/* embed_test.h - what the tests of the embedder share: the golden texts, the default model, small
 * networks with a toy tokenizer. */
#ifndef EMBED_TEST_H
#define EMBED_TEST_H

#include <math.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/formats/json.h"
#include "base/os/file.h"
#include "base/str.h"
#include "pith/pith.h"

enum { GOLDEN = 300, DIM = 384 };

typedef struct golden {
    pith__arena arena;
    pith__file file;
    pith_str texts[GOLDEN];
    int tokens[GOLDEN];
    float vectors[GOLDEN][DIM];
} golden;

static inline void golden_open(golden *g) {
    pith_error err = PITH_ERROR_INIT;
    memset(g, 0, sizeof *g);
    pith__arena_init(&g->arena, &pith__allocator_default);
    assert_int_equal(
        pith__file_open(&g->file, PITH_TEST_DATA "/minilm/golden.jsonl", false, NULL, &err),
        PITH_OK);
    const char *p = (const char *)g->file.data, *end = p + g->file.size;
    for (int i = 0; i < GOLDEN; i++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        assert_non_null(stop);
        pith__json j;
        pith_str key;
        pith__json_init(&j, (pith_str){ p, (size_t)(stop - p) }, "golden.jsonl", &g->arena, &err);
        pith__json_object(&j);
        while (pith__json_next_key(&j, &key)) {
            if (pith__str_is(key, "text")) {
                g->texts[i] = pith__json_string(&j);
            } else if (pith__str_is(key, "ids")) {
                for (pith__json_array(&j); pith__json_next_item(&j); pith__json_skip(&j))
                    g->tokens[i]++;
            } else if (pith__str_is(key, "embedding")) {
                int d = 0;
                for (pith__json_array(&j); pith__json_next_item(&j); d++)
                    g->vectors[i][d] = (float)pith__json_double(&j);
                assert_int_equal(d, DIM);
            } else {
                pith__json_skip(&j);
            }
        }
        if (j.failed) fail_msg("%s", err.message);
        p = stop + 1;
    }
}

static inline void golden_close(golden *g) {
    pith__arena_free(&g->arena);
    pith__file_close(&g->file);
}

/* Its words y and z have the ids 1 and 0, which RoBERTa, MPNet and BERT pad with: in a text they
 * are tokens like others. */
static const char toy_tokenizer[] =
    "{\"padding\": %s, \"added_tokens\": [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": "
    "\"BertPreTokenizer\"},"
    " \"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 3], \"cls\": "
    "[\"[CLS]\", 2]},"
    " \"decoder\": null, \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\","
    " \"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100, \"vocab\": "
    "{\"[UNK]\": 4, \"[CLS]\": 2,"
    " \"[SEP]\": 3, \"y\": 1, \"z\": 0, \"a\": 5, \"b\": 6, \"c\": 7, \"d\": 8, \"##a\": 9, "
    "\"##b\": 10, \"##c\": "
    "11}}}";

/* Words w4, w5, … have these ids; a text begins with 2 and ends with 3, which no model pads with.
 */
static inline void word_tokenizer(const char *path) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "{\"added_tokens\": [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": "
               "\"WhitespaceSplit\"},"
               " \"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"e\", 3], \"cls\": "
               "[\"s\", 2]},"
               " \"decoder\": null, \"model\": {\"type\": \"WordLevel\", \"unk_token\": \"u\", "
               "\"vocab\": {\"u\": 4,"
               " \"s\": 2, \"e\": 3");
    for (int i = 5; i < 96; i++) fprintf(f, ", \"w%d\": %d", i, i);
    fprintf(f, "}}}");
    fclose(f);
}

/* A directory with the graph of one of the networks in tests/data/models, or of families/<name>,
 * and the tokenizer above; padding: its section of tokenizer.json. */
static inline void network_directory(const char *dir, const char *network, const char *padding) {
    char path[700], target[700];
    mkdir(dir, 0777);
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, toy_tokenizer, padding);
    fclose(f);
    snprintf(path, sizeof path, "%s/model.onnx", dir);
    snprintf(target, sizeof target, PITH_TEST_DATA "/%s%s/model.onnx",
             strchr(network, '/') ? "" : "models/", network);
    unlink(path);
    assert_int_equal(symlink(target, path), 0);
}

static inline pith_model *open_model(const char *path) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    if (pith_model_open(&model, path, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(pith_embed_dim(model, NULL), DIM);
    return model;
}

static inline void embed(float *vectors, const pith_model *model, const pith_str *texts,
                         size_t count, const pith_embed_options *options) {
    pith_error err = PITH_ERROR_INIT;
    if (pith_embed(vectors, model, texts, count, options, &err)) fail_msg("%s", err.message);
}

/* The default model. */
static inline pith_model *open_at(int precision) {
    pith_error err = PITH_ERROR_INIT;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_model *model = NULL;
    options.precision = precision;
    if (pith_model_open(&model, "all-MiniLM-L6-v2", &options, &err)) fail_msg("%s", err.message);
    return model;
}

static inline double cosine(const float *a, const float *b) {
    double ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < DIM; i++)
        ab += (double)a[i] * b[i], aa += (double)a[i] * a[i], bb += (double)b[i] * b[i];
    return ab / sqrt(aa * bb);
}

/* For a process started by a test: what it computed goes to a file. Returns the exit status. */
static inline int save_vectors(const char *path, const float (*vectors)[DIM], size_t count) {
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(vectors, sizeof *vectors, count, f) == count;
    return f && !fclose(f) && good ? 0 : 1;
}

/* Runs this test program under PITH_ISA with the path, and more if not NULL, as arguments; the
 * vectors it saves there become `vectors`. */
static inline void run_under_isa(const char *isa, const char *path, const char *more,
                                 float (*vectors)[DIM], size_t count) {
    char self[] = "/proc/self/exe";
    char *arguments[] = { self, (char *)(uintptr_t)path, (char *)(uintptr_t)more, NULL };
    pid_t child;
    int status;
    setenv("PITH_ISA", isa, 1);
    assert_int_equal(posix_spawn(&child, self, NULL, NULL, arguments, environ), 0);
    unsetenv("PITH_ISA");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(vectors, sizeof *vectors, count, f), count);
    fclose(f);
}

/* Under PITH_ISA this test program, given a path, saves these vectors there; again is where they
 * are read to. */
static inline void check_under_isa(const char *isa, const float (*vectors)[DIM],
                                   float (*again)[DIM], size_t count) {
    char path[] = "/tmp/pith_isa_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    run_under_isa(isa, path, NULL, again, count);
    remove(path);
    assert_memory_equal(again, vectors, count * sizeof *again);
}

#endif
