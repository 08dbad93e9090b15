/* export_relational.h - pith export of a run of pith train: its network as ONNX. */
#ifndef PITH_CLI_TABLES_EXPORT_RELATIONAL_H
#define PITH_CLI_TABLES_EXPORT_RELATIONAL_H

#include <pith/tables.h>

#include "cli/base/cli.h"

/* Whether a path is the directory of a run. */
bool export_is_run(const char *path);
/* Writes the network of a run to a file. Returns the exit code. */
int export_relational(const command *c, const char *run, const char *path, bool force);
/* Writes each input of that network for some rows as DIR/name.npy. Returns the exit code. */
int export_relational_inputs(const command *c, pith_relational *model, const uint32_t *rows,
                             size_t count, const char *directory);

#endif
