/* picture_files.h - which pictures paths stand for: files, and folders with all that is below them.
 */
#ifndef PITH_CLI_INPUT_PICTURE_FILES_H
#define PITH_CLI_INPUT_PICTURE_FILES_H

#include "cli/base/cli.h"

/* Files of folders that hold pictures of formats that are not read, by the endings of their names.
 */
typedef struct passed_over {
    size_t counts[64], count;
} passed_over;

/* Adds the pictures' paths, from malloc: a file as it is named; of a folder, the files with the
 * ending of a picture, in the order of their paths. Links to folders are not followed. Those that
 * are passed over are counted. Returns an exit code, after a message. */
int picture_files_find(string_list *found, passed_over *passed, const command *c,
                       const string_list *paths);
/* Tells of what was passed over, the last line of a command: EXIT_FAILED if there was any, else
 * code. */
int picture_files_tell(const passed_over *passed, const command *c, int code);
void picture_files_free(string_list *found);

#endif
