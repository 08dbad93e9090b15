/* regex.c - rewrites Ruby's syntax as Perl's, and runs PCRE2 on the project's memory. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex/regex.h"

#include <pcre2.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"

/* Limits of one match: steps, of which PCRE2 makes about 30 million per second, and memory. Beyond
 * them the match is an error, so that an expression cannot hang or take all memory. */
enum { STEP_LIMIT = 5000000, MEMORY_LIMIT_KIB = 64 * 1024 };

struct pith__regex {
    pcre2_code *code;
    pith_str pattern;
};

static void *arena_alloc(size_t size, void *arena) { return pith__arena_alloc(arena, size); }
static void arena_free(void *memory, void *arena) {
    (void)memory;
    (void)arena;
}

static void *call_alloc(size_t size, void *allocator) {
    return pith__memory_alloc((const pith_allocator *)allocator, size, 16);
}
static void regex_call_free(void *memory, void *allocator) {
    if (memory) pith__memory_free((const pith_allocator *)allocator, memory);
}

typedef struct writer {
    char *out;
    size_t size;
} writer;

static void regex_write_text(writer *w, const char *text) {
    size_t size = strlen(text);
    memcpy(w->out + w->size, text, size);
    w->size += size;
}

enum { GROWTH = 40 }; /* the longest replacement of one character of the pattern */

#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"

/* Scripts by their own name mean something wider in PCRE2: characters used with them. */
static const char *const scripts[] = {
    "Arabic",   "Armenian", "Bengali",   "Bopomofo",  "Cyrillic", "Devanagari",
    "Ethiopic", "Georgian", "Greek",     "Gujarati",  "Gurmukhi", "Han",
    "Hangul",   "Hebrew",   "Hiragana",  "Kannada",   "Katakana", "Khmer",
    "Lao",      "Latin",    "Malayalam", "Mongolian", "Myanmar",  "Sinhala",
    "Syriac",   "Tamil",    "Telugu",    "Thaana",    "Thai",     "Tibetan",
};

/* Copies \p{…}. PCRE2 matches a script's name against script extensions, Oniguruma against the
 * script alone: names of scripts get the prefix that says the latter. */
static size_t write_property(writer *w, const char *p, const char *end) {
    const char *close = memchr(p, '}', (size_t)(end - p));
    if (!close || p[2] != '{') close = p + 1;
    size_t skip = p[2] == '{' && close > p + 3 && p[3] == '^' ? 4 : 3,
           size = (size_t)(close + 1 - p);
    if (size > skip)
        for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
            pith_str name = { p + skip, size - skip - 1 };
            if (!pith__str_is(name, scripts[i])) continue;
            memcpy(w->out + w->size, p, skip);
            w->size += skip;
            regex_write_text(w, "sc:");
            p += skip;
            memcpy(w->out + w->size, p, size - skip);
            w->size += size - skip;
            return size;
        }
    memcpy(w->out + w->size, p, size);
    w->size += size;
    return size;
}

/* The escape at p[0] == '\\'; returns how many bytes of the pattern it took. *refused: why it
 * cannot be written. */
static size_t write_escape(writer *w, const char *p, const char *end, bool in_set,
                           const char **refused) {
    char c = p + 1 < end ? p[1] : 0;
    if (c == 'h' || c == 'H') {
        if (in_set && c == 'H') *refused = "\\H in a set";
        const char *digits = in_set ? "0-9a-fA-F" : "[0-9a-fA-F]";
        regex_write_text(w, c == 'H' ? "[^0-9a-fA-F]" : digits);
    } else if (c == 's' || c == 'S') {
        regex_write_text(w, c == 's' ? "\\p{White_Space}" : "\\P{White_Space}");
    } else if (c == 'w' || c == 'W') {
        if (in_set && c == 'W') *refused = "\\W in a set";
        /* Outside sets Oniguruma counts Latin-1's raised digits and fractions. */
        if (!in_set) regex_write_text(w, c == 'w' ? "[" : "[^");
        regex_write_text(w, in_set ? WORD : WORD "\\xB2\\xB3\\xB9\\xBC-\\xBE]");
    } else if (c == 'u' && end - p >= 6) {
        regex_write_text(w, "\\x{");
        memcpy(w->out + w->size, p + 2, 4);
        w->size += 4;
        regex_write_text(w, "}");
        return 6;
    } else if ((c == 'p' || c == 'P') && p + 2 < end) {
        return write_property(w, p, end);
    } else {
        size_t size = c ? 2 : 1;
        memcpy(w->out + w->size, p, size);
        w->size += size;
        return size;
    }
    return 2;
}

/* "[:name:]" at p in a set; returns the bytes of the pattern it took, 0 with *refused if it cannot
 * be written. */
static size_t write_bracket(writer *w, const char *p, const char *end, const char **refused) {
    static const struct {
        const char *name, *meaning;
    } names[] = {
        { "[:alnum:]", "\\p{Alphabetic}\\p{Nd}" },
        { "[:alpha:]", "\\p{Alphabetic}" },
        { "[:digit:]", "\\p{Nd}" },
        { "[:lower:]", "\\p{Lowercase}" },
        { "[:punct:]", "\\p{P}\\p{S}" },
        { "[:space:]", "\\p{White_Space}" },
        { "[:upper:]", "\\p{Uppercase}" },
        { "[:word:]", WORD },
        { "[:xdigit:]", "0-9a-fA-F" },
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t size = strlen(names[i].name);
        if ((size_t)(end - p) < size || memcmp(p, names[i].name, size) != 0) continue;
        regex_write_text(w, names[i].meaning);
        return size;
    }
    *refused = "a [:class:] that is not known";
    return 0;
}

/* Rewrites Oniguruma's Ruby syntax as PCRE2's. Returns why the pattern cannot be written, or NULL.
 * What means the same is copied; what PCRE2 would read in another way is replaced; what it has no
 * form for is refused, since a tokenizer that cuts a little differently would go unnoticed. */
static const char *regex_translate(writer *w, pith_str pattern) {
    const char *p = pattern.data, *end = p + pattern.size, *refused = NULL;
    int set_at = -1; /* bytes since '[', -1 outside a set */
    while (p < end && !refused) {
        if (*p == '\\') {
            p += write_escape(w, p, end, set_at >= 0, &refused);
            if (set_at >= 0) set_at++;
            continue;
        }
        if (set_at >= 0) {
            bool first = set_at == 0 || (set_at == 1 && p[-1] == '^');
            if (*p == '&' && p + 1 < end && p[1] == '&') return "the intersection of sets (&&)";
            if (*p == '[' && p + 1 < end && p[1] == ':') {
                p += write_bracket(w, p, end, &refused);
                set_at++;
                continue;
            }
            if (*p == '[') return "a set in a set";
            set_at = *p == ']' && !first ? -1 : set_at + 1;
        } else if (*p == '[') {
            set_at = 0;
        } else if (*p == '{' && p + 1 < end && p[1] == ',') {
            regex_write_text(w, "{0");
            p++;
            continue;
        } else if (*p == '}' && p + 1 < end && p[1] == '+') {
            return "an interval followed by +";
        } else if (*p == '(' && end - p > 2 && p[1] == '?' && p[2] == 'm') {
            regex_write_text(w, "(?s");
            p += 3;
            continue;
        }
        w->out[w->size++] = *p++;
    }
    return refused;
}

pith_status pith__regex_compile(const pith__regex **regex, pith_str pattern, pith__arena *arena,
                                pith_error *err) {
    size_t capacity = pattern.size * GROWTH + GROWTH;
    if (pattern.size > 1 << 16)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "an expression of %zu bytes", pattern.size);
    pith__regex *r = pith__arena_array(arena, 1, sizeof *r);
    writer w = { pith__arena_alloc(arena, capacity), 0 };
    if (!r || !w.out) return pith__fail_memory(err, capacity);
    const char *refused = regex_translate(&w, pattern);
    if (refused)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "the expression '" PITH_STR_FMT "' uses %s",
                          PITH_STR_ARG(pattern), refused);
    pcre2_general_context *general = pcre2_general_context_create(arena_alloc, arena_free, arena);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    if (!context) return pith__fail_memory(err, sizeof(void *));
    int code = 0;
    PCRE2_SIZE at = 0;
    r->code = pcre2_compile((PCRE2_SPTR)w.out, w.size,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                            &code, &at, context);
    if (code == PCRE2_ERROR_HEAP_FAILED) return pith__fail_memory(err, w.size);
    if (!r->code) {
        PCRE2_UCHAR why[160] = { 0 };
        pcre2_get_error_message(code, why, sizeof why);
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "the expression '" PITH_STR_FMT "': %s",
                          PITH_STR_ARG(pattern), (const char *)why);
    }
    r->pattern = pith__arena_str(arena, pattern);
    if (!r->pattern.data) return pith__fail_memory(err, pattern.size);
    *regex = r;
    return PITH_OK;
}

/* All memory of a match comes from the caller's allocator. Steps and memory are limited, because a
 * backtracking engine may take exponential time on a hostile text; hitting the limit is an error
 * and never a wrong cut. */
int pith__regex_next(const pith__regex *regex, const char *text, size_t size, size_t at,
                     size_t *begin, size_t *end, const pith_allocator *allocator, pith_error *err) {
    pcre2_general_context *general =
        pcre2_general_context_create(call_alloc, regex_call_free, (void *)(uintptr_t)allocator);
    pcre2_match_context *context = general ? pcre2_match_context_create(general) : NULL;
    pcre2_match_data *data = context ? pcre2_match_data_create(1, general) : NULL;
    int found = PCRE2_ERROR_NOMEMORY;
    if (data) {
        pcre2_set_match_limit(context, STEP_LIMIT);
        pcre2_set_heap_limit(context, MEMORY_LIMIT_KIB);
        found =
            pcre2_match(regex->code, (PCRE2_SPTR)text, size, at, PCRE2_NO_UTF_CHECK, data, context);
        if (found >= 0) {
            *begin = pcre2_get_ovector_pointer(data)[0];
            *end = pcre2_get_ovector_pointer(data)[1];
        }
    }
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_general_context_free(general);
    if (found == PCRE2_ERROR_NOMATCH) return 0;
    if (found >= 0) return 1;
    if (found == PCRE2_ERROR_NOMEMORY)
        pith__fail_memory(err, MEMORY_LIMIT_KIB);
    else
        pith__fail(err, PITH_ERR_ARGUMENT,
                   "the expression '" PITH_STR_FMT "' needs too many steps on this text",
                   PITH_STR_ARG(regex->pattern));
    return -1;
}

const pith__part pith__part_regex = { "regex", &(const pith__regex_part){ pith__regex_compile,
                                                                          pith__regex_next } };
