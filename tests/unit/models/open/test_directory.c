/* test_directory.c - a good model directory of which one file is spoilt at a time: missing, empty,
 * cut short, a link to nothing, a link to itself, a directory, unreadable, or JSON with another
 * value. What comes of it is an error that names the file, or the vectors of the good directory;
 * where JSON says something else that is right, other vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/os/file.h"
#include "pith/pith.h"

#define DIR PITH_BINARY_DIR "/spoilt-model"

typedef struct part {
    const char *name, *text; /* NULL: taken from tests/data/hf/bert */
    bool needed;             /* without it there is an error */
    char *bytes;
    size_t size;
} part;

static part parts[] = {
    { "config.json", NULL, true, NULL, 0 },
    { "model.safetensors", NULL, true, NULL, 0 },
    { "tokenizer.json",
      "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [{\"id\": "
      "1, \"content\": "
      "\"[CLS]\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": "
      "false, \"special\": "
      "true}], \"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": "
      "\"BertNormalizer\", "
      "\"clean_text\": true, \"handle_chinese_chars\": true, \"strip_accents\": null, "
      "\"lowercase\": true}, "
      "{\"type\": \"Replace\", \"pattern\": {\"String\": \"x\"}, \"content\": \"y\"}]}, "
      "\"pre_tokenizer\": {\"type\": "
      "\"Split\", \"pattern\": {\"Regex\": \"\\\\s+\"}, \"behavior\": \"Removed\", \"invert\": "
      "false}, "
      "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": "
      "{\"id\": \"[CLS]\", "
      "\"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [], "
      "\"special_tokens\": "
      "{\"[CLS]\": {\"id\": \"[CLS]\", \"ids\": [1], \"tokens\": [\"[CLS]\"]}}}, \"decoder\": "
      "{\"type\": "
      "\"WordPiece\", \"prefix\": \"##\", \"cleanup\": true}, \"model\": {\"type\": \"WordPiece\", "
      "\"unk_token\": "
      "\"[UNK]\", \"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100, "
      "\"vocab\": {\"[PAD]\": 0, "
      "\"[CLS]\": 1, \"[SEP]\": 2, \"[UNK]\": 3, \"a\": 4, \"cat\": 5, \"sat\": 6, \"##s\": 7}}}",
      true, NULL, 0 },
    { "tokenizer_config.json",
      "{\"tokenizer_class\": \"BertTokenizer\", \"model_max_length\": 32, \"do_lower_case\": true, "
      "\"unk_token\": "
      "\"[UNK]\", \"cls_token\": {\"content\": \"[CLS]\", \"lstrip\": false}}",
      false, NULL, 0 },
    { "special_tokens_map.json", "{\"unk_token\": \"[UNK]\", \"pad_token\": \"[PAD]\"}", false,
      NULL, 0 },
    { "modules.json",
      "[{\"idx\": 0, \"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"}, "
      "{\"idx\": 1, \"path\": "
      "\"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"}, {\"idx\": 2, \"path\": "
      "\"2_Normalize\", "
      "\"type\": \"sentence_transformers.models.Normalize\"}]",
      false, NULL, 0 },
    { "1_Pooling/config.json",
      "{\"word_embedding_dimension\": 32, \"pooling_mode_cls_token\": true, "
      "\"pooling_mode_mean_tokens\": false, "
      "\"include_prompt\": true}",
      true, NULL, 0 },
    { "2_Normalize/config.json",
      "{\"module_input_name\": \"sentence_embedding\", \"module_output_name\": "
      "\"sentence_embedding\"}",
      false, NULL, 0 },
    { "sentence_bert_config.json", "{\"max_seq_length\": 30, \"do_lower_case\": false}", false,
      NULL, 0 },
    { "config_sentence_transformers.json",
      "{\"prompts\": {\"query\": \"cat \"}, \"default_prompt_name\": null}", false, NULL, 0 },
};
enum { PARTS = sizeof parts / sizeof *parts, TEXTS = 3, DIM = 32 };

static const pith_str texts[TEXTS] = { { "a cat sat", 9 }, { "cats", 4 }, { "", 0 } };
static float good[TEXTS * DIM], got[TEXTS * DIM];
static pith_error err;

static const char *path_of(const part *p) {
    static char path[600];
    snprintf(path, sizeof path, DIR "/%s", p->name);
    return path;
}

static void clear_path(const char *path) {
    unlink(path);
    rmdir(path);
}

static void put(const part *p, const char *bytes, size_t size) {
    clear_path(path_of(p));
    FILE *f = fopen(path_of(p), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void restore(const part *p) { put(p, p->bytes, p->size); }

/* Opens and embeds. */
static pith_status use(void) {
    pith_model *model = NULL;
    err = (pith_error)PITH_ERROR_INIT;
    memset(got, 0, sizeof got);
    pith_status status = pith_model_open(&model, DIR, NULL, &err);
    size_t dim = status ? 0 : pith_embed_dim(model, NULL); /* 0: it does not embed, and says why */
    if (!status && (dim == DIM || !dim)) status = pith_embed(got, model, texts, TEXTS, NULL, &err);
    pith_model_close(model);
    return status;
}

static int make_good(void **state) {
    (void)state;
    mkdir(DIR, 0777);
    mkdir(DIR "/1_Pooling", 0777);
    mkdir(DIR "/2_Normalize", 0777);
    for (size_t i = 0; i < PARTS; i++) {
        part *p = &parts[i];
        pith__file file = { .data = (const uint8_t *)p->text,
                            .size = p->text ? strlen(p->text) : 0 };
        char path[600];
        snprintf(path, sizeof path, PITH_TEST_DATA "/hf/bert/%s", p->name);
        if (!p->text && pith__file_open(&file, path, false, NULL, NULL)) return -1;
        p->size = file.size;
        if (!(p->bytes = malloc(p->size))) return -1;
        memcpy(p->bytes, file.data, p->size);
        if (!p->text) pith__file_close(&file);
        restore(p);
    }
    if (use()) {
        print_error("%s\n", err.message);
        return -1;
    }
    memcpy(good, got, sizeof got);
    return 0;
}

/* The last thing done to a file, for messages. */
static void check(const part *p, const char *what, bool may_differ) {
    pith_status status = use();
    /* The file may be right, but not for these texts. */
    bool of_texts =
        strstr(err.message, "outside the table") || strncmp(err.message, "text 0: ", 8) == 0;
    if (status && !of_texts && !strstr(err.message, p->name))
        fail_msg("%s %s: '%s' does not name it", p->name, what, err.message);
    if (!status && !may_differ && memcmp(good, got, sizeof got) != 0)
        fail_msg("%s %s: other vectors, and nothing is said", p->name, what);
}

static void check_refused(const part *p, const char *what) {
    check(p, what, true);
    if (!err.code) fail_msg("%s %s: is not refused", p->name, what);
}

static void test_files(void **state) {
    (void)state;
    for (size_t i = 0; i < PARTS; i++) {
        const part *p = &parts[i];
        clear_path(path_of(p));
        check(p, "missing", !p->needed && strcmp(p->name, "modules.json") == 0);
        if (p->needed && !err.code) fail_msg("%s missing: is not refused", p->name);
        assert_int_equal(symlink("nowhere", path_of(p)), 0);
        check_refused(p, "a link to nothing");
        clear_path(path_of(p));
        const char *slash = strrchr(path_of(p), '/');
        assert_int_equal(symlink(slash + 1, path_of(p)), 0);
        check_refused(p, "a link to itself");
        clear_path(path_of(p));
        assert_int_equal(mkdir(path_of(p), 0777), 0);
        check_refused(p, "a directory");
        put(p, "", 0);
        check_refused(p, "empty");
        put(p, "\xff\xfe nonsense", 11);
        check_refused(p, "nonsense");
        restore(p);
        if (geteuid()) { /* root may read everything */
            assert_int_equal(chmod(path_of(p), 0), 0);
            check_refused(p, "unreadable");
            restore(p);
        }
    }
    assert_int_equal(use(), PITH_OK);
    assert_memory_equal(good, got, sizeof got);
}

/* Every beginning of a small file, some of a large one. */
static void test_cut_short(void **state) {
    (void)state;
    for (size_t i = 0; i < PARTS; i++) {
        const part *p = &parts[i];
        size_t step = p->size > 4000 ? p->size / 97 : 7;
        for (size_t size = 1; size < p->size; size += step) {
            /* blanks at the end do not matter */
            while (size > 1 && strchr(" \n", p->bytes[size - 1])) size--;
            if (size + 1 >= p->size) break;
            put(p, p->bytes, size);
            check_refused(p, "cut short");
            size += size == 1;
        }
        restore(p);
    }
}

static const char *const values[] = { "null",
                                      "true",
                                      "-1",
                                      "0",
                                      "7",
                                      "1e30",
                                      "1000000000000000019884624838656",
                                      "9223372036854775807",
                                      "-9223372036854775808",
                                      "2147483648",
                                      "0.5",
                                      "\"\"",
                                      "\"x\"",
                                      "[]",
                                      "{}",
                                      "[[]]",
                                      "NaN",
                                      "nope" };
enum { VALUES = sizeof values / sizeof *values };

/* The end of the JSON value that begins at `at`, in a file that is right. */
static size_t value_end(const char *s, size_t at, size_t size) {
    int depth = 0;
    for (; at < size; at++) {
        if (s[at] == '"') {
            for (at++; s[at] != '"'; at++) at += s[at] == '\\';
            if (!depth) return at + 1;
        } else if (s[at] == '[' || s[at] == '{') {
            depth++;
        } else if (s[at] == ']' || s[at] == '}') {
            if (--depth <= 0) return depth ? at : at + 1;
        } else if (!depth && s[at] == ',') {
            return at;
        }
    }
    return at;
}

static void test_values(void **state) {
    (void)state;
    size_t tried = 0;
    for (size_t i = 0; i < PARTS; i++) {
        const part *p = &parts[i];
        if (!strstr(p->name, ".json")) continue;
        for (size_t colon = 0; colon + 2 < p->size; colon++) {
            if (p->bytes[colon] != ':' || p->bytes[colon - 1] != '"') continue;
            size_t begin = colon + 1 + (p->bytes[colon + 1] == ' '),
                   end = value_end(p->bytes, begin, p->size);
            for (size_t v = 0; v < VALUES; v++, tried++) {
                static char spoilt[1 << 16];
                int n = snprintf(spoilt, sizeof spoilt, "%.*s%s%.*s", (int)begin, p->bytes,
                                 values[v], (int)(p->size - end), p->bytes + end);
                put(p, spoilt, (size_t)n);
                check(p, values[v], true);
                if (v == VALUES - 1 && !err.code)
                    fail_msg("%s: nope at byte %zu is not refused", p->name, begin);
            }
        }
        restore(p);
    }
    print_message("%zu values\n", tried);
    assert_true(tried > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_files),
                                        cmocka_unit_test(test_cut_short),
                                        cmocka_unit_test(test_values) };
    return cmocka_run_group_tests(tests, make_good, NULL);
}
