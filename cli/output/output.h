/* output.h - writing results to stdout, or to a file that appears under its name when it is
 * complete. An incomplete file can be kept, so that a later call continues it. */
#ifndef PITH_CLI_OUTPUT_OUTPUT_H
#define PITH_CLI_OUTPUT_OUTPUT_H

#include <stdio.h>

#include "cli/base/cli.h"

typedef struct output {
    FILE *file;
    const char *path; /* as given; NULL: stdout */
    char *target;     /* path with symbolic links followed */
    char *temporary;  /* renamed to target at the end; NULL: written in place (stdout, devices,
                         pipes) */
    bool resumable;   /* temporary is target.part, and stays there if the work fails */
    bool begun;       /* a part of the result has been written, not only a header */
    int error;        /* errno of the first failed write; 0: none */
} output;

/* path: NULL or "-" is stdout. The output must be none of the files that the call names
 * (call_files.h), and none of inputs: files found in folders and the like; an empty list is stdin,
 * NULL nothing. EXIT_DONE, or another exit code after a message. */
int output_open(output *out, const command *c, const char *path, const string_list *inputs);
/* For work that may be interrupted: the file grows as PATH.part, which stays, whatever ends the
 * process, until the work is complete. If there is one it is opened as it is, at its beginning. One
 * process at a time has it. */
int output_resume(output *out, const command *c, const char *path, const string_list *inputs);
/* Whether an earlier call of output_resume has left a part of the file. */
bool output_has_part(const char *path);
/* "x-00012.npy" for "x.npy" and 12, from malloc. */
char *split_name(const char *path, uint64_t number);
/* False after a failed write, this one or an earlier one. */
bool output_write(output *out, const void *data, size_t size);
/* The same for what stands in a result without any row: alone it is not worth the file that was
 * there before. */
bool output_header(output *out, const void *data, size_t size);
/* Adds a line to a log that grows from call to call. False: errno says why. */
bool output_append(const char *path, const char *line);
bool output_flush(output *out);
/* Writes to out what the library makes; a failed write ends the call that makes it. out must
 * outlive the writer. */
pith_writer output_writer(output *out);
/* Ends the output; the file gets its name if keep and all was written, a resumable one if code is
 * EXIT_DONE too. After work that failed before any part of the result was written, the file that
 * was there before stays. A reader that went away is no failure and no message. code: of the work
 * so far; returns it, or EXIT_FAILED after a message. */
int output_close(output *out, const command *c, bool keep, int code);
/* The same for results that a command has printed to stdout. */
int output_close_standard(const command *c, int code);

#endif
