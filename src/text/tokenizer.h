/* tokenizer.h - text to token ids, exactly as Hugging Face tokenizers gives them.
 *
 * The stages of a tokenizer.json are data: added tokens split the text; normalizer steps rewrite a
 * piece while keeping where each byte came from; pre-tokenizer steps cut it; the model turns each
 * cut into ids; the post-processor frames them. Each kind of step is one file ending in one
 * descriptor and one line in select/tokenizers.def. A tokenizer is immutable once open and shared
 * by threads; encodings use buffers from a pool that it keeps. */
#ifndef PITH_TEXT_TOKENIZER_H
#define PITH_TEXT_TOKENIZER_H

#include "base/memory/memory.h"
#include "base/stop.h"
#include "pith/tokens.h"

/* dir_or_file: a directory with tokenizer files or one such file. The error lists the files that
 * were looked for. All memory comes from arena, which belongs to the caller and must outlive the
 * tokenizer. Calls take their buffers from options->allocator, which must stay valid too. */
pith_status pith__tokenizer_load(pith_tokenizer **tokenizer, const char *dir_or_file,
                                 const pith_open_options *options, pith__arena *arena,
                                 pith_error *err);
enum {
    PITH_TOKENIZER_LOWER = 1, /* texts are made lower case before the tokenizer's own normalizers,
                                 unless these do it */
    PITH_TOKENIZER_ALONE = 2, /* tokenizer.json counts without the files beside it */
    PITH_TOKENIZER_CUTS = 4   /* the truncation of tokenizer.json holds, besides that of a call */
};
/* The same for a model that uses its tokenizer in another way; how: bits of the above. */
pith_status pith__tokenizer_load_as(pith_tokenizer **tokenizer, const char *dir_or_file,
                                    unsigned how, const pith_open_options *options,
                                    pith__arena *arena, pith_error *err);
/* The same from bytes, which may be freed afterwards: a tokenizer.json, or a file that tells by its
 * content what it is. */
pith_status pith__tokenizer_load_bytes(pith_tokenizer **tokenizer, pith_str bytes,
                                       const pith_open_options *options, pith__arena *arena,
                                       pith_error *err);
/* The frozen form of a tokenizer (text/frozen_tokenizer.h), in arena, 64-byte aligned. The same
 * files give the same bytes. */
pith_status pith__tokenizer_freeze(pith_str *frozen, const pith_tokenizer *tokenizer,
                                   pith__arena *arena, pith_error *err);
/* Opens a tokenizer from its frozen form, which must be aligned to 64 bytes, unchanged, and outlive
 * the tokenizer. The rest is as in pith__tokenizer_load. Bytes that are not a frozen tokenizer, or
 * a damaged one, give PITH_ERR_FORMAT. */
pith_status pith__tokenizer_open_frozen(pith_tokenizer **tokenizer, const void *bytes, size_t size,
                                        const pith_open_options *options, pith__arena *arena,
                                        pith_error *err);
/* Checks that ids and strings are inside of their tables, and that added tokens are sorted as their
 * search needs them. Builds with assertions check every tokenizer. Fails with PITH_ERR_FORMAT. */
pith_status pith__tokenizer_check(const pith_tokenizer *tokenizer, pith_error *err);
/* Frees the buffers of calls; the arena's memory stays the caller's. NULL is allowed. */
void pith__tokenizer_unload(pith_tokenizer *tokenizer);
/* Frees the buffers kept for the next call. Thread-safe. */
void pith__tokenizer_trim(const pith_tokenizer *tokenizer);
/* Returns the bytes that the tokenizer lacks for work on `count` texts at once, as far as the texts
 * it has worked on so far can tell. Thread-safe. */
size_t pith__tokenizer_missing_bytes(const pith_tokenizer *tokenizer, size_t count);
pith__arena *pith__tokenizer_arena(const pith_tokenizer *tokenizer);

/* The implementation of pith_tokenize, pith_tokenize_batch, pith_detokenize, pith_text_free and
 * pith_text_stream_* (pith/tokens.h). The caller has set the floating-point mode. */
pith_status pith__tokenizer_tokenize(pith_tokens *tokens, const pith_tokenizer *tokenizer,
                                     pith_str text, const pith_str *pair,
                                     const pith_tokenize_options *options, pith_error *err);
pith_status pith__tokenizer_tokenize_batch(pith_tokens *tokens, size_t *ends,
                                           const pith_tokenizer *tokenizer, const pith_str *texts,
                                           const pith_str *pairs, size_t count,
                                           const pith_tokenize_options *options, pith_error *err);
pith_status pith__tokenizer_detokenize(char **text, size_t *size, const pith_tokenizer *tokenizer,
                                       const int32_t *ids, size_t count, int32_t skip_specials,
                                       const pith_call *call, pith_error *err);
void pith__tokenizer_free_text(const pith_tokenizer *tokenizer, char *text);
pith_status pith__tokenizer_stream_create(pith_text_stream **stream,
                                          const pith_tokenizer *tokenizer, int32_t skip_specials,
                                          pith_error *err);
void pith__tokenizer_stream_destroy(pith_text_stream *stream);
pith_status pith__tokenizer_stream_push(pith_text_stream *stream, pith_str *text, int32_t id,
                                        pith_error *err);
pith_status pith__tokenizer_stream_finish(pith_text_stream *stream, pith_str *text,
                                          pith_error *err);

/* pith__tokenizer_tokenize, but tokens use the tokenizer's allocator and must be freed before the
 * tokenizer. The call context of the options is not looked at; stop may be NULL. */
pith_status pith__tokenizer_encode(pith_tokens *tokens, const pith_tokenizer *tokenizer,
                                   pith_str text, const pith_str *pair,
                                   const pith_tokenize_options *options, pith__stop *stop,
                                   pith_error *err);

/* -1 if the vocabulary has no such token. */
int32_t pith__tokenizer_id(const pith_tokenizer *tokenizer, pith_str token);
/* data NULL: no such id. Added tokens that are matched in normalised text are given normalised. */
pith_str pith__tokenizer_token(const pith_tokenizer *tokenizer, int32_t id);
/* Whether the id is that of an added token that is marked as special. */
bool pith__tokenizer_is_special(const pith_tokenizer *tokenizer, int32_t id);
/* Largest id + 1 over vocabulary and added tokens. */
int32_t pith__tokenizer_vocab_size(const pith_tokenizer *tokenizer);
/* The special tokens that are put around a text, or around the two of a pair. */
size_t pith__tokenizer_specials(const pith_tokenizer *t, bool pair);
/* model_max_length of tokenizer_config.json, 0 if absent or beyond 2^30. */
int32_t pith__tokenizer_max_length(const pith_tokenizer *tokenizer);
/* The tokens at which tokenizer.json itself cuts texts, where that holds (PITH_TOKENIZER_CUTS); 0:
 * it does not. */
int32_t pith__tokenizer_own_length(const pith_tokenizer *tokenizer);
/* Whether texts are cut at their beginning, if a call does not say. */
bool pith__tokenizer_left(const pith_tokenizer *tokenizer);
/* The path of the file that it was read from; data NULL if it was no file. */
pith_str pith__tokenizer_file(const pith_tokenizer *tokenizer);

#endif
