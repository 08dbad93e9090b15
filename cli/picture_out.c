/* picture_out.c - see picture_out.h. */
#include "cli/picture_out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cli/output.h"

char *picture_out_name(const string_list *paths, const char *found) {
    const char *name = strrchr(found, '/') ? strrchr(found, '/') + 1 : found;
    for (size_t i = 0; i < paths->count; i++) {
        size_t size = strlen(paths->items[i]);
        while (size > 1 && paths->items[i][size - 1] == '/') size--;
        if (!strncmp(found, paths->items[i], size) && found[size] == '/') {
            name = found + size + strspn(found + size, "/");
            break;
        }
    }
    char *copy = grow(NULL, strlen(name) + 1);
    return strcpy(copy, name);
}

const char *picture_out_format(const char *name) {
    const char *end = strrchr(name, '.');
    if (!end) return NULL;
    return !strcasecmp(end, ".jpg") || !strcasecmp(end, ".jpeg") ? "jpeg"
           : !strcasecmp(end, ".png")                            ? "png"
           : !strcasecmp(end, ".webp")                           ? "webp"
                                                                 : NULL;
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

static int put(void *user, const void *data, size_t size) { return !output_write(user, data, size); }

int picture_out_write(const command *c, const pith_image *image, const char *dir, const char *name,
                      const pith_image_encode_options *options, const string_list *inputs) {
    pith_error err = PITH_ERROR_INIT;
    output out;
    char *path = grow(NULL, strlen(dir) + strlen(name) + 2);
    sprintf(path, "%s/%s", dir, name);
    int code = picture_out_folders(c, path);
    if (!code) code = output_open(&out, c, path, inputs);
    if (!code) {
        bool good = !pith_image_encode(image, options, put, &out, &err);
        if (!good && !out.error) code = fail(c, "%s: %s", path, err.message);
        code = output_close(&out, c, good, code);
    }
    free(path);
    return code;
}
