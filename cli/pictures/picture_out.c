/* picture_out.c - see picture_out.h. */
#include "cli/pictures/picture_out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cli/base/name_set.h"
#include "cli/output/output.h"

/* Its length without slashes at its end. */
static size_t folder_size(const char *path) {
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') size--;
    return size;
}

/* Where the folder's own name begins; NULL if it has none to be used. */
static const char *folder_name(const char *path) {
    const size_t size = folder_size(path);
    size_t begin = size;
    while (begin && path[begin - 1] != '/') begin--;
    const size_t length = size - begin;
    const bool dots =
        (length == 1 && path[begin] == '.') || (length == 2 && !strncmp(path + begin, "..", 2));
    return length && !dots ? path + begin : NULL;
}

/* From malloc. */
static char *name_below(const string_list *paths, bool several, const char *found) {
    const char *name = strrchr(found, '/') ? strrchr(found, '/') + 1 : found, *before = NULL;
    size_t before_size = 0;
    for (size_t i = 0; i < paths->count; i++) {
        const size_t size = folder_size(paths->items[i]);
        if (strncmp(found, paths->items[i], size) != 0 || found[size] != '/') continue;
        name = found + size + strspn(found + size, "/");
        before = several ? folder_name(paths->items[i]) : NULL;
        before_size = before ? (size_t)(paths->items[i] + size - before) : 0;
        break;
    }
    char *copy = grow(NULL, before_size + strlen(name) + 2);
    sprintf(copy, "%.*s%s%s", (int)before_size, before ? before : "", before ? "/" : "", name);
    return copy;
}

/* The name with the ending of what is written. From malloc. */
static char *with_ending(char *name, const char *ending, bool after) {
    char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name, *dot = strrchr(last, '.');
    if (!ending && picture_out_format(name)) return name;
    if (!after && dot && dot > last) *dot = 0;
    name = grow(name, strlen(name) + strlen(ending ? ending : ".png") + 1);
    return strcat(name, ending ? ending : ".png");
}

char **picture_out_names(const string_list *paths, const string_list *found, const char *ending,
                         bool after) {
    char **names = grow(NULL, found->count * sizeof *names);
    bool *settled = grow(NULL, found->count * sizeof *settled);
    name_set set = { 0 };
    size_t folders = 0;
    struct stat info;
    for (size_t i = 0; i < paths->count; i++)
        folders += !stat(paths->items[i], &info) && S_ISDIR(info.st_mode);
    /* A picture that has its name already keeps it. */
    for (size_t i = 0; i < found->count; i++) {
        char *own = name_below(paths, folders > 1, found->items[i]);
        names[i] = with_ending(strcpy(grow(NULL, strlen(own) + 1), own), ending, after);
        settled[i] = !strcmp(own, names[i]) && !name_set_has(&set, own);
        if (settled[i]) names[i] = name_set_add(&set, names[i]);
        free(own);
    }
    for (size_t i = 0; i < found->count; i++)
        if (!settled[i]) names[i] = name_set_add(&set, names[i]);
    name_set_free(&set);
    free(settled);
    return names;
}

void picture_out_names_free(char **names, size_t count) {
    if (!names) return;
    for (size_t i = 0; i < count; i++) free(names[i]);
    free(names);
}

const char *picture_out_format(const char *name) {
    const char *end = strrchr(name, '.');
    if (!end) return NULL;
    if (!strcasecmp(end, ".jpg") || !strcasecmp(end, ".jpeg")) return "jpeg";
    if (!strcasecmp(end, ".png")) return "png";
    if (!strcasecmp(end, ".webp")) return "webp";
    return NULL;
}

int picture_out_folders(const command *c, const char *path) {
    char *copy = grow(NULL, strlen(path) + 1);
    int code = EXIT_DONE;
    strcpy(copy, path);
    for (char *slash = copy; !code && *slash && (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        if (mkdir(copy, 0777) && errno != EEXIST) code = fail(c, "%s: %s", copy, strerror(errno));
        *slash = '/';
    }
    free(copy);
    return code;
}

int picture_out_write(const command *c, const pith_image *image, const char *dir, const char *name,
                      const pith_image_encode_options *options, const string_list *inputs) {
    pith_error err = PITH_ERROR_INIT;
    output out;
    char *path = grow(NULL, strlen(dir) + strlen(name) + 2);
    sprintf(path, "%s/%s", dir, name);
    int code = picture_out_folders(c, path);
    if (!code) code = output_open(&out, c, path, inputs);
    if (!code) {
        const pith_writer writer = output_writer(&out);
        bool good = !pith_image_encode(image, options, &writer, &err);
        if (!good && !out.error) code = fail(c, "%s: %s", path, err.message);
        code = output_close(&out, c, good, code);
    }
    free(path);
    return code;
}
