/* embed_encodings.h - pith embed for results other than one dense vector per text: sparse weights
 * and vectors of tokens. */
#ifndef PITH_CLI_EMBED_EMBED_ENCODINGS_H
#define PITH_CLI_EMBED_EMBED_ENCODINGS_H

#include "cli/arrays/vectors.h"
#include "cli/base/progress_line.h"
#include "cli/input/text_batch.h"

typedef struct embed_encodings {
    const command *c;
    const pith_model *model;
    const pith_bm25 *bm25; /* makes sparse vectors instead of the model; NULL: the model does */
    pith_encode_options options;
    bool refuses_long;    /* a text that is cut is an error */
    vector_format format; /* FORMAT_JSONL, or FORMAT_NPY for one kind other than dense */
    const char *output;   /* NULL: stdout */
    progress_line *progress;
} embed_encodings;

/* Encodes all texts of the batches and writes the results. b is open; b->keeps: objects get a
 * member "embedding". Returns the exit code after a message. */
int embed_encodings_run(embed_encodings *k, text_batch *b, const string_list *files);

#endif
