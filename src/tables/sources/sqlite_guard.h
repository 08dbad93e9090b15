/* sqlite_guard.h - what the SQL of a schema, and of a file's own schema, may do, and what it may
 * cost. */
#ifndef PITH_TABLES_SOURCES_SQLITE_GUARD_H
#define PITH_TABLES_SOURCES_SQLITE_GUARD_H

#include "base/memory/span_map.h"
#include "tables/sources/sqlite_library.h"

typedef struct pith__sqlite_guard {
    const pith__sqlite *sqlite;
    sqlite3 *db;
    pith__map tables, modules; /* that may be read; of virtual tables */
    int64_t heap;              /* the limit of SQLite's memory before */
    double deadline;           /* seconds */
    pith__stop *stop;          /* what the connection is watched for else */
} pith__sqlite_guard;

/* For a database that was just opened: defensive, without extensions, triggers and the argument of
 * fts3_tokenizer, with limits; functions outside a list of harmless ones are refused, also in
 * generated columns. */
void pith__sqlite_protect(const pith__sqlite *sqlite, sqlite3 *db);

/* The bytes that rows of a database may take as text: 64 times its size, and 1 GiB. */
pith_status pith__sqlite_most(size_t *most, const pith__sqlite *sqlite, sqlite3 *db,
                              const char *path, pith__arena *arena, pith_error *err);

/* From here to pith__sqlite_guard_end a statement may read the tables of the database and call
 * harmless functions; it is interrupted 60 seconds from now, and one more for each MB of the
 * database, or when the call must end. SQLite takes 2 GiB of memory at most. The guard stays where
 * it is until the end. */
pith_status pith__sqlite_guard_begin(pith__sqlite_guard *guard, const pith__sqlite *sqlite,
                                     sqlite3 *db, const char *path, pith__stop *stop,
                                     pith__arena *arena, pith_error *err);
void pith__sqlite_guard_end(pith__sqlite_guard *guard);

#endif
