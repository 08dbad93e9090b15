/* help.h - a declaration as text for a terminal. */
#ifndef PITH_CLI_OPTIONS_HELP_H
#define PITH_CLI_OPTIONS_HELP_H

#include <stdio.h>

#include "cli/base/cli.h"

/* The help of a verb or of the program: a screen of it, or all. Returns an exit code. */
int help_print(const command *c, bool all, FILE *out);
/* Prints the version. Returns an exit code. */
int help_version(void);

/* What help says of an option after how it is written: its choices, its meaning and its default. */
void help_meaning(char *text, size_t size, const option_row *row);

#endif
