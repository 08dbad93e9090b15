/* picture_files.h - which pictures paths stand for: files, and folders with all that is below them. */
#ifndef PITH_CLI_PICTURE_FILES_H
#define PITH_CLI_PICTURE_FILES_H

#include "cli/cli.h"

/* Adds the pictures' paths, from malloc: a file as it is named; of a folder, the files with the ending of a picture, in
 * the order of their paths. Links to folders are not followed. Returns an exit code, after a message. */
int picture_files_find(string_list *found, const command *c, const string_list *paths);
void picture_files_free(string_list *found);

#endif
