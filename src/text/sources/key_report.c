/* key_report.c - see key_report.h. */
#include "text/sources/key_report.h"

#include <string.h>

#include "base/log.h"

/* Whether the list, words with spaces between, has the word. */
static bool key_report_has(pith_str list, pith_str word) {
    for (size_t at = 0; at + word.size <= list.size; at++) {
        const size_t end = at + word.size;
        const bool begins = at == 0 || list.data[at - 1] == ' ',
                   ends = end == list.size || list.data[end] == ' ';
        if (begins && ends && !memcmp(list.data + at, word.data, word.size)) return true;
    }
    return false;
}

/* Puts a name behind the list. Its room is doubled when it is full, since a file may have any
 * number of keys, and an arena frees nothing singly. */
static bool key_report_append(pith_str *list, size_t *room, pith_str name, pith__arena *arena) {
    const size_t at = list->size ? list->size + 2 : 0, size = at + name.size;
    char *to = (char *)(uintptr_t)list->data;
    if (size >= *room) {
        const size_t grown = 2 * size + 64;
        to = pith__arena_alloc(arena, grown);
        if (!to) return false;
        if (list->size) memcpy(to, list->data, list->size);
        *room = grown;
    }
    if (at) memcpy(to + list->size, ", ", 2);
    if (name.size) memcpy(to + at, name.data, name.size);
    to[size] = '\0';
    *list = (pith_str){ to, size };
    return true;
}

pith_status pith__key_note(pith__loader *loader, const char *file, pith_str key,
                           pith__key_fate fate) {
    pith_tokenizer *t = loader->tokenizer;
    size_t i = 0;
    if (loader->frozen.data) return PITH_OK;
    while (i < t->key_count && !pith__str_is(t->keys[i].file, file)) i++;
    if (i == t->key_count) {
        void *grown = t->keys;
        if (!pith__arena_grow(t->arena, &grown, i, &t->key_capacity, sizeof *t->keys))
            return pith__fail_memory(loader->err, sizeof *t->keys);
        t->keys = grown;
        t->keys[i] = (pith__key_report){ .file = pith__arena_str(t->arena, pith__str_of(file)) };
        for (int k = 0; k < PITH_KEY_FATES; k++) t->keys[i].keys[k] = PITH_STR("");
        if (!t->keys[i].file.data || pith__map_init(&t->keys[i].seen, t->arena, 16))
            return pith__fail_memory(loader->err, 64);
        t->key_count++;
    }
    pith__key_report *r = &t->keys[i];
    const uint32_t known = pith__map_get(&r->seen, key), fates = known == UINT32_MAX ? 0 : known;
    if (fates >> fate & 1) return PITH_OK;
    key = pith__arena_str(t->arena, key);
    if (!key.data || !pith__map_put(&r->seen, key, fates | 1u << fate, NULL) ||
        !key_report_append(&r->keys[fate], &r->room[fate], key, t->arena))
        return pith__fail_memory(loader->err, key.size);
    return PITH_OK;
}

/* The keys on the way to this one, with dots between: "model.dropout". */
static pith_str key_report_place(const pith__json *j, pith__arena *arena, pith_str key) {
    pith_str place = PITH_STR("");
    for (int i = 0; i + 1 < j->depth && place.data; i++)
        if (j->stack[i].is_object)
            place = pith__arena_printf(arena, PITH_STR_FMT PITH_STR_FMT ".", PITH_STR_ALL(place),
                                       PITH_STR_ALL(j->stack[i].key));
    if (!place.data) return place;
    return pith__arena_printf(arena, PITH_STR_FMT PITH_STR_FMT, PITH_STR_ALL(place),
                              PITH_STR_ALL(key));
}

void pith__key_other(pith__json *j, pith__loader *loader, pith_str key, const char *harmless) {
    const bool none = pith__json_peek(j) == PITH_JSON_NULL || pith__str_is(key, "type");
    const bool known = key_report_has(pith__str_of(harmless), key);
    if (loader->json_name && !none && !j->failed) {
        const pith_str place = key_report_place(j, loader->scratch, key);
        if (!place.data || pith__key_note(loader, loader->json_name, place,
                                          known ? PITH_KEY_IGNORED : PITH_KEY_UNKNOWN))
            pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        else if (!known)
            pith__log_write(
                loader->log, PITH_LOG_WARNING,
                "%s: '" PITH_STR_FMT
                "' is not known and is ignored; if it changes tokens in the model's own "
                "package, these differ",
                loader->json_name, PITH_STR_ARG(place));
    }
    pith__json_skip(j);
}

const pith__key_report *pith__tokenizer_key_reports(const pith_tokenizer *tokenizer,
                                                    size_t *count) {
    *count = tokenizer->key_count;
    return tokenizer->keys;
}
