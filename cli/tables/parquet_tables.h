/* parquet_tables.h - directories with .parquet files, which Python's pyarrow turns into CSV. */
#ifndef PITH_CLI_TABLES_PARQUET_TABLES_H
#define PITH_CLI_TABLES_PARQUET_TABLES_H

#include "cli/base/cli.h"

/* Both from malloc, NULL without .parquet files: a temporary directory, and one in it of the name
 * of the source, which holds each .parquet file as a .csv file, and all other files as they are. */
typedef struct parquet_tables {
    char *folder, *source;
} parquet_tables;

/* Fills *t if source is a directory with .parquet files. EXIT_DONE, or another exit code after a
 * message.
 *
 * python with a slash is that program; else it is searched in the folders of PATH, but neither in
 * one that is not named in full, nor in the current directory, nor in the source. It runs isolated
 * (-I), so that only its own packages are imported. Call parquet_remove in any case. */
int parquet_unpack(parquet_tables *t, const command *c, const char *source, const char *python);
/* Prints a message about the tables under the name that the caller gave them. Returns the exit
 * code. */
int parquet_fail(const parquet_tables *t, const command *c, const char *source,
                 const char *message);
/* Removes what parquet_unpack made. */
void parquet_remove(parquet_tables *t);

#endif
