/* parquet_tables.h - directories with .parquet files, which Python's pyarrow turns into CSV. */
#ifndef PITH_CLI_PARQUET_TABLES_H
#define PITH_CLI_PARQUET_TABLES_H

#include "cli/cli.h"

/* If source is a directory with .parquet files, fills *folder with a directory, from malloc, that holds each of them as
 * a .csv file, and all other files as they are; else sets it to NULL. EXIT_DONE, or another exit code after a message.
 */
int parquet_unpack(char **folder, const command *c, const char *source, const char *python);
/* Removes what parquet_unpack made, and frees the name; NULL is allowed. */
void parquet_remove(char *folder);

#endif
