/* open_tokenizer.c - tokenizers that are opened without their model.
 *
 * Such a tokenizer is owned by a struct whose first member is its arena. */
#include "models/open/open_tokenizer.h"

#include <string.h>

#include "base/error.h"
#include "base/caller_options.h"
#include "base/str.h"
#include "models/hub/hub.h"
#include "models/save/save_model.h"
#include "text/model_habits.h"

typedef struct owner {
    pith_arena arena;
    pith_account account;
    pith_files files; /* a compiled model, used in place */
} owner;

static void free_owner(owner *o) {
    pith_allocator host = *pith_account_host(&o->account.allocator);
    pith_files_close(&o->files);
    pith_arena_free(&o->arena);
    pith_memory_free(&host, o);
}

/* *compiled: the file's sections if it is a compiled model, else its writer is NULL. */
static pith_status open_compiled(pith_compiled *compiled, pith_files *files, const char *path, pith_error *err) {
    pith_str bytes;
    *compiled = (pith_compiled){ .writer = NULL };
    if (!pith_file_exists(path)) return PITH_OK;
    PITH_TRY(pith_files_open(&bytes, files, path, err));
    if (!pith_compiled_is(bytes)) {
        pith_files_close(files);
        return PITH_OK;
    }
    pith_status status = pith_compiled_open(compiled, bytes, err);
    return status ? pith_fail_at(err, status, "%s: ", path) : PITH_OK;
}

/* What the model does to texts and tokens, so that the tokens are those that it is fed. */
static void lone_tokenizer_take_habits(pith_tokenizer *t, const pith_modules *m) {
    const int32_t dropped = m->dropped.size ? pith_tokenizer_id(t, m->dropped) : m->dropped_id;
    pith_tokenizer_take_habits(t,
                               (pith_text_habits){ .bare = m->no_specials,
                                                   .drops = dropped >= 0,
                                                   .dropped = dropped,
                                                   .characters = m->cuts_characters ? pith_text_median_token(t) : 0 });
}

unsigned pith_lone_tokenizer_how(const pith_modules *m) {
    return (m->lower_case ? PITH_TOKENIZER_LOWER : 0u) | (m->tokenizer_alone ? PITH_TOKENIZER_ALONE : 0u) |
           (m->tokenizer_alone && !m->cuts_characters ? PITH_TOKENIZER_CUTS : 0u);
}

/* A directory's modules say in which folder the tokenizer is and whether it makes texts lower case. What is wrong with
 * them otherwise does not matter here. */
static pith_status open_files(pith_tokenizer **tokenizer, owner *o, pith_str path, const pith_open_options *options,
                              pith_error *err) {
    const pith_modules_source source = { .dir = path.data,
                                         .route = options->route,
                                         .allocator = &o->account.allocator };
    pith_modules modules = PITH_MODULES_INIT;
    pith_error fault = PITH_ERROR_INIT;
    if (pith_dir_exists(path.data)) pith_modules_read(&modules, &source, &o->arena, &fault);
    if (fault.code == PITH_ERR_MEMORY) return pith_fail(err, fault.code, "%s", fault.message);
    if (fault.code) modules = (pith_modules)PITH_MODULES_INIT;
    if (modules.folder.size) PITH_TRY(pith_path_join(&path, &o->arena, path.data, modules.folder, err));
    PITH_TRY(pith_tokenizer_load_as(tokenizer, path.data, pith_lone_tokenizer_how(&modules), options, &o->arena, err));
    lone_tokenizer_take_habits(*tokenizer, &modules);
    return PITH_OK;
}

static pith_status open_path(pith_tokenizer **tokenizer, owner *o, const char *path, const pith_open_options *options,
                             pith_error *err) {
    pith_str found;
    pith_compiled compiled;
    PITH_TRY(pith_hub_find(&found, path, &o->arena, err));
    PITH_TRY(open_compiled(&compiled, &o->files, found.data, err));
    if (!compiled.writer) return open_files(tokenizer, o, found, options, err);
    pith_modules modules;
    pith_status status = pith_compiled_choose(&compiled, options->route, err);
    if (!status) status = pith_compiled_tokenizer(tokenizer, &compiled, options, &o->arena, err);
    if (!status) status = pith_compiled_modules(&modules, &compiled, &o->arena, err);
    if (!status) lone_tokenizer_take_habits(*tokenizer, &modules);
    return status ? pith_fail_at(err, status, "%s: ", found.data) : PITH_OK;
}

pith_status pith_lone_tokenizer_open(pith_tokenizer **tokenizer, const char *path, const pith_open_options *options,
                                     pith_error *err) {
    pith_open_options opened = PITH_OPEN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(opened, options, err);
    const pith_allocator *allocator = opened.allocator ? opened.allocator : &pith_allocator_default;
    owner *o = pith_memory_alloc(allocator, sizeof *o, 64);
    if (!o) return pith_fail_memory(err, sizeof *o);
    *o = (owner){ .files = { .arena = &o->arena, .copy = opened.flags & PITH_OPEN_COPY } };
    pith_account_init(&o->account, allocator, opened.memory_limit, PITH_MEMORY_COST(sizeof *o, 64));
    opened.allocator = &o->account.allocator;
    pith_arena_init(&o->arena, &o->account.allocator);
    pith_tokenizer *t = NULL;
    pith_status status = open_path(&t, o, path, &opened, err);
    status = pith_account_settle(&o->account, status, err);
    if (status) {
        pith_tokenizer_unload(t);
        free_owner(o);
        return status;
    }
    *tokenizer = t;
    return PITH_OK;
}

void pith_lone_tokenizer_close(pith_tokenizer *tokenizer) {
    if (!tokenizer) return;
    owner *o = (owner *)(void *)pith_tokenizer_arena(tokenizer);
    pith_tokenizer_unload(tokenizer);
    free_owner(o);
}

static pith_status lone_tokenizer_read_modules(pith_modules *modules, pith_files *files, const char *path,
                                               pith_error *err) {
    pith_str found;
    pith_compiled compiled;
    PITH_TRY(pith_hub_find(&found, path, files->arena, err));
    PITH_TRY(open_compiled(&compiled, files, found.data, err));
    if (compiled.writer) return pith_compiled_modules(modules, &compiled, files->arena, err);
    if (!pith_dir_exists(found.data)) {
        found = pith_path_parent(files->arena, found);
        if (!found.data) return pith_fail_memory(err, strlen(path));
    }
    const pith_modules_source source = { .dir = found.data, .allocator = files->arena->allocator };
    return pith_modules_read(modules, &source, files->arena, err);
}

pith_status pith_lone_tokenizer_limit(int32_t *tokens, const pith_tokenizer *tokenizer, const char *path,
                                      pith_error *err) {
    pith_arena arena;
    pith_arena_init(&arena, pith_tokenizer_arena(tokenizer)->allocator);
    pith_files files = { .arena = &arena };
    pith_modules modules;
    pith_status status = lone_tokenizer_read_modules(&modules, &files, path, err);
    if (!status) *tokens = pith_modules_max_length(&modules, 0, pith_tokenizer_max_length(tokenizer));
    pith_files_close(&files);
    pith_arena_free(&arena);
    return status;
}
