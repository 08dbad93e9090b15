/* export_relational.c - see export_relational.h. */
#include "cli/tables/export_relational.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/arrays/tensor_file.h"
#include "cli/export/model_out.h"
#include "cli/tables/relational_run.h"

bool export_is_run(const char *path) {
    char *file = run_file(path, "run.json");
    const bool there = access(file, F_OK) == 0;
    free(file);
    return there;
}

int export_relational(const command *c, const char *directory, const char *path, bool force) {
    model_out *out = grow(NULL, sizeof *out);
    pith_error err = PITH_ERROR_INIT;
    relational_run run;
    memset(out, 0, sizeof *out);
    int code = run_open(&run, c, directory);
    if (!code) code = run_needs_network(&run, c, "an exported network");
    if (!code) code = model_out_place(out, c, directory, path, force, false);
    if (!code) {
        const pith_writer writer = model_out_writer(out);
        const pith_status status = pith_relational_export(run.model, NULL, &writer, &err);
        code = model_out_close(out, status, &err);
    }
    run_close(&run);
    free(out);
    return code;
}

typedef struct inputs_out {
    const command *c;
    const char *directory;
    int code;
} inputs_out;

static void inputs_put(void *user, const char *name, const pith_tensor *value) {
    inputs_out *out = user;
    const tensor_sink sink = { out->c, NULL };
    char *path = run_file(out->directory, name);
    bool raw = false;
    if (!out->code) out->code = tensor_file_write(&sink, value, path, &raw);
    free(path);
}

int export_relational_inputs(const command *c, pith_relational *model, const uint32_t *rows,
                             size_t count, const char *directory) {
    pith_error err = PITH_ERROR_INIT;
    inputs_out out = { c, directory, EXIT_DONE };
    if (mkdir(directory, 0777) && errno != EEXIST)
        return fail(c, "%s: %s", directory, strerror(errno));
    if (pith_relational_inputs(model, rows, count, NULL, inputs_put, &out, &err))
        return fail(c, "%s", err.message);
    return out.code;
}
