/* csv_in.h - reading a file of CSV (base/formats/csv.h), record by record. */
#ifndef PITH_CLI_INPUT_CSV_IN_H
#define PITH_CLI_INPUT_CSV_IN_H

#include "base/formats/csv.h"
#include "cli/base/mapped_file.h"
#include "cli/base/text_input.h"

/* Fields of a record that are kept; the others are passed over. */
enum { CSV_FIELDS = 64 };

typedef struct csv_in {
    const char *path;
    pith__file file;
    pith__csv_scan scan;
    pith__arena arena;              /* of cells with doubled quotes, until the next record */
    size_t line, next_line;         /* of the last record, from 1; of the next one */
    bytes text;                     /* the fields of the last record, each with a NUL */
    const char *fields[CSV_FIELDS]; /* [count], until the next record */
    size_t count;
} csv_in;

/* Opens a regular file. EXIT_DONE, or another exit code after a message. */
int csv_in_open(csv_in *in, const command *c, const char *path);
/* Reads a record; empty lines are passed over. *there: there was one. EXIT_DONE, or another exit
 * code after a message that names the line: a quote that is never closed, or a NUL byte. */
int csv_in_next(csv_in *in, const command *c, bool *there);
void csv_in_close(csv_in *in);

#endif
