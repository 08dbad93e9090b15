/* temporary_folder.c - see temporary_folder.h. */
#include "cli/export/temporary_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/remove_tree.h"

int temporary_folder_make(char folder[PATH_MAX], const command *c) {
    const char *base = getenv("TMPDIR");
    const int n =
        snprintf(folder, PATH_MAX, "%s/pith-%s-XXXXXX", base && *base ? base : "/tmp", c->name);
    if (n < PATH_MAX && mkdtemp(folder)) return EXIT_DONE;
    *folder = 0;
    return fail(c, "no temporary directory can be made: %s", strerror(errno));
}

void temporary_folder_remove(const char *folder) {
    if (*folder) remove_tree(folder);
}
