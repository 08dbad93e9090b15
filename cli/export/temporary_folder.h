/* temporary_folder.h - a folder below $TMPDIR or /tmp for the time of a call. */
#ifndef PITH_CLI_EXPORT_TEMPORARY_FOLDER_H
#define PITH_CLI_EXPORT_TEMPORARY_FOLDER_H

#include <limits.h>

#include "cli/base/cli.h"

/* EXIT_DONE, or another exit code after a message; then folder is "". */
int temporary_folder_make(char folder[PATH_MAX], const command *c);
/* Removes it with all that is in it; links are not followed. "": does nothing. */
void temporary_folder_remove(const char *folder);

#endif
