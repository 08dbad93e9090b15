/* temporary_folder.c - see temporary_folder.h. */
#include "cli/export/temporary_folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int temporary_remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st, (void)kind, (void)at;
    return remove(path);
}

int temporary_folder_make(char folder[PATH_MAX], const command *c) {
    const char *base = getenv("TMPDIR");
    const int n =
        snprintf(folder, PATH_MAX, "%s/pith-%s-XXXXXX", base && *base ? base : "/tmp", c->name);
    if (n < PATH_MAX && mkdtemp(folder)) return EXIT_DONE;
    *folder = 0;
    return fail(c, "no temporary directory can be made: %s", strerror(errno));
}

void temporary_folder_remove(const char *folder) {
    if (*folder) nftw(folder, temporary_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
