/* syntax_scan.c - see syntax_scan.h. */
#include "formats/onnx/syntax_scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/str.h"
#include "base/text_out.h"
#include "formats/onnx/syntax_words.h"

/* More digits than any number that means something. */
enum { NUMBER_MAX = 400 };

static bool scan_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool scan_digit(char c) { return c >= '0' && c <= '9'; }
bool pith__scan_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The first fault counts. The scanner is put at the end, so that every loop over the text ends. */
void pith__scan_fail(pith__syntax_scan *s, pith_status code, const char *format, ...) {
    char message[PITH_ERROR_MESSAGE_SIZE];
    size_t line = 1;
    const char *start = s->begin;
    va_list arguments;
    if (s->failed) return;
    for (const char *p = s->begin; p < s->at; p++) {
        if (*p != '\n') continue;
        line++;
        start = p + 1;
    }
    va_start(arguments, format);
    pith__text_format(message, sizeof message, format, arguments);
    va_end(arguments);
    if (code == PITH_ERR_MEMORY)
        pith__fail(s->err, code, "%s", message);
    else
        pith__fail(s->err, code, "line %zu, column %td: %s", line, s->at - start + 1, message);
    s->failed = true;
    s->code = code;
    s->at = s->end;
}

void pith__scan_look(pith__syntax_scan *s) {
    if (s->failed || !pith__stop_asked(s->stop)) return;
    s->code = pith__stop_check(s->stop, s->err);
    s->failed = true;
    s->at = s->end;
}

/* Passes over blanks and comments. 0 stands for the end and for a byte 0, which callers tell apart
 * where it matters. */
unsigned char pith__scan_peek(pith__syntax_scan *s) {
    while (s->at < s->end && (scan_space(*s->at) || *s->at == '#')) {
        if (*s->at++ != '#') continue;
        const char *line = memchr(s->at, '\n', (size_t)(s->end - s->at));
        s->at = line ? line : s->end;
    }
    return s->at < s->end ? (unsigned char)*s->at : 0;
}

bool pith__scan_take(pith__syntax_scan *s, char c) {
    if (pith__scan_peek(s) != (unsigned char)c || s->at == s->end) return false;
    s->at++;
    return true;
}

/* The message shows the word or the character that stands there instead, cut to a length that fits
 * a line. */
void pith__scan_expected(pith__syntax_scan *s, const char *what) {
    pith__scan_peek(s);
    if (s->at == s->end) {
        pith__scan_fail(s, PITH_ERR_FORMAT, "%s is expected, but the text ends", what);
        return;
    }
    size_t n = 1;
    while (s->at + n < s->end && n <= 40 && (unsigned char)s->at[n] >= 0x80) n++;
    if (pith__scan_letter(*s->at))
        while (s->at + n < s->end && n <= 40 &&
               (pith__scan_letter(s->at[n]) || scan_digit(s->at[n])))
            n++;
    pith__scan_fail(s, PITH_ERR_FORMAT, "%s is expected, not '" PITH_CUT_FMT "'", what,
                    PITH_CUT(((pith_str){ s->at, n }), 40));
}

/* Takes exactly this sign, of one or several characters. */
void pith__scan_need(pith__syntax_scan *s, const char *what) {
    const size_t n = strlen(what);
    char quoted[16];
    pith__scan_peek(s);
    if ((size_t)(s->end - s->at) >= n && !memcmp(s->at, what, n)) {
        s->at += n;
        return;
    }
    snprintf(quoted, sizeof quoted, "'%s'", what);
    pith__scan_expected(s, quoted);
}

/* ---- names and strings ---- */

/* Letters, digits and underscores; empty if something else is next. */
pith_str pith__scan_peek_word(pith__syntax_scan *s) {
    pith__scan_peek(s);
    size_t n = 0;
    if (s->at < s->end && pith__scan_letter(*s->at))
        while (s->at + n < s->end && (pith__scan_letter(s->at[n]) || scan_digit(s->at[n]))) n++;
    return (pith_str){ s->at, n };
}

pith_str pith__scan_word(pith__syntax_scan *s) {
    pith_str word = pith__scan_peek_word(s);
    s->at += word.size;
    return word;
}

pith_str pith__scan_identifier(pith__syntax_scan *s, const char *what) {
    pith_str word = pith__scan_word(s);
    if (!word.size) pith__scan_expected(s, what);
    return s->failed ? PITH_STR("") : word;
}

pith_str pith__scan_name(pith__syntax_scan *s, const char *what) {
    return pith__scan_peek(s) == '"' ? pith__scan_string(s, what) : pith__scan_identifier(s, what);
}

/* A string is a span of the text, unless it has escapes. A backslash takes the next character as it
 * is, whatever it is. */
pith_str pith__scan_string(pith__syntax_scan *s, const char *what) {
    if (pith__scan_peek(s) != '"') {
        pith__scan_expected(s, what);
        return PITH_STR("");
    }
    const char *p = s->at + 1;
    size_t escapes = 0;
    for (; p < s->end && *p != '"'; p++)
        if (*p == '\\' && p + 1 < s->end) {
            p++;
            escapes++;
        }
    if (p == s->end) {
        pith__scan_fail(s, PITH_ERR_FORMAT, "this string does not end");
        return PITH_STR("");
    }
    pith_str text = { s->at + 1, (size_t)(p - s->at - 1) };
    if (escapes) {
        char *copy = pith__arena_alloc(s->arena, text.size);
        size_t n = 0;
        if (!copy) {
            pith__scan_fail(s, PITH_ERR_MEMORY, "out of memory");
            return PITH_STR("");
        }
        for (size_t i = 0; i < text.size; i++)
            copy[n++] = text.data[i] == '\\' ? text.data[++i] : text.data[i];
        text = (pith_str){ copy, n };
    }
    s->at = p + 1;
    return text;
}

/* ---- numbers ---- */

/* Digits with at most one point, and an exponent. What the digits say is converted later, by the
 * type that is wanted. */
static pith__syntax_literal scan_number(const char **end, const char *p, const char *last) {
    pith__syntax_literal kind = PITH_LITERAL_INT;
    for (; p < last && (scan_digit(*p) || (*p == '.' && kind == PITH_LITERAL_INT)); p++)
        if (*p == '.') kind = PITH_LITERAL_FLOAT;
    if (p < last && (*p == 'e' || *p == 'E')) {
        kind = PITH_LITERAL_FLOAT;
        p++;
        if (p < last && (*p == '+' || *p == '-')) p++;
        while (p < last && scan_digit(*p)) p++;
    }
    *end = p;
    return kind;
}

/* What kind of literal is next, without converting it: nan, inf and infinity are numbers to onnx's
 * parser, in any case. */
pith__syntax_literal pith__scan_literal(pith__syntax_scan *s, pith_str *text) {
    const unsigned char first = pith__scan_peek(s);
    const char *p = s->at + (first == '-'), *end = p;
    pith__syntax_literal kind = PITH_LITERAL_NONE;
    *text = PITH_STR("");
    if (first == '"') {
        *text = pith__scan_string(s, "a string");
        return s->failed ? PITH_LITERAL_NONE : PITH_LITERAL_STRING;
    }
    if (p < s->end && scan_digit(*p)) {
        kind = scan_number(&end, p, s->end);
    } else if (p < s->end && pith__scan_letter(*p)) {
        while (end < s->end && (pith__scan_letter(*end) || scan_digit(*end))) end++;
        kind = pith__syntax_is_float((pith_str){ p, (size_t)(end - p) }) ? PITH_LITERAL_FLOAT
                                                                         : PITH_LITERAL_NONE;
    }
    if (kind == PITH_LITERAL_NONE) return kind;
    if (end - s->at > NUMBER_MAX) {
        pith__scan_fail(s, PITH_ERR_FORMAT, "a number of more than %d characters", NUMBER_MAX);
        return PITH_LITERAL_NONE;
    }
    *text = (pith_str){ s->at, (size_t)(end - s->at) };
    s->at = end;
    return kind;
}

/* Faults are at the number's first character. */
static void scan_bad_number(pith__syntax_scan *s, pith_str text, const char *what) {
    if (s->failed) return;
    s->at = text.data;
    pith__scan_fail(s, PITH_ERR_FORMAT, PITH_CUT_FMT " is no %s", PITH_CUT(text, 60), what);
}

/* Overflow is a fault of the text, and so is a number beyond `most`. */
static uint64_t scan_digits(pith__syntax_scan *s, pith_str text, uint64_t most, const char *what) {
    uint64_t value = 0;
    bool good = text.size > 0;
    for (size_t i = 0; i < text.size && good; i++)
        good = scan_digit(text.data[i]) && !pith__mul_overflows(value, 10u, &value) &&
               !pith__add_overflows(value, (uint64_t)(text.data[i] - '0'), &value);
    if (good && value <= most) return value;
    scan_bad_number(s, text, what);
    return 0;
}

int64_t pith__scan_int_of(pith__syntax_scan *s, pith_str text) {
    const bool negative = text.size && text.data[0] == '-';
    const pith_str digits = { text.data + negative, text.size - negative };
    const uint64_t value =
        scan_digits(s, digits, (uint64_t)INT64_MAX + negative, "integer of 64 bits");
    return negative ? (int64_t)(0 - value) : (int64_t)value;
}

static pith_str scan_integer(pith__syntax_scan *s) {
    pith_str text;
    const char *at = s->at;
    if (pith__scan_literal(s, &text) == PITH_LITERAL_INT || s->failed) return text;
    s->at = at;
    pith__scan_expected(s, "an integer");
    return PITH_STR("0");
}

int64_t pith__scan_int(pith__syntax_scan *s) { return pith__scan_int_of(s, scan_integer(s)); }

uint64_t pith__scan_uint(pith__syntax_scan *s) {
    return scan_digits(s, scan_integer(s), UINT64_MAX, "unsigned integer of 64 bits");
}

/* Converted straight to f32: by way of double some numbers would be rounded twice. */
float pith__scan_f32_of(pith__syntax_scan *s, pith_str text) {
    char copy[NUMBER_MAX + 1];
    float x = 0;
    if (s->failed) return 0;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    if (!pith__decimal_get_f32(&s->decimal, &x, copy))
        scan_bad_number(s, text, "number of type float");
    return s->failed ? 0 : x;
}

/* An integer is a float as well. */
static pith_str scan_float(pith__syntax_scan *s) {
    pith_str text;
    const char *at = s->at;
    const pith__syntax_literal kind = pith__scan_literal(s, &text);
    if (kind == PITH_LITERAL_INT || kind == PITH_LITERAL_FLOAT || s->failed) return text;
    s->at = at;
    pith__scan_expected(s, "a number");
    return PITH_STR("0");
}

float pith__scan_f32(pith__syntax_scan *s) { return pith__scan_f32_of(s, scan_float(s)); }

/* The decimal reader wants a string that ends in NUL, hence the copy. */
double pith__scan_f64(pith__syntax_scan *s) {
    char copy[NUMBER_MAX + 1];
    double x = 0;
    pith_str text = scan_float(s);
    if (s->failed) return 0;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    if (!pith__decimal_get_f64(&s->decimal, &x, copy))
        scan_bad_number(s, text, "number of type double");
    return s->failed ? 0 : x;
}
