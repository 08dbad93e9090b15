/* other_tools.c - see other_tools.h.
 *
 * Each table is one text without pointers, so that it costs a start of the command nothing. A row
 * is a line of three fields with tabs between them. */
#include "cli/options/other_tools.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define ROW(a, b, c) a "\t" b "\t" c "\n"
#define NO_ROW(a, b, c)

static const char other_verbs[] = ""
#define OTHER_VERB ROW
#define OTHER_OPTION NO_ROW
#define OTHER_VALUE NO_ROW
#define OLD_OPTION NO_ROW
#include "cli/options/other_tools.def"
#undef OTHER_VERB
#undef OTHER_OPTION
    ;

static const char other_options[] = ""
#define OTHER_VERB NO_ROW
#define OTHER_OPTION ROW
#include "cli/options/other_tools.def"
#undef OTHER_OPTION
#undef OTHER_VALUE
    ;

static const char other_values[] = ""
#define OTHER_OPTION NO_ROW
#define OTHER_VALUE ROW
#include "cli/options/other_tools.def"
#undef OTHER_VALUE
#undef OLD_OPTION
    ;

static const char old_options[] = ""
#define OTHER_VALUE NO_ROW
#define OLD_OPTION ROW
#include "cli/options/other_tools.def"
#undef OTHER_VERB
#undef OTHER_OPTION
#undef OTHER_VALUE
#undef OLD_OPTION
    ;

typedef struct other_row {
    pith_str field[3];
} other_row;

/* Takes the next row of a table; false at its end. */
static bool other_next(other_row *row, const char **at) {
    if (!**at) return false;
    for (int i = 0; i < 3; i++) {
        const size_t n = strcspn(*at, i < 2 ? "\t" : "\n");
        row->field[i] = (pith_str){ *at, n };
        *at += n + 1;
    }
    return true;
}

/* The row whose first field is this word. */
static bool other_find(other_row *row, const char *table, const char *word) {
    for (const char *at = table; other_next(row, &at);)
        if (pith__str_is(row->field[0], word)) return true;
    return false;
}

/* In lower case, with - for _. False: it is too long for any row. */
static bool other_plain(char plain[40], const char *typed) {
    const size_t n = strcspn(typed, "=");
    if (n >= 40) return false;
    small_letters(plain, 40, typed, n);
    for (size_t i = 0; i < n; i++)
        if (plain[i] == '_') plain[i] = '-';
    return true;
}

bool other_verb(char *hint, size_t size, const char *typed) {
    char plain[40];
    other_row row;
    if (!other_plain(plain, typed) || !other_find(&row, other_verbs, plain)) return false;
    const pith_str verb = row.field[1], text = row.field[2];
    if (verb.size)
        snprintf(hint, size, "; in Pith it is 'pith " PITH_STR_FMT "'%s" PITH_STR_FMT,
                 PITH_STR_ARG(verb), text.size ? " " : "", PITH_STR_ALL(text));
    else
        snprintf(hint, size, ": " PITH_STR_FMT, PITH_STR_ALL(text));
    return true;
}

static const option *other_named(const option *options, pith_str name) {
    for (const option *o = options; o->row || o->heading; o++)
        if (o->row && pith__str_is(name, o->row->name)) return o;
    return NULL;
}

/* The first verb with an option of this name; NULL: none has it. */
static const command *other_verb_with(pith_str name) {
    for (const command *const *verb = verbs; *verb; verb++)
        if (other_named((*verb)->options, name)) return *verb;
    return NULL;
}

/* "-c512" is looked for as "-c" where there is no "-c512". */
static bool other_find_option(other_row *row, const char *argument) {
    char plain[40];
    if (!other_plain(plain, argument)) return false;
    if (other_find(row, other_options, plain)) return true;
    if (plain[0] != '-' || !isdigit((unsigned char)plain[1 + (plain[1] != 0)])) return false;
    plain[2] = 0;
    return other_find(row, other_options, plain);
}

bool other_option(char *hint, size_t size, const command *c, const char *argument) {
    other_row row;
    if (!other_find_option(&row, argument)) return false;
    const pith_str name = row.field[1], text = row.field[2];
    const char *gap = text.size ? ": " : "";
    const command *with = name.size ? other_verb_with(name) : NULL;
    if (!with)
        snprintf(hint, size, "%s" PITH_STR_FMT, gap, PITH_STR_ALL(text));
    else if (other_named(c->options, name))
        snprintf(hint, size, "; in Pith it is --" PITH_STR_FMT "%s" PITH_STR_FMT,
                 PITH_STR_ARG(name), gap, PITH_STR_ALL(text));
    else
        snprintf(hint, size, "; 'pith %s' has --" PITH_STR_FMT " for it%s" PITH_STR_FMT, with->name,
                 PITH_STR_ARG(name), gap, PITH_STR_ALL(text));
    return true;
}

/* Whether a word is one of "a|b|c", whatever its capitals. */
static bool other_is_one_of(pith_str words, const char *word) {
    if (pith__str_is(words, "*")) return isalpha((unsigned char)*word);
    const size_t length = strlen(word);
    for (size_t i = 0; i <= words.size;) {
        const char *end = memchr(words.data + i, '|', words.size - i);
        const size_t n = end ? (size_t)(end - words.data) - i : words.size - i;
        if (n == length && !strncasecmp(words.data + i, word, n)) return true;
        i += n + 1;
    }
    return false;
}

bool other_value(char *hint, size_t size, const option_row *row, const char *text) {
    other_row found;
    for (const char *at = other_values; other_next(&found, &at);) {
        if (!pith__str_is(found.field[0], row->name) || !other_is_one_of(found.field[1], text))
            continue;
        snprintf(hint, size, "; " PITH_STR_FMT, PITH_STR_ALL(found.field[2]));
        return true;
    }
    return false;
}

const option *old_option(const command *c, const char *argument, const char **value) {
    const size_t n = strcspn(argument, "=");
    const bool off = !strncmp(argument, "--no-", 5);
    other_row row;
    *value = argument[n] ? argument + n + 1 : NULL;
    for (const char *at = old_options; other_next(&row, &at);) {
        const pith_str typed = row.field[1];
        const bool named = typed.size == n && !memcmp(typed.data, argument, n);
        const bool named_off = off && typed.size > 2 && typed.size + 3 == n &&
                               !memcmp(typed.data + 2, argument + 5, typed.size - 2);
        if ((!named && !named_off) || !pith__str_is(row.field[0], c->name)) continue;
        if (named_off) *value = "false";
        return other_named(c->options, row.field[2]);
    }
    return NULL;
}
