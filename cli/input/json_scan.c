/* json_scan.c - see json_scan.h. */
#include "cli/input/json_scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "cli/base/cut_text.h"
#include "cli/base/safe_text.h"
#include "cli/base/text_input.h"

void json_scan_begin(json_scan *s, pith_str text, string_list *decoded) {
    s->p = text.data ? text.data : "";
    s->end = s->p + text.size;
    s->decoded = decoded;
    s->failed = false;
    s->message[0] = 0;
    s->depth = 0;
}

/* ---- faults ---- */

/* Bytes of a path, and of a key in it, that are shown. */
enum { PATH_BYTES = 255, KEY_BYTES = 200 };
#define MARK "…"

/* Bytes of a text that are shown: whole characters of UTF-8. */
static int bytes_shown(pith_str text) {
    size_t n = text.size < KEY_BYTES ? text.size : KEY_BYTES;
    while (text.size > n && n > KEY_BYTES - 4 && ((unsigned char)text.data[n] & 0xC0) == 0x80) n--;
    return (int)n;
}

/* Appends "a.b[3]" for the place. */
static void print_path(bytes *out, const json_scan *s) {
    for (int i = 0; i < s->depth && s->open[i].started; i++) {
        pith_str key = s->open[i].key;
        if (s->open[i].is_object)
            bytes_print(out, "%s%.*s", i ? "." : "", bytes_shown(key), key.data);
        else
            bytes_print(out, "[%lld]", (long long)s->open[i].index);
    }
    if (out->size <= PATH_BYTES) return;
    out->size = PATH_BYTES - strlen(MARK);
    while (out->size && ((unsigned char)out->data[out->size] & 0xC0) == 0x80) out->size--;
    bytes_print(out, MARK);
}

void json_scan_fail(json_scan *s, const char *format, ...) {
    char text[512];
    bytes path = { NULL, 0, 0 };
    va_list list;
    if (s->failed) return;
    s->failed = true;
    va_start(list, format);
    cut_list(text, sizeof text, format, list);
    va_end(list);
    print_path(&path, s);
    cleaned_print(s->message, sizeof s->message, "%.*s%s%s", (int)path.size,
                  path.size ? path.data : "", path.size ? ": " : "", text);
    free(path.data);
}

/* ---- characters ---- */

/* Goes on to the next character that is not white space: that character, or 0 at the end and after
 * a failure. */
static char next_char(json_scan *s) {
    if (s->failed) return 0;
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
        s->p++;
    return s->p < s->end ? *s->p : 0;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

char json_scan_peek(json_scan *s) {
    char c = next_char(s);
    return is_digit(c) || (c && strchr("ntf\"[{-", c)) ? c : 0;
}

static const char *kind_of(char first) {
    switch (first) {
    case 0: return "no value";
    case 'n': return "null";
    case 't':
    case 'f': return "true or false";
    case '"': return "a string";
    case '[': return "an array";
    case '{': return "an object";
    default: return "a number";
    }
}

/* Whether the next value begins like this one ('0': a number); else fails. */
static bool expect(json_scan *s, char first) {
    char found = json_scan_peek(s);
    if (s->failed) return false;
    if (found == first || (first == '0' && (is_digit(found) || found == '-'))) return true;
    if (s->p == s->end)
        json_scan_fail(s, "the text ends where %s should be", kind_of(first));
    else
        json_scan_fail(s, "expected %s, found %s", kind_of(first), kind_of(found));
    return false;
}

/* ---- objects and arrays ---- */

static void enter(json_scan *s, bool is_object) {
    if (s->depth == JSON_SCAN_DEPTH) {
        json_scan_fail(s, "nested deeper than %d levels", JSON_SCAN_DEPTH);
        return;
    }
    s->p++;
    s->open[s->depth].key = (pith_str){ "", 0 };
    s->open[s->depth].index = -1;
    s->open[s->depth].is_object = is_object;
    s->open[s->depth++].started = false;
}

void json_scan_object(json_scan *s) {
    if (expect(s, '{')) enter(s, true);
}

void json_scan_array(json_scan *s) {
    if (expect(s, '[')) enter(s, false);
}

/* Consumes what stands between two members: false at the end of the container, which is then left.
 */
static bool next_member(json_scan *s) {
    char c = next_char(s);
    if (s->failed) return false;
    if (c == (s->open[s->depth - 1].is_object ? '}' : ']')) {
        s->p++;
        s->depth--;
        return false;
    }
    if (s->open[s->depth - 1].started && c != ',') {
        json_scan_fail(s, s->p == s->end ? "the text ends inside" : "expected a comma or the end");
        return false;
    }
    if (s->open[s->depth - 1].started) s->p++;
    s->open[s->depth - 1].started = true;
    s->open[s->depth - 1].index++;
    return true;
}

bool json_scan_item(json_scan *s) { return next_member(s); }

/* ---- strings ---- */

/* The number that four hexadecimal digits write, or -1. */
static int32_t hex4(const char *p, const char *end) {
    int32_t value = 0;
    for (int i = 0; i < 4; i++, p++) {
        static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
        const char *digit = p < end && *p ? strchr(lower, *p) : NULL,
                   *large = p < end && *p ? strchr(upper, *p) : NULL;
        if (!digit && !large) return -1;
        value = value * 16 + (int32_t)(digit ? digit - lower : large - upper);
    }
    return value;
}

/* Consumes a string and checks it; raw is what stands between the quotes. */
static bool scan_string(json_scan *s, pith_str *raw, bool *escapes) {
    const char *begin = ++s->p, *p = begin;
    *escapes = false;
    for (; p < s->end && *p != '"'; p++) {
        if ((unsigned char)*p < 0x20) {
            json_scan_fail(s, "a control character in a string");
            return false;
        }
        if (*p != '\\') continue;
        *escapes = true;
        p++;
        bool unicode = p < s->end && *p == 'u',
             known = p < s->end && *p && strchr("\"\\/bfnrtu", *p);
        if (!known || (unicode && hex4(p + 1, s->end) < 0)) {
            json_scan_fail(s, "a bad escape in a string");
            return false;
        }
        if (unicode) p += 4;
    }
    if (p == s->end) {
        json_scan_fail(s, "a string is not closed");
        return false;
    }
    *raw = (pith_str){ begin, (size_t)(p - begin) };
    s->p = p + 1;
    return true;
}

/* Reads the digits of a \u escape, and those of its other half, and moves on; half a pair is
 * U+FFFD. */
static int32_t take_escape(const char **p, const char *end) {
    int32_t c = hex4(*p, end);
    *p += 4;
    if (c >= 0xD800 && c < 0xDC00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        int32_t low = hex4(*p + 2, end);
        if (low >= 0xDC00 && low < 0xE000) {
            *p += 6;
            return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    return utf8proc_codepoint_valid(c) ? c : 0xFFFD;
}

/* The text of a string that was checked: never longer than raw. */
static pith_str decode_string(json_scan *s, pith_str raw) {
    char *out = grow(NULL, raw.size), *o = out;
    list_add(s->decoded, out);
    for (const char *p = raw.data, *end = raw.data + raw.size; p < end;) {
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        if (*p != '\\') {
            *o++ = *p++;
        } else if (p[1] == 'u') {
            p += 2;
            o += utf8proc_encode_char(take_escape(&p, end), (unsigned char *)o);
        } else {
            *o++ = to[strchr(from, p[1]) - from];
            p += 2;
        }
    }
    return (pith_str){ out, (size_t)(o - out) };
}

static bool scan_key(json_scan *s, pith_str *key, bool *escapes) {
    if (!next_member(s)) return false;
    if (next_char(s) != '"') {
        json_scan_fail(s, "expected a key");
        return false;
    }
    if (!scan_string(s, key, escapes)) return false;
    s->open[s->depth - 1].key = *key;
    if (next_char(s) != ':') {
        json_scan_fail(s, "expected a colon");
        return false;
    }
    s->p++;
    return true;
}

bool json_scan_key(json_scan *s, pith_str *key) {
    bool escapes;
    *key = (pith_str){ "", 0 };
    if (!scan_key(s, key, &escapes)) return false;
    if (escapes) *key = decode_string(s, *key);
    s->open[s->depth - 1].key = *key;
    return true;
}

pith_str json_scan_string(json_scan *s) {
    pith_str raw;
    bool escapes;
    if (!expect(s, '"') || !scan_string(s, &raw, &escapes)) return (pith_str){ "", 0 };
    return escapes ? decode_string(s, raw) : raw;
}

/* ---- numbers and words ---- */

static bool digits(const char **p, const char *end) {
    const char *begin = *p;
    while (*p < end && is_digit(**p)) ++*p;
    return *p > begin;
}

/* Consumes a number; *integer says whether it has neither fraction nor exponent. */
static bool scan_number(json_scan *s, pith_str *raw, bool *integer) {
    const char *p = s->p, *end = s->end;
    if (*p == '-') p++;
    bool zero = p < end && *p == '0', good = zero || digits(&p, end);
    if (zero) p++;
    *integer = true;
    if (good && p < end && *p == '.') {
        *integer = false;
        p++;
        good = digits(&p, end);
    }
    if (good && p < end && (*p | 32) == 'e') {
        *integer = false;
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        good = digits(&p, end);
    }
    if (!good || (p < end && (is_digit(*p) || *p == '.'))) {
        json_scan_fail(s, "a malformed number");
        return false;
    }
    *raw = (pith_str){ s->p, (size_t)(p - s->p) };
    s->p = p;
    return true;
}

int64_t json_scan_int(json_scan *s) {
    pith_str raw;
    bool integer;
    if (!expect(s, '0') || !scan_number(s, &raw, &integer)) return 0;
    int64_t value = 0;
    bool negative = raw.data[0] == '-', overflow = false;
    for (size_t i = negative; integer && i < raw.size; i++) {
        int digit = raw.data[i] - '0';
        overflow |= __builtin_mul_overflow(value, 10, &value);
        overflow |= __builtin_add_overflow(value, negative ? -digit : digit, &value);
    }
    if (integer && !overflow) return value;
    json_scan_fail(s, "%.*s is %s", bytes_shown(raw), raw.data,
                   integer ? "too large" : "not a whole number");
    return 0;
}

static void scan_word(json_scan *s, const char *word) {
    size_t size = strlen(word);
    if ((size_t)(s->end - s->p) >= size && !memcmp(s->p, word, size))
        s->p += size;
    else
        json_scan_fail(s, "an unknown word");
}

pith_str json_scan_skip(json_scan *s) {
    pith_str raw;
    bool flag;
    int base = s->depth;
    next_char(s);
    const char *begin = s->p;
    do {
        char first = json_scan_peek(s);
        switch (first) {
        case '{':
        case '[': enter(s, first == '{'); break;
        case '"': scan_string(s, &raw, &flag); break;
        case 't': scan_word(s, "true"); break;
        case 'f': scan_word(s, "false"); break;
        case 'n': scan_word(s, "null"); break;
        case 0:
            json_scan_fail(s, s->p == s->end ? "the text ends where a value should be"
                                             : "expected a value");
            break;
        default: scan_number(s, &raw, &flag);
        }
        /* On to the next value, leaving the containers that end here. */
        while (s->depth > base && !s->failed)
            if (s->open[s->depth - 1].is_object ? scan_key(s, &raw, &flag) : next_member(s)) break;
    } while (s->depth > base && !s->failed);
    return s->failed ? (pith_str){ "", 0 } : (pith_str){ begin, (size_t)(s->p - begin) };
}

void json_scan_end(json_scan *s) {
    next_char(s);
    if (!s->failed && s->p != s->end) json_scan_fail(s, "there is more text after the value");
}
