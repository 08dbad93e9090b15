/* open_path.c - models that are files, directories or names of the model cache. */
#include "base/error.h"
#include "base/str.h"
#include "models/hub/hub.h"
#include "models/open/open.h"
#include "models/open/reader.h"

static void path_close(pith_model *m) { pith_files_close(&m->files); }

static pith_status path_open(pith_model *m, const pith_origin *origin, pith_error *err) {
    const char *name = origin->path;
    m->close_files = path_close;
    PITH_TRY(pith_hub_find(&m->path, name, &m->arena, err));
    if (!pith_dir_exists(m->path.data) && m->options.model_file)
        return pith_fail(err, PITH_ERR_ARGUMENT,
                         "%s: model_file (--model-file) names a file of a directory, but this is a file", name);
    if (!pith_dir_exists(m->path.data)) return pith_readers_file(m, m->path, err);
    m->dir = m->path;
    if (m->text_modules) PITH_TRY(m->text_modules->modules(m, err));
    return pith_readers_directory(m, err);
}

pith_origin pith_origin_path(const char *path) { return (pith_origin){ .open = path_open, .path = path }; }
