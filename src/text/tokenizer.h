/* tokenizer.h - text to token ids, exactly as Hugging Face tokenizers gives them.
 *
 * The stages of a tokenizer.json are data: added tokens split the text; normalizer steps rewrite a piece while keeping
 * where each byte came from; pre-tokenizer steps cut it; the model turns each cut into ids; the post-processor frames
 * them. Each kind of step is one file ending in one descriptor and one line in select/tokenizers.def.
 * A tokenizer is immutable once open and shared by threads; what a call needs is in the caller's scratch. */
#ifndef PITH_TEXT_TOKENIZER_H
#define PITH_TEXT_TOKENIZER_H

#include "base/memory.h"

/* dir_or_file: a directory with tokenizer files or one such file. The error lists what was looked for. Everything is
 * allocated from arena, which belongs to the caller and outlives the tokenizer. */
pith_status pith_tokenizer_load(pith_tokenizer **tokenizer, const char *dir_or_file, const pith_open_options *options,
                                pith_arena *arena, pith_error *err);

/* Gives back what lies outside the arena: the buffers kept for calls. Before the arena goes; NULL is allowed. */
void pith_tokenizer_unload(pith_tokenizer *tokenizer);
/* The arena it was loaded into. */
pith_arena *pith_tokenizer_arena(const pith_tokenizer *tokenizer);

/* Tokenises into tokens (public struct; its arrays grow with the tokenizer's allocator). See pith_tokenize. */
pith_status pith_tokenizer_encode(pith_tokens *tokens, const pith_tokenizer *tokenizer, pith_str text, const pith_str *pair,
                                  const pith_tokenize_options *options, pith_error *err);

/* -1 if the vocabulary has no such token. */
int32_t pith_tokenizer_id(const pith_tokenizer *tokenizer, pith_str token);
pith_str pith_tokenizer_token(const pith_tokenizer *tokenizer, int32_t id);
/* Largest id + 1 over vocabulary and added tokens. */
int32_t pith_tokenizer_vocab_size(const pith_tokenizer *tokenizer);
/* model_max_length of tokenizer_config.json, 0 if absent or beyond 2^30. */
int32_t pith_tokenizer_max_length(const pith_tokenizer *tokenizer);

#endif
