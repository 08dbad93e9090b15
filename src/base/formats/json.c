/* json.c - the pull scanner: a cursor and a stack of open containers.
 *
 * Invariant: between calls, the cursor is before the white space that precedes the next token.
 * After a failure it stays at the fault and never moves again. Skipped values are checked as
 * strictly as those that are read. */
#include "base/formats/json.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/formats/read_double.h"
#include "base/memory/account.h"
#include "base/str.h"
#include "base/text_out.h"
#include "base/unicode/utf8.h"

/* Longest path shown in a message. */
#define PATH_SIZE 256

void pith__json_init(pith__json *j, pith_str text, const char *name, pith__arena *arena,
                     pith_error *err) {
    assert(err);
    const char *begin = text.data ? text.data : "";
    j->at = j->begin = begin;
    j->end = begin + text.size;
    j->name = name;
    j->arena = arena;
    j->err = err;
    j->stop = arena ? pith__account_stop(arena->allocator) : NULL;
    j->look = begin;
    j->failed = j->python = j->halves = false;
    j->depth = 0;
}

/* "model.vocab[3]", or "" at the top. */
static void path_text(const pith__json *j, char *path, size_t size) {
    pith__text_out out = pith__text_begin(path, size);
    for (int i = 0; i < j->depth && j->stack[i].started; i++) {
        if (j->stack[i].is_object)
            pith__text_put(&out, "%s" PITH_STR_FMT, i ? "." : "", PITH_STR_ARG(j->stack[i].key));
        else
            pith__text_put(&out, "[%lld]", (long long)j->stack[i].index);
    }
}

pith_status pith__json_fail(pith__json *j, pith_status code, const char *format, ...) {
    if (j->failed) return j->err->code;
    j->failed = true;
    char text[PITH_ERROR_MESSAGE_SIZE / 2], path[PATH_SIZE];
    va_list args;
    va_start(args, format);
    pith__text_format(text, sizeof text, format, args);
    va_end(args);
    path_text(j, path, sizeof path);
    if (!j->name) return pith__fail(j->err, code, "%s%s%s", path, path[0] ? ": " : "", text);
    size_t line = 1;
    for (const char *p = j->begin; (p = memchr(p, '\n', (size_t)(j->at - p))); p++) line++;
    return pith__fail(j->err, code, "%s:%zu: %s%s%s", j->name, line, path, path[0] ? ": " : "",
                      text);
}

#define ONES 0x0101010101010101u
#define HIGHS 0x8080808080808080u

/* The index of the first byte in memory that is not zero, on a little-endian machine. */
static inline unsigned first_byte(uint64_t w) { return (unsigned)__builtin_ctzll(w) / 8; }

static void json_fault(pith__json *j, const char *what) {
    pith__json_fail(j, PITH_ERR_FORMAT, "%s", what);
}

/* Goes on to the next character that is not white space: that character, or 0 at the end and after
 * a failure. */
static unsigned char skip_space(pith__json *j) {
    const char *p = j->at, *end = j->end;
    if (j->failed) return 0;
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
        uint64_t w;
        p++;
        while (end - p >= 8) { /* indentation, eight spaces at once */
            memcpy(&w, p, 8);
            w ^= ONES * ' ';
            p += w ? first_byte(w) : 8;
            if (w) break;
        }
    }
    j->at = p;
    return p < end ? (unsigned char)*p : 0;
}

/* The same; most often there is none. */
static inline unsigned char next_char(pith__json *j) {
    return !j->failed && j->at < j->end && ' ' < *j->at ? (unsigned char)*j->at : skip_space(j);
}

pith__json_kind pith__json_peek(pith__json *j) {
    unsigned char c = next_char(j);
    switch (c) {
    case 'n': return PITH_JSON_NULL;
    case 't':
    case 'f': return PITH_JSON_BOOL;
    case '"': return PITH_JSON_STRING;
    case '[': return PITH_JSON_ARRAY;
    case '{': return PITH_JSON_OBJECT;
    case 'N':
    case 'I': return j->python ? PITH_JSON_NUMBER : PITH_JSON_END;
    default: return c == '-' || (c >= '0' && c <= '9') ? PITH_JSON_NUMBER : PITH_JSON_END;
    }
}

/* True if the next value is of this kind, else fails. */
static bool expect(pith__json *j, pith__json_kind kind) {
    static const char *const names[] = {
        [PITH_JSON_END] = "no value",       [PITH_JSON_NULL] = "null",
        [PITH_JSON_BOOL] = "true or false", [PITH_JSON_NUMBER] = "a number",
        [PITH_JSON_STRING] = "a string",    [PITH_JSON_ARRAY] = "an array",
        [PITH_JSON_OBJECT] = "an object",
    };
    pith__json_kind found = pith__json_peek(j);
    if (j->failed) return false;
    if (found == kind) return true;
    if (j->at == j->end)
        pith__json_fail(j, PITH_ERR_FORMAT, "the text ends where %s should be", names[kind]);
    else
        pith__json_fail(j, PITH_ERR_FORMAT, "expected %s, found %s", names[kind], names[found]);
    return false;
}

static void enter(pith__json *j, bool is_object) {
    if (j->depth == PITH_JSON_DEPTH) {
        pith__json_fail(j, PITH_ERR_FORMAT, "nested deeper than %d levels", PITH_JSON_DEPTH);
        return;
    }
    j->at++;
    j->stack[j->depth].key = (pith_str){ "", 0 };
    j->stack[j->depth].index = -1;
    j->stack[j->depth].is_object = is_object;
    j->stack[j->depth].started = false;
    j->depth++;
}

void pith__json_object(pith__json *j) {
    if (expect(j, PITH_JSON_OBJECT)) enter(j, true);
}

void pith__json_array(pith__json *j) {
    if (expect(j, PITH_JSON_ARRAY)) enter(j, false);
}

/* Bytes of a text between two looks at whether the call must end. */
enum { JSON_LOOK = 1 << 16 };

static void json_look(pith__json *j) {
    j->look = j->end - j->at > JSON_LOOK ? j->at + JSON_LOOK : j->end;
    if (!j->failed && pith__stop_check(j->stop, j->err)) j->failed = true;
}

/* Consumes what stands between two members: false at the end of the container, which is then left.
 */
static bool next_member(pith__json *j, char close) {
    unsigned char c = next_char(j);
    if (j->stop && j->at >= j->look) json_look(j);
    if (j->failed) return false;
    assert(j->depth > 0 && j->stack[j->depth - 1].is_object == (close == '}'));
    if (c == (unsigned char)close) {
        j->at++;
        j->depth--;
        return false;
    }
    if (j->stack[j->depth - 1].started) {
        if (c != ',') {
            json_fault(j, j->at == j->end ? "the text ends inside" : "expected a comma or the end");
            return false;
        }
        j->at++;
    }
    j->stack[j->depth - 1].started = true;
    j->stack[j->depth - 1].index++;
    return true;
}

static int hex4(const char *p) {
    int value = 0;
    for (int i = 0; i < 4; i++) {
        int c = (unsigned char)p[i], digit;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            digit = (c | 32) - 'a' + 10;
        else
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Consumes a string and checks it; raw is what stands between the quotes. Eight bytes are looked at
 * together: the expression sets the high bit of each byte that is a control, a quote or a
 * backslash. A borrow can set it wrongly only above such a byte, so the lowest one found is right.
 * UTF-8 is checked at the end, and only if a byte above 0x7F was seen. */
static bool scan_string(pith__json *j, pith_str *raw, bool *escapes) {
    const char *begin = ++j->at, *p = begin;
    uint64_t wide = 0;
    *escapes = false;
    for (;; p++) {
        /* Eight bytes at once that are no control, quote or backslash. */
        while (j->end - p >= 8) {
            uint64_t w, quote, slash, found;
            memcpy(&w, p, 8);
            quote = w ^ ONES * '"';
            slash = w ^ ONES * '\\';
            found =
                (((w - ONES * 0x20) & ~w) | ((quote - ONES) & ~quote) | ((slash - ONES) & ~slash)) &
                HIGHS;
            wide |= w & HIGHS;
            p += found ? first_byte(found) : 8;
            if (found) break;
        }
        if (p == j->end) {
            json_fault(j, "a string is not closed");
            return false;
        }
        unsigned char c = (unsigned char)*p;
        if (c == '"') break;
        if (c < 0x20) {
            j->at = p;
            json_fault(j, "a control character in a string");
            return false;
        }
        wide |= c & 0x80;
        if (c != '\\') continue;
        *escapes = true;
        p++;
        bool known = p < j->end && *p && strchr("\"\\/bfnrtu", *p);
        if (known && *p == 'u') {
            known = j->end - p > 4 && hex4(p + 1) >= 0;
            if (known) p += 4;
        }
        if (!known) {
            j->at = p < j->end ? p : j->end;
            json_fault(j, "a bad escape in a string");
            return false;
        }
    }
    *raw = (pith_str){ begin, (size_t)(p - begin) };
    if (wide && pith__utf8_valid_prefix(begin, raw->size) != raw->size) {
        json_fault(j, "a string is not valid UTF-8");
        return false;
    }
    j->at = p + 1;
    return true;
}

/* The decoded text of a string that was checked: never longer than raw. A surrogate without its
 * other half becomes U+FFFD, and the scanner notes it (halves). */
static pith_str decode_string(pith__json *j, pith_str raw) {
    char *out = pith__arena_alloc(j->arena, raw.size), *o = out;
    if (!out) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory: %zu bytes are needed", raw.size);
        return (pith_str){ "", 0 };
    }
    for (const char *p = raw.data, *end = raw.data + raw.size; p < end;) {
        if (*p != '\\') {
            *o++ = *p++;
            continue;
        }
        p++;
        if (*p != 'u') {
            static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
            *o++ = to[strchr(from, *p++) - from];
            continue;
        }
        uint32_t c = (uint32_t)hex4(p + 1);
        p += 5;
        if (c >= 0xD800 && c < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
            uint32_t low = (uint32_t)hex4(p + 2);
            if (low >= 0xDC00 && low < 0xE000) {
                c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
                p += 6;
            }
        }
        if (!pith__utf8_has(c)) {
            c = 0xFFFD;
            j->halves = true;
        }
        o += pith__utf8_put(o, c);
    }
    return (pith_str){ out, (size_t)(o - out) };
}

static bool next_key(pith__json *j, pith_str *key, bool *escapes) {
    if (!next_member(j, '}')) return false;
    if (next_char(j) != '"') {
        json_fault(j, "expected a key");
        return false;
    }
    if (!scan_string(j, key, escapes)) return false;
    j->stack[j->depth - 1].key = *key;
    if (next_char(j) != ':') {
        json_fault(j, "expected a colon");
        return false;
    }
    j->at++;
    return true;
}

bool pith__json_next_key(pith__json *j, pith_str *key) {
    bool escapes;
    *key = (pith_str){ "", 0 };
    if (!next_key(j, key, &escapes)) return false;
    if (escapes) *key = decode_string(j, *key);
    j->stack[j->depth - 1].key = *key;
    return !j->failed;
}

bool pith__json_next_item(pith__json *j) { return next_member(j, ']'); }

pith_str pith__json_string(pith__json *j) {
    pith_str raw;
    bool escapes;
    if (!expect(j, PITH_JSON_STRING) || !scan_string(j, &raw, &escapes)) return (pith_str){ "", 0 };
    return escapes ? decode_string(j, raw) : raw;
}

static bool digits(const char **p, const char *end) {
    const char *begin = *p;
    while (*p < end && **p >= '0' && **p <= '9') ++*p;
    return *p > begin;
}

/* Consumes one of Python's words for numbers that JSON does not have. */
static bool scan_python_number(pith__json *j, pith_str *raw) {
    static const char *const words[] = { "NaN", "Infinity", "-Infinity" };
    if (!j->python) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t size = strlen(words[i]);
        if ((size_t)(j->end - j->at) < size || memcmp(j->at, words[i], size)) continue;
        *raw = (pith_str){ j->at, size };
        j->at += size;
        return true;
    }
    return false;
}

/* Consumes a number; *integer says whether it has neither fraction nor exponent. */
static bool scan_number(pith__json *j, pith_str *raw, bool *integer) {
    const char *p = j->at, *end = j->end;
    if (scan_python_number(j, raw)) {
        *integer = false;
        return true;
    }
    if (*p == '-') p++;
    bool good = true;
    if (p < end && *p == '0')
        p++;
    else
        good = digits(&p, end);
    *integer = true;
    if (good && p < end && *p == '.') {
        *integer = false;
        p++;
        good = digits(&p, end);
    }
    if (good && p < end && (*p == 'e' || *p == 'E')) {
        *integer = false;
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        good = digits(&p, end);
    }
    if (!good || (p < end && ((*p >= '0' && *p <= '9') || *p == '.'))) {
        json_fault(j, "a malformed number");
        return false;
    }
    *raw = (pith_str){ j->at, (size_t)(p - j->at) };
    j->at = p;
    return true;
}

static double json_double(pith_str raw) {
    double value = 0;
    if (raw.data[0] == 'N') return NAN;
    if (raw.data[raw.size - 1] == 'y') return raw.data[0] == '-' ? -INFINITY : INFINITY;
    pith__read_number(&value, raw);
    return value;
}

/* Up to nine digits and what ends a number are read here; everything else goes through the general
 * scanner, which also decides what is a number. In files that Python wrote, a whole number may be
 * written with a point or an exponent, and counts up to 2^53. */
int64_t pith__json_int(pith__json *j) {
    pith_str raw;
    bool integer;
    if (!expect(j, PITH_JSON_NUMBER)) return 0;
    const char *begin = j->at, *p = begin;
    /* Vocabularies are full of small ones, which a comma or the end of the container follows. */
    int64_t small = 0;
    while (j->end - p > 1 && p - begin < 9 && *p >= '0' && *p <= '9')
        small = small * 10 + (*p++ - '0');
    if (p > begin && (*begin != '0' || p == begin + 1) && (*p == ',' || *p == '}' || *p == ']')) {
        j->at = p;
        return small;
    }
    if (!scan_number(j, &raw, &integer)) return 0;
    int64_t value = 0;
    bool negative = raw.data[0] == '-', overflow = false;
    if (integer) {
        for (size_t i = negative; i < raw.size; i++) {
            int digit = raw.data[i] - '0';
            overflow |= __builtin_mul_overflow(value, 10, &value);
            overflow |= __builtin_add_overflow(value, negative ? -digit : digit, &value);
        }
    }
    if (integer && !overflow) return value;
    double real = integer || !j->python ? NAN : json_double(raw);
    if (fabs(real) <= 0x1p53 && real == (double)(int64_t)real) return (int64_t)real;
    j->at = begin;
    pith__json_fail(j, PITH_ERR_FORMAT, PITH_STR_FMT " is %s", PITH_STR_ARG(raw),
                    integer ? "too large" : "not a whole number");
    return 0;
}

double pith__json_double(pith__json *j) {
    pith_str raw;
    bool integer;
    return expect(j, PITH_JSON_NUMBER) && scan_number(j, &raw, &integer) ? json_double(raw) : 0;
}

int64_t pith__json_limit(pith__json *j, int64_t limit) {
    if (pith__json_null(j)) return 0;
    const char *begin = j->at;
    double n = pith__json_double(j);
    if (j->failed || n > (double)limit) return 0;
    if (n >= 1 && n == (double)(int64_t)n) return (int64_t)n;
    const char *end = j->at;
    j->at = begin;
    pith__json_fail(j, PITH_ERR_FORMAT,
                    PITH_STR_FMT " is not a positive whole number; correct it or leave it out",
                    PITH_STR_ARG(((pith_str){ begin, (size_t)(end - begin) })));
    return 0;
}

static bool word(pith__json *j, const char *text) {
    size_t size = strlen(text);
    if ((size_t)(j->end - j->at) >= size && memcmp(j->at, text, size) == 0) {
        j->at += size;
        return true;
    }
    json_fault(j, "an unknown word");
    return false;
}

bool pith__json_bool(pith__json *j) {
    if (!expect(j, PITH_JSON_BOOL)) return false;
    if (*j->at == 't') return word(j, "true");
    word(j, "false");
    return false;
}

bool pith__json_null(pith__json *j) {
    return pith__json_peek(j) == PITH_JSON_NULL && word(j, "null");
}

/* Skips a value of any depth with a loop and the scanner's own stack, without recursion. What is
 * skipped is checked like everything else. */
void pith__json_skip(pith__json *j) {
    pith_str raw;
    bool flag;
    int base = j->depth;
    do {
        pith__json_kind kind = pith__json_peek(j);
        switch (kind) {
        case PITH_JSON_OBJECT:
        case PITH_JSON_ARRAY: enter(j, kind == PITH_JSON_OBJECT); break;
        case PITH_JSON_STRING: scan_string(j, &raw, &flag); break;
        case PITH_JSON_NUMBER: scan_number(j, &raw, &flag); break;
        case PITH_JSON_BOOL: pith__json_bool(j); break;
        case PITH_JSON_NULL: pith__json_null(j); break;
        case PITH_JSON_END:
            json_fault(j, j->at == j->end ? "the text ends where a value should be"
                                          : "expected a value");
        }
        /* On to the next value, leaving the containers that end here. */
        while (j->depth > base && !j->failed)
            if (j->stack[j->depth - 1].is_object ? next_key(j, &raw, &flag)
                                                 : pith__json_next_item(j))
                break;
    } while (j->depth > base && !j->failed);
}

pith_str pith__json_raw(pith__json *j) {
    next_char(j);
    const char *begin = j->at;
    pith__json_skip(j);
    return j->failed ? (pith_str){ "", 0 } : (pith_str){ begin, (size_t)(j->at - begin) };
}

pith_str pith__json_copy(pith__json *j, pith__arena *arena, pith_str s) {
    pith_str copy = j->failed ? PITH_STR("") : pith__arena_str(arena, s);
    if (copy.data) return copy;
    pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
    return PITH_STR("");
}

void pith__json_finish(pith__json *j) {
    next_char(j);
    if (!j->failed && j->at != j->end) json_fault(j, "there is more text after the value");
}
