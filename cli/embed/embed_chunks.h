/* embed_chunks.h - pith embed --long chunk: texts that are too long are embedded in chunks. */
#ifndef PITH_CLI_EMBED_EMBED_CHUNKS_H
#define PITH_CLI_EMBED_EMBED_CHUNKS_H

#include "cli/arrays/vector_layout.h"
#include "cli/base/progress_line.h"
#include "cli/embed/long_texts.h"
#include "cli/input/text_batch.h"

typedef struct embed_chunks {
    const command *c;
    const pith_model *model;
    pith_embed_options options; /* max_length: tokens of a chunk; 0: what the model takes */
    const long_settings *how;
    const layout_settings *layout;
    const char *output; /* NULL: stdout */
    progress_line *progress;
    bool resume;  /* goes on with what an earlier call left of output; only for CHUNKS_MEAN */
    uint64_t cut; /* set: texts of which only the first MiB was read */
} embed_chunks;

/* Embeds all texts of the batches and writes one vector per text, or per chunk. b is open;
 * b->keeps: objects get a member "embedding". Returns the exit code after a message. */
int embed_chunks_run(embed_chunks *e, text_batch *b, const string_list *files);

#endif
