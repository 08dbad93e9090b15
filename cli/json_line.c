/* json_line.c - see json_line.h. */
#include "cli/json_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

void json_line_init(json_line *l, bool replace) {
    l->replace = replace;
    l->message[0] = 0;
    pith_arena_init(&l->arena, &pith_allocator_default);
}

void json_line_free(json_line *l) { pith_arena_free(&l->arena); }

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
    return skip_white(line.data, line.data + line.size) == line.data + line.size;
}

/* ---- objects ---- */

/* Between the quotes of a string that was checked: whether one of its \u escapes is half a surrogate pair. */
static bool has_half_pair(pith_str raw) {
    bool high = false; /* the escape before was the first half */
    for (size_t i = 0; i < raw.size;) {
        size_t n = raw.data[i] != '\\' ? 1 : raw.data[i + 1] != 'u' ? 2 : 6;
        unsigned long c = 0;
        if (n == 6) {
            char digits[5] = { raw.data[i + 2], raw.data[i + 3], raw.data[i + 4], raw.data[i + 5], 0 };
            c = strtoul(digits, NULL, 16);
        }
        bool low = c >= 0xDC00 && c < 0xE000;
        if (low != high) return true;
        high = c >= 0xD800 && c < 0xDC00;
        i += n;
    }
    return high;
}

/* "id, title, price" for messages. */
static void list_keys(json_line *l, pith_str line, char *list, size_t size) {
    pith_json j;
    pith_error err = PITH_ERROR_INIT;
    pith_str key;
    size_t used = 0;
    list[0] = 0;
    pith_json_init(&j, line, NULL, &l->arena, &err);
    pith_json_object(&j);
    while (pith_json_next_key(&j, &key) && used + 80 < size) {
        used += (size_t)snprintf(list + used, size - used, "%s%.60s", used ? ", " : "",
                                 pith_arena_str(&l->arena, key).data);
        pith_json_skip(&j);
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
        snprintf(l->message, sizeof l->message, "the field '%.100s' holds %s, not a string", field, kind);
    else
        snprintf(l->message, sizeof l->message, "there is no field '%.100s'; the object %s%s", field,
                 *keys ? "has " : "is empty", keys);
    return false;
}

/* The text of a JSON string. */
static bool decode(json_line *l, pith_str *text, const char *field, pith_str value) {
    pith_json j;
    pith_error err = PITH_ERROR_INIT;
    if (!l->replace && has_half_pair((pith_str){ value.data + 1, value.size - 2 })) {
        snprintf(l->message, sizeof l->message,
                 "the field '%.100s' has half of a surrogate pair, which is not a character (--invalid replace puts "
                 "U+FFFD in its place)",
                 field);
        return false;
    }
    pith_json_init(&j, value, NULL, &l->arena, &err);
    *text = pith_json_string(&j);
    if (j.failed) snprintf(l->message, sizeof l->message, "%s", err.message);
    return !j.failed;
}

bool json_line_texts(json_line *l, pith_str *texts, pith_str line, const char *const *fields, size_t count,
                     bytes *kept) {
    pith_json j;
    pith_error err = PITH_ERROR_INIT;
    pith_str key;
    bool first = true;
    line = skip_mark(line);
    pith_arena_reset(&l->arena);
    pith_json_init(&j, line, NULL, &l->arena, &err);
    for (size_t i = 0; i < count; i++) texts[i] = (pith_str){ NULL, 0 };
    if (pith_json_peek(&j) != PITH_JSON_OBJECT) {
        snprintf(l->message, sizeof l->message, "this is not a JSON object");
        return false;
    }
    pith_json_object(&j);
    for (const char *begin = j.p; pith_json_next_key(&j, &key); begin = j.p) {
        pith_str value = pith_json_raw(&j);
        for (size_t i = 0; i < count; i++)
            if (pith_str_is(key, fields[i])) texts[i] = value;
        if (!kept || pith_str_is(key, "embedding")) continue;
        if (first) { /* without the comma, if what was before this member is left out */
            const char *comma = skip_white(begin, j.p);
            if (*comma == ',') begin = comma + 1;
            bytes_add(kept, "{", 1);
        }
        bytes_add(kept, begin, (size_t)(j.p - begin));
        first = false;
    }
    pith_json_finish(&j);
    if (j.failed) {
        snprintf(l->message, sizeof l->message, "%s", err.message);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!texts[i].size || texts[i].data[0] != '"') return no_text(l, line, fields[i], texts[i]);
        if (!decode(l, &texts[i], fields[i], texts[i])) return false;
    }
    if (kept) bytes_add(kept, first ? "{" : ",", 1);
    return true;
}

/* ---- ids ---- */

static int32_t read_id(pith_json *j) {
    int64_t id = pith_json_int(j);
    if (!j->failed && (id < 0 || id > INT32_MAX))
        pith_json_fail(j, PITH_ERR_FORMAT, "%lld is not a token id", (long long)id);
    return j->failed ? 0 : (int32_t)id;
}

static void read_ids(pith_json *j, int32_t **ids, size_t *count) {
    size_t room = 0;
    *count = 0;
    pith_json_array(j);
    while (pith_json_next_item(j)) {
        int32_t id = read_id(j);
        if (j->failed) return;
        if (*count == room) *ids = grow(*ids, (room = 2 * room + 64) * sizeof **ids);
        (*ids)[(*count)++] = id;
    }
}

bool json_line_ids(json_line *l, int32_t **ids, size_t *count, pith_str line, bool single) {
    pith_json j;
    pith_error err = PITH_ERROR_INIT;
    pith_str key;
    bool found = true;
    pith_arena_reset(&l->arena);
    pith_json_init(&j, skip_mark(line), NULL, &l->arena, &err);
    pith_json_kind kind = pith_json_peek(&j);
    if (kind == PITH_JSON_OBJECT) {
        found = false;
        pith_json_object(&j);
        while (pith_json_next_key(&j, &key)) {
            if (!pith_str_is(key, "ids")) {
                pith_json_skip(&j);
                continue;
            }
            found = true;
            read_ids(&j, ids, count);
        }
        if (!found) pith_json_fail(&j, PITH_ERR_FORMAT, "there is no field 'ids'");
    } else if (single && kind == PITH_JSON_NUMBER) {
        *ids = grow(*ids, sizeof **ids);
        (*ids)[0] = read_id(&j);
        *count = 1;
    } else {
        read_ids(&j, ids, count);
    }
    pith_json_finish(&j);
    if (j.failed) snprintf(l->message, sizeof l->message, "%s", err.message);
    return !j.failed;
}
