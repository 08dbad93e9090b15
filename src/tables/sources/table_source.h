/* table_source.h - where tables come from. Each kind of source is a file source_<kind>.c and a line
 * in tables/sources/table_sources.def. */
#ifndef PITH_TABLES_SOURCES_TABLE_SOURCE_H
#define PITH_TABLES_SOURCES_TABLE_SOURCE_H

#include "base/formats/csv.h"
#include "base/os/file.h"
#include "base/stop.h"
#include "tables/schema/schema.h"

/* What a source declares a column to be. TEXT: digits in it are no numbers. */
typedef enum pith__declared {
    PITH_DECLARED_NOTHING,
    PITH_DECLARED_BOOLEAN,
    PITH_DECLARED_TEXT
} pith__declared;

/* A table of a source, and what the source declares of it. */
typedef struct pith__source_table {
    pith_str name, file;                  /* file: what a schema calls it */
    pith__name_list primary_key, columns; /* columns: of a source that declares something */
    pith__link_schema *links;
    size_t link_count;
    pith__declared *types; /* [columns.count] */
} pith__source_table;

typedef struct pith__table_source {
    const struct pith__source_kind *kind;
    const char *path;
    pith__arena *arena;
    pith__files files; /* stay open: cells are spans of them */
    void *state;       /* the kind's own */
    pith__stop *stop;  /* of the call that reads; NULL: it cannot be stopped */
} pith__table_source;

/* An address as messages may show it: without what stands behind the user's name, and without
 * parameters, since either may hold a password. Other text stays as it is, unless it speaks of a
 * password. */
pith_str pith__source_shown(pith__arena *arena, const char *address);

/* One kind. open may leave something in source->state; close, if it is there, is called after open
 * has succeeded. */
typedef struct pith__source_kind {
    bool (*takes)(const char *path);
    pith_status (*open)(pith__table_source *source, pith_error *err);
    /* Lists the tables, sorted by name. */
    pith_status (*list)(pith__source_table **tables, size_t *count, pith__table_source *source,
                        pith_error *err);
    /* Reads a table that a schema names. */
    pith_status (*read)(pith__text_table *table, pith__table_source *source, pith_str file,
                        pith_error *err);
    /* The text of its schema.json, and that file's path; data is NULL if there is none. NULL: it
     * never has one. */
    pith_status (*schema)(pith_str *text, pith_str *path, pith__table_source *source,
                          pith_error *err);
    /* Runs a SELECT. NULL: the source is no database. path is for messages. */
    pith_status (*query)(pith__text_table *result, pith__table_source *source, const char *sql,
                         const char *path, pith_error *err);
    void (*close)(pith__table_source *source);
} pith__source_kind;

/* stop: of the call that opens and reads the source; may be NULL. */
pith_status pith__table_source_open(pith__table_source *source, const char *path, pith__stop *stop,
                                    pith__arena *arena, pith_error *err);
void pith__table_source_close(pith__table_source *source);

/* ---- for the kinds ---- */

/* "name" with its quotation marks as SQL wants it, in the arena; data is NULL if memory is out. */
pith_str pith__source_quoted(pith__arena *arena, pith_str name);
/* True if the file at path begins with these bytes. */
bool pith__source_begins(const char *path, const char *bytes, size_t size);
/* What a file's name may end in behind that of the schema that a database keeps; the first is
 * nothing. */
enum { PITH_SOURCE_ENDINGS = 11 };
extern const char *const pith__source_endings[PITH_SOURCE_ENDINGS];
/* The name without such an ending, in small letters or capitals. */
pith_str pith__source_plain(pith_str file);
/* Fails: two files have the name. */
pith_status pith__source_twice(pith_str one, pith_str other, pith_error *err);
/* True if the name is that of a table's file: .csv or .tsv, then perhaps .gz or .zst. */
bool pith__source_is_table(pith_str file);
/* The columns and the primary key of *to, from rows of a column's name, its type, and its place in
 * the primary key from 1, else 0. */
pith_status pith__source_take_columns(pith__source_table *to, const pith__text_table *rows,
                                      pith__declared (*declared)(pith_str type), pith__arena *arena,
                                      pith_error *err);
/* The link of row r among rows of a link's name, its parent, and a column of each: a new one if the
 * name is another than that of the row before. Rows are taken in order; the caller adds the
 * columns. */
pith_status pith__source_take_link(pith__link_schema **link, pith__source_table *to,
                                   const pith__text_table *rows, size_t r, pith__arena *arena,
                                   pith_error *err);
/* The table that a file holds: the file's name without folders and endings. */
pith_str pith__source_table_name(pith_str file);
/* Parses the bytes of such a file, which are unpacked first if they are packed. */
pith_status pith__source_parse(pith__text_table *table, pith_str bytes, pith_str file,
                               const char *path, const pith__table_source *source, pith_error *err);

#endif
