/* help.h - a declaration as text for a terminal. */
#ifndef PITH_CLI_OPTIONS_HELP_H
#define PITH_CLI_OPTIONS_HELP_H

#include <stdio.h>

#include "cli/base/cli.h"

/* The help of a verb or of the program. Returns an exit code. */
int help_print(const command *c, FILE *out);

/* What help says of an option after how it is written: its choices, its meaning and its default. */
void help_meaning(char *text, size_t size, const option_row *row);

#endif
