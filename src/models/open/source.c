/* source.c - see source.h.
 *
 * A source is identified by a model that is opened no further than to the reader of its network:
 * what that asks for by path is held from then on (held_files.h). */
#include "models/open/source.h"

#include <string.h>

#include "base/caller_options.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/ops/custom/custom.h"
#include "formats/onnx/model_read.h"
#include "formats/onnx/onnx_text.h"
#include "models/hub/hub.h"
#include "models/open/reader.h"

static pith_source *source_of(pith__held *held) {
    const size_t offset = offsetof(pith_source, files) + offsetof(pith__held_files, held);
    return (pith_source *)(void *)((char *)held - offset);
}

static void source_keep(pith__held *held) { atomic_fetch_add(&source_of(held)->users, 1); }

static void source_release(pith__held *held) {
    pith_source *s = source_of(held);
    if (atomic_fetch_sub(&s->users, 1) > 1) return;
    const pith_allocator host = s->account.host;
    const pith_operator_set *operators = s->operators;
    pith__held_files_end(&s->files);
    pith__arena_free(&s->arena);
    pith__account_end(&s->account);
    pith__memory_free(&host, s);
    pith__custom_set_release(operators);
}

/* ---- what a source is ---- */

static bool source_ends(pith_str name, const char *end) {
    const size_t n = strlen(end);
    return name.size >= n && !memcmp(name.data + name.size - n, end, n);
}

static const char *source_format_of_weights(pith_str file) {
    static const char torch[] = "pytorch_model.bin.index.json";
    if (source_ends(file, ".gguf")) return "gguf";
    if (source_ends(file, ".bin") || source_ends(file, ".pt") || source_ends(file, ".pth") ||
        source_ends(file, torch))
        return "torch";
    return "safetensors";
}

static const char *source_format(const pith_model *m, const pith__source *read) {
    if (m->reader == NULL) return "";
    if (!strcmp(m->reader->name, "compiled")) return "pith";
    if (!strcmp(m->reader->name, "onnx"))
        return read->bytes.data && pith__onnx_is_text(read->bytes) ? "text" : "onnx";
    if (strcmp(m->reader->name, "safetensors") != 0) return m->reader->name;
    return source_format_of_weights(pith__str_of(m->weights_file ? m->weights_file : ""));
}

/* The part of a path below the source's, or "". */
static const char *source_below(const pith_source *s, const char *path) {
    const size_t n = strlen(s->path ? s->path : "");
    if (!s->path || !path || strncmp(path, s->path, n) != 0 || path[n] != '/') return "";
    return path + n + 1;
}

/* External data is found by reading the graph, which is cheap, since weights stay where they are.
 * Whatever is wrong with it is told by who opens the model. */
static pith_status source_hold_external(pith_model *m, const pith__source *read, pith_error *err) {
    pith__graph *graph;
    pith_error fault = PITH_ERROR_INIT;
    const pith_status status =
        pith__onnx_read(&graph, read->bytes, read->folder, &m->files, &m->arena, NULL, &fault);
    if (status != PITH_ERR_MEMORY && !pith__status_stops(status)) return PITH_OK;
    return pith__fail(err, status, "%s", fault.message);
}

/* In place of reading the network. */
static pith_status source_identify(pith_model *m, const pith__source *read, pith_error *err) {
    pith_source *s = source_of(m->account.files);
    const char *file = read->path;
    pith_str weights = { NULL, 0 };
    s->info.format = source_format(m, read);
    if (!read->path && m->weights_file) {
        PITH_TRY(
            pith__path_join(&weights, &m->arena, read->folder, pith__str_of(m->weights_file), err));
        file = weights.data;
    }
    s->info.file = pith__arena_str(&s->arena, pith__str_of(source_below(s, file))).data;
    if (!s->info.file) return pith__fail_memory(err, 1);
    if (read->path && !strcmp(s->info.format, "onnx")) return source_hold_external(m, read, err);
    return PITH_OK;
}

static pith_status source_find(pith_source *s, const pith_source_options *o, pith__stop *stop,
                               pith__progress *told, pith_error *err) {
    pith_model *m;
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    pith__origin origin = s->path ? pith__model_source_origin(s) : pith__origin_memory(s->bytes);
    open.flags = o->flags & PITH_OPEN_COPY;
    open.model_file = s->model_file;
    open.route = s->route;
    open.memory_limit = s->memory_limit;
    open.call.allocator = o->call.allocator;
    origin.held = &s->files.held;
    PITH_TRY(pith__model_identify(&m, &origin, &open, source_identify, stop, err));
    s->info.directory = m->dir.data && m->dir.data == m->path.data;
    pith_status status = m->dir.data && s->path
                             ? pith__held_files_add(&s->files, m->dir.data, stop, told, err)
                             : PITH_OK;
    pith__model_destroy(m);
    return status;
}

/* ---- opening ---- */

static pith_status source_copy(const char **copy, pith_source *s, const char *text,
                               pith_error *err) {
    if (!text) return PITH_OK;
    *copy = pith__arena_str(&s->arena, pith__str_of(text)).data;
    return *copy ? PITH_OK : pith__fail_memory(err, strlen(text));
}

static pith_status source_fill(pith_source *s, const char *path, const pith_source_options *o,
                               pith_error *err) {
    pith__stop own, *stop = pith__stop_begin(&own, &o->call);
    pith__progress told, *progress = pith__progress_begin(&told, &o->call);
    pith_str found = { NULL, 0 };
    pith__file file;
    PITH_TRY(pith__stop_check(stop, err));
    PITH_TRY(source_copy(&s->model_file, s, o->model_file, err));
    PITH_TRY(source_copy(&s->route, s, o->route, err));
    if (path && o->flags & PITH_SOURCE_FILE) {
        PITH_TRY(source_copy(&s->path, s, path, err));
        return s->files.held.open(&s->files.held, &file, path, stop, err);
    }
    if (path) PITH_TRY(pith__hub_find(&found, path, &s->arena, err));
    s->path = found.data;
    return source_find(s, o, stop, progress, err);
}

pith_status pith__model_source_open(pith_source **source, const char *path, pith_str bytes,
                                    const pith_source_options *options, pith_error *err) {
    pith_source_options o = PITH_SOURCE_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    if (o.flags & ~(uint32_t)(PITH_OPEN_COPY | PITH_SOURCE_FILE))
        return pith__fail(err, PITH_ERR_ARGUMENT, "flags 0x%x are none of a source", o.flags);
    if (!path && (!bytes.data || o.model_file))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          bytes.data ? "model_file is a file of a directory; this is memory"
                                     : "a source needs a path, or bytes");
    const pith_allocator *allocator =
        o.call.allocator ? o.call.allocator : &pith__allocator_default;
    pith_source *s = pith__memory_alloc(allocator, sizeof *s, 64);
    if (!s) return pith__fail_memory(err, sizeof *s);
    *s = (pith_source){ .bytes = bytes,
                        .memory_limit = o.memory_limit,
                        .info = { sizeof s->info, "", "", "", 0, 0 } };
    pith__account_init(&s->account, allocator, o.memory_limit, PITH_MEMORY_COST(sizeof *s, 64));
    s->account.files = NULL;
    pith__arena_init(&s->arena, &s->account.allocator);
    const pith_status begun =
        pith__held_files_begin(&s->files, &s->arena, o.flags & PITH_OPEN_COPY, err);
    if (begun) {
        pith__memory_free(allocator, s);
        return begun;
    }
    s->operators = o.operators;
    pith__custom_set_keep(s->operators);
    s->files.held.keep = source_keep;
    s->files.held.release = source_release;
    atomic_init(&s->users, 1);
    pith_status status = source_fill(s, path, &o, err);
    /* What was refused may have been taken for a path that is not there. */
    if (atomic_load(&s->account.refused)) status = PITH_OK;
    status = pith__account_settle(&s->account, status, err);
    if (status) {
        pith__model_source_close(s);
        return status;
    }
    s->info.path = s->path ? s->path : "";
    s->info.bytes = s->path ? pith__held_files_bytes(&s->files) : bytes.size;
    *source = s;
    return PITH_OK;
}

void pith__model_source_close(pith_source *source) { source_release(&source->files.held); }

pith_status pith__model_source_report(pith_source_info *info, const pith_source *source,
                                      pith_error *err) {
    pith_source_info own = source->info;
    if (info->size < sizeof info->size)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the info has no size; initialise it with PITH_SOURCE_INFO_INIT");
    own.size = info->size;
    memcpy(info, &own, info->size < sizeof own ? info->size : sizeof own);
    return PITH_OK;
}

/* ---- models ---- */

pith_status pith__model_source_options(pith_open_options *o, const pith_source *source,
                                       pith_error *err) {
    if (o->model_file || o->route)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "pith_open_options.%s must be NULL: that of the source holds",
                          o->model_file ? "model_file" : "route");
    o->model_file = source->model_file;
    o->route = source->route;
    if (!o->memory_limit) o->memory_limit = source->memory_limit;
    if (!o->operators) o->operators = source->operators;
    return PITH_OK;
}

pith__origin pith__model_source_origin(const pith_source *source) {
    pith__origin origin =
        source->path ? pith__origin_path(source->path) : pith__origin_memory(source->bytes);
    /* Held files fill up behind their lock; what is in them does not change. */
    origin.held = &((pith_source *)(uintptr_t)source)->files.held;
    return origin;
}

pith_status pith__model_source_open_model(pith_model **model, const pith_source *source,
                                          const pith_open_options *options, pith_error *err) {
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    PITH_TRY(pith__model_source_options(&o, source, err));
    return pith__model_make(model, pith__model_source_origin(source), &o, err);
}

pith_status pith__model_source_bytes(pith_str *bytes, const pith_source *source, pith__stop *stop,
                                     pith_error *err) {
    pith__held *held = pith__model_source_origin(source).held;
    pith__file file;
    *bytes = source->bytes;
    if (!source->path) return PITH_OK;
    PITH_TRY(held->open(held, &file, source->path, stop, err));
    *bytes = (pith_str){ (const char *)file.data, file.size };
    return PITH_OK;
}
