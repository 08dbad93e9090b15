/* compile.h - a model as the bytes of its compiled file, in memory. */
#ifndef PITH_CLI_COMPILE_H
#define PITH_CLI_COMPILE_H

#include "cli/cli.h"

/* Opens the model anew from its own compiled bytes, *file, which are to be freed after it; the model given is closed in
 * any case. */
pith_status reopen_compiled(pith_model **model, void **file, const pith_open_options *options, pith_error *err);

#endif
