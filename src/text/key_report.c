/* key_report.c - see key_report.h. */
#include "text/key_report.h"

pith_status pith_key_note(pith_loader *loader, const char *file, pith_str key, pith_key_fate fate) {
    pith_tokenizer *t = loader->tokenizer;
    size_t i = 0;
    if (loader->frozen.data) return PITH_OK;
    while (i < t->key_count && !pith_str_is(t->keys[i].file, file)) i++;
    if (i == t->key_count) {
        void *grown = t->keys;
        if (!pith_arena_grow(t->arena, &grown, i, &t->key_capacity, sizeof *t->keys))
            return pith_fail_memory(loader->err, sizeof *t->keys);
        t->keys = grown;
        t->keys[i] = (pith_key_report){ .file = pith_arena_str(t->arena, pith_str_of(file)) };
        for (int k = 0; k < PITH_KEY_FATES; k++) t->keys[i].keys[k] = PITH_STR("");
        if (!t->keys[i].file.data) return pith_fail_memory(loader->err, 64);
        t->key_count++;
    }
    pith_str *list = &t->keys[i].keys[fate];
    *list = pith_arena_printf(t->arena, PITH_STR_FMT "%s" PITH_STR_FMT, PITH_STR_ALL(*list), list->size ? ", " : "",
                              PITH_STR_ALL(key));
    return list->data ? PITH_OK : pith_fail_memory(loader->err, key.size);
}

const pith_key_report *pith_tokenizer_key_reports(const pith_tokenizer *tokenizer, size_t *count) {
    *count = tokenizer->key_count;
    return tokenizer->keys;
}
