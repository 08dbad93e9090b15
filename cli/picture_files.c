/* picture_files.c - see picture_files.h. */
#include "cli/picture_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* A name that a picture in a folder has. */
static bool is_picture(const char *name) {
    static const char *const ends[] = { ".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff",
                                        ".jp2", ".j2k",  ".bmp", ".ppm",  ".pgm", ".pnm" };
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end && i < sizeof ends / sizeof *ends; i++)
        if (!strcasecmp(end, ends[i])) return true;
    return false;
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* The pictures in a folder and in those below it, in the order of their paths. Links to folders are not followed. */
static int find_in(string_list *found, const command *c, const char *folder) {
    DIR *dir = opendir(folder);
    if (!dir) return fail(c, "%s: %s", folder, strerror(errno));
    size_t first = found->count, folders = 0;
    string_list below = { NULL, 0 };
    int code = EXIT_DONE;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat info;
        if (entry->d_name[0] == '.') continue;
        char *path = grow(NULL, strlen(folder) + strlen(entry->d_name) + 2);
        sprintf(path, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", entry->d_name);
        if (!lstat(path, &info) && S_ISDIR(info.st_mode))
            list_add(&below, path);
        else if (is_picture(entry->d_name) && !stat(path, &info) && S_ISREG(info.st_mode))
            list_add(found, path);
        else
            free(path);
    }
    closedir(dir);
    if (found->count > first) qsort(found->items + first, found->count - first, sizeof *found->items, by_name);
    if (below.count) qsort(below.items, below.count, sizeof *below.items, by_name);
    for (; folders < below.count; folders++) {
        if (!code) code = find_in(found, c, below.items[folders]);
        free((char *)(uintptr_t)below.items[folders]);
    }
    free(below.items);
    return code;
}

int picture_files_find(string_list *found, const command *c, const string_list *paths) {
    int code = EXIT_DONE;
    for (size_t i = 0; i < paths->count && !code; i++) {
        const char *path = paths->items[i];
        struct stat info;
        size_t before = found->count;
        if (stat(path, &info) || !S_ISDIR(info.st_mode)) {
            char *copy = grow(NULL, strlen(path) + 1);
            list_add(found, strcpy(copy, path));
            continue;
        }
        code = find_in(found, c, path);
        if (!code && found->count == before) code = fail(c, "%s: there is no picture in this folder", path);
    }
    return code;
}

void picture_files_free(string_list *found) {
    for (size_t i = 0; i < found->count; i++) free((char *)(uintptr_t)found->items[i]);
    free(found->items);
}
