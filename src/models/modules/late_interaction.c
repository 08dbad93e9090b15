/* late_interaction.c - see late_interaction.h.
 *
 * A key that is missing has the default of the program that writes the file. A directory may have
 * both files, one for each program; then that of PyLate counts, as in PyLate. Sources: ColBERT,
 * colbert/infra/config/settings.py, colbert/modeling/tokenization; PyLate 1.6,
 * models/colbert.py. */
#include "models/modules/late_interaction.h"

#include <string.h>

#include "base/error.h"
#include "base/formats/json.h"
#include "base/os/file.h"
#include "base/str.h"
#include "pith/encode.h"

/* Longer texts than any model has positions for. A greater number means no limit. */
#define LENGTH_MAX (1 << 24)

typedef struct late_file {
    pith__late_interaction *late;
    pith__arena *arena;
    bool given; /* the file has keys of PyLate */
    pith__late_fillers *fillers;
    bool lists; /* the file has added_tokens_decoder */
} late_file;

static const char punctuation[] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

/* null: the length has its default. */
static void late_length(pith__json *j, int32_t *length) {
    if (!pith__json_null(j)) *length = (int32_t)pith__json_limit(j, LENGTH_MAX);
}

static void late_flag(pith__json *j, bool *flag) {
    if (!pith__json_null(j)) *flag = pith__json_bool(j);
}

static void late_text(pith__json *j, const late_file *f, pith_str *text) {
    if (!pith__json_null(j)) *text = pith__json_copy(j, f->arena, pith__json_string(j));
}

/* A later list replaces an earlier one, as in Python. */
static void late_words(pith__json *j, late_file *f) {
    pith_str *words = NULL;
    size_t capacity = 0;
    f->late->skipped_count = 0;
    for (pith__json_array(j); pith__json_next_item(j);) {
        void *grown = words;
        if (!pith__arena_grow(f->arena, &grown, f->late->skipped_count, &capacity, sizeof *words)) {
            pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
            return;
        }
        words = grown;
        words[f->late->skipped_count] = PITH_STR("");
        late_text(j, f, &words[f->late->skipped_count++]);
    }
    f->late->skipped = words;
}

/* Every ASCII punctuation character. */
static void late_punctuation(pith__json *j, late_file *f) {
    const size_t count = sizeof punctuation - 1;
    pith_str *words = pith__arena_array(f->arena, count, sizeof *words);
    if (!words) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++) words[i] = (pith_str){ punctuation + i, 1 };
    f->late->skipped = words;
    f->late->skipped_count = count;
}

typedef void late_read_fn(pith__json *j, late_file *f);

/* The defaults are those of PyLate's class ColBERT. A file without any of its keys belongs to
 * another kind of model. */
static void late_read_pylate(pith__json *j, late_file *f) {
    pith__late_interaction *l = f->late;
    pith_str key;
    bool expands = true, attends = false, lists = false;
    *l = (pith__late_interaction){ .markers = { PITH_STR("[D] "), PITH_STR("[Q] ") },
                                   .texts = true,
                                   .lengths = { 180, 32 },
                                   .skips = 1u << PITH_ROLE_DOCUMENT };
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        if (pith__str_is(key, "query_prefix"))
            late_text(j, f, &l->markers[PITH_ROLE_QUERY]), f->given = true;
        else if (pith__str_is(key, "document_prefix"))
            late_text(j, f, &l->markers[PITH_ROLE_DOCUMENT]), f->given = true;
        else if (pith__str_is(key, "query_length"))
            late_length(j, &l->lengths[PITH_ROLE_QUERY]), f->given = true;
        else if (pith__str_is(key, "document_length"))
            late_length(j, &l->lengths[PITH_ROLE_DOCUMENT]), f->given = true;
        else if (pith__str_is(key, "attend_to_expansion_tokens"))
            late_flag(j, &attends);
        else if (pith__str_is(key, "do_query_expansion"))
            late_flag(j, &expands);
        else if (pith__str_is(key, "skiplist_words") && pith__json_peek(j) == PITH_JSON_ARRAY)
            late_words(j, f), lists = true;
        else
            pith__json_skip(j);
    }
    if (!f->given) { /* the file of another model */
        *l = (pith__late_interaction){ .expands = false };
        return;
    }
    l->expands = expands;
    l->attends = expands && attends;
    if (!lists) late_punctuation(j, f);
}

/* artifact.metadata holds the settings of a training, of which these count. The defaults are those
 * of ColBERTConfig. */
static void late_read_colbert(pith__json *j, late_file *f) {
    pith__late_interaction *l = f->late;
    pith_str key;
    bool masks = true;
    *l = (pith__late_interaction){ .markers = { PITH_STR("[unused1]"), PITH_STR("[unused0]") },
                                   .lengths = { 220, 32 },
                                   .skips = 1u << PITH_ROLE_DOCUMENT };
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        if (pith__str_is(key, "query_token_id"))
            late_text(j, f, &l->markers[PITH_ROLE_QUERY]);
        else if (pith__str_is(key, "doc_token_id"))
            late_text(j, f, &l->markers[PITH_ROLE_DOCUMENT]);
        else if (pith__str_is(key, "query_maxlen"))
            late_length(j, &l->lengths[PITH_ROLE_QUERY]);
        else if (pith__str_is(key, "doc_maxlen"))
            late_length(j, &l->lengths[PITH_ROLE_DOCUMENT]);
        else if (pith__str_is(key, "attend_to_mask_tokens"))
            late_flag(j, &l->attends);
        else if (pith__str_is(key, "mask_punctuation"))
            late_flag(j, &masks);
        else
            pith__json_skip(j);
    }
    l->expands = true;
    if (masks) late_punctuation(j, f);
}

/* The file is optional. Its strings are copied, so it need not stay open. */
static pith_status late_read_file(bool *there, late_file *f, const char *dir, const char *name,
                                  late_read_fn *read, const pith_allocator *allocator,
                                  pith_error *err) {
    pith_error fault = PITH_ERROR_INIT; /* of the scanner, which needs one: err may be NULL */
    pith__file file;
    pith__json j;
    pith_str path;
    PITH_TRY(pith__file_find(there, &path, f->arena, dir, name, err));
    if (!*there) return PITH_OK;
    PITH_TRY(pith__file_open(&file, path.data, false, allocator, err));
    pith__json_init(&j, (pith_str){ (const char *)file.data, file.size }, path.data, f->arena,
                    &fault);
    j.python = true;
    read(&j, f);
    pith__json_finish(&j);
    pith__file_close(&file);
    return j.failed ? pith__fail(err, fault.code, "%s", fault.message) : PITH_OK;
}

/* PyLate's file goes before the modules, since its directories have modules.json too. */
pith_status pith__late_interaction_read(pith__late_interaction *late,
                                        const pith__late_interaction *modules, const char *dir,
                                        const pith_allocator *allocator, pith__arena *arena,
                                        pith_error *err) {
    late_file f = { .late = late, .arena = arena };
    bool there;
    *late = (pith__late_interaction){ .expands = false };
    PITH_TRY(late_read_file(&there, &f, dir, "config_sentence_transformers.json", late_read_pylate,
                            allocator, err));
    if (f.given && modules->pool.factor > 0)
        return pith__fail(
            err, PITH_ERR_UNSUPPORTED,
            "modules.json has HierarchicalTokenPooling and config_sentence_transformers.json has "
            "keys of "
            "PyLate (query_prefix, query_length, …), which has no such module: remove one of both");
    if (f.given) return PITH_OK;
    if (modules->masked) {
        *late = *modules;
        return PITH_OK;
    }
    return late_read_file(&there, &f, dir, "artifact.metadata", late_read_colbert, allocator, err);
}

/* A token is its content, or an object that has it. */
static pith_str late_token(pith__json *j, const late_file *f) {
    pith_str token = PITH_STR(""), key;
    if (pith__json_null(j)) return token;
    if (pith__json_peek(j) != PITH_JSON_OBJECT) {
        late_text(j, f, &token);
        return token;
    }
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        if (pith__str_is(key, "content"))
            late_text(j, f, &token);
        else
            pith__json_skip(j);
    }
    return token;
}

/* Of both files of a tokenizer, the tokens by which queries are filled up. */
static void late_read_fillers(pith__json *j, late_file *f) {
    pith_str key;
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        if (pith__str_is(key, "mask_token")) {
            f->fillers->mask = late_token(j, f);
            f->fillers->no_mask = !f->fillers->mask.size;
        } else if (pith__str_is(key, "eos_token")) {
            f->fillers->end = late_token(j, f);
        } else if (pith__str_is(key, "added_tokens_decoder")) {
            f->lists = true;
            pith__json_skip(j);
        } else if (pith__str_is(key, "padding_side") && pith__json_peek(j) == PITH_JSON_STRING) {
            f->fillers->in_front = pith__str_is(pith__json_string(j), "left");
        } else {
            pith__json_skip(j);
        }
    }
}

/* The second file counts only without added_tokens_decoder in the first: newer versions of
 * transformers write everything there. */
pith_status pith__late_fillers_read(pith__late_fillers *fillers, const char *dir,
                                    const pith_allocator *allocator, pith__arena *arena,
                                    pith_error *err) {
    static const char *const names[] = { "tokenizer_config.json", "special_tokens_map.json" };
    late_file f = { .arena = arena, .fillers = fillers };
    *fillers = (pith__late_fillers){ .no_mask = false };
    for (int i = 0; i < 2 && !f.lists; i++) {
        bool there;
        PITH_TRY(late_read_file(&there, &f, dir, names[i], late_read_fillers, allocator, err));
    }
    return PITH_OK;
}
