/* remove_tree.h - removes a directory with all that is in it, or a file. */
#ifndef PITH_CLI_BASE_REMOVE_TREE_H
#define PITH_CLI_BASE_REMOVE_TREE_H

/* Links are removed and not followed. 0, or -1 with errno; then some of it is still there. */
int remove_tree(const char *path);

#endif
