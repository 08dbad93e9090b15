/* resume_record.h - what a resumable output was made with and from, kept beside it as FILE.part.made while it grows.
 *
 * It holds the options that decide what rows are, one a line, and for some numbers of rows the hash of the inputs they
 * were made of. A later call that goes on with the output is refused if its options or its inputs are others. */
#ifndef PITH_CLI_RESUME_RECORD_H
#define PITH_CLI_RESUME_RECORD_H

#include "cli/output.h"
#include "cli/text_input.h"

typedef struct resume_mark {
    uint64_t rows, hash;
} resume_mark;

typedef struct resume_record {
    char *path;    /* NULL: nothing is kept */
    bytes options; /* for the beginning of a new record */
    bool old;      /* there is a record of an earlier call, which goes on */
    FILE *file;    /* NULL: not opened yet */
    resume_mark *marks;
    size_t count;
} resume_record;

/* options: lines "--name value". If there are rows of an earlier call, compares; EXIT_DONE, or another exit code after
 * a message. Without a record only the last row is compared (vectors.h). A new record begins with the first rows that
 * are written. */
int resume_record_open(resume_record *r, const command *c, const output *out, const bytes *options, bool rows_found);
/* Whether the hash of the first `rows` inputs is the one that was noted, or none was. */
bool resume_record_agrees(const resume_record *r, uint64_t rows, uint64_t hash);
/* Notes that so many rows are written, of inputs with this hash. */
void resume_record_note(resume_record *r, uint64_t rows, uint64_t hash);
/* Ends the record; the file goes when the output is complete. */
void resume_record_close(resume_record *r, bool complete);

/* The hash of inputs so far and one more; begin with RESUME_HASH. FNV-1a, 64 bits. */
#define RESUME_HASH UINT64_C(0xcbf29ce484222325)
uint64_t resume_hash(uint64_t hash, const char *data, size_t size);

#endif
