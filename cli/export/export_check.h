/* export_check.h - an exported file compared with the model that it was made from. */
#ifndef PITH_CLI_EXPORT_EXPORT_CHECK_H
#define PITH_CLI_EXPORT_EXPORT_CHECK_H

#include "cli/base/cli.h"

/* Runs a few texts through the file at `path` and through the model, and sets *worst to the largest
 * difference of an element, or to -1 if the model is not run on texts. `from` says which file and
 * route of the model. EXIT_DONE, or another exit code after a message, also for results that are
 * not finite. */
int export_check(const command *c, double *worst, const char *path, const char *model,
                 const pith_source_options *from, const pith_export_options *options);

#endif
