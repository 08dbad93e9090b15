/* sqlite_library.h - SQLite, loaded when a database file or a query is read first; and reading the
 * rows of a query. */
#ifndef PITH_TABLES_SOURCES_SQLITE_LIBRARY_H
#define PITH_TABLES_SOURCES_SQLITE_LIBRARY_H

#include <stdint.h>

#include <sqlite3.h>

#include "base/formats/csv.h"
#include "base/os/shared_library.h"
#include "base/stop.h"

#define PITH_SQLITE_FUNCTIONS(F)                                                                   \
    F(sqlite3_, open_v2)                                                                           \
    F(sqlite3_, close)                                                                             \
    F(sqlite3_, exec)                                                                              \
    F(sqlite3_, prepare_v2)                                                                        \
    F(sqlite3_, step)                                                                              \
    F(sqlite3_, reset)                                                                             \
    F(sqlite3_, finalize)                                                                          \
    F(sqlite3_, bind_text)                                                                         \
    F(sqlite3_, bind_int64)                                                                        \
    F(sqlite3_, bind_null)                                                                         \
    F(sqlite3_, column_count)                                                                      \
    F(sqlite3_, column_type)                                                                       \
    F(sqlite3_, column_bytes)                                                                      \
    F(sqlite3_, column_text)                                                                       \
    F(sqlite3_, column_name)                                                                       \
    F(sqlite3_, column_int64)                                                                      \
    F(sqlite3_, column_double)                                                                     \
    F(sqlite3_, stmt_readonly)                                                                     \
    F(sqlite3_, errmsg)                                                                            \
    F(sqlite3_, limit)                                                                             \
    F(sqlite3_, db_config)                                                                         \
    F(sqlite3_, set_authorizer)                                                                    \
    F(sqlite3_, progress_handler)                                                                  \
    F(sqlite3_, hard_heap_limit64)

typedef struct pith__sqlite {
    PITH_SQLITE_FUNCTIONS(PITH_LIBRARY_MEMBER)
} pith__sqlite;

/* Statements of the connection end from now on when the call must end; NULL: they do not. What they
 * were called for then asks pith__stop_check before it reads SQLite's message. */
void pith__sqlite_watch(const pith__sqlite *sqlite, sqlite3 *db, pith__stop *stop);

/* Loads SQLite. what: what needs it, for the message. PITH_ERR_NOT_FOUND names its package. */
pith_status pith__sqlite_load(const pith__sqlite **sqlite, const char *what, pith_error *err);

/* Prepares one statement; parameter i gets parameters[i]. path: the database, for messages. */
pith_status pith__sqlite_prepare(sqlite3_stmt **statement, const pith__sqlite *sqlite, sqlite3 *db,
                                 const char *sql, const pith_str *parameters, int count,
                                 const char *path, pith_error *err);
/* Reads all rows of a query as text in the arena, under the names of its columns. Numbers are
 * written so that they are read back as they are; nulls and empty texts are empty. A blob is empty,
 * and its row is noted in table->blobs. Rows of more than `most` bytes, each cell counted with its
 * text, are an error. stop: what the connection is watched for; may be NULL. */
pith_status pith__sqlite_table(pith__text_table *table, const pith__sqlite *sqlite, sqlite3 *db,
                               const char *sql, const pith_str *parameters, int count, size_t most,
                               const char *path, pith__stop *stop, pith__arena *arena,
                               pith_error *err);
/* The same for a query that a schema brings: it must be one SELECT, perhaps WITH something, and
 * runs under a guard (sqlite_guard.h). */
pith_status pith__sqlite_select(pith__text_table *table, const pith__sqlite *sqlite, sqlite3 *db,
                                const char *sql, const char *path, pith__stop *stop,
                                pith__arena *arena, pith_error *err);
#endif
