/* build_database.h - making a database out of a source and its schema. */
#ifndef PITH_TABLES_DATABASE_BUILD_DATABASE_H
#define PITH_TABLES_DATABASE_BUILD_DATABASE_H

#include "base/memory/span_map.h"
#include "base/work.h"
#include "pith/tables.h"
#include "tables/database/rdb.h"
#include "tables/sources/table_source.h"

/* What is at hand while a database is made. All is in the arena of rdb. */
typedef struct pith__build {
    pith__rdb *rdb;
    const pith__schema *schema;
    pith__table_source source;
    const pith_database_options *options;
    const pith__work *work; /* of the call that makes it */
    uint64_t rows_read;     /* of the source, so far */
    const char *schema_path;
    pith__text_table *texts; /* [schema tables] */
    pith__map *keys;         /* [schema tables] primary key to row; slots is NULL without one */
    pith__map strings;
    pith_str *string_list;
    size_t string_room, warning_room, link_room;
    int64_t train_until;     /* rows before it are seen by training; INT64_MAX: all */
    struct sqlite3 *queries; /* the temporary database of queries; NULL: none yet */
    size_t query_indices;
} pith__build;

#define PITH_BUILD_ARENA(b) (&(b)->rdb->arena)

/* Notes something that people should know but that stops nothing. It names tables and not files:
 * the database must not depend on where its source is. */
pith_status pith__build_warn(pith__build *b, pith_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same of something that is likely to make answers wrong: the caller's options.warn is told,
 * too. */
pith_status pith__build_tell(pith__build *b, pith_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The number of a string, which is added if it is new. The text must outlive the database. */
pith_status pith__build_string(uint32_t *number, pith__build *b, pith_str text, pith_error *err);

/* The steps, in this order. */
pith_status pith__build_columns(pith__build *b, pith_error *err);
pith_status pith__build_links(pith__build *b, pith_error *err);
/* Gives rows without a time of their own that of the newest row that they name, in turn by its own
 * names. The links know their parents (up); their children are listed after this. */
pith_status pith__build_times(pith__build *b, pith_error *err);
pith_status pith__build_tasks(pith__build *b, pith_error *err);
pith_status pith__build_statistics(pith__build *b, pith_error *err);
pith_status pith__build_vectors(pith__build *b, pith_error *err);

/* Parses the cells of a column of the table into c->data, which it makes. format: of times. */
pith_status pith__build_cells(pith__build *b, pith__rdb_column *c, pith__time_format format,
                              const pith__text_table *t, size_t at, pith_error *err);
/* The form of the times in a column. Fails if there is none, or if several read all cells. */
pith_status pith__build_format(pith__time_format *format, pith__build *b, pith_str name,
                               const pith__text_table *t, size_t at, pith_error *err);

/* A table that a task makes: the next one of the database, with the columns asked_at, target and
 * perhaps more. pith__build_made_column makes an empty one of t->rows rows; pith__build_made_table
 * adds the finished table, its link to the anchor table (up: [rows]), and keys: that of the anchor
 * row, U+001F and the time. */
pith_status pith__build_made_column(pith__build *b, pith__rdb_table *t, uint32_t index,
                                    const char *name, pith__stype stype, pith_error *err);
/* The column known_at, which says when the target is known and is itself known then: before it
 * would tell what comes. */
pith_status pith__build_made_known(pith__build *b, pith__rdb_table *t, pith_error *err);
pith_status pith__build_made_table(pith__build *b, pith__rdb_task *task, pith_str name,
                                   uint32_t anchor, const uint32_t *up, pith_error *err);
/* The question of a query. */
pith_status pith__build_query(pith__build *b, pith__rdb_task *task, const pith__task_schema *from,
                              pith_error *err);
void pith__build_queries_close(pith__build *b);

/* Lists the children of each parent of a link whose `up` is there. */
pith_status pith__build_down(pith__build *b, pith__rdb_link *link, pith_error *err);

/* All of them, and hands the file to `write`. rdb has an empty arena; afterwards the caller closes
 * it, whatever comes. */
pith_status pith__build_run(pith__rdb *rdb, const char *source,
                            const pith_database_options *options, const pith__work *work,
                            const pith_writer *writer, pith_error *err);

/* The text that joins the cells of several columns of a row, for keys; data is NULL if memory is
 * out. *null is set if one of them is empty. */
pith_str pith__build_key(pith__arena *arena, const pith__text_table *t, const size_t *columns,
                         size_t count, size_t row, bool *null);

/* The row of a key in a map of keys, or PITH_RDB_NONE. A whole number is found with and without
 * ".0" behind it. */
uint32_t pith__key_find(const pith__map *keys, pith_str key);

/* Infers a schema from the tables of a source. */
pith_status pith__schema_draft(pith__schema *schema, pith__table_source *source,
                               const pith__work *work, pith_error *err);

#endif
