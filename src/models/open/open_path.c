/* open_path.c - models that are files, directories or names of the model cache. */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "models/hub/hub.h"
#include "models/open/open_model.h"
#include "models/open/reader.h"

static void path_close(pith_model *m) { pith__files_close(&m->files); }

static pith_status path_open(pith_model *m, const pith__origin *origin, pith_error *err) {
    const char *name = origin->path;
    m->close_files = path_close;
    if (m->account.files) { /* a path of a source was found before */
        m->path = pith__arena_str(&m->arena, pith__str_of(name));
        if (!m->path.data) return pith__fail_memory(err, strlen(name));
    } else {
        PITH_TRY(pith__hub_find(&m->path, name, &m->arena, err));
    }
    const bool is_dir = pith__dir_there(m->path.data, m->arena.allocator);
    if (!is_dir && m->options.model_file)
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "%s: pith_open_options.model_file names a file of a directory, but this is a file",
            name);
    if (!is_dir) return pith__readers_file(m, m->path, err);
    m->dir = m->path;
    if (m->text_modules) PITH_TRY(m->text_modules->modules(m, err));
    return pith__readers_directory(m, err);
}

pith__origin pith__origin_path(const char *path) {
    return (pith__origin){ .open = path_open, .path = path };
}
