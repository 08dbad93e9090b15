/* split_files.h - results in several files of the same number of rows: x-00000.npy, x-00001.npy, …
 * for x.npy. */
#ifndef PITH_CLI_ARRAYS_SPLIT_FILES_H
#define PITH_CLI_ARRAYS_SPLIT_FILES_H

#include "cli/arrays/vectors.h"
#include "cli/output/resume_record.h"

typedef struct split_files {
    const char *path; /* as given */
    uint64_t rows;    /* of a file; 0: one file has all, under the path itself */
    bool resume;      /* files that an earlier call has finished stay, and the one it was at is gone
                         on with */
    uint64_t file;    /* the number of the file that is open */
    char *name;       /* its name, if there are several */
    bool failed;      /* split_files_next has printed a message */
    bool closed;      /* and no file is open */
} split_files;

/* Opens the first file that is not finished, its writer, and what an earlier call has noted about
 * all of them. options: as of resume_record_open. EXIT_DONE, or another exit code after a message;
 * then nothing is open. */
int split_files_open(split_files *s, output *out, vector_writer *w, resume_record *record,
                     const command *c, const vector_layout *layout, const bytes *options,
                     const string_list *inputs);
/* Rows of the files before the one that is open. */
uint64_t split_files_before(const split_files *s);
/* Ends the file, which is full, and opens the next. False: the output or the writer says what
 * failed, or a message was printed. */
bool split_files_next(split_files *s, vector_writer *w, resume_record *record, const command *c);
/* Ends the last file and all else; code: of the work so far. Returns it, or EXIT_FAILED after a
 * message. */
int split_files_close(split_files *s, output *out, vector_writer *w, resume_record *record,
                      const command *c, int code);

#endif
