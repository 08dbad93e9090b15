/* csv_records.h - rows of a text with columns (base/formats/csv.h) as JSON objects, from lines that
 * come one after the other.
 *
 * The first row names the columns. Each other row becomes an object with a string for each cell, so
 * that whatever reads lines of JSON objects reads tables too. A quoted cell may go over lines: a
 * row is complete when its quotes are, which is seen without reading any byte twice. Memory is
 * bounded by the largest row. */
#ifndef PITH_CLI_BASE_CSV_RECORDS_H
#define PITH_CLI_BASE_CSV_RECORDS_H

#include "base/formats/csv.h"
#include "cli/base/bytes.h"

/* The largest row. */
#define CSV_ROW_BYTES ((size_t)64 << 20)

typedef struct csv_records {
    char delimiter;
    bool headed;                                                /* the names were read */
    bool too_long;                                              /* bytes of the row were left out */
    enum { CSV_CELL_BEGINS, CSV_IN_CELL, CSV_IN_QUOTES } state; /* behind the lines so far */
    bytes text;                                                 /* lines */
    size_t at;                                                  /* where the next row begins */
    uint64_t line, next_line; /* where the last row, and the next one, begin, from 1 */
    uint64_t row;             /* the last row, from 1; the header is none */
    bytes names;              /* of the columns, as JSON strings */
    size_t *ends, columns;    /* where they end in `names` */
    pith__arena arena;        /* cells with doubled quotes */
} csv_records;

/* usual: the delimiter, unless the header has another one (pith__csv_delimiter). */
void csv_records_open(csv_records *r, char usual);
void csv_records_close(csv_records *r);

/* Whether rows are there that were not taken. */
bool csv_records_waiting(const csv_records *r);
/* Takes what was appended to r->text from `from` on, a line without its end. True: the row ends
 * with it. */
bool csv_records_line(csv_records *r, size_t from);

/* What csv_records_next found. */
typedef enum csv_found {
    CSV_NONE, /* no row; more lines are needed, if there are any */
    CSV_ROW,
    CSV_BAD,  /* message says what is wrong with the row; the next call goes on behind it */
    CSV_FAULT /* message says what is wrong with the file */
} csv_found;

/* Reads the header if it was not, and appends the next row to out as an object. replace: bytes that
 * are not UTF-8 become U+FFFD, else the row is bad. Messages have no place. */
csv_found csv_records_next(csv_records *r, bytes *out, bool replace, char *message, size_t size);

#endif
