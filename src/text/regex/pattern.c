/* pattern.c - patterns: a string, a known expression or any other expression. */
#include "text/regex/pattern.h"

#include <stdio.h>

#include "base/str.h"
#include "base/text_out.h"
#include "text/regex/known_regex.h"
#include "text/regex/regex.h"

struct pith__pattern {
    pith_str string;               /* data NULL: an expression */
    const pith__known_regex *scan; /* NULL: not a known one */
    const pith__regex *regex;
    const pith__regex_part *engine; /* of regex */
};

/* An expression that is not a known one. What loads the tokenizer names the part if this build
 * lacks it. */
static void pattern_compile(pith__pattern *pattern, pith_str regex, pith__json *j,
                            pith__loader *loader) {
    char place[128];
    pith_error err = PITH_ERROR_INIT;
    pattern->engine = pith__part_find("regex");
    pith__part_used("regex");
    if (!pattern->engine) {
        snprintf(place, sizeof place, "the expression '" PITH_CUT_FMT "'", PITH_CUT(regex, 80));
        pith__lacks_note(&loader->lacks, "parts", PITH_STR("regex"), place);
    } else if (pattern->engine->compile(&pattern->regex, regex, loader->arena, &err)) {
        pith__json_fail(j, err.code, "%s", err.message);
    }
}

const pith__pattern *pith__pattern_parse(pith__json *j, pith__loader *loader) {
    pith__pattern *pattern = pith__arena_array(loader->arena, 1, sizeof *pattern);
    pith_str key, none = { NULL, 0 }, string = none, regex = none;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "String"))
            string = pith__json_string(j);
        else if (pith__str_is(key, "Regex"))
            regex = pith__json_string(j);
        else
            pith__json_fail(j, PITH_ERR_FORMAT, "a pattern is a String or a Regex");
    }
    if (j->failed) return NULL;
    if (!pattern) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
    } else if (string.data) {
        pattern->string = pith__json_copy(j, loader->arena, string);
    } else if (!regex.data) {
        pith__json_fail(j, PITH_ERR_FORMAT, "a pattern is a String or a Regex");
    } else if (!(pattern->scan = pith__known_regex_find(regex))) {
        pattern_compile(pattern, regex, j, loader);
    }
    return j->failed ? NULL : pattern;
}

/* The first match that begins at or after `at`. */
static int pattern_search(const pith__pattern *pattern, pith__encoding *enc, pith__piece piece,
                          uint32_t at, uint32_t *begin, uint32_t *end) {
    const char *text = enc->text.data;
    if (pattern->scan)
        return pith__known_regex_next(pattern->scan, text, at, piece.end, begin, end);
    if (pattern->string.data) {
        size_t size = pattern->string.size;
        const char *found = NULL;
        if (size == 1)
            found = memchr(text + at, pattern->string.data[0], piece.end - at);
        else if (size)
            found = memmem(text + at, piece.end - at, pattern->string.data, size);
        if (!found) return 0;
        *begin = (uint32_t)(found - text);
        *end = *begin + (uint32_t)size;
        return 1;
    }
    size_t match_begin = 0, match_end = 0;
    int found =
        pattern->engine->next(pattern->regex, text + piece.begin, piece.end - piece.begin,
                              at - piece.begin, &match_begin, &match_end, enc->allocator, enc->err);
    *begin = piece.begin + (uint32_t)match_begin;
    *end = piece.begin + (uint32_t)match_end;
    return found;
}

/* The next match, as Rust's regex iterators give them: after an empty match the search goes on one
 * character later, and an empty match right at the end of the last one does not count. */
int pith__pattern_next(pith__matches *m, uint32_t *begin, uint32_t *end) {
    while (m->at <= m->piece.end) {
        if (pith__encoding_stops(m->enc, m->at)) return -1;
        int found = pattern_search(m->pattern, m->enc, m->piece, m->at, begin, end);
        if (found <= 0) return found;
        bool repeated = *begin == *end && *end == m->last;
        m->at = m->last = *end;
        if (*begin == *end) {
            const char *text = m->enc->text.data, *p = text + m->at;
            if (m->at < m->piece.end) pith__utf8_next(&p);
            m->at = m->at < m->piece.end ? (uint32_t)(p - text) : m->at + 1;
        }
        if (!repeated) return 1;
    }
    return 0;
}

bool pith__pattern_is_local(const pith__pattern *pattern) {
    pith_str string = pattern->string;
    return string.data ? string.size == 1 || !memchr(string.data, ' ', string.size)
                       : pattern->scan != NULL;
}

bool pith__pattern_cuts_words(const pith__pattern *pattern) {
    return pattern->string.data ? pith__str_is(pattern->string, " ")
                                : pattern->scan && pith__known_regex_cuts_words(pattern->scan);
}
