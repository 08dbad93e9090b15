/* export_files.c - see export_files.h. */
#include "cli/export/export_files.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/output/output.h"

/* No tokenizer or configuration is larger. */
enum { COPIED_MOST = 256 << 20 };

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n > m && !strcmp(name + n - m, end);
}

/* Configurations, vocabularies and tokenizers, but not the list of the weights' shards. */
static bool is_small_file(const char *name) {
    return (ends_with(name, ".json") || ends_with(name, ".txt") || ends_with(name, ".model") ||
            ends_with(name, ".jinja")) &&
           !ends_with(name, ".index.json") && name[0] != '.';
}

/* 1_Pooling, 2_Dense */
static bool is_module_folder(const char *name) {
    size_t digits = strspn(name, "0123456789");
    return digits && name[digits] == '_';
}

/* The whole file, from malloc; NULL after a message. */
static char *read_whole(const command *c, const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    struct stat st;
    char *data = NULL;
    if (!file || fstat(fileno(file), &st)) {
        fail(c, "%s: %s", path, strerror(errno));
    } else if (st.st_size > COPIED_MOST) {
        fail(c, "%s has %lld bytes, which is too much for a configuration or a tokenizer", path,
             (long long)st.st_size);
    } else {
        data = grow(NULL, (size_t)st.st_size + 1);
        *size = fread(data, 1, (size_t)st.st_size, file);
        if (*size != (size_t)st.st_size) {
            fail(c, "%s: %s", path,
                 ferror(file) ? strerror(errno) : "it became shorter while it was read");
            free(data);
            data = NULL;
        }
    }
    if (file) fclose(file);
    return data;
}

static int copy_file(const command *c, const char *from, const char *to) {
    struct stat st;
    output out;
    size_t size, old_size = 0;
    char *data = read_whole(c, from, &size), *old = NULL;
    if (!data) return EXIT_FAILED;
    int code = EXIT_DONE;
    if (!stat(to, &st)) {
        old = read_whole(c, to, &old_size);
        if (!old)
            code = EXIT_FAILED;
        else if (old_size != size || memcmp(old, data, size))
            code = fail(c, "%s exists and is not that of the model; choose another directory", to);
    } else if (!(code = output_open(&out, c, to, NULL))) {
        bool written = output_write(&out, data, size);
        code = output_close(&out, c, written, written ? EXIT_DONE : EXIT_FAILED);
    }
    free(old);
    free(data);
    return code;
}

static int copy_folder(const command *c, const char *from, const char *to, bool modules, bool all);

static int copy_entry(const command *c, const char *from, const char *to, const char *name,
                      bool modules, bool all) {
    char source[PATH_MAX], target[PATH_MAX];
    struct stat st;
    snprintf(source, sizeof source, "%s/%s", from, name);
    snprintf(target, sizeof target, "%s/%s", to, name);
    if (stat(source, &st)) return EXIT_DONE; /* a link that leads nowhere */
    if (S_ISREG(st.st_mode)) {
        bool wanted =
            all || (is_small_file(name) && (modules || strcmp(name, "modules.json") != 0));
        return wanted ? copy_file(c, source, target) : EXIT_DONE;
    }
    if (!S_ISDIR(st.st_mode) || !modules || all || !is_module_folder(name)) return EXIT_DONE;
    if (mkdir(target, 0777) && errno != EEXIST) return fail(c, "%s: %s", target, strerror(errno));
    return copy_folder(c, source, target, true, true);
}

/* all: of a module's folder. */
static int copy_folder(const command *c, const char *from, const char *to, bool modules, bool all) {
    DIR *folder = opendir(from);
    if (!folder) return fail(c, "%s: %s", from, strerror(errno));
    int code = EXIT_DONE;
    for (struct dirent *e; !code && (e = readdir(folder));)
        if (e->d_name[0] != '.') code = copy_entry(c, from, to, e->d_name, modules, all);
    closedir(folder);
    return code;
}

int export_copy_files(const command *c, const char *from, const char *to, bool pooled) {
    return copy_folder(c, from, to, !pooled, false);
}

int export_model_folder(const command *c, char *folder, const char *model) {
    struct stat st;
    pith_error err = PITH_ERROR_INIT;
    if (pith_model_locate(folder, PATH_MAX, model, &err)) return fail_model(c, &err, model);
    if (!stat(folder, &st) && S_ISDIR(st.st_mode)) return EXIT_DONE;
    char *slash = strrchr(folder, '/');
    if (!slash)
        strcpy(folder, ".");
    else
        slash[slash == folder] = 0;
    return EXIT_DONE;
}
