/* manual.h - a declaration as a manual page. */
#ifndef PITH_CLI_OPTIONS_MANUAL_H
#define PITH_CLI_OPTIONS_MANUAL_H

#include <stdio.h>

#include "cli/base/cli.h"

/* The page of a verb, pith-<verb>(1), or of the program, pith(1), in the man macros of roff. */
void manual_print(const command *c, FILE *out);

#endif
