/* file_kinds.h - what the end of a file's name says: how texts are read from it, and how results
 * are written to it. */
#ifndef PITH_CLI_BASE_FILE_KINDS_H
#define PITH_CLI_BASE_FILE_KINDS_H

#include <stdbool.h>
#include <stddef.h>

/* How texts stand in a file. */
typedef enum text_form {
    TEXT_LINES,   /* one per line */
    TEXT_OBJECTS, /* lines of JSON objects */
    TEXT_CSV,     /* rows of cells; the first one names the columns */
    TEXT_TSV,
    TEXT_PARQUET,
    TEXT_ITSELF /* an argument that is the text */
} text_form;

typedef struct file_kind {
    const char *suffix; /* with its dot, in small letters */
    text_form form;
    const char *formats; /* names of formats "a|b" that are written so; "": none that Pith writes;
                            NULL: it says nothing of results */
} file_kind;

/* The kind of a file by its name, in letters of any case; NULL: it says nothing. */
const file_kind *file_kind_of(const char *path);

#endif
