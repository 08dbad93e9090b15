/* csv.h - CSV as RFC 4180 has it: quotes, doubled quotes, line breaks within quotes, CRLF or LF,
 * any one-byte delimiter; cell by cell, or a table at once.
 *
 * A table is held whole in memory: one span for each cell, into the bytes of the file. Only cells
 * with doubled quotes are copied. Rows count from 1, the header is not counted. Blank lines are
 * skipped, except in a table of one column. */
#ifndef PITH_BASE_FORMATS_CSV_H
#define PITH_BASE_FORMATS_CSV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"
#include "base/private_symbol.h"
#include "base/work.h"

/* ---- cell by cell ---- */

/* What follows a cell; or why there is none. */
typedef enum pith__csv_after {
    PITH_CSV_CELL,
    PITH_CSV_ROW_END, /* or the end of the text */
    PITH_CSV_FAULT,   /* see fault */
    PITH_CSV_MEMORY
} pith__csv_after;

typedef struct pith__csv_scan {
    const char *at, *end;
    char delimiter;
    bool loose; /* what follows a closing quotation mark is text of the cell; else it is a fault */
    pith__arena *arena; /* for cells that are no spans of the text. NULL: they stay as they are
                           written */
    const char *fault;
} pith__csv_scan;

/* Begins at the first byte that is no byte order mark. */
pith__csv_scan pith__csv_begin(pith_str bytes, char delimiter);
/* Reads the cell that begins here, at the end of the text an empty one. */
pith__csv_after pith__csv_next(pith__csv_scan *s, pith_str *cell);
/* True if a line without anything begins here; it is passed over. */
bool pith__csv_blank(pith__csv_scan *s);

/* ---- a table ---- */

/* A table as text. Cell (row, column) is cells[row * columns + column]; an empty cell has size 0.
 */
typedef struct pith__text_table {
    const char *path; /* for messages */
    size_t rows, columns;
    pith_str *names; /* [columns], all different and not empty */
    pith_str *cells;
    size_t *blobs; /* [columns] the first row, from 1, whose cell is bytes and no text; 0: none.
                      NULL: none at all */
} pith__text_table;

/* No table has more rows, and a query that never ends is ended. */
#define PITH_TEXT_ROWS 1000000000u
/* Makes room in t->cells, which has `*room` cells, for one more row. False if memory is out. */
PITH_PRIVATE bool pith__text_table_room(pith__text_table *t, size_t *room, pith__arena *arena);

/* The name of a first column whose header is empty: the numbers of rows that pandas writes. */
#define PITH_CSV_UNNAMED "unnamed"

/* What separates the cells: `usual`, unless the header does not hold it outside of quotation marks
 * but holds a semicolon, tab or bar. */
PITH_PRIVATE char pith__csv_delimiter(pith_str bytes, char usual);

/* Parses bytes of UTF-8, which must outlive the table. Everything else is in the arena. Fails with
 * the row and the column of the fault. stop may be NULL. */
PITH_PRIVATE pith_status pith__csv_parse(pith__text_table *table, pith_str bytes, char delimiter,
                                         const char *path, pith__stop *stop, pith__arena *arena,
                                         pith_error *err);

#endif
