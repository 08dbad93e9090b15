/* score_test.h - what tests of classifiers and rerankers share: tests/data/tasks. */
#ifndef SCORE_TEST_H
#define SCORE_TEST_H

#include "embed_test.h"

#define TASKS PITH_TEST_DATA "/tasks/"

enum { CASES = 12, LABELS = 3 };

/* The texts of texts.jsonl, and what follows each. */
typedef struct cases {
    pith__arena arena;
    pith__file file;
    pith_str texts[CASES], pairs[CASES];
} cases;

static inline void cases_open_file(cases *c, const char *path) {
    pith_error err = PITH_ERROR_INIT;
    memset(c, 0, sizeof *c);
    pith__arena_init(&c->arena, &pith__allocator_default);
    assert_int_equal(pith__file_open(&c->file, path, false, NULL, &err), PITH_OK);
    const char *p = (const char *)c->file.data, *end = p + c->file.size;
    for (int i = 0; i < CASES; i++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        pith__json j;
        pith_str key;
        assert_non_null(stop);
        pith__json_init(&j, (pith_str){ p, (size_t)(stop - p) }, "texts.jsonl", &c->arena, &err);
        for (pith__json_object(&j); pith__json_next_key(&j, &key);)
            *(pith__str_is(key, "text") ? &c->texts[i] : &c->pairs[i]) = pith__json_string(&j);
        if (j.failed) fail_msg("%s", err.message);
        p = stop + 1;
    }
}

static inline void cases_open(cases *c) { cases_open_file(c, TASKS "texts.jsonl"); }

static inline void cases_close(cases *c) {
    pith__arena_free(&c->arena);
    pith__file_close(&c->file);
}

static inline pith_model *open_task(const char *path, const pith_open_options *options) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    if (pith_model_open(&model, path, options, &err)) fail_msg("%s", err.message);
    return model;
}

/* Reads count floats of a file of a directory in tests/data/tasks. */
static inline void read_scores(float *scores, const char *name, const char *file, size_t count) {
    char path[600];
    snprintf(path, sizeof path, TASKS "%s/%s", name, file);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing", path);
    assert_int_equal(fread(scores, sizeof *scores, count, f), count);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
}

static inline void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

/* Makes a directory with the files of tests/data/tasks/<name>, where config.json has `more` members
 * at its beginning and lacks those whose key is `drop` (NULL: none). What was in the directory
 * before is gone. */
static inline void edit_task(const char *dir, const char *name, const char *more,
                             const char *drop) {
    static const char *const files[] = { "model.safetensors", "tokenizer.json",
                                         "tokenizer_config.json" };
    static const char *const left[] = { "config_sentence_transformers.json", "modules.json",
                                        "sentence_bert_config.json" };
    static char text[8192];
    char path[700], target[700];
    pith__file file;
    mkdir(dir, 0777);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        snprintf(target, sizeof target, TASKS "%s/%s", name, files[i]);
        unlink(path);
        assert_int_equal(symlink(target, path), 0);
    }
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, left[i]);
        unlink(path);
    }
    snprintf(target, sizeof target, TASKS "%s/config.json", name);
    assert_int_equal(pith__file_open(&file, target, false, NULL, NULL), PITH_OK);
    snprintf(text, sizeof text, "{%s%s%.*s", more, *more ? ", " : "", (int)file.size - 1,
             (const char *)file.data + 1);
    pith__file_close(&file);
    /* a member is left out by another name */
    char *member = drop ? strstr(text + strlen(more), drop) : NULL;
    if (drop) assert_non_null(member);
    if (member) *member = '_';
    snprintf(path, sizeof path, "%s/config.json", dir);
    write_text(path, text);
}

#endif
