/* test_known_regex.c - the hand-written matchers against PCRE2: every known expression finds the
 * same matches in drawn texts of characters of all classes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "text/regex/known_regex.h"
#include "text/regex/regex.h"

#define START "[^\\r\\n\\p{L}\\p{N}]?"
#define CAPITAL "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define END(tail) " ?[^\\s\\p{L}\\p{N}]+[" tail "]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define FOLDED "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CLIP "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"

/* As the files of these tokenizers have them. */
static const struct {
    const char *of, *regex;
} expressions[] = {
    { "gpt2",
      "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+" },
    { "gpt2, other form",
      "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+" },
    { "cl100k", FOLDED "|" START "\\p{L}+|\\p{N}{1,3}|" END("\\r\\n") },
    { "cl100k, other form",
      "'(?i:[sdmt]|ll|ve|re)|" START "+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|"
      "\\s*[\\r\\n]|\\s+(?!\\S)|\\s+" },
    { "qwen2", FOLDED "|" START "\\p{L}+|\\p{N}|" END("\\r\\n") },
    { "o200k", START CAPITAL "*" SMALL "+" FOLDED "?|" START CAPITAL "+" SMALL "*" FOLDED
                             "?|\\p{N}{1,3}|" END("\\r\\n/") },
    { "tekken", START CAPITAL "*" SMALL "+|" START CAPITAL "+" SMALL "*|\\p{N}|" END("\\r\\n/") },
    { "deepseek", "[!\"#$%&'()*+,\\-./"
                  ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
                  " ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+" },
    { "deepseek's digits", "\\p{N}{1,3}" },
    { "deepseek's ideographs", "[一-龥぀-ゟ゠-ヿ]+" },
    { "clip", CLIP },
    { "clip's specials", "<\\|startoftext\\|>|<\\|endoftext\\|>|" CLIP },
    { "white space", "\\s+" },
    { "blanks", " {2,}" },
    { "many spaces", "\\s{2,}|[\\n\\r\\t]" },
};

/* Those that a matcher looks at more often. */
static const char *const pieces[] = {
    "'",
    "'",
    "'s",
    "'S",
    "'T",
    "'re",
    "'vE",
    "'m",
    "'LL",
    "'d",
    "'x",
    "l",
    "s",
    "t",
    "r",
    "e",
    "v",
    "A",
    "B",
    "Z",
    " ",
    " ",
    " ",
    "  ",
    "\t",
    "\n",
    "\n",
    "\r",
    "\r\n",
    "1",
    "2",
    "34567",
    ".",
    "!",
    "/",
    "//",
    "|",
    "<|startoftext|>",
    "<|endoftext|>",
    "<|end",
    "-",
    "_",
    "~",
    "\\",
    "]",
    "\x7F",
    "\x01",
    "é",
    "É",
    "ſ",
    "'ſ",
    "ß",
    "Ω",
    "ǅ",
    "ʰ",
    "ª",
    "漢",
    "龥",
    "々",
    "あ",
    "゠",
    "ー",
    "ア",
    "א",
    "\xCC\x81",
    "\xE0\xA4\xBE",
    "٣",
    "½",
    "Ⅷ",
    "²",
    "\xC2\xA0",
    "\xC2\x85",
    "\xE2\x80\xA8",
    "\xE3\x80\x80",
    "\xE1\x9A\x80",
    "€",
    "“",
    "…",
    "\xF0\x9F\x98\x80",
    "\xF0\x9D\x9F\x98",
    "\xF0\x90\x90\x80",
    "\xF0\x90\x90\xA8",
    "\xE2\x80\x8D",
    "\xC2\xAD",
};

enum { ROUNDS = 1500, LENGTH_MAX = 14, SIZE_MAX_OF_TEXT = 32 * LENGTH_MAX };

static unsigned draw(unsigned *random, unsigned below) {
    *random = *random * 1664525u + 1013904223u;
    return (*random >> 8) % below;
}

static void compare(const char *of, const pith__known_regex *scan, const pith__regex *regex,
                    const char *text, uint32_t size) {
    pith_error err = PITH_ERROR_INIT;
    for (uint32_t at = 0; at <= size;) {
        size_t begin = 0, end = 0;
        uint32_t scan_begin = 0, scan_end = 0;
        int found =
            pith__regex_next(regex, text, size, at, &begin, &end, &pith__allocator_default, &err);
        if (found < 0) fail_msg("%s: %s", of, err.message);
        bool scanned = pith__known_regex_next(scan, text, at, size, &scan_begin, &scan_end);
        if (scanned != (found == 1) || (scanned && (scan_begin != begin || scan_end != end)))
            fail_msg("%s in '%s' from %u: %d [%u, %u), not %d [%zu, %zu)", of, text, at, scanned,
                     scan_begin, scan_end, found, begin, end);
        if (!found) return;
        at = scan_end;
    }
}

static void equal_to_pcre2(void **state) {
    (void)state;
    pith__arena arena;
    pith_error err = PITH_ERROR_INIT;
    pith__arena_init(&arena, NULL);
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        const pith__regex *regex;
        const pith__known_regex *scan = pith__known_regex_find(pith__str_of(expressions[i].regex));
        unsigned random = (unsigned)i + 1;
        if (!scan) fail_msg("%s has no matcher", expressions[i].of);
        if (pith__regex_compile(&regex, pith__str_of(expressions[i].regex), &arena, &err))
            fail_msg("%s", err.message);
        for (int round = 0; round < ROUNDS; round++) {
            char text[SIZE_MAX_OF_TEXT + 1] = "";
            /* in every second text from few pieces, so that they repeat */
            unsigned few = round & 1 ? 4 : sizeof pieces / sizeof *pieces,
                     from = draw(&random, sizeof pieces / sizeof *pieces);
            for (unsigned n = draw(&random, LENGTH_MAX); n; n--)
                strcat(text,
                       pieces[(from + draw(&random, few)) % (sizeof pieces / sizeof *pieces)]);
            compare(expressions[i].of, scan, regex, text, (uint32_t)strlen(text));
        }
    }
    pith__arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(equal_to_pcre2) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
