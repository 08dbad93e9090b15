/* json_line.c - see json_line.h. */
#include "cli/input/json_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cut_text.h"
#include "cli/input/json_scan.h"

void json_line_init(json_line *l, bool replace) { *l = (json_line){ .replace = replace }; }

static void forget_strings(json_line *l) {
    for (size_t i = 0; i < l->decoded.count; i++) free((char *)(uintptr_t)l->decoded.items[i]);
    free(l->decoded.items);
    l->decoded = (string_list){ NULL, 0 };
}

void json_line_free(json_line *l) { forget_strings(l); }

static pith_str skip_mark(pith_str line) {
    bool marked = line.size >= 3 && !memcmp(line.data, "\xEF\xBB\xBF", 3);
    return marked ? (pith_str){ line.data + 3, line.size - 3 } : line;
}

static const char *skip_white(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')) p++;
    return p;
}

bool json_line_blank(pith_str line) {
    line = skip_mark(line);
    return !line.size || skip_white(line.data, line.data + line.size) == line.data + line.size;
}

/* ---- objects ---- */

/* Between the quotes of a string that was checked: whether one of its \u escapes is half a
 * surrogate pair. */
static bool has_half_pair(pith_str raw) {
    bool high = false; /* the escape before was the first half */
    for (size_t i = 0; i < raw.size;) {
        size_t n = raw.data[i] != '\\' ? 1 : raw.data[i + 1] != 'u' ? 2 : 6;
        unsigned long c = 0;
        if (n == 6) {
            char digits[5] = { raw.data[i + 2], raw.data[i + 3], raw.data[i + 4], raw.data[i + 5],
                               0 };
            c = strtoul(digits, NULL, 16);
        }
        bool low = c >= 0xDC00 && c < 0xE000;
        if (low != high) return true;
        high = c >= 0xD800 && c < 0xDC00;
        i += n;
    }
    return high;
}

static bool is_key(pith_str key, const char *name) {
    return key.size == strlen(name) && !memcmp(key.data, name, key.size);
}

/* Bytes of a text that are shown: whole characters of UTF-8. */
static int json_shown(pith_str text, size_t most) {
    size_t n = text.size < most ? text.size : most;
    while (text.size > n && n && ((unsigned char)text.data[n] & 0xC0) == 0x80) n--;
    return (int)n;
}

/* "id, title, price" for messages. */
static void list_keys(json_line *l, pith_str line, char *list, size_t size) {
    json_scan s;
    pith_str key;
    size_t used = 0;
    list[0] = 0;
    json_scan_begin(&s, line, &l->decoded);
    json_scan_object(&s);
    while (json_scan_key(&s, &key) && used + 80 < size) {
        used += (size_t)snprintf(list + used, size - used, "%s%.*s%s", used ? ", " : "",
                                 json_shown(key, 60), key.data, key.size > 60 ? "…" : "");
        json_scan_skip(&s);
    }
}

static bool no_text(json_line *l, pith_str line, const char *field, pith_str value) {
    char keys[500];
    const char *kind = !value.size            ? NULL
                       : value.data[0] == '{' ? "an object"
                       : value.data[0] == '[' ? "an array"
                       : value.data[0] == 'n' ? "null"
                       : value.data[0] == 't' ? "true"
                       : value.data[0] == 'f' ? "false"
                                              : "a number";
    list_keys(l, line, keys, sizeof keys);
    if (kind)
        cut_print(l->message, sizeof l->message,
                  "the field '" CUT_FORMAT "' holds %s, not a string", CUT(field, 100), kind);
    else
        cut_print(l->message, sizeof l->message,
                  "there is no field '" CUT_FORMAT "'; the object %s%s", CUT(field, 100),
                  *keys ? "has " : "is empty", keys);
    return false;
}

/* The text of a JSON string. */
static bool decode(json_line *l, pith_str *text, const char *field, pith_str value) {
    json_scan s;
    if (!l->replace && has_half_pair((pith_str){ value.data + 1, value.size - 2 })) {
        cut_print(l->message, sizeof l->message,
                  "the field '" CUT_FORMAT
                  "' has half of a surrogate pair, which is not a character (--invalid replace "
                  "puts U+FFFD in its place)",
                  CUT(field, 100));
        return false;
    }
    json_scan_begin(&s, value, &l->decoded);
    *text = json_scan_string(&s);
    return true;
}

/* Appends the member that ends at `end` to kept. begin: where the one before it ended, or the
 * brace. */
static void keep_member(bytes *kept, const char *begin, const char *end, bool first) {
    if (first) { /* without the comma, if what was before this member is left out */
        const char *comma = skip_white(begin, end);
        if (*comma == ',') begin = comma + 1;
        bytes_add(kept, "{", 1);
    }
    bytes_add(kept, begin, (size_t)(end - begin));
}

static bool is_kept(const json_line *l, pith_str key) {
    bool kept = !l->kept;
    if (l->added && is_key(key, l->added)) return false;
    for (const char *const *name = l->dropped; name && *name; name++)
        if (is_key(key, *name)) return false;
    for (size_t i = 0; !kept && i < l->kept->count; i++) kept = is_key(key, l->kept->items[i]);
    return kept;
}

/* Finds the values of the fields, as they are written, and keeps members. False: it is not an
 * object, or it is damaged. */
static bool scan_object(json_line *l, pith_str *values, pith_str line, const char *const *fields,
                        size_t count, bytes *kept) {
    json_scan s;
    pith_str key;
    bool first = true;
    json_scan_begin(&s, line, &l->decoded);
    if (json_scan_peek(&s) != '{') {
        cut_print(l->message, sizeof l->message, "this is not a JSON object");
        return false;
    }
    json_scan_object(&s);
    for (const char *begin = s.p; json_scan_key(&s, &key); begin = s.p) {
        pith_str value = json_scan_skip(&s);
        for (size_t i = 0; i < count; i++)
            if (is_key(key, fields[i])) values[i] = value;
        if (!kept || !is_kept(l, key)) continue;
        keep_member(kept, begin, s.p, first);
        first = false;
    }
    json_scan_end(&s);
    if (s.failed) cut_print(l->message, sizeof l->message, "%s", s.message);
    if (kept && !s.failed) bytes_add(kept, first ? "{" : ",", 1);
    return !s.failed;
}

bool json_line_texts(json_line *l, pith_str *texts, pith_str line, const char *const *fields,
                     size_t count, bytes *kept) {
    line = skip_mark(line);
    forget_strings(l);
    for (size_t i = 0; i < count; i++) texts[i] = (pith_str){ NULL, 0 };
    if (!scan_object(l, texts, line, fields, count, kept)) return false;
    for (size_t i = 0; i < count; i++) {
        if (!texts[i].size || texts[i].data[0] != '"') return no_text(l, line, fields[i], texts[i]);
        if (!decode(l, &texts[i], fields[i], texts[i])) return false;
    }
    return true;
}

/* ---- ids ---- */

static int32_t read_id(json_scan *s) {
    int64_t id = json_scan_int(s);
    if (!s->failed && (id < 0 || id > INT32_MAX))
        json_scan_fail(s, "%lld is not a token id", (long long)id);
    return s->failed ? 0 : (int32_t)id;
}

static void read_ids(json_scan *s, int32_t **ids, size_t *count) {
    *count = 0;
    json_scan_array(s);
    while (json_scan_item(s)) {
        int32_t id = read_id(s);
        if (s->failed) return;
        *ids = grow_for(*ids, *count, sizeof **ids);
        (*ids)[(*count)++] = id;
    }
}

bool json_line_ids(json_line *l, int32_t **ids, size_t *count, pith_str line, bool single) {
    json_scan s;
    pith_str key;
    forget_strings(l);
    json_scan_begin(&s, skip_mark(line), &l->decoded);
    char first = json_scan_peek(&s);
    if (first == '{') {
        bool found = false;
        json_scan_object(&s);
        while (json_scan_key(&s, &key)) {
            if (!is_key(key, "ids")) {
                json_scan_skip(&s);
                continue;
            }
            found = true;
            read_ids(&s, ids, count);
        }
        if (!found) json_scan_fail(&s, "there is no field 'ids'");
    } else if (single && (first == '-' || (first >= '0' && first <= '9'))) {
        *ids = grow_for(*ids, 0, sizeof **ids);
        (*ids)[0] = read_id(&s);
        *count = 1;
    } else {
        read_ids(&s, ids, count);
    }
    json_scan_end(&s);
    if (s.failed) cut_print(l->message, sizeof l->message, "%s", s.message);
    return !s.failed;
}
