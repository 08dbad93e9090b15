/* frozen_tokenizer.c - writes and reads frozen tokenizers: sections, and the settings as JSON. */
#include "text/frozen_tokenizer.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "text/added_tokens.h"
#include "text/sources/config_files.h"

/* Sections begin at multiples of a cache line. The other two bound the section table and the names
 * in it. */
enum { ALIGNMENT = 64, SECTIONS_MAX = 16, NAME_SIZE = 16 };

static const char magic[8] = "PithTok";

typedef struct header {
    char magic[8];
    uint32_t version, section_count;
    uint64_t size; /* of the frozen tokenizer */
} header;

typedef struct section {
    char name[NAME_SIZE]; /* filled up with zeros */
    uint64_t begin, size; /* bytes from the start of the frozen tokenizer */
} section;

/* ---- writing ---- */

typedef struct table {
    const char *name;
    const void *data;
    size_t size;
} table;

struct pith__frozen_writer {
    pith__arena *arena;
    table tables[SECTIONS_MAX];
    size_t table_count;
    char *json; /* the settings */
    size_t json_size, json_capacity;
    bool failed; /* memory is out, or a table is too large */
};

void pith__frozen_put(pith__frozen_writer *w, const char *name, const void *data, size_t count,
                      size_t item_size) {
    size_t size = 0;
    w->failed |= w->table_count == SECTIONS_MAX || pith__mul_overflows(count, item_size, &size);
    if (!w->failed) w->tables[w->table_count++] = (table){ name, data, size };
}

static void frozen_put(pith__frozen_writer *w, pith_str text) {
    if (w->failed || text.size > w->json_capacity - w->json_size) {
        size_t capacity = 2 * (w->json_size + text.size) + 1024;
        char *grown = w->failed ? NULL : pith__arena_alloc(w->arena, capacity);
        w->failed = !grown;
        if (w->failed) return;
        if (w->json_size) memcpy(grown, w->json, w->json_size);
        w->json = grown;
        w->json_capacity = capacity;
    }
    if (text.size) memcpy(w->json + w->json_size, text.data, text.size);
    w->json_size += text.size;
}

static void frozen_put_text(pith__frozen_writer *w, const char *text) {
    frozen_put(w, pith__str_of(text));
}

static void put_int(pith__frozen_writer *w, int64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    frozen_put_text(w, digits);
}

static void put_string(pith__frozen_writer *w, pith_str s) {
    frozen_put_text(w, "\"");
    for (size_t i = 0; i < s.size; i++) {
        unsigned char c = (unsigned char)s.data[i];
        char escape[8] = { (char)c, 0 };
        if (c < 0x20)
            snprintf(escape, sizeof escape, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", c);
        frozen_put_text(w, escape);
    }
    frozen_put_text(w, "\"");
}

/* The comma before a member, if it is not the first, and its key. */
static void put_key(pith__frozen_writer *w, const char *key) {
    if (w->json_size && w->json[w->json_size - 1] != '{' && w->json[w->json_size - 1] != '[')
        frozen_put_text(w, ",");
    put_string(w, pith__str_of(key));
    frozen_put_text(w, ":");
}

void pith__frozen_put_string(pith__frozen_writer *w, const char *key, pith_str value) {
    if (!value.data) return;
    put_key(w, key);
    put_string(w, value);
}

void pith__frozen_put_int(pith__frozen_writer *w, const char *key, int64_t value) {
    put_key(w, key);
    put_int(w, value);
}

void pith__frozen_put_bool(pith__frozen_writer *w, const char *key, bool value) {
    put_key(w, key);
    frozen_put_text(w, value ? "true" : "false");
}

/* Added tokens with the ids they have now: a frozen tokenizer does not look them up in the model
 * again. */
static void frozen_put_added(pith__frozen_writer *w, const pith__added_tokens *added) {
    put_key(w, "added_tokens");
    frozen_put_text(w, "[");
    for (size_t i = 0; i < added->count; i++) {
        const pith__added_token *token = &added->tokens[i];
        frozen_put_text(w, i ? ",{" : "{");
        pith__frozen_put_int(w, "id", token->id);
        pith__frozen_put_string(w, "content", token->content);
        for (size_t k = 0; k < PITH_ADDED_FLAGS; k++)
            if (token->flags & pith__added_flags[k].flag)
                pith__frozen_put_bool(w, pith__added_flags[k].key, true);
        frozen_put_text(w, "}");
    }
    frozen_put_text(w, "]");
}

/* The section "settings" reads like a small tokenizer.json, so that the same reader opens it. What
 * came from other files of the model is written as members of its own. */
static void put_settings(pith__frozen_writer *w, const pith_tokenizer *t) {
    frozen_put_text(w, "{");
    for (size_t i = 0; i < t->setting_count; i++) {
        put_key(w, t->settings[i].key);
        frozen_put(w, t->settings[i].json);
    }
    if (t->config->model_max_length)
        pith__frozen_put_int(w, "model_max_length", t->config->model_max_length);
    if (t->left) pith__frozen_put_string(w, "truncation_side", PITH_STR("left"));
    if (t->truncates) pith__frozen_put_bool(w, "pith_truncates", true);
    if (t->added_tokens->specials_are_text) pith__frozen_put_bool(w, "split_special_tokens", true);
    if (t->untyped) {
        put_key(w, "model_input_names");
        frozen_put_text(w, "[]");
    }
    put_key(w, "model");
    frozen_put_text(w, "{");
    pith__frozen_put_string(w, "type", pith__str_of(t->model->name));
    t->model->save(t->model_self, w);
    frozen_put_text(w, "}");
    frozen_put_added(w, t->added_tokens);
    frozen_put_text(w, "}");
    pith__frozen_put(w, "settings", w->json, w->json_size, 1);
}

static size_t align(size_t size) { return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1); }

/* Lays the sections out one after another, each at a multiple of ALIGNMENT. Gaps are zeroed, so
 * that the same tokenizer always gives the same bytes. */
pith_status pith__tokenizer_freeze(pith_str *frozen, const pith_tokenizer *t, pith__arena *arena,
                                   pith_error *err) {
    pith__frozen_writer w = { .arena = arena };
    size_t size = align(sizeof(header) + SECTIONS_MAX * sizeof(section)), at = size;
    put_settings(&w, t);
    for (size_t i = 0; i < w.table_count; i++) size = align(size + w.tables[i].size);
    char *bytes = w.failed ? NULL : pith__arena_alloc64(arena, size);
    if (!bytes) return pith__fail_memory(err, size);
    memset(bytes, 0, at);
    header head = { .version = PITH_FROZEN_VERSION,
                    .section_count = (uint32_t)w.table_count,
                    .size = size };
    memcpy(head.magic, magic, sizeof magic);
    memcpy(bytes, &head, sizeof head);
    for (size_t i = 0; i < w.table_count; i++) {
        const table *from = &w.tables[i];
        section to = { .begin = at, .size = from->size };
        size_t end = align(at + from->size);
        snprintf(to.name, sizeof to.name, "%s", from->name);
        memcpy(bytes + sizeof head + i * sizeof to, &to, sizeof to);
        if (from->size) memcpy(bytes + at, from->data, from->size);
        memset(bytes + at + from->size, 0, end - at - from->size);
        at = end;
    }
    *frozen = (pith_str){ bytes, size };
    return PITH_OK;
}

/* ---- reading ---- */

static section section_at(pith_str frozen, size_t i) {
    section s;
    memcpy(&s, frozen.data + sizeof(header) + i * sizeof s, sizeof s);
    return s;
}

/* Checks the header and that all sections lie inside the bytes. What sections hold is checked by
 * whoever opens them. */
pith_status pith__frozen_check(pith_str frozen, pith_error *err) {
    header head;
    if (frozen.size < sizeof head)
        return pith__fail(err, PITH_ERR_FORMAT, "not a frozen tokenizer");
    if ((uintptr_t)frozen.data % ALIGNMENT)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the frozen tokenizer is not aligned");
    memcpy(&head, frozen.data, sizeof head);
    if (memcmp(head.magic, magic, sizeof magic) != 0)
        return pith__fail(err, PITH_ERR_FORMAT, "not a frozen tokenizer");
    if (head.version != PITH_FROZEN_VERSION)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the frozen tokenizer has version %" PRIu32 ", but this build reads %u",
                          head.version, PITH_FROZEN_VERSION);
    if (head.size != frozen.size || head.section_count > SECTIONS_MAX ||
        frozen.size < sizeof head + SECTIONS_MAX * sizeof(section))
        return pith__fail(err, PITH_ERR_FORMAT, "the frozen tokenizer is cut off");
    for (size_t i = 0; i < head.section_count; i++) {
        section s = section_at(frozen, i);
        if (s.begin % ALIGNMENT || s.begin > frozen.size || s.size > frozen.size - s.begin)
            return pith__fail(err, PITH_ERR_FORMAT, "section %zu is outside the frozen tokenizer",
                              i);
    }
    return PITH_OK;
}

const void *pith__frozen_table(pith__loader *loader, const char *name, size_t item_size,
                               size_t *count) {
    header head;
    memcpy(&head, loader->frozen.data, sizeof head);
    for (size_t i = 0; i < head.section_count; i++) {
        section s = section_at(loader->frozen, i);
        if (strncmp(s.name, name, NAME_SIZE) != 0) continue;
        if (s.size % item_size) break;
        *count = s.size / item_size;
        return loader->frozen.data + s.begin;
    }
    pith__frozen_damaged(loader, name);
    return NULL;
}

pith_status pith__frozen_damaged(pith__loader *loader, const char *name) {
    return pith__fail(loader->err, PITH_ERR_FORMAT,
                      "section '%s' of the frozen tokenizer is missing or damaged", name);
}
