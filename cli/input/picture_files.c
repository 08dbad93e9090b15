/* picture_files.c - see picture_files.h. */
#include "cli/input/picture_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cli/base/text_input.h"

static const char *const read_endings[] = { ".jpg", ".jpeg", ".jpe",  ".jfif", ".png", ".webp",
                                            ".tif", ".tiff", ".jp2",  ".jpf",  ".jpx", ".j2k",
                                            ".j2c", ".jpc",  ".bmp",  ".dib",  ".gif", ".ppm",
                                            ".pgm", ".pnm",  ".heic", ".heif", ".hif", ".avif" };
/* Of formats that are not read; those of cameras' raw pictures among them. */
static const char *const other_endings[] = {
    ".jxl", ".jxr", ".svg", ".psd", ".psb",  ".ico",   ".tga",  ".pcx", ".pbm", ".pam",
    ".pfm", ".exr", ".hdr", ".dds", ".xbm",  ".xpm",   ".dng",  ".cr2", ".cr3", ".nef",
    ".nrw", ".arw", ".orf", ".raf", ".rw2",  ".pef",   ".srw",  ".raw", ".xcf", ".eps",
    ".wmf", ".emf", ".jls", ".qoi", ".apng", ".heics", ".avifs"
};
enum { OTHER_ENDINGS = sizeof other_endings / sizeof *other_endings };
_Static_assert(OTHER_ENDINGS <= sizeof((passed_over *)0)->counts / sizeof(size_t),
               "passed_over has a count for each");

/* The index of a name's ending; -1 if it is none of these. */
static int ending_of(const char *name, const char *const *endings, size_t count) {
    const char *end = strrchr(name, '.');
    if (!end) return -1;
    for (size_t i = 0; i < count; i++)
        if (!strcasecmp(end, endings[i])) return (int)i;
    return -1;
}

/* A name that a picture in a folder has. */
static bool is_picture(const char *name) {
    return ending_of(name, read_endings, sizeof read_endings / sizeof *read_endings) >= 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The pictures in a folder and in those below it, in the order of their paths. Links to folders are
 * not followed. */
static int find_in(string_list *found, passed_over *passed, const command *c, const char *folder) {
    DIR *dir = opendir(folder);
    if (!dir) return fail(c, "%s: %s", folder, strerror(errno));
    size_t first = found->count, folders = 0;
    string_list below = { NULL, 0 };
    int code = EXIT_DONE;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat info;
        if (entry->d_name[0] == '.') continue;
        const int other = ending_of(entry->d_name, other_endings, OTHER_ENDINGS);
        char *path = grow(NULL, strlen(folder) + strlen(entry->d_name) + 2);
        sprintf(path, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/",
                entry->d_name);
        if (!lstat(path, &info) && S_ISDIR(info.st_mode))
            list_add(&below, path);
        else if (is_picture(entry->d_name) && !stat(path, &info) && S_ISREG(info.st_mode))
            list_add(found, path);
        else {
            if (other >= 0 && !stat(path, &info) && S_ISREG(info.st_mode))
                passed->counts[other]++, passed->count++;
            free(path);
        }
    }
    closedir(dir);
    if (found->count > first)
        qsort(found->items + first, found->count - first, sizeof *found->items, by_name);
    if (below.count) qsort(below.items, below.count, sizeof *below.items, by_name);
    for (; folders < below.count; folders++) {
        if (!code) code = find_in(found, passed, c, below.items[folders]);
        free((char *)(uintptr_t)below.items[folders]);
    }
    free(below.items);
    return code;
}

int picture_files_find(string_list *found, passed_over *passed, const command *c,
                       const string_list *paths) {
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
        code = find_in(found, passed, c, path);
        if (code || found->count > before) continue;
        picture_files_tell(passed, c, code);
        code = fail(c, "%s: there is no picture in this folder", path);
    }
    return code;
}

int picture_files_tell(const passed_over *passed, const command *c, int code) {
    bytes text = { NULL, 0, 0 };
    if (!passed->count) return code;
    for (size_t i = 0; i < OTHER_ENDINGS; i++)
        if (passed->counts[i])
            bytes_print(&text, "%s%zu %s", text.size ? ", " : "", passed->counts[i],
                        other_endings[i]);
    bytes_add(&text, "", 1);
    fail(c, "%zu file%s ignored: %s; convert them to JPEG or PNG", passed->count,
         passed->count == 1 ? "" : "s", text.data);
    free(text.data);
    return code ? code : EXIT_FAILED;
}

void picture_files_free(string_list *found) {
    for (size_t i = 0; i < found->count; i++) free((char *)(uintptr_t)found->items[i]);
    free(found->items);
}
