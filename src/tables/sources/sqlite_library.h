/* sqlite_library.h - SQLite, loaded when a database file or a query is read first; and reading the
 * rows of a query. */
#ifndef PITH_TABLES_SOURCES_SQLITE_LIBRARY_H
#define PITH_TABLES_SOURCES_SQLITE_LIBRARY_H

#include <stdint.h>

#include "base/formats/csv.h"

enum {
    PITH_SQLITE_OK = 0,
    PITH_SQLITE_TOO_BIG = 18,
    PITH_SQLITE_ROW = 100,
    PITH_SQLITE_DONE = 101
};
enum {
    PITH_SQLITE_INTEGER = 1,
    PITH_SQLITE_FLOAT = 2,
    PITH_SQLITE_TEXT = 3,
    PITH_SQLITE_BLOB = 4,
    PITH_SQLITE_NULL = 5
};

/* Makes bind_text copy the text. */
#define PITH_SQLITE_COPY ((void (*)(void *)) - 1)

/* The functions of sqlite3.h without their prefix. Databases and statements are void pointers. */
typedef struct pith__sqlite {
    int (*open_v2)(const char *path, void **db, int flags, const char *vfs);
    int (*close)(void *db);
    int (*exec)(void *db, const char *sql, int (*each)(void *, int, char **, char **), void *user,
                char **message);
    int (*prepare_v2)(void *db, const char *sql, int size, void **statement, const char **rest);
    int (*step)(void *statement);
    int (*reset)(void *statement);
    int (*finalize)(void *statement);
    int (*bind_text)(void *statement, int at, const char *text, int size, void (*release)(void *));
    int (*bind_int64)(void *statement, int at, int64_t value);
    int (*bind_double)(void *statement, int at, double value);
    int (*bind_null)(void *statement, int at);
    int (*column_count)(void *statement);
    int (*column_type)(void *statement, int column);
    int (*column_bytes)(void *statement, int column);
    const unsigned char *(*column_text)(void *statement, int column);
    const char *(*column_name)(void *statement, int column);
    int64_t (*column_int64)(void *statement, int column);
    double (*column_double)(void *statement, int column);
    int (*stmt_readonly)(void *statement);
    const char *(*errmsg)(void *db);
    int (*limit)(void *db, int id, int value);
    int (*db_config)(void *db, int what, ...);
    int (*set_authorizer)(void *db,
                          int (*allow)(void *user, int action, const char *a, const char *b,
                                       const char *database, const char *inner),
                          void *user);
    void (*progress_handler)(void *db, int steps, int (*stop)(void *user), void *user);
    int64_t (*hard_heap_limit64)(int64_t bytes);
} pith__sqlite;

/* Loads SQLite. what: what needs it, for the message. PITH_ERR_NOT_FOUND names its package. */
pith_status pith__sqlite_load(const pith__sqlite **sqlite, const char *what, pith_error *err);

/* Prepares one statement; parameter i gets parameters[i]. path: the database, for messages. */
pith_status pith__sqlite_prepare(void **statement, const pith__sqlite *sqlite, void *db,
                                 const char *sql, const pith_str *parameters, int count,
                                 const char *path, pith_error *err);
/* Reads all rows of a query as text in the arena, under the names of its columns. Numbers are
 * written so that they are read back as they are; nulls and empty texts are empty. A blob is empty,
 * and its row is noted in table->blobs. Rows of more than `most` bytes, each cell counted with its
 * text, are an error. */
pith_status pith__sqlite_table(pith__text_table *table, const pith__sqlite *sqlite, void *db,
                               const char *sql, const pith_str *parameters, int count, size_t most,
                               const char *path, pith__arena *arena, pith_error *err);
/* The same for a query that a schema brings: it must be one SELECT, perhaps WITH something, and
 * runs under a guard (sqlite_guard.h). */
pith_status pith__sqlite_select(pith__text_table *table, const pith__sqlite *sqlite, void *db,
                                const char *sql, const char *path, pith__arena *arena,
                                pith_error *err);
#endif
