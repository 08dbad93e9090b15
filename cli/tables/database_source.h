/* database_source.h - a database file made of the tables of a source. */
#ifndef PITH_CLI_TABLES_DATABASE_SOURCE_H
#define PITH_CLI_TABLES_DATABASE_SOURCE_H

#include <pith/tables.h>

#include "cli/base/cli.h"
#include "cli/output/output.h"

/* How it is made. schema: NULL: that of the source, else it is inferred. embedder: NULL or "hash":
 * words are hashed. python: as parquet_unpack takes it. */
typedef struct database_making {
    const char *schema, *embedder, *python;
    int32_t threads;
} database_making;

/* Reads a source, or if draft is set infers its schema alone, and writes the result to out.
 * Warnings go to standard error. EXIT_DONE, or another exit code after a message. */
int database_source_make(const command *c, const database_making *how, const char *source,
                         bool draft, output *out);

#endif
