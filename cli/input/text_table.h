/* text_table.h - the texts of a file by number: its lines, or the rows of a table or of JSON
 * objects with all their fields. */
#ifndef PITH_CLI_INPUT_TEXT_TABLE_H
#define PITH_CLI_INPUT_TEXT_TABLE_H

#include "cli/input/row_options.h"
#include "cli/input/text_lines.h"

typedef struct text_table {
    bool open, objects;
    text_lines lines; /* of a mapped file */
    bytes kept;       /* lines, or objects, that were read into memory */
    size_t *ends;     /* [count] of each in `kept` */
    size_t count;
    uint64_t skipped; /* rows that --errors skip left out */
    json_line json;
} text_table;

/* Whether the file has columns by its name, so that rows have ids and fields. */
bool text_table_objects(const char *path);

/* Reads the file; its rows under o->columns and o->id. whole: lines are read and checked too, as
 * `pith embed` reads them; else they are only mapped, and may hold any bytes. With --errors skip
 * bad rows are left out, as `pith embed` leaves them out. EXIT_DONE, or another exit code after a
 * message. o must stay. */
int text_table_open(text_table *t, const command *c, const char *path, const row_options *o,
                    bool whole);
void text_table_close(text_table *t);

/* A text, valid until the next call for this table. */
pith_str text_table_text(text_table *t, size_t index);
/* The id of a row, or a field, as it is written in the object; size 0: there is none. */
pith_str text_table_id(text_table *t, size_t index);
pith_str text_table_field(text_table *t, size_t index, const char *name);
/* Whether a row has the field; else t->json.message lists those it has. */
bool text_table_has(text_table *t, size_t index, const char *name);

#endif
