/* test_chat_template.c - chat templates beside what transformers makes of them
 * (tests/makers/make_chat.py). With the name of a file, its templates are run instead: what Pith
 * runs must give the same text. */
#include "models/chat/chat_template.h"
#include "support/score_test.h"

static const char *file_name = PITH_TEST_DATA "/rerankers/templates.jsonl";

typedef struct chat_case {
    pith_str template, out; /* out.data is NULL: transformers fails */
    bool instructed, structured, runs, told;
} chat_case;

static chat_case read_case(pith_str line, pith__arena *arena) {
    chat_case c = { .out = { NULL, 0 } };
    pith_error err = PITH_ERROR_INIT;
    pith__json j;
    pith_str key;
    pith__json_init(&j, line, "templates.jsonl", arena, &err);
    for (pith__json_object(&j); pith__json_next_key(&j, &key);)
        if (pith__str_is(key, "template"))
            c.template = pith__json_string(&j);
        else if (pith__str_is(key, "out") && !pith__json_null(&j))
            c.out = pith__json_string(&j);
        else if (pith__str_is(key, "instructed"))
            c.instructed = pith__json_bool(&j);
        else if (pith__str_is(key, "structured"))
            c.structured = pith__json_bool(&j);
        else if (pith__str_is(key, "runs"))
            c.runs = pith__json_bool(&j), c.told = true;
    if (j.failed) fail_msg("%s", err.message);
    return c;
}

/* The texts of make_chat.py, as they are and without white space at their ends. */
static pith_str text_of(const pith__chat_part *p) {
    static const char *const texts[] = { [PITH_CHAT_QUERY] = "\u00a0 what? \n",
                                         [PITH_CHAT_DOCUMENT] = "\x1f a {{ document }} \u3000",
                                         [PITH_CHAT_INSTRUCTION] = " be kind\t" };
    static const char *const trimmed[] = { [PITH_CHAT_QUERY] = "what?",
                                           [PITH_CHAT_DOCUMENT] = "a {{ document }}",
                                           [PITH_CHAT_INSTRUCTION] = "be kind" };
    return p->kind == PITH_CHAT_WORDS
               ? p->words
               : pith__str_of(p->trimmed ? trimmed[p->kind] : texts[p->kind]);
}

static bool gives(const pith__chat_form *form, pith_str out) {
    size_t at = 0;
    for (size_t i = 0; i < form->count; i++) {
        pith_str s = text_of(&form->parts[i]);
        if (s.size > out.size - at || memcmp(s.data, out.data + at, s.size)) return false;
        at += s.size;
    }
    return at == out.size;
}

static void test_templates(void **state) {
    (void)state;
    pith__file file;
    size_t ran = 0, refused = 0, kept = 0;
    pith__chat_variable bos = { .name = PITH_STR("bos_token"), .text = PITH_STR("<s>") };
    assert_int_equal(pith__file_open(&file, file_name, false, NULL, NULL), PITH_OK);
    const char *p = (const char *)file.data, *end = p + file.size;
    for (const char *stop; p < end; p = stop + 1) {
        pith__arena arena;
        pith_error err = PITH_ERROR_INIT;
        pith__chat_form made = { NULL, 0 }, form = { NULL, 0 };
        stop = memchr(p, '\n', (size_t)(end - p));
        assert_non_null(stop);
        pith__arena_init(&arena, &pith__allocator_default);
        chat_case c = read_case((pith_str){ p, (size_t)(stop - p) }, &arena);
        const pith__chat_settings settings = { c.instructed, c.structured, &bos, 1 };
        pith_status status =
            pith__chat_template_run(&made, c.template, "case", &settings, &arena, &err);
        if (!status) status = pith__chat_form_copy(&form, &made, &arena, &err);
        ran += !status;
        refused += status != PITH_OK;
        kept += status && c.out.data;
        if (status && status != PITH_ERR_UNSUPPORTED)
            fail_msg("status %d: %s", (int)status, err.message);
        if (c.told && c.runs != !status)
            fail_msg(PITH_STR_FMT ": status %d: %s", PITH_STR_ARG(c.template), (int)status,
                     err.message);
        if (!status && (!c.out.data || !gives(&form, c.out)))
            fail_msg("the template '" PITH_STR_FMT "' does not give '" PITH_STR_FMT "'",
                     PITH_STR_ARG(c.template), PITH_STR_ARG(c.out));
        pith__arena_free(&arena);
    }
    print_message("%zu templates ran, %zu were refused, %zu of these run in transformers\n", ran,
                  refused, kept);
    assert_true(ran > 50);
    pith__file_close(&file);
}

/* Broken templates, cut out of memory of their own: an error or a form, and no byte beyond them is
 * read. */
static void test_mutants(void **state) {
    (void)state;
    enum { ROUNDS = 200000 };
    static const char *const pieces[] = { "{{", "}}",   "{%",   "%}",          "-",
                                          "'",  "\\",   "(",    "[",           "]",
                                          "|",  " is ", " if ", "{% endif %}", "{% for a in b %}",
                                          ".x", "\n",   "\r" };
    const size_t kinds = sizeof pieces / sizeof *pieces;
    pith__file file;
    uint64_t seed = 1;
    assert_int_equal(pith__file_open(&file, file_name, false, NULL, NULL), PITH_OK);
    for (int round = 0; round < ROUNDS; round++) {
        pith__arena arena;
        pith_error err = PITH_ERROR_INIT;
        pith__chat_form form;
        uint32_t random[6];
        for (int i = 0; i < 6; i++)
            random[i] =
                (uint32_t)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33);
        const size_t size = 1 + random[0] % 200, at = random[1] % (file.size - size),
                     place = random[2] % (size + 1);
        const char *piece = pieces[random[3] % kinds];
        const size_t n = strlen(piece);
        char *text = malloc(size + n);
        assert_non_null(text);
        memcpy(text, file.data + at, place);
        memcpy(text + place, piece, n);
        memcpy(text + place + n, file.data + at + place, size - place);
        pith__arena_init(&arena, &pith__allocator_default);
        const pith__chat_settings settings = { random[4] % 2, random[5] % 2, NULL, 0 };
        pith_status status = pith__chat_template_run(&form, (pith_str){ text, size + n }, "mutant",
                                                     &settings, &arena, &err);
        assert_true(!status || (status == PITH_ERR_UNSUPPORTED && err.message[0]));
        pith__arena_free(&arena);
        free(text);
    }
    pith__file_close(&file);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_templates),
                                        cmocka_unit_test(test_mutants) };
    if (argc > 1) file_name = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
