/* json_line.c - see json_line.h. */
#include "cli/input/json_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/formats/json.h"
#include "base/str.h"
#include "base/text_out.h"

/* Memory of decoded strings. Where it is out, the command ends, as everywhere in it. */
static void *line_alloc(void *user, size_t size) {
    (void)user;
    return grow(NULL, size);
}

static void line_free(void *user, void *memory) {
    (void)user;
    free(memory);
}

static const pith_allocator line_memory = { line_alloc, line_free, NULL };

void json_line_init(json_line *l, bool replace) {
    *l = (json_line){ .replace = replace, .fault = PITH_ERROR_INIT };
    pith__arena_init(&l->decoded, &line_memory);
}

void json_line_free(json_line *l) { pith__arena_free(&l->decoded); }

static void scan_begin(pith__json *j, json_line *l, pith_str text) {
    pith__json_init(j, text, NULL, &l->decoded, &l->fault);
}

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

static bool is_key(pith_str key, const char *name) {
    return key.size == strlen(name) && !memcmp(key.data, name, key.size);
}

/* "id, title, price" for messages. */
static void list_keys(json_line *l, pith_str line, char *list, size_t size) {
    pith__json j;
    pith_str key;
    size_t used = 0;
    list[0] = 0;
    scan_begin(&j, l, line);
    pith__json_object(&j);
    while (pith__json_next_key(&j, &key) && used + 80 < size) {
        used += (size_t)snprintf(list + used, size - used, "%s" PITH_CUT_FMT, used ? ", " : "",
                                 PITH_CUT(key, 60));
        pith__json_skip(&j);
    }
}

/* NULL: there is no value. */
static const char *json_line_kind_of(pith_str value) {
    if (!value.size) return NULL;
    switch (value.data[0]) {
    case '{': return "an object";
    case '[': return "an array";
    case 'n': return "null";
    case 't': return "true";
    case 'f': return "false";
    default: return "a number";
    }
}

static bool no_text(json_line *l, pith_str line, const char *field, pith_str value) {
    char keys[500];
    const char *kind = json_line_kind_of(value);
    list_keys(l, line, keys, sizeof keys);
    if (kind)
        pith__text_print(l->message, sizeof l->message,
                         "the field '" PITH_CUT_FMT "' holds %s, not a string",
                         PITH_CUT(pith__str_of(field), 100), kind);
    else
        pith__text_print(l->message, sizeof l->message,
                         "there is no field '" PITH_CUT_FMT "'; the object %s%s",
                         PITH_CUT(pith__str_of(field), 100), *keys ? "has " : "is empty", keys);
    return false;
}

/* The text of a JSON string, which was checked. */
static bool decode(json_line *l, pith_str *text, const char *field, pith_str value) {
    pith__json j;
    const pith_str raw = { value.data + 1, value.size - 2 };
    if (!memchr(raw.data, '\\', raw.size)) {
        *text = raw;
        return true;
    }
    scan_begin(&j, l, value);
    *text = pith__json_string(&j);
    if (!j.halves || l->replace) return true;
    pith__text_print(
        l->message, sizeof l->message,
        "the field '" PITH_CUT_FMT
        "' has half of a surrogate pair, which is not a character (--invalid replace puts "
        "U+FFFD in its place)",
        PITH_CUT(pith__str_of(field), 100));
    return false;
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
    pith__json j;
    pith_str key;
    bool first = true;
    scan_begin(&j, l, line);
    if (pith__json_peek(&j) != PITH_JSON_OBJECT) {
        pith__text_print(l->message, sizeof l->message, "this is not a JSON object");
        return false;
    }
    pith__json_object(&j);
    for (const char *begin = j.at; pith__json_next_key(&j, &key); begin = j.at) {
        pith_str value = pith__json_raw(&j);
        for (size_t i = 0; i < count; i++)
            if (is_key(key, fields[i])) values[i] = value;
        if (!kept || !is_kept(l, key)) continue;
        keep_member(kept, begin, j.at, first);
        first = false;
    }
    pith__json_finish(&j);
    if (j.failed) pith__text_print(l->message, sizeof l->message, "%s", l->fault.message);
    if (kept && !j.failed) bytes_add(kept, first ? "{" : ",", 1);
    return !j.failed;
}

bool json_line_texts(json_line *l, pith_str *texts, pith_str line, const char *const *fields,
                     size_t count, bytes *kept) {
    line = skip_mark(line);
    pith__arena_free(&l->decoded);
    for (size_t i = 0; i < count; i++) texts[i] = (pith_str){ NULL, 0 };
    if (!scan_object(l, texts, line, fields, count, kept)) return false;
    for (size_t i = 0; i < count; i++) {
        if (!texts[i].size || texts[i].data[0] != '"') return no_text(l, line, fields[i], texts[i]);
        if (!decode(l, &texts[i], fields[i], texts[i])) return false;
    }
    return true;
}

/* ---- questions ---- */

static bool line_refuse(json_line *l, const char *why) {
    pith__text_print(l->message, sizeof l->message, "%s", why);
    return false;
}

static bool starts_with(pith_str value, char c) { return value.size && value.data[0] == c; }

bool json_line_question(json_line *l, pith_str *query, pith_str **documents, size_t *count,
                        pith_str line) {
    static const char *const fields[] = { "query", "documents" };
    pith_str values[2] = { { NULL, 0 }, { NULL, 0 } };
    pith__json j;
    pith__arena_free(&l->decoded);
    if (!scan_object(l, values, skip_mark(line), fields, 2, NULL)) return false;
    if (!starts_with(values[0], '"'))
        return line_refuse(l,
                           "there is no string \"query\"; with --query, every line is a document");
    if (!starts_with(values[1], '[')) return line_refuse(l, "there is no array \"documents\"");
    if (!decode(l, query, fields[0], values[0])) return false;
    *count = 0;
    scan_begin(&j, l, values[1]);
    pith__json_array(&j);
    while (pith__json_next_item(&j)) {
        const pith_str value = pith__json_raw(&j);
        if (!starts_with(value, '"')) return line_refuse(l, "a document is not a string");
        *documents = grow_for(*documents, *count, sizeof **documents);
        if (!decode(l, &(*documents)[(*count)++], fields[1], value)) return false;
    }
    return true;
}

/* ---- ids ---- */

static int32_t read_id(pith__json *j) {
    int64_t id = pith__json_int(j);
    if (!j->failed && (id < 0 || id > INT32_MAX))
        pith__json_fail(j, PITH_ERR_FORMAT, "%lld is not a token id", (long long)id);
    return j->failed ? 0 : (int32_t)id;
}

static void read_ids(pith__json *j, int32_t **ids, size_t *count) {
    *count = 0;
    pith__json_array(j);
    while (pith__json_next_item(j)) {
        int32_t id = read_id(j);
        if (j->failed) return;
        *ids = grow_for(*ids, *count, sizeof **ids);
        (*ids)[(*count)++] = id;
    }
}

bool json_line_ids(json_line *l, int32_t **ids, size_t *count, pith_str line, bool single) {
    pith__json j;
    pith_str key;
    pith__arena_free(&l->decoded);
    scan_begin(&j, l, skip_mark(line));
    const pith__json_kind kind = pith__json_peek(&j);
    if (kind == PITH_JSON_OBJECT) {
        bool found = false;
        pith__json_object(&j);
        while (pith__json_next_key(&j, &key)) {
            if (!is_key(key, "ids")) {
                pith__json_skip(&j);
                continue;
            }
            found = true;
            read_ids(&j, ids, count);
        }
        if (!found) pith__json_fail(&j, PITH_ERR_FORMAT, "there is no field 'ids'");
    } else if (single && kind == PITH_JSON_NUMBER) {
        *ids = grow_for(*ids, 0, sizeof **ids);
        (*ids)[0] = read_id(&j);
        *count = 1;
    } else {
        read_ids(&j, ids, count);
    }
    pith__json_finish(&j);
    return !j.failed || line_refuse(l, l->fault.message);
}
