/* reader.h - the formats a model is opened from: each is one file reader_<name>.c and one line in
 * select/readers.def. */
#ifndef PITH_MODEL_READER_H
#define PITH_MODEL_READER_H

#include "model/model.h"

enum { PITH_READER_FILES = 4 };

/* What a reader is given. */
typedef struct pith_source {
    pith_str bytes;     /* of the file; data NULL for a reader of directories */
    const char *folder; /* of the file, where external data may lie, or the directory; NULL: bytes in memory */
} pith_source;

typedef struct pith_reader {
    const char *name;                     /* "onnx" */
    int rank;                             /* readers are asked in ascending rank; no two have the same */
    const char *files[PITH_READER_FILES]; /* names it opens in a directory, the best first; NULL ends the list */
    const char *beside;                   /* a file that must be there as well; NULL: none */
    bool complete;                        /* the file holds the tokenizer too, so none is looked for beside it */
    bool (*takes)(pith_str bytes);        /* does a file begin like its format? NULL: it reads directories, not files */
    /* Fills model->graph; a reader of a complete format also what follows from it. Whatever it keeps of the source
     * stays valid: the files are in model->files, memory outlives the model. */
    pith_status (*read)(pith_model *model, const pith_source *source, pith_error *err);
    /* The graph as `read` made it once more, in another arena; NULL: the format cannot do that. */
    pith_status (*again)(pith_graph **graph, const pith_model *model, const pith_source *source, pith_files *files,
                         pith_arena *arena, pith_error *err);
} pith_reader;

/* Made from select/readers.def by select/tables.c. */
extern const pith_reader *const pith_reader_table[];
extern const size_t pith_reader_table_count;

/* Opens a directory: the first reader in rank whose files are there. model->dir is set. */
pith_status pith_readers_directory(pith_model *model, pith_error *err);
/* Opens a file of the file system or, with pith_readers_memory, bytes. */
pith_status pith_readers_file(pith_model *model, pith_str path, pith_error *err);
pith_status pith_readers_memory(pith_model *model, pith_str bytes, pith_error *err);

#endif
