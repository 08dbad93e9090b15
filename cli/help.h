/* help.h - a declaration as text for a terminal. */
#ifndef PITH_CLI_HELP_H
#define PITH_CLI_HELP_H

#include <stdio.h>

#include "cli/cli.h"

/* The help of a verb or of the program. Returns an exit code. */
int help_print(const command *c, FILE *out);

/* How an option is written, without its letter: "--model MODEL". */
#define OPTION_SPELLING "--%s%s%s"
#define OPTION_SPELLED(o) (o)->name, (o)->takes ? " " : "", (o)->takes ? (o)->takes : ""

#endif
