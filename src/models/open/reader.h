/* reader.h - the formats that models are opened from. Each is one file reader_<name>.c and one line
 * in select/readers.def. */
#ifndef PITH_MODELS_OPEN_READER_H
#define PITH_MODELS_OPEN_READER_H

#include "models/model.h"

enum { PITH_READER_FILES = 5 };

/* The input of a reader. */
typedef struct pith__source {
    pith_str bytes;     /* the file's bytes; data is NULL for a reader of directories */
    const char *folder; /* the file's folder, which may hold external data, or the directory; NULL:
                           bytes in memory */
    const char *path;   /* of the file; NULL: a directory, or bytes in memory */
} pith__source;

/* What follows reading. */
typedef struct pith__reader_stages {
    /* Makes the graph what is run, and chooses the runtime. */
    pith_status (*finish)(pith_model *model, pith_error *err);
    /* The same for a graph that the reader made again. */
    pith_status (*again)(pith__graph *graph, const pith_model *model,
                         const pith_allocator *allocator, pith_error *err);
    const struct pith__second_plan_functions
        *second_plan; /* plans for sessions that contradict the model's; NULL:
                                              there are none */
} pith__reader_stages;

/* For formats that hold a graph as it was written. */
extern const pith__reader_stages pith__open_graph_stages;

typedef struct pith__reader {
    const char *name;                     /* "onnx" */
    int rank;                             /* readers are asked in ascending rank; no two have the
                                             same */
    const char *files[PITH_READER_FILES]; /* names it opens in a directory, the best first; NULL
                                             ends the list */
    const char *beside;                   /* another file that the directory must have; NULL:
                                             none */
    const pith__reader_stages *stages;    /* &pith__open_graph_stages, unless passes have run before
                                             the file was made */
    bool complete;                        /* the file holds the tokenizer, so none is looked for
                                             next to it */
    bool (*takes)(pith_str bytes); /* true if the bytes begin like this format; NULL: it reads
                                      directories, not files */
    /* Fills model->graph; a reader of a complete format fills the rest of the model too. It may
     * keep pointers into the source: files stay open in model->files, and bytes in memory outlive
     * the model. */
    pith_status (*read)(pith_model *model, const pith__source *source, pith_error *err);
    /* Makes the graph of `read` a second time, in another arena; NULL: the format cannot do that.
     */
    pith_status (*again)(pith__graph **graph, const pith_model *model, const pith__source *source,
                         pith__files *files, pith__arena *arena, pith_error *err);
} pith__reader;

/* What the readers of directories look for, and their ranks. These lines are apart from the
 * readers, so that a build without one of them still sees that it passes over a file
 * (model_directory.c). */
#define PITH_READER_ONNX .rank = 10, .files = { "model.onnx", "onnx/model.onnx" }
#define PITH_READER_SAFETENSORS                                                                    \
    .rank = 20,                                                                                    \
    .files = { "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",           \
               "pytorch_model.bin.index.json", "model.gguf" },                                     \
    .beside = "config.json"

/* Made from select/readers.def by select/tables.c. */
extern const pith__reader *const pith__reader_table[];
extern const size_t pith__reader_table_count;

/* Returns the reader with the lowest rank above this one; NULL: there is none. */
const pith__reader *pith__reader_after(int rank);
/* Sets the model's reader, and reads. */
pith_status pith__reader_open(pith_model *model, const pith__reader *reader, pith__source source,
                              pith_error *err);
/* Opens the directory model->dir: the file that options.model_file names; else, if the modules are
 * no network, what they build; else the first file, by rank of its reader, that the folder of the
 * network has; else the best .onnx file of any other name. */
pith_status pith__readers_directory(pith_model *model, pith_error *err);
/* Open a file, or bytes in memory, with the first reader that takes them. */
pith_status pith__readers_file(pith_model *model, pith_str path, pith_error *err);
pith_status pith__readers_memory(pith_model *model, pith_str bytes, pith_error *err);

#endif
