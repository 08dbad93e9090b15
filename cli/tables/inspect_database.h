/* inspect_database.h - pith inspect of a database file. */
#ifndef PITH_CLI_TABLES_INSPECT_DATABASE_H
#define PITH_CLI_TABLES_INSPECT_DATABASE_H

#include <stdbool.h>

#include "cli/base/cli.h"

/* Whether a file is a database, by its first bytes, or is called one by its name. */
bool inspect_is_database(const char *path);
/* Prints what is in it, as JSON or for people; svg: where a diagram goes, or NULL. Returns the exit
 * code. */
int inspect_database(const command *c, const char *path, const char *svg, bool as_json);

#endif
