/* field_flags.h - messages of the library name fields of its options; the command has flags for
 * them. */
#ifndef PITH_CLI_OPTIONS_FIELD_FLAGS_H
#define PITH_CLI_OPTIONS_FIELD_FLAGS_H

#include "cli/base/cli.h"

/* Puts the verb's flags in the place of the fields and constants that a message names:
 * "raise pith_open_options.memory_limit" becomes "raise --memory-limit". A function that a message
 * recommends becomes the verb. The text never grows. */
void name_flags(const command *c, char *message);

#endif
