/* model_out.h - where a verb writes an ONNX file: one file, or a directory with the model's small
 * files beside it. */
#ifndef PITH_CLI_EXPORT_MODEL_OUT_H
#define PITH_CLI_EXPORT_MODEL_OUT_H

#include <limits.h>

#include "cli/base/progress_line.h"
#include "cli/output/output.h"

/* The two files. Each is opened when its first bytes come. */
typedef struct model_out {
    const command *c;
    char path[PATH_MAX], data_path[PATH_MAX];
    char folder[PATH_MAX]; /* "": only a file is written */
    const char *model;     /* is not replaced by what is made of it */
    output file, data;
    bool opened, data_opened, progress;
    uint64_t written;
    double shown;
    progress_line line; /* of the work before the first bytes */
    int code;           /* of a file that could not be opened */
} model_out;

/* Usage, unless a file of this name is one of the kind "onnx" or "pith": its end is that of no
 * other file of models. EXIT_DONE, or another exit code after a message. */
int model_out_check_name(const command *c, const char *path, const char *kind);
/* path: a file; or DIR/, or a directory that is there, for DIR/model.onnx; folder: also a name
 * without a dot that is not there yet. A file that exists is left alone unless force is set.
 * EXIT_DONE, or another exit code after a message. */
int model_out_place(model_out *out, const command *c, const char *model, const char *path,
                    bool force, bool folder);
/* Shows how much is written, if standard error is a terminal. */
void model_out_progress(model_out *out, bool shown);
/* A pith_call's progress, whose user is the model_out: shows what else is counted. */
void model_out_hear(void *out, const char *what, uint64_t done, uint64_t total);
/* The name of the second file. */
const char *model_out_data_name(const model_out *out);

/* The write function of the first file's writer; user is the model_out. */
int32_t model_out_put(void *out, const void *data, size_t size);
/* Receive the two files; out must outlive them. */
pith_writer model_out_writer(model_out *out);
pith_writer model_out_data_writer(model_out *out);

/* Gives the files their names if status is PITH_OK, and takes them away otherwise. Returns the exit
 * code. */
int model_out_close(model_out *out, pith_status status, const pith_error *err);
/* Copies the small files of the model's directory into the folder, if there are both; pooled: see
 * export_files.h. */
int model_out_small_files(const model_out *out, bool pooled);
/* Says how Pith embeds texts with what was written, or what is missing beside the file. Nothing, if
 * the model has no tokenizer. */
void model_out_tell_use(const model_out *out, bool pooled);

#endif
