/* text_input.h - texts from files and pipes, one a line, in bounded memory; and rows of tables, as
 * lines with a JSON object each. */
#ifndef PITH_CLI_BASE_TEXT_INPUT_H
#define PITH_CLI_BASE_TEXT_INPUT_H

#include <sys/types.h>

#include "cli/base/bytes.h"
#include "cli/base/csv_records.h"
#include "cli/base/file_kinds.h"

/* Begins an item of `paths` that is a text itself, and no path. */
#define TEXT_MARK '\1'

typedef struct text_input {
    const char *const *paths; /* "-" is stdin */
    size_t path_count, path_at;
    char separator;     /* '\n', or NUL with -0 */
    size_t limit;       /* bytes kept of a line, the rest is passed over; 0: all */
    bool replace;       /* invalid UTF-8 becomes U+FFFD; else it is an error */
    bool tables;        /* .csv, .tsv and .parquet files are tables, each row an object; else they
                           are lines as all others */
    bool arguments;     /* paths are arguments that may be texts, behind TEXT_MARK; what is no file
                           might have been meant as one, which the message says */
    bool quiet;         /* does not say that it waits for a terminal */
    bool guesses;       /* no column was named: the only one of a table has the texts */
    const char *python; /* reads .parquet files */
    int fd;             /* -1: none open */
    pid_t child;        /* writes to fd; 0: none */
    bool ended;         /* read to its end */
    bool bad;           /* the last failure is one line's: the next call goes on behind it */
    uint64_t line;      /* of the current file, from 1: the one read last */
    csv_records rows;   /* of the current file, if it is a table */
    char *buffer;
    size_t begin, end;
    char message[1200]; /* after a failure */
} text_input;

/* paths: none means stdin. */
void text_input_open(text_input *in, const string_list *paths);
void text_input_close(text_input *in);

/* Appends the next line, without its end and a CR before it, to out. 1: done; 0: there is none; -1:
 * message says why. *cut (may be NULL) tells whether bytes beyond the limit were passed over. A
 * line is cut between characters. */
int text_input_next(text_input *in, bytes *out, bool *cut);
/* Whether a whole line, or the end, can be had without waiting for a program that writes it. Reads
 * what is there. */
bool text_input_ready(text_input *in);
/* "file:12", "file, row 11 (line 12)" or "line 12" for messages; valid until the next call. */
const char *text_input_place(const text_input *in);
/* The file of the line read last; NULL: standard input, or an argument. */
const char *text_input_path(const text_input *in);
/* The row of a table that was read last, from 1; 0: it is no row. */
uint64_t text_input_row(const text_input *in);

/* Whether a column of this name holds texts, as far as can be guessed. */
bool text_column_usual(pith_str name);

#endif
