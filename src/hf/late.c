/* late.c - see late.h.
 *
 * Sources: ColBERT, colbert/infra/config/settings.py, colbert/modeling/tokenization; PyLate, models/colbert.py. */
#include "hf/late.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "pith/encode.h"

/* Longer texts than any model has positions for. */
#define LENGTH_MAX (1 << 24)

typedef struct late_file {
    pith_hf_late *late;
    pith_arena *arena;
} late_file;

static const char punctuation[] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

static int32_t late_length(pith_json *j) {
    if (pith_json_null(j)) return 0;
    int64_t n = pith_json_int(j);
    return n > 0 && n < LENGTH_MAX ? (int32_t)n : 0;
}

static pith_str late_text(pith_json *j, late_file *f) {
    return pith_json_null(j) ? PITH_STR("") : pith_json_copy(j, f->arena, pith_json_string(j));
}

static void late_words(pith_json *j, late_file *f) {
    pith_str *words = NULL;
    size_t capacity = 0;
    f->late->skipped_count = 0;
    for (pith_json_array(j); pith_json_next_item(j);) {
        void *grown = words;
        if (!pith_arena_grow(f->arena, &grown, f->late->skipped_count, &capacity, sizeof *words)) {
            pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
            return;
        }
        words = grown;
        words[f->late->skipped_count++] = late_text(j, f);
    }
    f->late->skipped = words;
}

/* Every ASCII punctuation character. */
static void late_punctuation(pith_json *j, late_file *f) {
    const size_t count = sizeof punctuation - 1;
    pith_str *words = pith_arena_array(f->arena, count, sizeof *words);
    if (!words) {
        pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++) words[i] = (pith_str){ punctuation + i, 1 };
    f->late->skipped = words;
    f->late->skipped_count = count;
}

typedef void late_read_fn(pith_json *j, late_file *f);

static void late_read_pylate(pith_json *j, late_file *f) {
    pith_hf_late *l = f->late;
    pith_str key;
    bool given = false, expands = true, attends = false;
    for (pith_json_object(j); pith_json_next_key(j, &key);) {
        if (pith_str_is(key, "query_prefix"))
            l->markers[PITH_ROLE_QUERY] = late_text(j, f);
        else if (pith_str_is(key, "document_prefix"))
            l->markers[PITH_ROLE_DOCUMENT] = late_text(j, f);
        else if (pith_str_is(key, "query_length"))
            l->lengths[PITH_ROLE_QUERY] = late_length(j), given = true;
        else if (pith_str_is(key, "document_length"))
            l->lengths[PITH_ROLE_DOCUMENT] = late_length(j), given = true;
        else if (pith_str_is(key, "attend_to_expansion_tokens"))
            attends = pith_json_bool(j);
        else if (pith_str_is(key, "do_query_expansion"))
            expands = pith_json_bool(j);
        else if (pith_str_is(key, "skiplist_words") && pith_json_peek(j) == PITH_JSON_ARRAY)
            late_words(j, f);
        else
            pith_json_skip(j);
    }
    l->expands = given && expands; /* the file of other models has none of this */
    l->attends = attends;
}

static void late_read_colbert(pith_json *j, late_file *f) {
    pith_hf_late *l = f->late;
    pith_str key;
    bool masks = true;
    for (pith_json_object(j); pith_json_next_key(j, &key);) {
        if (pith_str_is(key, "query_token_id"))
            l->markers[PITH_ROLE_QUERY] = late_text(j, f);
        else if (pith_str_is(key, "doc_token_id"))
            l->markers[PITH_ROLE_DOCUMENT] = late_text(j, f);
        else if (pith_str_is(key, "query_maxlen"))
            l->lengths[PITH_ROLE_QUERY] = late_length(j);
        else if (pith_str_is(key, "doc_maxlen"))
            l->lengths[PITH_ROLE_DOCUMENT] = late_length(j);
        else if (pith_str_is(key, "attend_to_mask_tokens"))
            l->attends = pith_json_bool(j);
        else if (pith_str_is(key, "mask_punctuation"))
            masks = pith_json_bool(j);
        else
            pith_json_skip(j);
    }
    l->expands = true;
    if (masks) late_punctuation(j, f);
}

static pith_status late_read_file(bool *there, late_file *f, const char *dir, const char *name, late_read_fn *read,
                                  const pith_allocator *allocator, pith_error *err) {
    pith_error fault = PITH_ERROR_INIT; /* of the scanner, which needs one: err may be NULL */
    pith_file file;
    pith_json j;
    pith_str path;
    PITH_TRY(pith_file_find(there, &path, f->arena, dir, name, err));
    if (!*there) return PITH_OK;
    PITH_TRY(pith_file_open(&file, path.data, false, allocator, err));
    pith_json_init(&j, (pith_str){ (const char *)file.data, file.size }, path.data, f->arena, &fault);
    read(&j, f);
    pith_json_finish(&j);
    pith_file_close(&file);
    return j.failed ? pith_fail(err, fault.code, "%s", fault.message) : PITH_OK;
}

pith_status pith_hf_late_read(pith_hf_late *late, const char *dir, const pith_allocator *allocator, pith_arena *arena,
                              pith_error *err) {
    late_file f = { late, arena };
    bool there;
    *late = (pith_hf_late){ .expands = false };
    PITH_TRY(late_read_file(&there, &f, dir, "artifact.metadata", late_read_colbert, allocator, err));
    if (there) return PITH_OK;
    return late_read_file(&there, &f, dir, "config_sentence_transformers.json", late_read_pylate, allocator, err);
}
