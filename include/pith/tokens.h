/* tokens.h - text to tokens and back. */
#ifndef PITH_TOKENS_H
#define PITH_TOKENS_H

#include "pith/types.h"
#include "pith/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pith_tokenizer pith_tokenizer;

/* path: a directory with tokenizer files, a tokenizer.json, a compiled model, or a name in the cache. Immutable,
 * shared by threads. */
PITH_API pith_status pith_tokenizer_open(pith_tokenizer **tokenizer, const char *path, const pith_open_options *options,
                                         pith_error *err);
PITH_API void pith_tokenizer_close(pith_tokenizer *tokenizer);
/* The tokens an embedder cuts texts at, as the files beside the tokenizer say; 0 if they say nothing. path: what the
 * tokenizer was opened with. */
PITH_API pith_status pith_tokenizer_limit(int32_t *tokens, const pith_tokenizer *tokenizer, const char *path,
                                          pith_error *err);
/* The model's own, or NULL; belongs to the model. */
PITH_API const pith_tokenizer *pith_model_tokenizer(const pith_model *model);

/* What pith_tokenize fills. Reuse it to avoid allocation; begin with PITH_TOKENS_INIT. Special tokens and padding come
 * from no text: their offsets are 0, 0, their word and sequence -1. */
typedef struct pith_tokens {
    size_t size;
    int32_t *ids;          /* [count] */
    int32_t *type_ids;     /* [count] what a model with segments is fed: 0, or 1 for the second text */
    uint32_t *begin, *end; /* [count] where in its text the token came from, in bytes or characters */
    int32_t *word_ids;     /* [count] index of the pre-token in its text */
    uint32_t *windows;     /* [count] the window the token is in: 0, more only with overflow */
    int8_t *sequence_ids;  /* [count] 0 the text, 1 its pair */
    uint8_t *special;      /* [count] 1 where a post-processor put the token, or padding */
    uint8_t *attention;    /* [count] 0 where it is padding */
    size_t count, capacity;
    int32_t truncated; /* texts of which tokens were cut off */
} pith_tokens;

/* clang-format off */
#define PITH_TOKENS_INIT \
    { sizeof(pith_tokens), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0 }
/* clang-format on */

/* Which of two texts is cut: the longer one at each token, or always the same one. */
typedef enum pith_cut { PITH_CUT_LONGEST = 0, PITH_CUT_FIRST = 1, PITH_CUT_SECOND = 2 } pith_cut;

typedef struct pith_tokenize_options {
    size_t size;
    int32_t max_length;  /* specials included; 0: no truncation */
    int32_t no_specials; /* 1: the post-processor's tokens are left out */
    int32_t raw;         /* 1: apply the file's own padding, and its truncation where max_length is 0 */
    int32_t no_offsets;  /* 1: begin and end are not wanted and have no meaning */
    int32_t characters;  /* 1: begin and end count code points instead of bytes */
    int32_t cut;         /* pith_cut */
    int32_t left;        /* 1: a text loses its beginning rather than its end */
    int32_t overflow;    /* 1: what is cut off follows in further windows, framed like the first */
    int32_t stride;      /* tokens of a text that a window repeats of the one before; less than it holds of the text */
    int32_t threads;     /* of a batch; 0: as many as the machine or the container gives */
} pith_tokenize_options;

/* clang-format off */
#define PITH_TOKENIZE_OPTIONS_INIT { sizeof(pith_tokenize_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* One text, or a text and its pair (NULL: none), as rerankers take them. */
PITH_API pith_status pith_tokenize(pith_tokens *tokens, const pith_tokenizer *tokenizer, pith_str text,
                                   const pith_str *pair, const pith_tokenize_options *options, pith_error *err);

/* count texts, with pairs[i] each if pairs is not NULL, one behind the other in tokens, text i ending before token
 * ends[i]. The result is the same for any number of threads. A failure names the first text that has one. */
PITH_API pith_status pith_tokenize_batch(pith_tokens *tokens, size_t *ends, const pith_tokenizer *tokenizer,
                                         const pith_str *texts, const pith_str *pairs, size_t count,
                                         const pith_tokenize_options *options, pith_error *err);
PITH_API void pith_tokens_free(pith_tokens *tokens);

/* How the vocabulary spells a token; data is NULL if there is no such id. Valid until close. */
PITH_API pith_str pith_token_text(const pith_tokenizer *tokenizer, int32_t id);

/* The text of ids as the tokenizer's decoder writes it; skip_specials: 1 leaves out special tokens. *text is followed
 * by a NUL and freed with pith_text_free. An id that is no token is PITH_ERR_ARGUMENT naming it. */
PITH_API pith_status pith_detokenize(char **text, size_t *size, const pith_tokenizer *tokenizer, const int32_t *ids,
                                     size_t count, int32_t skip_specials, pith_error *err);
PITH_API void pith_text_free(const pith_tokenizer *tokenizer, char *text);

/* The same, id by id. What is given never ends in the middle of a character: text is held back until it is whole. */
typedef struct pith_text_stream pith_text_stream;

PITH_API pith_status pith_text_stream_create(pith_text_stream **stream, const pith_tokenizer *tokenizer,
                                             int32_t skip_specials, pith_error *err);
PITH_API void pith_text_stream_destroy(pith_text_stream *stream);
/* text: what is new, often empty; valid until the next call on the stream. */
PITH_API pith_status pith_text_stream_push(pith_text_stream *stream, pith_str *text, int32_t id, pith_error *err);
/* What was held back, as it is; the stream is as new afterwards. */
PITH_API pith_status pith_text_stream_finish(pith_text_stream *stream, pith_str *text, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
