/* mapped_file.h - a file's bytes in memory, as they are on disk. */
#ifndef PITH_CLI_BASE_MAPPED_FILE_H
#define PITH_CLI_BASE_MAPPED_FILE_H

#include "base/os/file.h"
#include "cli/base/cli.h"

/* Maps a regular file, which must not become shorter while it is used, until pith__file_close.
 * EXIT_DONE, or another exit code after a message; then *file is as it was. */
int map_file(pith__file *file, const command *c, const char *path);

#endif
