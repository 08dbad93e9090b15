/* remove_tree.c - see remove_tree.h. */
#include "cli/base/remove_tree.h"

#include <ftw.h>
#include <stdio.h>

/* Directories that are open at once. */
enum { OPEN_MOST = 16 };

static int tree_remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st, (void)kind, (void)at;
    return remove(path);
}

int remove_tree(const char *path) {
    return nftw(path, tree_remove_one, OPEN_MOST, FTW_DEPTH | FTW_PHYS);
}
