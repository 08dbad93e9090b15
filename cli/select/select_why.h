/* select_why.h - why a model needs a piece. */
#ifndef PITH_CLI_SELECT_SELECT_WHY_H
#define PITH_CLI_SELECT_SELECT_WHY_H

#include <stdio.h>

#include "cli/base/cli.h"

/* Prints for one model whether it needs the piece, when opening or when used, and for an operator
 * which nodes of the file have it, or which pass puts it into the graph, and the nodes that are
 * run. name: as in lists, "MatMul", "com.microsoft::Gelu" or, for a kernel, "gemm". uses: of
 * select_uses.h. EXIT_DONE, or another exit code after a message. */
int select_why(FILE *out, const char *name, const char *path, const pith_open_options *open,
               unsigned uses, const command *c);

#endif
