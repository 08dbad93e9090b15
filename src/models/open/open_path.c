/* open_path.c - models that are files, directories or names of the model cache. */
#include "base/error.h"
#include "base/str.h"
#include "models/hub/hub.h"
#include "models/open/open_model.h"
#include "models/open/reader.h"

static void path_close(pith_model *m) { pith__files_close(&m->files); }

static pith_status path_open(pith_model *m, const pith__origin *origin, pith_error *err) {
    const char *name = origin->path;
    m->close_files = path_close;
    PITH_TRY(pith__hub_find(&m->path, name, &m->arena, err));
    if (!pith__dir_exists(m->path.data) && m->options.model_file)
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "%s: pith_open_options.model_file names a file of a directory, but this is a file",
            name);
    if (!pith__dir_exists(m->path.data)) return pith__readers_file(m, m->path, err);
    m->dir = m->path;
    if (m->text_modules) PITH_TRY(m->text_modules->modules(m, err));
    return pith__readers_directory(m, err);
}

pith__origin pith__origin_path(const char *path) {
    return (pith__origin){ .open = path_open, .path = path };
}
