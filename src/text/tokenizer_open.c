/* tokenizer_open.c - opens a tokenizer: which files are there, and the parsed steps put together.
 *
 * tokenizer.json is one source among others (select/tokenizers.def lists them). Every source ends
 * in the same list of steps. The file is not needed after loading: tables are copies in the
 * tokenizer's arena. */
#include <assert.h>

#include "base/left_out_pieces.h"
#include "base/piece_listener.h"
#include "text/added_tokens.h"
#include "text/frozen_tokenizer.h"
#include "text/encoding.h"
#include "text/first_tokens.h"
#include "text/post_processing.h"
#include "text/sources/config_files.h"
#include "text/sources/key_report.h"
#include "text/sources/tokenizer_source.h"
#include "text/sources/token_class.h"

/* ---- steps from JSON ---- */

/* The value of "type" in the object before the scanner, which does not move; data NULL if there is
 * none. */
static pith_str step_type(pith__json *j, pith__loader *loader) {
    pith_str key, type = { NULL, 0 };
    pith__json *ahead = pith__arena_alloc(loader->scratch, sizeof *ahead);
    if (!ahead) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return type;
    }
    *ahead = *j;
    pith__json_object(ahead);
    while (!type.data && pith__json_next_key(ahead, &key)) {
        if (pith__str_is(key, "type"))
            type = pith__json_string(ahead);
        else
            pith__json_skip(ahead);
    }
    if (ahead->failed) j->failed = true;
    return type;
}

const char pith__step_replaced = 0;

static bool push_step(pith__loader *loader, pith__step_list *list, const void *desc,
                      const void *self) {
    if (!pith__arena_grow(loader->arena, (void **)&list->steps, list->count, &list->capacity,
                          sizeof *list->steps))
        return false;
    list->steps[list->count++] = (pith__text_step){ desc, self };
    return true;
}

bool pith__loader_add_normalizer(pith__loader *loader, const pith__normalizer_desc *desc,
                                 const void *self) {
    return push_step(loader, &loader->tokenizer->normalizers, desc, self);
}

/* Passes over a step that only this build lacks: loader_finish names all of them. */
static bool loader_lacks(pith__json *j, pith__loader *loader, const char *list, pith_str name) {
    if (!pith__piece_is_dropped(list, name)) return false;
    pith__json_skip(j);
    pith__lacks_note(&loader->lacks, list, name, "");
    return true;
}

/* Reads a step's settings with the parser of its kind and appends the step to the list. A step
 * without settings of its own still has every key looked at, so that unknown keys are reported. */
static void loader_add_step(pith__json *j, pith__loader *loader, pith__step_list *list,
                            const void *desc, pith__parse_fn *parse, const char *kind,
                            pith_str type) {
    const void *self = NULL;
    pith_str key;
    if (!desc) {
        if (loader_lacks(j, loader, kind[0] == 'n' ? "normalizers" : "pre_tokenizers", type))
            return;
        pith__json_fail(j, PITH_ERR_UNSUPPORTED, "unknown %s \"" PITH_STR_FMT "\"", kind,
                        PITH_STR_ARG(type));
        return;
    }
    if (parse)
        parse(&self, j, loader);
    else
        for (pith__json_object(j); pith__json_next_key(j, &key);)
            pith__key_other(j, loader, key,
                            kind[0] == 'd' ? "add_prefix_space trim_offsets use_regex" : "");
    if (!j->failed && self != PITH_STEP_REPLACED && !push_step(loader, list, desc, self))
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
}

/* One step, or the steps of a Sequence, whose list stands under the given key. */
static void parse_steps(pith__json *j, pith__loader *loader, const char *kind) {
    pith_tokenizer *t = loader->tokenizer;
    pith_str key;
    if (pith__json_null(j)) return;
    pith_str type = step_type(j, loader);
    if (j->failed) return;
    if (!type.data)
        pith__json_fail(j, PITH_ERR_FORMAT, "a %s has no type", kind);
    else if (pith__str_is(type, "Sequence")) {
        pith__json_object(j);
        while (pith__json_next_key(j, &key)) {
            if (pith__str_is(key, "type"))
                pith__json_skip(j);
            else {
                pith__json_array(j);
                while (pith__json_next_item(j)) parse_steps(j, loader, kind);
            }
        }
    } else if (kind[0] == 'n') {
        const pith__normalizer_desc *d = pith__normalizer_find(type);
        loader_add_step(j, loader, &t->normalizers, d, d ? d->parse : NULL, kind, type);
    } else if (kind[0] == 'p') {
        const pith__pretokenizer_desc *d = pith__pretokenizer_find(type);
        loader_add_step(j, loader, &t->pretokenizers, d, d ? d->parse : NULL, kind, type);
    } else {
        const pith__decoder_desc *d = pith__decoder_find(type);
        if (d)
            loader_add_step(j, loader, &t->decoders, d, d->parse, kind, type);
        else { /* encoding works without: detokenizing names it */
            pith__json_skip(j);
            pith_str name = pith__json_copy(j, loader->arena, type);
            if (!push_step(loader, &t->decoders, NULL, name.data))
                pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        }
    }
}

/* The type of a model that does not say it, as files of old versions do not: by keys that only one
 * type has. WordLevel has none of them. */
static pith_str model_type_by_keys(pith__json *j, pith__loader *loader) {
    pith_str key, type = PITH_STR("WordLevel");
    pith__json *ahead = pith__arena_alloc(loader->scratch, sizeof *ahead);
    if (!ahead) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return type;
    }
    *ahead = *j;
    pith__json_object(ahead);
    while (pith__json_next_key(ahead, &key)) {
        if (pith__str_is(key, "merges"))
            type = PITH_STR("BPE");
        else if (pith__str_is(key, "unk_id"))
            type = PITH_STR("Unigram");
        else if (pith__str_is(key, "max_input_chars_per_word"))
            type = PITH_STR("WordPiece");
        pith__json_skip(ahead);
    }
    if (ahead->failed) j->failed = true;
    return type;
}

static void parse_model(pith__json *j, pith__loader *loader) {
    const void *self = NULL;
    pith_str type = step_type(j, loader);
    if (!type.data && !j->failed) type = model_type_by_keys(j, loader);
    if (j->failed) return;
    const pith__model_desc *desc = pith__model_find(type);
    if (!desc) {
        if (loader_lacks(j, loader, "tokenizer_models", type)) return;
        pith__json_fail(j, PITH_ERR_UNSUPPORTED, "unknown model \"" PITH_STR_FMT "\"",
                        PITH_STR_ARG(type));
        return;
    }
    desc->parse(&self, j, loader);
    if (!j->failed) pith__loader_set_model(loader, desc, self);
}

void pith__loader_set_model(pith__loader *loader, const pith__model_desc *desc, const void *self) {
    loader->tokenizer->model = desc;
    loader->tokenizer->model_self = self;
}

/* Keeps what was read of the settings, for frozen tokenizers. */
static void keep_setting(pith__json *j, pith__loader *loader, pith_str key, pith_str json) {
    static const char *const kept[] = { "normalizer",     "pre_tokenizer", "decoder",
                                        "post_processor", "truncation",    "padding" };
    pith_tokenizer *t = loader->tokenizer;
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (j->failed) break;
        if (!pith__str_is(key, kept[i])) continue;
        json = pith__json_copy(j, loader->arena, json);
        if (!pith__arena_grow(loader->arena, (void **)&t->settings, t->setting_count,
                              &t->setting_capacity, sizeof *t->settings))
            pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        else
            t->settings[t->setting_count++] = (pith__setting){ kept[i], json };
    }
}

/* One top-level member of tokenizer.json. Its JSON text is kept as a setting, from which a frozen
 * tokenizer is written later. */
static void parse_kind(pith__json *j, pith__loader *loader, pith_str kind) {
    const char *begin = j->at;
    if (pith__str_is(kind, "normalizer"))
        parse_steps(j, loader, "normalizer");
    else if (pith__str_is(kind, "pre_tokenizer"))
        parse_steps(j, loader, "pre-tokenizer");
    else if (pith__str_is(kind, "decoder"))
        parse_steps(j, loader, "decoder");
    else if (pith__str_is(kind, "post_processor"))
        pith__post_processing_parse(j, loader);
    else if (pith__str_is(kind, "model"))
        parse_model(j, loader);
    else if (pith__str_is(kind, "truncation"))
        pith__truncation_parse(j, loader, &loader->tokenizer->post_processing->truncation);
    else if (pith__str_is(kind, "padding"))
        pith__padding_parse(j, loader, &loader->tokenizer->post_processing->padding);
    else
        pith__json_skip(j);
    keep_setting(j, loader, kind, (pith_str){ begin, (size_t)(j->at - begin) });
}

/* What went wrong; a step that failed without a word has run out of memory. */
static pith_status failure(pith__loader *loader) {
    return loader->err->code ? loader->err->code : pith__fail_memory(loader->err, 1);
}

pith_status pith__loader_add(pith__loader *loader, const char *kind, pith_str json) {
    pith__json *j = pith__arena_alloc(loader->scratch, sizeof *j);
    if (!j) return pith__fail_memory(loader->err, sizeof *j);
    pith__json_init(j, json, kind, loader->scratch, loader->err);
    j->stop = loader->stop;
    parse_kind(j, loader, pith__str_of(kind));
    pith__json_finish(j);
    return j->failed ? failure(loader) : PITH_OK;
}

pith_str pith__loader_setting(const pith__loader *loader, const char *kind) {
    const pith_tokenizer *t = loader->tokenizer;
    pith_str json = PITH_STR("null");
    size_t found = 0;
    for (size_t i = 0; i < t->setting_count; i++)
        if (strcmp(t->settings[i].key, kind) == 0 && !found++) json = t->settings[i].json;
    return found == 1 ? json : PITH_STR("null");
}

pith_status pith__loader_replace(pith__loader *loader, const char *kind, pith_str json) {
    pith_tokenizer *t = loader->tokenizer;
    size_t n = 0;
    (kind[0] == 'n' ? &t->normalizers : &t->pretokenizers)->count = 0;
    for (size_t i = 0; i < t->setting_count; i++)
        if (strcmp(t->settings[i].key, kind) != 0) t->settings[n++] = t->settings[i];
    t->setting_count = n;
    return pith__loader_add(loader, kind, json);
}

/* ---- tokenizer.json ---- */

/* Its own keys; which of those in the steps are read is up to the steps. */
static pith_status loader_note_key(pith__json *j, pith__loader *loader, pith_str key) {
    static const char *const read[] = { "added_tokens",   "decoder",   "model",
                                        "normalizer",     "padding",   "pre_tokenizer",
                                        "post_processor", "truncation" };
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        if (pith__str_is(key, read[i]))
            return loader->json_name ? pith__key_note(loader, loader->json_name, key, PITH_KEY_READ)
                                     : PITH_OK;
    pith__json ahead = *j; /* parse_kind passes over it */
    pith__key_other(&ahead, loader, key, "version pith_truncates");
    return PITH_OK;
}

/* Reads tokenizer.json in one pass. Added tokens are read last, wherever they stand in the file,
 * because their ids come from the model. The scanner's state at their place is kept for that. */
pith_status pith__loader_read_json(pith__loader *loader, const char *path, pith_str bytes) {
    const char *slash = strrchr(path, '/');
    pith__json *j = pith__arena_alloc(loader->scratch, 2 * sizeof *j), *added = j ? j + 1 : NULL;
    bool has_added = false;
    pith_str key;
    if (!j) return pith__fail_memory(loader->err, 2 * sizeof *j);
    pith__json_init(j, bytes, slash ? slash + 1 : path, loader->scratch, loader->err);
    j->stop = loader->stop;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (loader->json_name) PITH_TRY(loader_note_key(j, loader, key));
        if (pith__str_is(key, "added_tokens")) { /* ids come from the model, which may stand after
                                                    them */
            *added = *j;
            has_added = true;
            pith__json_skip(j);
        } else
            parse_kind(j, loader, key);
    }
    pith__json_finish(j);
    if (!j->failed) PITH_TRY(pith__lacks_check(&loader->lacks, loader->err));
    if (!j->failed && !loader->tokenizer->model) pith__json_fail(j, PITH_ERR_FORMAT, "no model");
    if (j->failed) return failure(loader);
    if (has_added) {
        pith__json_array(added);
        while (pith__json_next_item(added)) pith__added_tokens_parse(added, loader);
        if (added->failed) return failure(loader);
    }
    return PITH_OK;
}

static pith_status load_tokenizer_json(pith__loader *loader, const char *path, pith_str bytes) {
    const char *slash = strrchr(path, '/');
    if (!loader->frozen.data) loader->json_name = slash ? slash + 1 : path;
    pith_status status = pith__loader_read_json(loader, path, bytes);
    loader->json_name = NULL;
    return status;
}

const pith__tokenizer_source pith__source_tokenizer_json = { "tokenizer.json",     0,
                                                             { "tokenizer.json" }, ".json",
                                                             load_tokenizer_json,  NULL };

/* ---- choosing files ---- */

static bool ends_with(const char *path, pith_str end) {
    size_t n = strlen(path);
    return n >= end.size && memcmp(path + n - end.size, end.data, end.size) == 0;
}

static bool has_name(const pith__tokenizer_source *source, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (int i = 0; i < PITH_SOURCE_FILES && source->files[i]; i++)
        if (strcmp(name, source->files[i]) == 0) return true;
    return false;
}

static bool has_suffix(const pith__tokenizer_source *source, const char *path) {
    for (const char *p = source->suffixes; p && *p;) {
        size_t n = strcspn(p, " ");
        if (ends_with(path, (pith_str){ p, n })) return true;
        p += n + strspn(p + n, " ");
    }
    return false;
}

/* Files of sources that this build was made without, if they would have gone before the one that
 * was found (NULL: none was): another one's tokens are not theirs. */
static pith_status check_left_out(pith__loader *loader, const char *dir,
                                  const pith__tokenizer_source *found) {
    static const struct {
        const char *list, *file;
        int rank;
    } files[] = {
        { "tokenizer_json", "tokenizer.json", 0 },
        { "sentencepiece", "sentencepiece.bpe.model", 20 },
        { "sentencepiece", "spiece.model", 20 },
        { "sentencepiece", "tokenizer.model", 20 },
        { "sentencepiece", "spm.model", 20 },
        { "sentencepiece", "sentencepiece.model", 20 },
        { "bpe_files", "vocab.json", 30 },
        { "vocab_txt", "vocab.txt", 40 },
        { "tiktoken", "tokenizer.tiktoken", 50 },
        { "gguf", "model.gguf", 60 },
    };
    if (pith__dropped_names[0])
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            pith_str path;
            bool there;
            if (found && files[i].rank >= found->rank) continue;
            PITH_TRY(
                pith__file_find(&there, &path, loader->scratch, dir, files[i].file, loader->err));
            if (!there) continue;
            PITH_TRY(pith__piece_check_for("tokenizer_sources", pith__str_of(files[i].list),
                                           files[i].file, loader->err));
        }
    return PITH_OK;
}

/* The source of the lowest rank one of whose files lies in the directory. */
static pith_status find_in_dir(const pith__tokenizer_source **found, pith_str *path,
                               pith__loader *loader, const char *dir) {
    pith_str tried = { "", 0 };
    *found = NULL;
    for (size_t s = 0; pith__tokenizer_sources[s]; s++) {
        const pith__tokenizer_source *source = pith__tokenizer_sources[s];
        for (int i = 0; i < PITH_SOURCE_FILES && source->files[i]; i++) {
            pith_str candidate;
            bool there;
            tried = pith__arena_printf(loader->scratch, "%s%s%s", tried.data,
                                       tried.size ? ", " : "", source->files[i]);
            if (!tried.data) return pith__fail_memory(loader->err, 1);
            if (*found && source->rank >= (*found)->rank) continue;
            PITH_TRY(pith__file_find(&there, &candidate, loader->scratch, dir, source->files[i],
                                     loader->err));
            if (!there) continue;
            *found = source;
            *path = candidate;
        }
    }
    PITH_TRY(check_left_out(loader, dir, *found));
    if (*found) return PITH_OK;
    pith_error lacks = PITH_ERROR_INIT;
    const char *between = pith__piece_check_any("tokenizer_sources", &lacks) ? "; " : "";
    return pith__fail(loader->err, PITH_ERR_NOT_FOUND, "%s: no tokenizer files (looked for %s)%s%s",
                      dir, tried.size ? tried.data : "none", between, lacks.message);
}

/* The source that has a file of this name, else the one of the lowest rank that takes its suffix.
 */
static pith_status find_for_file(const pith__tokenizer_source **found, pith__loader *loader,
                                 const char *path) {
    pith_str known = PITH_STR("");
    *found = NULL;
    for (size_t s = 0; pith__tokenizer_sources[s]; s++) {
        const pith__tokenizer_source *source = pith__tokenizer_sources[s];
        if (has_name(source, path)) {
            *found = source;
            return PITH_OK;
        }
        if (has_suffix(source, path) && (!*found || source->rank < (*found)->rank)) *found = source;
        known =
            pith__arena_printf(loader->scratch, "%s%s%s", known.data, s ? ", " : "", source->name);
        if (!known.data) return pith__fail_memory(loader->err, 1);
    }
    if (*found) return PITH_OK;
    PITH_TRY(pith__piece_check_any("tokenizer_sources", loader->err));
    return pith__fail(loader->err, PITH_ERR_UNSUPPORTED,
                      "%s: not the name of a tokenizer file; known are %s", path, known.data);
}

/* What a file is goes before its name: Llama 3's tokenizer.model holds ranks. */
static const pith__tokenizer_source *find_by_content(const pith__tokenizer_source *by_name,
                                                     pith_str bytes) {
    for (size_t s = 0; pith__tokenizer_sources[s]; s++)
        if (pith__tokenizer_sources[s]->is && pith__tokenizer_sources[s]->is(bytes))
            return pith__tokenizer_sources[s];
    return by_name;
}

static pith_status loader_prepare(pith__loader *loader) {
    pith_tokenizer *t = pith__arena_array(loader->arena, 1, sizeof *t);
    pith__tokenizer_config *c = pith__tokenizer_config_create(loader->arena);
    if (!t || !c) return pith__fail_memory(loader->err, sizeof *t);
    t->arena = loader->arena;
    t->unknown_id = -1;
    t->allocator = loader->allocator;
    t->config = loader->config = c;
    loader->tokenizer = t;
    if (!pith__encoding_pool_create(t)) return pith__fail_memory(loader->err, 1);
    PITH_TRY(pith__added_tokens_create(loader));
    return pith__post_processing_create(loader);
}

/* The setting of the normalizer with Lowercase in front, for frozen tokenizers. */
static pith_status loader_lower_setting(pith__loader *loader) {
    static const char alone[] = "{\"type\":\"Lowercase\"}", kind[] = "normalizer";
    pith_tokenizer *t = loader->tokenizer;
    size_t i = 0;
    while (i < t->setting_count && strcmp(t->settings[i].key, kind) != 0) i++;
    const pith_str old = i < t->setting_count ? t->settings[i].json : PITH_STR("null");
    pith_str json = PITH_STR(alone),
             parts[] = { PITH_STR("{\"type\":\"Sequence\",\"normalizers\":["), PITH_STR(alone),
                         PITH_STR(","), old, PITH_STR("]}") };
    if (!pith__str_is(old, "null")) {
        char *text = pith__arena_alloc(loader->arena, old.size + 128), *at = text;
        if (!text) return pith__fail_memory(loader->err, old.size);
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
            memcpy(at, parts[p].data, parts[p].size);
            at += parts[p].size;
        }
        json = (pith_str){ text, (size_t)(at - text) };
    }
    if (i == t->setting_count && !pith__arena_grow(loader->arena, (void **)&t->settings, i,
                                                   &t->setting_capacity, sizeof *t->settings))
        return pith__fail_memory(loader->err, sizeof *t->settings);
    t->setting_count += i == t->setting_count;
    t->settings[i] = (pith__setting){ kind, json };
    return PITH_OK;
}

/* Puts the step Lowercase in front of the others, unless it is one of them. Source:
 * sentence-transformers, Transformer.__init__, do_lower_case. */
static pith_status loader_add_lower(pith__loader *loader) {
    pith__step_list *list = &loader->tokenizer->normalizers;
    const pith__normalizer_desc *lower = pith__normalizer_find(PITH_STR("Lowercase"));
    if (!lower) return pith__piece_check("normalizers", PITH_STR("Lowercase"), loader->err);
    for (size_t i = 0; i < list->count; i++)
        if (list->steps[i].desc == lower) return PITH_OK;
    if (!push_step(loader, list, lower, NULL))
        return pith__fail_memory(loader->err, sizeof *list->steps);
    memmove(list->steps + 1, list->steps, (list->count - 1) * sizeof *list->steps);
    list->steps[0] = (pith__text_step){ lower, NULL };
    return loader_lower_setting(loader);
}

static pith_status loader_finish(pith__loader *loader) {
    pith_tokenizer *t = loader->tokenizer;
    PITH_TRY(pith__lacks_check(&loader->lacks, loader->err));
    if (!t->model) return pith__fail(loader->err, PITH_ERR_FORMAT, "no model");
    /* Otherwise pieces are spans of the source. */
    pith__token_class_settle(loader);
    t->needs_origins = t->needs_origins && (t->normalizers.count || t->pretokenizers.count > 1);
    PITH_TRY(pith__added_tokens_finish(loader));
    if (t->model->adopt && !(t->model_self = t->model->adopt(t->model_self, loader)))
        return loader->err->code;
    PITH_TRY(pith__first_tokens_find_out(loader));
    if (t->model->fuse && (!t->normalizers.count || !t->added_tokens->normalized.count))
        t->fused = t->model->fuse(t->model_self, loader);
    return loader->err->code;
}

/* The tokens that files beside a vocabulary list and name. */
static pith_status loader_add_tokens(pith__loader *loader) {
    PITH_TRY(pith__listed_tokens_add(loader, true));
    return pith__special_tokens_add(loader, loader->class, loader->mask_flags);
}

/* Opens a directory or a file: finds the source by names, reads the configuration beside it, lets
 * the source load, and then applies what the tokenizer class adds. The file is closed before the
 * tokenizer is used. */
static pith_status load_path(pith__loader *loader, const char *path, unsigned how, bool copy) {
    const pith__tokenizer_source *source;
    pith_str file_path = pith__str_of(path), dir = file_path;
    if (pith__dir_there(path, loader->allocator))
        PITH_TRY(find_in_dir(&source, &file_path, loader, path));
    else {
        bool there;
        PITH_TRY(pith__file_there(&there, path, loader->allocator, loader->err));
        if (!there)
            return pith__fail(loader->err, PITH_ERR_NOT_FOUND, "%s: no such file or directory",
                              path);
        PITH_TRY(find_for_file(&source, loader, path));
        const char *slash = strrchr(path, '/');
        dir = slash
                  ? pith__arena_str(loader->scratch, (pith_str){ path, (size_t)(slash - path) + 1 })
                  : PITH_STR(".");
        if (!dir.data) return pith__fail_memory(loader->err, strlen(path));
    }
    const bool alone = how & PITH_TOKENIZER_ALONE;
    if (!alone || source != &pith__source_tokenizer_json)
        PITH_TRY(pith__tokenizer_config_read(loader, dir.data, copy));
    loader->tokenizer->truncates = how & PITH_TOKENIZER_CUTS;
    pith__file file;
    PITH_TRY(pith__source_open(&file, loader, file_path.data, copy));
    pith_str bytes = { (const char *)file.data, file.size };
    source = find_by_content(source, bytes);
    pith__piece_used(source);
    pith_status status = source->load(loader, file_path.data, bytes);
    if (!status && source != &pith__source_tokenizer_json)
        status = loader_add_tokens(loader);
    else if (!status && !alone)
        status = pith__token_class_apply(loader);
    if (!status && how & PITH_TOKENIZER_LOWER) status = loader_add_lower(loader);
    if (!status && !(loader->tokenizer->file = pith__arena_str(loader->arena, file_path)).data)
        status = pith__fail_memory(loader->err, file_path.size);
    if (!status) status = loader_finish(loader);
    pith__file_close(&file);
    return status;
}

static pith_status load_frozen(pith__loader *loader) {
    pith_str json;
    PITH_TRY(pith__frozen_check(loader->frozen, loader->err));
    loader->tokenizer->from_frozen = true;
    if (!(json.data = pith__frozen_table(loader, "settings", 1, &json.size)))
        return loader->err->code;
    PITH_TRY(pith__tokenizer_config_parse(loader, "settings", json));
    loader->tokenizer->truncates = loader->config->truncates;
    return pith__loader_read_json(loader, "settings", json);
}

/* A tokenizer.json, or a file that tells by its content what it is. */
static pith_status load_bytes(pith__loader *loader, pith_str bytes) {
    const pith__tokenizer_source *source = find_by_content(&pith__source_tokenizer_json, bytes);
    PITH_TRY(pith__source_check_size(loader, source->name, bytes.size));
    pith__piece_used(source);
    return source->load(loader, source->name, bytes);
}

/* From path, or bytes, or frozen: the others have no data. */
static pith_status loader_load(pith_tokenizer **tokenizer, const char *path, unsigned how,
                               pith_str bytes, pith_str frozen, const pith_open_options *options,
                               pith__arena *arena, pith_error *err) {
    pith_error own = PITH_ERROR_INIT;
    pith__stop own_stop;
    pith__arena scratch;
    pith__loader loader = {
        .arena = arena, .scratch = &scratch, .err = &own, .path = path, .frozen = frozen
    };
    loader.allocator =
        options && options->call.allocator ? options->call.allocator : &pith__allocator_default;
    loader.stop = options ? pith__stop_begin(&own_stop, &options->call) : NULL;
    loader.log = options && !frozen.data ? options->call.log : NULL;
    pith__arena_init(&scratch, loader.allocator);
    pith_status status = pith__stop_check(loader.stop, &own);
    if (!status) status = loader_prepare(&loader);
    if (!status && path)
        status = load_path(&loader, path, how, options && options->flags & PITH_OPEN_COPY);
    if (!status && bytes.data) status = load_bytes(&loader, bytes);
    if (!status && frozen.data) status = load_frozen(&loader);
    if (!status && !path) status = loader_finish(&loader);
    if (status) status = failure(&loader);
    pith__arena_free(&scratch);
    if (status) {
        pith__tokenizer_unload(loader.tokenizer);
        if (err) *err = own;
        return status;
    }
    assert(pith__tokenizer_check(loader.tokenizer, NULL) != PITH_ERR_FORMAT);
    *tokenizer = loader.tokenizer;
    return PITH_OK;
}

pith_status pith__tokenizer_load(pith_tokenizer **tokenizer, const char *dir_or_file,
                                 const pith_open_options *options, pith__arena *arena,
                                 pith_error *err) {
    const pith_str none = { NULL, 0 };
    return loader_load(tokenizer, dir_or_file, 0, none, none, options, arena, err);
}

pith_status pith__tokenizer_load_as(pith_tokenizer **tokenizer, const char *dir_or_file,
                                    unsigned how, const pith_open_options *options,
                                    pith__arena *arena, pith_error *err) {
    const pith_str none = { NULL, 0 };
    return loader_load(tokenizer, dir_or_file, how, none, none, options, arena, err);
}

pith_status pith__tokenizer_load_bytes(pith_tokenizer **tokenizer, pith_str bytes,
                                       const pith_open_options *options, pith__arena *arena,
                                       pith_error *err) {
    if (!bytes.data) bytes.data = "";
    return loader_load(tokenizer, NULL, 0, bytes, (pith_str){ NULL, 0 }, options, arena, err);
}

pith_status pith__tokenizer_open_frozen(pith_tokenizer **tokenizer, const void *bytes, size_t size,
                                        const pith_open_options *options, pith__arena *arena,
                                        pith_error *err) {
    pith_str frozen = { bytes ? bytes : "", bytes ? size : 0 };
    return loader_load(tokenizer, NULL, 0, (pith_str){ NULL, 0 }, frozen, options, arena, err);
}
