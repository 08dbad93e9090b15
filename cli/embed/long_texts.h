/* long_texts.h - what pith embed does with texts that are longer than the model takes. */
#ifndef PITH_CLI_EMBED_LONG_TEXTS_H
#define PITH_CLI_EMBED_LONG_TEXTS_H

#include "cli/base/cli.h"

typedef enum long_action { LONG_TRUNCATE, LONG_ERROR, LONG_CHUNK } long_action;
typedef enum chunk_result { CHUNKS_MEAN, CHUNKS_ROWS } chunk_result;

/* What --long, --chunk-tokens, --overlap and --chunks say. */
typedef struct long_settings {
    int action, result;
    int32_t tokens, overlap; /* tokens 0: what the model takes */
} long_settings;

/* EXIT_DONE, or EXIT_USAGE after a message if they do not go together. max_length: --max-length is
 * given. */
int long_texts_check(const command *c, const long_settings *s, bool max_length);

/* Says in one line how many texts were cut, if any were. most: the tokens that are left of a text;
 * 0: the model has no limit, and texts are cut at a MiB. */
void long_texts_warn(const long_settings *s, uint64_t cut, size_t most);

/* Writes to message that one of these texts, which are number `first` and those after it, is too
 * long, and which. */
void long_texts_refuse(char *message, size_t size, const pith_model *model, const pith_str *texts,
                       size_t count, uint64_t first, const pith_encode_options *options);

#endif
