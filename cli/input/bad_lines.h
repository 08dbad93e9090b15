/* bad_lines.h - what becomes of lines and rows that are no text, or hold none. They end the
 * command; or with --errors report each has an object {"line": 3, "error": "..."} in its place
 * among the results, with "file" if it is one of a file and "row" if it is one of a table; or with
 * --errors skip they are left out, and a message says so. */
#ifndef PITH_CLI_INPUT_BAD_LINES_H
#define PITH_CLI_INPUT_BAD_LINES_H

#include "cli/base/text_input.h"
#include "cli/output/output.h"

/* The choices of --errors. */
enum { ERRORS_STOP, ERRORS_REPORT, ERRORS_SKIP };

typedef struct bad_line {
    size_t row, end; /* results of the batch that stand before the object, and where the object ends
                        in `objects` */
} bad_line;

/* The bad lines of a batch, in the order they were read. */
typedef struct bad_lines {
    int how; /* a choice of --errors */
    bad_line *lines;
    size_t count, written;
    bytes objects;
    uint64_t total; /* of all batches */
} bad_lines;

void bad_lines_free(bad_lines *b);
/* Begins another batch. */
void bad_lines_clear(bad_lines *b);
/* Notes the line that `in` read last. row: results of the batch before it. message may begin with
 * the line's place. members, which may be NULL, stands at the front of the object and ends with a
 * comma. False: the line ends the command as --errors says, and nothing was noted. */
bool bad_lines_add(bad_lines *b, size_t row, const text_input *in, const char *message,
                   const char *members);
/* Bytes that the bad lines of the batch take. */
size_t bad_lines_bytes(const bad_lines *b);
/* The row before which the next object stands; SIZE_MAX: no object is left. */
size_t bad_lines_next(const bad_lines *b);
/* The objects that stand before result `row` and were not taken yet, as lines; SIZE_MAX: all. */
pith_str bad_lines_take(bad_lines *b, size_t row);
/* Writes what bad_lines_take gives. False: the write failed. */
bool bad_lines_write(bad_lines *b, output *out, size_t row);
/* Says how many lines of the call were bad. how: a choice of --errors; code: of the work so far;
 * returns it, or EXIT_FAILED if there were any. */
int bad_lines_end(uint64_t total, const command *c, int how, int code);

#endif
