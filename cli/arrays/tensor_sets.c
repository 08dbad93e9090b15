/* tensor_sets.c - see tensor_sets.h. */
#include "cli/arrays/tensor_sets.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool sets_is_folder(const char *path) {
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* The file of an input, if there is one. */
static bool sets_find(char path[PATH_MAX], const char *folder, const char *name, size_t place) {
    static const char *const ends[] = { "npy", "pb" };
    struct stat st;
    for (int i = 0; i < 2; i++)
        if (snprintf(path, PATH_MAX, "%s/%s.%s", folder, name, ends[i]) < PATH_MAX &&
            !stat(path, &st))
            return true;
    return snprintf(path, PATH_MAX, "%s/input_%zu.pb", folder, place) < PATH_MAX &&
           !stat(path, &st);
}

/* Reads one set. An optional input whose file is missing keeps the dtype PITH_UNDEFINED, which
 * stands for "not given". */
static int sets_read_one(tensor_sets *s, const command *c, const pith_model *model,
                         const char *folder) {
    char path[PATH_MAX], message[1200];
    const size_t from = s->count * s->inputs;
    s->tensors = grow(s->tensors, (from + s->inputs + 1) * sizeof *s->tensors);
    s->files = grow(s->files, (from + s->inputs + 1) * sizeof *s->files);
    memset(s->files + from, 0, s->inputs * sizeof *s->files);
    s->count++;
    for (size_t i = 0; i < s->inputs; i++) {
        const pith_port *port = pith_model_input(model, i);
        s->tensors[from + i] = (pith_tensor){ .dtype = PITH_UNDEFINED };
        if (!sets_find(path, folder, port->name, i)) {
            if (port->optional) continue;
            return fail(c, "%s: there is no %s.npy for the input of that name", folder, port->name);
        }
        if (!tensor_file_open(&s->files[from + i], path, tensor_file_kind_of(port), message,
                              sizeof message)) {
            memset(&s->files[from + i], 0, sizeof *s->files);
            return fail(c, "%s", message);
        }
        tensor_file_reinterpret(&s->files[from + i], port->dtype);
        s->tensors[from + i] = s->files[from + i].tensor;
    }
    return EXIT_DONE;
}

static int sets_read_folders(tensor_sets *s, const command *c, const pith_model *model,
                             const char *folder) {
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, NULL, alphasort);
    int code = count < 0 ? fail(c, "%s: %s", folder, strerror(errno)) : EXIT_DONE;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        const bool fits =
            snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < (int)sizeof path;
        if (!code && fits && entries[i]->d_name[0] != '.' && sets_is_folder(path))
            code = sets_read_one(s, c, model, path);
        free(entries[i]);
    }
    free(entries);
    return code || s->count ? code : sets_read_one(s, c, model, folder);
}

int tensor_sets_read(tensor_sets *s, const command *c, const char *model, const char *folder) {
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_model *open;
    options.optimization = 1;
    if (pith_model_open(&open, model, &options, &err)) return fail_model(c, &err, model);
    s->inputs = pith_model_input_count(open);
    int code = sets_read_folders(s, c, open, folder);
    pith_model_close(open);
    return code;
}

void tensor_sets_free(tensor_sets *s) {
    for (size_t i = 0; i < s->count * s->inputs; i++) tensor_file_close(&s->files[i]);
    free(s->files);
    free(s->tensors);
}
