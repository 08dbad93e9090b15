/* format_choice.h - the format of a result by the name of its file. */
#ifndef PITH_CLI_OUTPUT_FORMAT_CHOICE_H
#define PITH_CLI_OUTPUT_FORMAT_CHOICE_H

#include "cli/base/cli.h"

/* Sets *format, the value of the verb's --format, as the end of the file's name says, unless the
 * flag was given. path NULL or "-" is standard output, which says nothing, as a name without a
 * known end does. EXIT_DONE, or EXIT_USAGE after a message: the two contradict each other, or the
 * verb does not write such files. */
int format_choose(const command *c, int *format, const char *path);
/* The same for a verb that writes one format, and has no --format. */
int format_only(const command *c, const char *format, const char *path);

#endif
