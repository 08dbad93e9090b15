/* json_line.c - see json_line.h. */
#include "cli/input/json_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/formats/json.h"
#include "base/str.h"
#include "base/text_out.h"
#include "cli/output/csv_out.h"

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

void json_line_free(json_line *l) {
    pith__arena_free(&l->decoded);
    free(l->chosen.data);
    free(l->joined.data);
    l->chosen = l->joined = (bytes){ NULL, 0, 0 };
}

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
                         "there is no %s '" PITH_CUT_FMT "'; the %s %s%s%s",
                         l->row ? "column" : "field", PITH_CUT(pith__str_of(field), 100),
                         l->row ? "table" : "object", *keys ? "has " : "is empty", keys,
                         l->lost && *keys ? "; name the one with the text with --column" : "");
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

/* The same with the name "id" in the place of its own. */
static void keep_id(bytes *kept, pith_str value, bool first) {
    bytes_print(kept, "%s\"id\":", first ? "{" : ",");
    bytes_add(kept, value.data, value.size);
}

static bool is_kept(const json_line *l, pith_str key) {
    bool kept = !l->kept;
    if (l->added && is_key(key, l->added)) return false;
    if (l->id && is_key(key, "id")) return false;
    for (const char *const *name = l->dropped; name && *name; name++)
        if (is_key(key, *name)) return false;
    for (size_t i = 0; !kept && i < l->kept->count; i++) kept = is_key(key, l->kept->items[i]);
    return kept;
}

/* Finds the values of the fields, as they are written, and keeps members. False: it is not an
 * object, or it is damaged. */
static bool scan_object(json_line *l, pith_str *values, pith_str line, const char *const *fields,
                        size_t count, bytes *kept) {
    const char *id = l->id ? l->id : "id";
    pith__json j;
    pith_str key;
    bool first = true;
    scan_begin(&j, l, line);
    l->id_value = (pith_str){ NULL, 0 };
    if (pith__json_peek(&j) != PITH_JSON_OBJECT) {
        pith__text_print(l->message, sizeof l->message, "this is not a JSON object");
        return false;
    }
    pith__json_object(&j);
    for (const char *begin = j.at; pith__json_next_key(&j, &key); begin = j.at) {
        pith_str value = pith__json_raw(&j);
        for (size_t i = 0; i < count; i++)
            if (is_key(key, fields[i])) values[i] = value;
        const bool names = is_key(key, id);
        if (names) l->id_value = value;
        if (!kept) continue;
        if (names && l->id)
            keep_id(kept, value, first);
        else if (is_kept(l, key))
            keep_member(kept, begin, j.at, first);
        else
            continue;
        first = false;
    }
    pith__json_finish(&j);
    if (j.failed) pith__text_print(l->message, sizeof l->message, "%s", l->fault.message);
    if (kept && !j.failed) bytes_add(kept, first ? "{" : ",", 1);
    return !j.failed;
}

/* ---- the member with the text ---- */

/* Notes the name of the member that has the texts of all objects. False: there is none, or more
 * than one. */
static bool choose_column(json_line *l, pith_str line) {
    pith__json j;
    pith_str key, usual = { NULL, 0 }, only = { NULL, 0 };
    size_t usuals = 0, members = 0;
    bool string = false;
    scan_begin(&j, l, line);
    if (pith__json_peek(&j) == PITH_JSON_OBJECT)
        for (pith__json_object(&j); pith__json_next_key(&j, &key); members++) {
            const bool asked = l->asks && (is_key(key, "query") || is_key(key, "question"));
            string = pith__json_peek(&j) == PITH_JSON_STRING;
            pith__json_skip(&j);
            only = key;
            if (is_key(key, "text")) usuals = SIZE_MAX / 2;
            if (is_key(key, "text") || (usuals < SIZE_MAX / 2 && (asked || text_column_usual(key))))
                usual = key;
            usuals += asked || text_column_usual(key);
        }
    if (members != 1 || !string || j.failed) only = (pith_str){ NULL, 0 };
    const bool found = !j.failed && (usuals == 1 || usuals >= SIZE_MAX / 2);
    const pith_str name = found ? usual : only;
    const bool good = name.data && !memchr(name.data, 0, name.size);
    l->chosen.size = 0;
    if (good) bytes_add(&l->chosen, name.data, name.size);
    if (good) bytes_add(&l->chosen, "", 1);
    return good;
}

/* Adds the names of the members with the text to `names`; returns how many there are. */
static size_t text_columns(json_line *l, const char **names, pith_str line) {
    const size_t count = l->columns ? l->columns->count : 0;
    for (size_t i = 0; i < count && i < JSON_LINE_COLUMNS; i++) names[i] = l->columns->items[i];
    if (count) return count < JSON_LINE_COLUMNS ? count : JSON_LINE_COLUMNS;
    l->lost = !l->chosen.size && !choose_column(l, line);
    names[0] = l->lost ? "text" : l->chosen.data;
    return 1;
}

static bool take_text(json_line *l, pith_str *text, pith_str line, const char *field,
                      pith_str value) {
    if (value.size && value.data[0] == '"') return decode(l, text, field, value);
    return no_text(l, line, field, value);
}

/* The texts of several members as one. Empty ones are left out. */
static bool join_texts(json_line *l, pith_str *text, pith_str line, const char *const *names,
                       const pith_str *values, size_t count) {
    l->joined.size = 0;
    for (size_t i = 0; i < count; i++) {
        pith_str part;
        if (!take_text(l, &part, line, names[i], values[i])) return false;
        if (l->joined.size && part.size) bytes_add(&l->joined, "\n", 1);
        bytes_add(&l->joined, part.data, part.size);
    }
    *text = bytes_text(&l->joined, 0, l->joined.size);
    return true;
}

bool json_line_texts(json_line *l, pith_str *texts, pith_str line, const char *const *fields,
                     size_t count, bytes *kept) {
    const char *names[JSON_LINE_COLUMNS + 2];
    pith_str values[JSON_LINE_COLUMNS + 2] = { { NULL, 0 } };
    size_t ends[2], used = 0;
    line = skip_mark(line);
    l->lost = false;
    pith__arena_free(&l->decoded);
    for (size_t i = 0; i < count && i < 2; i++) {
        if (fields[i])
            names[used++] = fields[i];
        else
            used += text_columns(l, names + used, line);
        ends[i] = used;
    }
    if (!scan_object(l, values, line, names, used, kept)) return false;
    if (l->id && !l->id_value.size) {
        l->lost = false;
        return no_text(l, line, l->id, l->id_value);
    }
    for (size_t i = 0, at = 0; i < count && i < 2; at = ends[i++]) {
        const bool good = ends[i] - at == 1 ? take_text(l, &texts[i], line, names[at], values[at])
                                            : join_texts(l, &texts[i], line, names + at,
                                                         values + at, ends[i] - at);
        if (!good) return false;
    }
    return true;
}

void json_line_plain(json_line *l, bytes *out, pith_str value) {
    const bool replace = l->replace;
    pith_str text = value;
    if (!value.size || pith__str_is(value, "null")) return;
    l->replace = true;
    if (value.data[0] == '"') decode(l, &text, "", value);
    l->replace = replace;
    bytes_add(out, text.data, text.size);
}

void json_line_cell(json_line *l, bytes *out, pith_str value, char delimiter) {
    bytes plain = { NULL, 0, 0 };
    json_line_plain(l, &plain, value);
    csv_put_text(out, bytes_text(&plain, 0, plain.size), delimiter);
    free(plain.data);
}

pith_str json_line_member(json_line *l, pith_str line, const char *name) {
    pith__json j;
    pith_str key, found = { NULL, 0 };
    line = skip_mark(line);
    scan_begin(&j, l, line);
    pith__json_object(&j);
    while (pith__json_next_key(&j, &key)) {
        const pith_str value = pith__json_raw(&j);
        if (is_key(key, name)) found = value;
    }
    return found;
}

bool json_line_has(json_line *l, pith_str line, const char *name) {
    if (json_line_member(l, line, name).size) return true;
    l->lost = false;
    return no_text(l, skip_mark(line), name, (pith_str){ NULL, 0 });
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
