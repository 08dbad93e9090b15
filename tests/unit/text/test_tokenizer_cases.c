/* test_tokenizer_cases.c - stored results of Hugging Face tokenizers for every kind of step:
 * tests/data/tokenizers. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/formats/json.h"
#include "base/os/file.h"
#include "base/str.h"
#include "text/tokenizer.h"

typedef struct one_case {
    pith_str text, pair;
    bool has_pair, raw;
} one_case;

/* The rows of all windows against what we give. */
static void check_windows(pith__json *j, const char *name, const pith_tokenizer *t,
                          const one_case *c) {
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    pith_tokens k = PITH_TOKENS_INIT;
    pith_error err = PITH_ERROR_INIT;
    size_t i = 0;
    options.raw = c->raw;
    options.overflow = 1;
    if (pith_tokenize(&k, t, c->text, c->has_pair ? &c->pair : NULL, &options, &err))
        fail_msg("%s: \"" PITH_STR_FMT "\": %s", name, PITH_STR_ARG(c->text), err.message);
    pith__json_array(j);
    for (size_t window = 0; pith__json_next_item(j); window++) {
        pith__json_array(j);
        for (; pith__json_next_item(j); i++) {
            int64_t want[6] = { 0 };
            pith__json_array(j);
            for (int x = 0; pith__json_next_item(j); x++) want[x % 6] = pith__json_int(j);
            if (i < k.count && k.ids[i] == want[0] && k.type_ids[i] == want[1] &&
                k.begin[i] == want[2] && k.end[i] == want[3] && k.word_ids[i] == want[4] &&
                k.special[i] == want[5] && k.windows[i] == window)
                continue;
            fail_msg("%s: \"" PITH_STR_FMT
                     "\": token %zu, window %zu is not %lld (type %lld, %lld to %lld, word %lld)",
                     name, PITH_STR_ARG(c->text), i, window, (long long)want[0], (long long)want[1],
                     (long long)want[2], (long long)want[3], (long long)want[4]);
        }
    }
    assert_int_equal(i, k.count);
    pith_tokens_free(&k);
}

static void check_case(pith_str line, const char *name, const pith_tokenizer *t,
                       pith__arena *scratch) {
    pith_error err = PITH_ERROR_INIT;
    pith__json *j = pith__arena_alloc(scratch, sizeof *j);
    one_case c = { { NULL, 0 }, { NULL, 0 }, false, false };
    pith_str key;
    pith__json_init(j, line, name, scratch, &err);
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "text"))
            c.text = pith__json_string(j);
        else if (pith__str_is(key, "raw"))
            c.raw = pith__json_bool(j);
        else if (pith__str_is(key, "pair")) {
            c.has_pair = !pith__json_null(j);
            if (c.has_pair) c.pair = pith__json_string(j);
        } else /* windows stand last */
            check_windows(j, name, t, &c);
    }
    if (j->failed) fail_msg("%s", err.message);
}

static size_t check_file(const char *name) {
    pith__file file;
    pith__arena arena, scratch;
    pith_tokenizer *t = NULL;
    pith_error err = PITH_ERROR_INIT;
    char path[1024];
    size_t cases = 0;
    snprintf(path, sizeof path, "%s/tokenizers/%s", PITH_TEST_DATA, name);
    pith__arena_init(&arena, &pith__allocator_default);
    pith__arena_init(&scratch, &pith__allocator_default);
    if (pith__file_open(&file, path, false, &pith__allocator_default, &err))
        fail_msg("%s", err.message);
    for (const char *p = (const char *)file.data, *end = p + file.size; p < end; cases++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        pith_str line = { p, (size_t)(stop - p) };
        if (t)
            check_case(line, name, t, &scratch);
        else if (pith__tokenizer_load_bytes(&t, line, NULL, &arena, &err))
            fail_msg("%s: %s", name, err.message);
        p = stop + 1;
    }
    pith__file_close(&file);
    pith__tokenizer_unload(t);
    pith__arena_free(&arena);
    pith__arena_free(&scratch);
    return cases - 1;
}

static void test_cases(void **state) {
    DIR *dir = opendir(PITH_TEST_DATA "/tokenizers");
    size_t files = 0, cases = 0;
    (void)state;
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".jsonl") != 0) continue;
        cases += check_file(entry->d_name);
        files++;
    }
    closedir(dir);
    print_message("%zu cases of %zu tokenizers\n", cases, files);
    assert_true(files >= 30 && cases >= 10 * files);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
