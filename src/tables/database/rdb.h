/* rdb.h - a preprocessed database: typed columns, links both ways, statistics and vectors of all
 * texts.
 *
 * The same struct is what preprocessing fills and what a mapped file gives; arrays are read-only
 * then. A file is
 *     header     "PITHRDB" and a zero, version, byte order mark, size of the file, XXH64 of all
 *                that follows the header, number of sections
 *     sections   one pith__rdb_section each
 *     content    each section at a multiple of 64 bytes
 * in the byte order of the machine that wrote it. Its first section is JSON: names, kinds and
 * counts.
 */
#ifndef PITH_TABLES_DATABASE_RDB_H
#define PITH_TABLES_DATABASE_RDB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/os/file.h"
#include "base/stop.h"
#include "tables/schema/cell_value.h"
#include "tables/schema/schema.h"

#define PITH_RDB_NONE UINT32_MAX          /* no row, no string */
#define PITH_RDB_UNKNOWN (UINT32_MAX - 1) /* a class whose text this database does not have */
enum { PITH_RDB_VERSION = 1, PITH_RDB_CLASSES_MOST = 64 /* of a target */ };

/* When a cell is known: with its row, or by the time in a column of the row or the row's own, plus
 * a delay. */
enum { PITH_KNOWN_WITH_ROW = -2, PITH_KNOWN_ROW_TIME = -1 };

typedef struct pith__rdb_column {
    pith_str name, description;
    pith__stype stype;
    const void *data;     /* double (NaN: null), int64_t seconds (PITH_TIME_NULL), uint8_t (0, 1, 2:
                             null), or for categories and texts uint32_t string (PITH_RDB_NONE) */
    double mean, sd;      /* of numbers, times and booleans in rows that training may see; sd is
                             never 0 */
    double low;           /* of a logarithm: smaller values count as this */
    bool log;             /* mean and sd are those of the logarithm */
    uint32_t name_string; /* the string that names the column */
    int32_t known_column; /* column of the same table, or PITH_KNOWN_… */
    int64_t known_delay;
    uint64_t nulls;
} pith__rdb_column;

typedef struct pith__rdb_table {
    pith_str name;
    uint32_t rows, column_count;
    int32_t time_column;  /* -1: rows have no time and are always there */
    const int64_t *times; /* [rows] of a table without a time column whose rows name rows with
                             times: the newest of these; else NULL */
    uint32_t first_cell;  /* columns of all earlier tables: first_cell + column numbers a column of
                             the database */
    pith__rdb_column *columns;
    const uint64_t *key_begin; /* [rows + 1] into key_bytes; NULL without a primary key */
    const char *key_bytes;
} pith__rdb_table;

/* A foreign key, both ways. */
typedef struct pith__rdb_link {
    pith_str name; /* "orders.customer_id" */
    uint32_t child, parent;
    const uint32_t *up;    /* [child rows] row of the parent, or PITH_RDB_NONE */
    const uint32_t *begin; /* [parent rows + 1] into down */
    const uint32_t *down;  /* children of each parent, by time, then row; those without a time come
                              first */
    uint64_t nulls, dangling;
} pith__rdb_link;

typedef struct pith__rdb_task {
    pith_str name;
    uint32_t table, column;
    int32_t time_column; /* when the question is asked; -1: after everything */
    pith__split_kind split;
    int64_t train_until, validation_until;
    int32_t train_percent, validation_percent;
    bool rank;         /* only the order of the numbers counts */
    bool made;         /* the table is the task's own, and has one link, to the table that is asked
                          about */
    uint64_t left_out; /* of a window: questions without an answer, whose windows end after the
                          table's last row */
    /* Of what a model keeps (rdb_keep.h), else NULL: the classes, in the order of their texts, with
     * their shares of the training labels, or of ranks the training labels, ascending. */
    const uint32_t *classes;     /* [class_count] strings, or PITH_RDB_UNKNOWN */
    const pith_str *class_texts; /* [class_count]; NULL: those of the strings */
    const double *labels;        /* [label_count] */
    uint32_t class_count, label_count;
} pith__rdb_task;

typedef struct pith__rdb {
    pith__arena arena;
    pith__file file; /* what is mapped; data is NULL while it is made */
    pith_str name, embedder;
    pith_str schema; /* that it was made with, as JSON; size 0: it is not known */
    pith__rdb_table *tables;
    pith__rdb_link *links;
    pith__rdb_task *tasks;
    uint32_t table_count, link_count, task_count, column_count;
    uint32_t string_count, dim;
    const uint64_t *string_begin; /* [string_count + 1] into string_bytes */
    const char *string_bytes;
    const float *vectors; /* [string_count, dim] */
    pith_str *warnings;
    uint32_t warning_count;
    uint64_t checksum; /* names the content */
    uint64_t origin;   /* of what a model keeps: the checksum of the databases that it was trained
                          on */
    bool kept;         /* it is what a model keeps of a database */
    bool followed;     /* statistics, the split and the classes are those of another database: see
                          rdb_keep.h */
} pith__rdb;

typedef struct pith__rdb_section {
    uint32_t kind, owner, column, unused; /* owner: the number of a table, a link or a task */
    uint64_t offset, bytes;
} pith__rdb_section;

enum pith__rdb_kind {
    PITH_RDB_META = 1, /* JSON */
    PITH_RDB_STATS,    /* double[columns][3]: mean, sd, low */
    PITH_RDB_COLUMN,   /* owner: table */
    PITH_RDB_KEY_BEGIN,
    PITH_RDB_KEY_BYTES, /* owner: table */
    PITH_RDB_UP,
    PITH_RDB_BEGIN,
    PITH_RDB_DOWN, /* owner: link */
    PITH_RDB_STRING_BEGIN,
    PITH_RDB_STRING_BYTES,
    PITH_RDB_VECTORS,
    PITH_RDB_TIMES, /* owner: table */
    PITH_RDB_SCHEMA,
    PITH_RDB_CLASSES,
    PITH_RDB_LABELS /* owner: task */
};

/* Bytes of a value of a column of this kind; 0 for kinds that are not stored. */
size_t pith__rdb_value_bytes(pith__stype stype);

/* Maps a file and checks its checksum, its counts and every index in it. stop, here and below: may
 * be NULL. */
pith_status pith__rdb_open(pith__rdb *rdb, const char *path, pith__stop *stop,
                           const pith_allocator *allocator, pith_error *err);
void pith__rdb_close(pith__rdb *rdb);

/* Hands the file to the writer. */
pith_status pith__rdb_write(const pith__rdb *rdb, const pith_writer *writer, pith__stop *stop,
                            pith__arena *arena, pith_error *err);
/* Writes what is in the database as JSON: tables, columns with statistics, links, tasks, warnings.
 * Nothing is written if it fails but for the writer. */
pith_status pith__rdb_describe(const pith__rdb *rdb, pith__stop *stop,
                               const pith_allocator *allocator, const pith_writer *writer,
                               pith_error *err);

/* The time of a row: its own, or that of the newest row that it names; PITH_TIME_NULL if its table
 * has times but the row has none, INT64_MIN + 1 if its table has none and it names no row with
 * one. */
#define PITH_TIME_ALWAYS (INT64_MIN + 1)
int64_t pith__rdb_row_time(const pith__rdb *rdb, uint32_t table, uint32_t row);
/* From when on a cell is known; INT64_MAX: never. */
int64_t pith__rdb_known_at(const pith__rdb *rdb, uint32_t table, uint32_t column, uint32_t row);
bool pith__rdb_is_null(const pith__rdb_column *column, uint32_t row);
/* The value of a number, time or boolean as the model sees it: its distance from the mean in
 * standard deviations, within 10. */
float pith__rdb_scaled(const pith__rdb_column *column, uint32_t row);
/* A time as the model sees it: pith__rdb_scaled; sine and cosine of the time of day, of the week
 * and of the year, in UTC; and its distance from the time when the question is asked: with l =
 * log2(1 + hours), l / 8, negative for a later one, then sine and cosine of l, which turns once in
 * 8, 4, 2 and 1, so that ages which differ by a few per cent are told apart. The distance is 0
 * where no time is asked. Where one is, ages_alone leaves out the first, which tells the year. */
enum { PITH_TIME_FEATURES = 16 };
void pith__rdb_time_features(float *features, const pith__rdb_column *column, uint32_t row,
                             int64_t asked, bool ages_alone);

enum { PITH_TRAIN, PITH_VALIDATION, PITH_TEST, PITH_NO_SPLIT };
/* The part of a task that a row belongs to; PITH_NO_SPLIT for a row without a label or without the
 * time that is needed. In a split by time a label that is known only after its part has ended
 * belongs to none: nobody could have learned it. */
int pith__rdb_split(const pith__rdb *rdb, const pith__rdb_task *task, uint32_t row);
/* When the question of a row is asked; INT64_MAX without a time column. */
int64_t pith__rdb_asked_at(const pith__rdb *rdb, const pith__rdb_task *task, uint32_t row);

#endif
