/* open_file.c - models that are files of a path, and neither directories nor names of the model
 * cache: how libpith-core opens them. */
#include <string.h>

#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/str.h"
#include "models/open/open_model.h"
#include "models/open/reader.h"

static void file_close(pith_model *m) { pith__files_close(&m->files); }

static pith_status file_open(pith_model *m, const pith__origin *origin, pith_error *err) {
    m->close_files = file_close;
    if (pith__dir_exists(origin->path) || m->options.model_file)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "%s: libpith-core opens files; libpith opens directories too",
                          origin->path);
    m->path = pith__arena_str(&m->arena, pith__str_of(origin->path));
    if (!m->path.data) return pith__fail_memory(err, strlen(origin->path));
    const pith_status status = pith__readers_file(m, m->path, err);
    return status && pith__error_is_lack(err)
               ? pith__fail_at(err, status, "libpith-core has less than libpith: ")
               : status;
}

pith__origin pith__origin_file(const char *path) {
    return (pith__origin){ .open = file_open, .path = path };
}
