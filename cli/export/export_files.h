/* export_files.h - the small files of a model's directory, copied beside an exported network. */
#ifndef PITH_CLI_EXPORT_EXPORT_FILES_H
#define PITH_CLI_EXPORT_EXPORT_FILES_H

#include "cli/base/cli.h"

/* Copies configurations, tokenizer files and, unless the network pools by itself, the modules of
 * sentence-transformers from one directory to another, which exists. Files that are there already
 * are left alone if they are equal, and are an error otherwise. Weights of the network are not
 * copied. EXIT_DONE, or another exit code after a message. */
int export_copy_files(const command *c, const char *from, const char *to, bool pooled);

/* Sets folder[PATH_MAX] to the directory that a model is opened from: its own, or that of its file.
 * EXIT_DONE, or another exit code after a message. */
int export_model_folder(const command *c, char *folder, const char *model);

#endif
