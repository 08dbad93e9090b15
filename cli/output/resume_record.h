/* resume_record.h - what a resumable output was made with and from, kept beside it as
 * FILE.part.made while it grows.
 *
 * It holds the options that decide what rows are, one a line, and for some numbers of rows the hash
 * of the inputs they were made of. A later call that goes on with the output is refused if its
 * options or its inputs are others. Of an output in several files (split_files.h) it also says at
 * which of them the work is. */
#ifndef PITH_CLI_OUTPUT_RESUME_RECORD_H
#define PITH_CLI_OUTPUT_RESUME_RECORD_H

#include "cli/base/text_input.h"
#include "cli/output/output.h"

typedef struct resume_mark {
    uint64_t rows, hash;
} resume_mark;

typedef struct resume_record {
    char *path;         /* NULL: nothing is kept */
    bytes options;      /* for the beginning of a new record */
    bool old;           /* there is a record of an earlier call, which goes on */
    FILE *file_handle;  /* NULL: not opened yet */
    resume_mark *marks; /* of an earlier call */
    size_t count, next; /* the first that was not compared */
    bool split;         /* of several files: the record is locked as long as it is open */
    bool noted;         /* it names a file: */
    uint64_t file;      /* the last one that was begun, and whether it is finished */
    bool done;
} resume_record;

/* options: lines "--name value". If there are rows of an earlier call, compares; EXIT_DONE, or
 * another exit code after a message. Without a record only the last row is compared (vectors.h). A
 * new record begins with the first rows that are written. */
int resume_record_open(resume_record *r, const command *c, const output *out, const bytes *options,
                       bool rows_found);
/* Opens the record of several files, PATH.part.made, and keeps other processes from it. Without
 * resume there is none, and one that is there goes, since its files are written anew. EXIT_DONE, or
 * another exit code after a message. */
int resume_record_open_split(resume_record *r, const command *c, const char *path,
                             const bytes *options, bool resume);
/* Notes that file number `file` was begun, or is finished. EXIT_DONE, or another exit code after a
 * message. */
int resume_record_at(resume_record *r, const command *c, uint64_t file, bool done);
/* Whether the hash of the first `rows` inputs is the one that was noted, or none was. rows ascend
 * from call to call. */
bool resume_record_agrees(resume_record *r, uint64_t rows, uint64_t hash);
/* Notes that so many rows are written, of inputs with this hash. */
void resume_record_note(resume_record *r, uint64_t rows, uint64_t hash);
/* Ends the record; the file goes when the output is complete. */
void resume_record_close(resume_record *r, bool complete);

/* The hash of inputs so far and one more; begin with RESUME_HASH. FNV-1a, 64 bits. */
#define RESUME_HASH UINT64_C(0xcbf29ce484222325)
uint64_t resume_hash(uint64_t hash, const char *data, size_t size);

#endif
