/* tokenizer_only.c - tokenizers that are opened without their model.
 *
 * Such a tokenizer is owned by a struct whose first member is its arena. */
#include "models/open/tokenizer_only.h"

#include <string.h>

#include "base/caller_options.h"
#include "base/error.h"
#include "base/str.h"
#include "models/hub/hub.h"
#include "models/save/save_model.h"
#include "text/text_rules.h"

typedef struct owner {
    pith__arena arena;
    pith__account account;
    pith__files files; /* a compiled model, used in place */
} owner;

static void free_owner(owner *o) {
    pith_allocator host = *pith__account_host(&o->account.allocator);
    pith__files_close(&o->files);
    pith__arena_free(&o->arena);
    pith__memory_free(&host, o);
}

/* *compiled: the file's sections if it is a compiled model, else its writer is NULL. */
static pith_status open_compiled(pith__compiled *compiled, pith__files *files, const char *path,
                                 pith_error *err) {
    pith_str bytes;
    *compiled = (pith__compiled){ .writer = NULL };
    if (!pith__file_exists(path)) return PITH_OK;
    PITH_TRY(pith__files_open(&bytes, files, path, err));
    if (!pith__compiled_is(bytes)) {
        pith__files_close(files);
        return PITH_OK;
    }
    pith_status status = pith__compiled_open(compiled, bytes, err);
    return status ? pith__fail_at(err, status, "%s: ", path) : PITH_OK;
}

/* What the model does to texts and tokens, so that the tokens are those that it is fed. */
static void tokenizer_only_take_habits(pith_tokenizer *t, const pith__modules *m) {
    const int32_t dropped = m->dropped.size ? pith__tokenizer_id(t, m->dropped) : m->dropped_id;
    pith__tokenizer_take_rules(
        t, (pith__text_rules){ .bare = m->no_specials,
                               .drops = dropped >= 0,
                               .dropped = dropped,
                               .characters = m->cuts_characters ? pith__text_median_token(t) : 0 });
}

unsigned pith__tokenizer_only_how(const pith__modules *m) {
    return (m->lower_case ? PITH_TOKENIZER_LOWER : 0u) |
           (m->tokenizer_alone ? PITH_TOKENIZER_ALONE : 0u) |
           (m->tokenizer_alone && !m->cuts_characters ? PITH_TOKENIZER_CUTS : 0u);
}

/* A directory's modules say in which folder the tokenizer is and whether it makes texts lower case.
 * What is wrong with them otherwise does not matter here. */
static pith_status open_files(pith_tokenizer **tokenizer, owner *o, pith_str path,
                              const pith_open_options *options, pith_error *err) {
    const pith__modules_source source = { .dir = path.data,
                                          .route = options->route,
                                          .allocator = &o->account.allocator };
    pith__modules modules = PITH_MODULES_INIT;
    pith_error fault = PITH_ERROR_INIT;
    if (pith__dir_exists(path.data)) pith__modules_read(&modules, &source, &o->arena, &fault);
    if (fault.code == PITH_ERR_MEMORY || pith__status_stops(fault.code))
        return pith__fail(err, fault.code, "%s", fault.message);
    if (fault.code) modules = (pith__modules)PITH_MODULES_INIT;
    if (modules.folder.size)
        PITH_TRY(pith__path_join(&path, &o->arena, path.data, modules.folder, err));
    PITH_TRY(pith__tokenizer_load_as(tokenizer, path.data, pith__tokenizer_only_how(&modules),
                                     options, &o->arena, err));
    tokenizer_only_take_habits(*tokenizer, &modules);
    return PITH_OK;
}

/* A compiled file has a tokenizer in its sections. Anything else is a directory or a file of a
 * tokenizer. */
static pith_status open_path(pith_tokenizer **tokenizer, owner *o, const char *path,
                             const pith_open_options *options, pith_error *err) {
    pith_str found;
    pith__compiled compiled;
    PITH_TRY(pith__hub_find(&found, path, &o->arena, err));
    PITH_TRY(open_compiled(&compiled, &o->files, found.data, err));
    if (!compiled.writer) return open_files(tokenizer, o, found, options, err);
    pith__modules modules;
    pith_status status = pith__compiled_choose(&compiled, options->route, err);
    if (!status) status = pith__compiled_tokenizer(tokenizer, &compiled, options, &o->arena, err);
    if (!status) status = pith__compiled_modules(&modules, &compiled, &o->arena, err);
    if (!status) tokenizer_only_take_habits(*tokenizer, &modules);
    return status ? pith__fail_at(err, status, "%s: ", found.data) : PITH_OK;
}

/* The owner has the memory, the files and the tokenizer; it is found again when the tokenizer is
 * closed. */
pith_status pith__tokenizer_only_open(pith_tokenizer **tokenizer, const char *path,
                                      const pith_open_options *options, pith_error *err) {
    pith_open_options opened = PITH_OPEN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(opened, options, err);
    const pith_allocator *allocator =
        opened.call.allocator ? opened.call.allocator : &pith__allocator_default;
    owner *o = pith__memory_alloc(allocator, sizeof *o, 64);
    if (!o) return pith__fail_memory(err, sizeof *o);
    *o = (owner){ .files = { .arena = &o->arena, .copy = opened.flags & PITH_OPEN_COPY } };
    pith__account_init(&o->account, allocator, opened.memory_limit,
                       PITH_MEMORY_COST(sizeof *o, 64));
    opened.call.allocator = &o->account.allocator;
    pith__arena_init(&o->arena, &o->account.allocator);
    pith_tokenizer *t = NULL;
    pith_status status = open_path(&t, o, path, &opened, err);
    status = pith__account_settle(&o->account, status, err);
    if (status) {
        pith__tokenizer_unload(t);
        free_owner(o);
        return status;
    }
    *tokenizer = t;
    return PITH_OK;
}

void pith__tokenizer_only_close(pith_tokenizer *tokenizer) {
    if (!tokenizer) return;
    owner *o = (owner *)(void *)pith__tokenizer_arena(tokenizer);
    pith__tokenizer_unload(tokenizer);
    free_owner(o);
}

static pith_status tokenizer_only_read_modules(pith__modules *modules, pith__files *files,
                                               const char *path, pith_error *err) {
    pith_str found;
    pith__compiled compiled;
    PITH_TRY(pith__hub_find(&found, path, files->arena, err));
    PITH_TRY(open_compiled(&compiled, files, found.data, err));
    if (compiled.writer) return pith__compiled_modules(modules, &compiled, files->arena, err);
    if (!pith__dir_exists(found.data)) {
        found = pith__path_parent(files->arena, found);
        if (!found.data) return pith__fail_memory(err, strlen(path));
    }
    const pith__modules_source source = { .dir = found.data, .allocator = files->arena->allocator };
    return pith__modules_read(modules, &source, files->arena, err);
}

pith_status pith__tokenizer_only_limit(int32_t *tokens, const pith_tokenizer *tokenizer,
                                       const char *path, pith_error *err) {
    pith__arena arena;
    pith__arena_init(&arena, pith__tokenizer_arena(tokenizer)->allocator);
    pith__files files = { .arena = &arena };
    pith__modules modules;
    pith_status status = tokenizer_only_read_modules(&modules, &files, path, err);
    if (!status)
        *tokens = pith__modules_max_length(&modules, 0, pith__tokenizer_max_length(tokenizer));
    pith__files_close(&files);
    pith__arena_free(&arena);
    return status;
}
