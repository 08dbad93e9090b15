/* reopen_compiled.h - a model as the bytes of its compiled file, in memory. */
#ifndef PITH_CLI_COMPARE_REOPEN_COMPILED_H
#define PITH_CLI_COMPARE_REOPEN_COMPILED_H

#include "cli/base/cli.h"

/* Compiles a model in memory and opens it again from those bytes, *file, which the caller frees
 * after the model. The given model is closed in any case. */
pith_status reopen_compiled(pith_model **model, void **file, const pith_open_options *options,
                            pith_error *err);

#endif
