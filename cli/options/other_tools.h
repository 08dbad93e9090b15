/* other_tools.h - hints for what people type who come from other tools, and names that options had.
 */
#ifndef PITH_CLI_OPTIONS_OTHER_TOOLS_H
#define PITH_CLI_OPTIONS_OTHER_TOOLS_H

#include "cli/base/cli.h"

/* Writes what an unknown verb is called in Pith, as the end of a message. False: the table does not
 * know the word. */
bool other_verb(char *hint, size_t size, const char *typed);

/* The same for an argument that is no option of the verb: "--batch-size=8", "-ngl". */
bool other_option(char *hint, size_t size, const command *c, const char *argument);

/* The same for a word that is no value of the option. */
bool other_value(char *hint, size_t size, const option_row *row, const char *text);

/* The option that had the name of this argument, and its attached value or NULL. NULL: there is
 * none. */
const option *old_option(const command *c, const char *argument, const char **value);

#endif
