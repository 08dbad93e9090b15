/* module_multi_vector_mask.c - MultiVectorMask: which tokens of a text have a vector for late
 * interaction. The head "multi_vector" leaves the others out. Source: sentence-transformers 6.2,
 * multi_vector_encoder/modules. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"
#include "pith/encode.h"

static void mask_words(pith__json *j, pith__module_reader *r, pith__late_interaction *l) {
    pith_str *words = NULL;
    size_t capacity = 0;
    l->skipped_count = 0;
    for (pith__json_array(j); pith__json_next_item(j);) {
        void *grown = words;
        if (!pith__arena_grow(r->arena, &grown, l->skipped_count, &capacity, sizeof *words)) {
            pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
            return;
        }
        words = grown;
        words[l->skipped_count++] = pith__json_copy(j, r->arena, pith__json_string(j));
    }
    l->skipped = words;
}

static void mask_ids(pith__json *j, pith__module_reader *r, pith__late_interaction *l) {
    int32_t *ids = NULL;
    size_t capacity = 0;
    l->kept_count = 0;
    for (pith__json_array(j); pith__json_next_item(j);) {
        void *grown = ids;
        if (!pith__arena_grow(r->arena, &grown, l->kept_count, &capacity, sizeof *ids)) {
            pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
            return;
        }
        const int64_t id = pith__json_int(j);
        if (!j->failed && (id < 0 || id > INT32_MAX))
            pith__json_fail(j, PITH_ERR_FORMAT, "is no id of a token");
        ids = grown;
        ids[l->kept_count++] = (int32_t)id;
    }
    l->kept = ids;
}

static void mask_read_config(pith__json *j, pith__module_reader *r, void *to) {
    pith__late_interaction *l = to;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__json_null(j)) continue;
        if (pith__str_is(key, "skiplist_words"))
            mask_words(j, r, l);
        else if (pith__str_is(key, "skiplist_tasks"))
            l->skips = pith__module_roles(j);
        else if (pith__str_is(key, "keep_only_token_ids"))
            mask_ids(j, r, l);
        else
            pith__json_skip(j);
    }
}

static pith_status multi_vector_mask_read(pith__module_reader *r, pith_str folder) {
    pith__late_interaction *l = &r->modules->late;
    bool there = false;
    PITH_TRY(pith__module_needs(r, PITH_STAGE_ROWS));
    l->masked = true;
    l->skips = 1u << PITH_ROLE_DOCUMENT;
    if (folder.size)
        PITH_TRY(pith__module_json(&there, r, folder, "config.json", mask_read_config, l));
    return pith__module_decide(r, "module", folder, there ? "config.json" : NULL,
                               "MultiVectorMask, without vectors for %zu words%s", l->skipped_count,
                               l->kept_count ? ", with vectors for some tokens only" : "");
}

static const pith__module_keys multi_vector_mask_keys = {
    .file = "config.json", .reads = "skiplist_words skiplist_tasks keep_only_token_ids"
};
const pith__module_class pith__module_class_multi_vector_mask = { .name = "MultiVectorMask",
                                                                  .read = multi_vector_mask_read,
                                                                  .keys = &multi_vector_mask_keys };
