/* schema.h - what the tables of a source are: the kind of each column, the keys, the times, the
 * questions.
 *
 * A schema is JSON that people read and edit; docs/relational.md lists its members. Everything is
 * in the arena that it was read into. */
#ifndef PITH_TABLES_SCHEMA_SCHEMA_H
#define PITH_TABLES_SCHEMA_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"
#include "base/writer.h"
#include "tables/schema/time_format.h"

typedef enum pith__stype {
    PITH_STYPE_IDENTIFIER, /* names a row; never a cell of the model */
    PITH_STYPE_NUMERICAL,
    PITH_STYPE_TIMESTAMP,
    PITH_STYPE_BOOLEAN,
    PITH_STYPE_CATEGORICAL,
    PITH_STYPE_TEXT,
    PITH_STYPE_IGNORED,
    PITH_STYPE_COUNT
} pith__stype;
extern const char *const pith__stype_names[PITH_STYPE_COUNT];

typedef enum pith__transform {
    PITH_TRANSFORM_AUTO,
    PITH_TRANSFORM_NONE,
    PITH_TRANSFORM_LOG
} pith__transform;
extern const char *const pith__transform_names[3];

/* Names of columns. */
typedef struct pith__name_list {
    pith_str *items;
    size_t count;
} pith__name_list;

/* From when on a cell is known: the time in a column of its row (which may be null: never), or the
 * row's own time, plus a delay in seconds. */
typedef struct pith__known_at {
    bool set;
    pith_str column; /* size 0: the row's own time */
    int64_t delay;
} pith__known_at;

typedef struct pith__column_schema {
    pith_str name, description; /* description: size 0 if there is none */
    pith__stype stype;
    pith__transform transform; /* of numbers */
    pith__time_format format;  /* of times */
    pith__known_at known_at;
} pith__column_schema;

/* A foreign key: columns of a table and those of the parent table that they name. */
typedef struct pith__link_schema {
    pith__name_list columns, parent_columns;
    pith_str parent;
} pith__link_schema;

typedef struct pith__table_schema {
    pith_str name, file, description; /* file: relative to the source */
    pith__name_list primary_key;      /* none: rows are named by their number */
    pith_str temporal_column;         /* size 0: the rows have no time of their own */
    bool always;                      /* such rows are there even before the rows with times that
                                         they name */
    pith__column_schema *columns;
    pith__link_schema *links;
    size_t column_count, link_count;
} pith__table_schema;

typedef enum pith__split_kind { PITH_SPLIT_TIME, PITH_SPLIT_HASH } pith__split_kind;

/* A question made of windows: what rows of `table` that name the anchor row hold in (time, time +
 * seconds]. */
typedef struct pith__window_schema {
    bool set;
    pith_str table, column, aggregate; /* aggregate: count, sum or any */
    int64_t seconds, every, from, until;
} pith__window_schema;

/* A question: the target column of rows of the anchor table, asked at the row's observation time;
 * or what a window or a query gives. */
typedef struct pith__task_schema {
    pith_str name, anchor_table, target_column, time_column;
    pith__stype target_stype;
    pith__split_kind split;
    int64_t train_until, validation_until; /* of a split by time: rows before them */
    int train_percent, validation_percent; /* of a split by hash */
    bool rank;                             /* only the order of the numbers counts */
    pith__window_schema window;
    pith_str query; /* size 0: none. SQL that gives anchor, time, target and perhaps known_at */
    bool delayed;   /* of a query: its target is known `delay` seconds after the time */
    int64_t delay;
} pith__task_schema;

typedef struct pith__schema {
    pith_str name;
    pith__table_schema *tables;
    pith__task_schema *tasks;
    size_t table_count, task_count;
} pith__schema;

/* Reads a schema. Unknown members, stypes and tables are errors that name their place. `text` must
 * outlive the schema. */
pith_status pith__schema_read(pith__schema *schema, pith_str text, const char *path,
                              pith__arena *arena, pith_error *err);

/* The text of a schema that was read, without spaces, and without endings of the names of files, so
 * that it is the same however the schema is laid out and wherever the tables are. */
pith_status pith__schema_compact(pith_str *compact, pith_str text, pith__arena *arena,
                                 pith_error *err);

/* Writes the tables of a schema as indented JSON, which pith__schema_read reads back as they are.
 * It writes drafts, which have no tasks. */
void pith__schema_write(const pith__schema *schema, pith__out *out);

/* Returns the index of a table or column, or SIZE_MAX. */
size_t pith__schema_table(const pith__schema *schema, pith_str name);
size_t pith__schema_column(const pith__table_schema *table, pith_str name);

#endif
