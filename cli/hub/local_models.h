/* local_models.h - the models on this machine: those of Pith's cache, and those of the cache of
 * Hugging Face's tools, which are used in place. */
#ifndef PITH_CLI_HUB_LOCAL_MODELS_H
#define PITH_CLI_HUB_LOCAL_MODELS_H

#include <time.h>

#include "cli/base/cli.h"

typedef struct local_model {
    char *name;  /* "organisation/name", or "name" */
    char *path;  /* a directory or a file */
    bool others; /* it is in the cache of Hugging Face's tools */
} local_model;

/* Sorted by name, Pith's first. */
typedef struct local_models {
    local_model *items;
    size_t count;
} local_models;

/* Finds them. A cache that is not there, or cannot be read, has none. */
void local_models_find(local_models *m);
void local_models_free(local_models *m);

/* What the model makes, by the list of known models, else by its files: "dense", "rerank", "faces",
 * ...; NULL: that is not known. */
const char *local_model_kind(const local_model *m);
/* Bytes of all files below the path; those behind symbolic links that lead out of it do not
 * count. */
uint64_t local_model_bytes(const char *path);
/* When it was pulled or put there; 0: that cannot be read. */
time_t local_model_time(const local_model *m);
/* Whether a directory, or a folder in it, has a file that holds a network. */
bool local_has_weights(const char *path);

#endif
