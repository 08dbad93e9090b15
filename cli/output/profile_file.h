/* profile_file.h - --profile FILE: writes a profile that Perfetto and chrome://tracing open. */
#ifndef PITH_CLI_OUTPUT_PROFILE_FILE_H
#define PITH_CLI_OUTPUT_PROFILE_FILE_H

#include "cli/base/cli.h"

/* path NULL: *profile is NULL, nothing is recorded. inputs as for output_open. EXIT_DONE, or a code
 * after a message. */
int profile_open(pith_profile **profile, const command *c, const char *path,
                 const string_list *inputs);
/* Writes the file and ends the profile. code: of the work so far; returns it, or EXIT_FAILED after
 * a message. */
int profile_close(pith_profile *profile, const command *c, int code);

#endif
