/* tokens.h - turning text into tokens and back. */
#ifndef PITH_TOKENS_H
#define PITH_TOKENS_H

#include "pith/call.h"
#include "pith/types.h"
#include "pith/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does not change once it is open; any number of threads may use it at once. */
typedef struct pith_tokenizer pith_tokenizer;

/* Opens a tokenizer without its model. path is a directory with tokenizer files, a tokenizer file
 * such as tokenizer.json, a compiled model, or the name of a model in the model cache. The
 * tokenizer of a directory or a compiled model does what its model does: one that is a table of
 * vectors gets no special tokens, and Model2Vec's no unknown ones, unless a call asks for
 * pith_tokenize_options.raw. The caller owns *tokenizer. Thread-safe. */
PITH_API pith_status pith_tokenizer_open(pith_tokenizer **tokenizer, const char *path,
                                         const pith_open_options *options, pith_error *err);
/* Frees a tokenizer from pith_tokenizer_open; NULL is allowed. No call on it may be running. */
PITH_API void pith_tokenizer_close(pith_tokenizer *tokenizer);
/* Sets *tokens to the number of tokens at which the model of this tokenizer cuts texts, as the
 * files next to the tokenizer say, or to 0 if they say nothing. path is the one the tokenizer was
 * opened with. */
PITH_API pith_status pith_tokenizer_limit(int32_t *tokens, const pith_tokenizer *tokenizer,
                                          const char *path, pith_error *err);
/* Returns 1 if texts are cut at their beginning where pith_tokenize_options.left is 0, as the
 * model's files say; else 0. */
PITH_API int32_t pith_tokenizer_cuts_left(const pith_tokenizer *tokenizer);
/* Returns the model's tokenizer, or NULL if it has none. It belongs to the model. */
PITH_API const pith_tokenizer *pith_model_tokenizer(const pith_model *model);

/* The tokens of one or more texts: parallel arrays of count elements. Initialise it with
 * PITH_TOKENS_INIT, reuse it for many calls to save allocations, and free it with pith_tokens_free.
 * Special tokens and padding have no text: their begin and end are 0, their word and sequence ids
 * are -1. */
typedef struct pith_tokens {
    size_t size;
    int32_t *ids;          /* [count] */
    int32_t *type_ids;     /* [count] segment ids (token_type_ids): 0, or 1 for the second text */
    uint32_t *begin, *end; /* [count] the token's place in its text, in bytes or characters */
    int32_t *word_ids;     /* [count] index of the token's word (pre-token) in its text */
    uint32_t *windows;     /* [count] index of the token's window; always 0 without overflow */
    int8_t *sequence_ids;  /* [count] 0: from the text; 1: from its pair */
    uint8_t *special;      /* [count] 1: special token or padding */
    uint8_t *attention;    /* [count] 0: padding; 1: any other token */
    size_t count, capacity;
    int32_t truncated; /* number of texts that were cut */
} pith_tokens;

#define PITH_TOKENS_INIT PITH_SIZED_INIT(pith_tokens)

/* Which text of a pair is cut when both are too long: the one that is longer, token by token, or
 * always the same. */
typedef enum pith_cut { PITH_CUT_LONGEST = 0, PITH_CUT_FIRST = 1, PITH_CUT_SECOND = 2 } pith_cut;

/* In the call context, threads (of a batch), the three ways to end a call, and progress (of a
 * batch, "texts") have an effect. After an early end there are no tokens. */
typedef struct pith_tokenize_options {
    pith_call call;
    int32_t max_length;  /* tokens at which a text is cut, special tokens included; 0: texts are not
                            cut */
    int32_t no_specials; /* 1: do not add special tokens such as [CLS] and [SEP] */
    int32_t raw;         /* 1: apply the padding of tokenizer.json, and its truncation if max_length
                            is 0 */
    int32_t no_offsets;  /* 1: do not compute begin and end; their contents are unspecified */
    int32_t characters;  /* 1: begin and end count code points instead of bytes */
    int32_t cut;         /* a pith_cut */
    int32_t left;        /* 1: cut texts at the beginning; -1: at the end; 0: as the model's files
                            say, else at the end */
    int32_t overflow;    /* 1: the rest of a text that is cut follows in further windows, with
                            special tokens each */
    int32_t stride;      /* tokens that a window repeats from the window before; must be less than
                            it holds of the text */
} pith_tokenize_options;

#define PITH_TOKENIZE_OPTIONS_INIT PITH_OPTIONS_INIT(pith_tokenize_options)

/* Tokenises one text, or a text and its pair as rerankers read them. pair may be NULL. */
PITH_API pith_status pith_tokenize(pith_tokens *tokens, const pith_tokenizer *tokenizer,
                                   pith_str text, const pith_str *pair,
                                   const pith_tokenize_options *options, pith_error *err);

/* Tokenises count texts; if pairs is not NULL, pairs[i] is the pair of texts[i]. The tokens of all
 * texts follow each other in tokens: those of text i end before index ends[i]; ends has count
 * elements. The result does not depend on the number of threads. The message of an error names the
 * first text that failed. */
PITH_API pith_status pith_tokenize_batch(pith_tokens *tokens, size_t *ends,
                                         const pith_tokenizer *tokenizer, const pith_str *texts,
                                         const pith_str *pairs, size_t count,
                                         const pith_tokenize_options *options, pith_error *err);
/* Frees the arrays; tokens is empty afterwards and can be used again. */
PITH_API void pith_tokens_free(pith_tokens *tokens);

/* Returns the vocabulary's spelling of a token; data is NULL if there is no such id. Valid until
 * the tokenizer is closed. */
PITH_API pith_str pith_token_text(const pith_tokenizer *tokenizer, int32_t id);

/* Turns count ids back into a text of *size bytes, which a NUL byte follows. Free *text with
 * pith_text_free. If skip_specials is 1, special tokens are left out. An id that is not in the
 * vocabulary gives PITH_ERR_ARGUMENT, and the message names it. In call, which may be NULL, the
 * three ways to end it have an effect. */
PITH_API pith_status pith_detokenize(char **text, size_t *size, const pith_tokenizer *tokenizer,
                                     const int32_t *ids, size_t count, int32_t skip_specials,
                                     const pith_call *call, pith_error *err);
/* Frees *text of pith_detokenize of the same tokenizer; NULL is allowed. */
PITH_API void pith_text_free(const pith_tokenizer *tokenizer, char *text);

/* Turns ids into text one at a time, for models that generate. Text is held back until it ends with
 * a whole character. The tokenizer must stay open while the stream exists. One thread at a time may
 * use a stream. */
typedef struct pith_text_stream pith_text_stream;

/* Makes a stream, which the caller owns. If skip_specials is 1, special tokens are left out. */
PITH_API pith_status pith_text_stream_create(pith_text_stream **stream,
                                             const pith_tokenizer *tokenizer, int32_t skip_specials,
                                             pith_error *err);
/* Frees the stream; NULL is allowed. */
PITH_API void pith_text_stream_destroy(pith_text_stream *stream);
/* Adds an id and sets *text to the new text, which is often empty. It is valid until the next call
 * on the stream. */
PITH_API pith_status pith_text_stream_push(pith_text_stream *stream, pith_str *text, int32_t id,
                                           pith_error *err);
/* Sets *text to the text that is still held back, even if it ends within a character. The stream
 * can then be used for another text. */
PITH_API pith_status pith_text_stream_finish(pith_text_stream *stream, pith_str *text,
                                             pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
