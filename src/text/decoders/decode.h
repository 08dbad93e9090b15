/* decode.h - the list of token strings that decoders rewrite, and helpers for decoders. */
#ifndef PITH_TEXT_DECODERS_DECODE_H
#define PITH_TEXT_DECODERS_DECODE_H

#include <stddef.h>

#include "text/pipeline.h"

typedef struct pith_decoding {
    pith_str *tokens; /* the list belongs to the decoding, the strings to the vocabulary or the arena */
    size_t count;
    pith_arena *arena; /* of the encoding */
    pith_error *err;
} pith_decoding;

/* token with every occurrence of `what` (not empty) replaced; the token itself if there is none. False: out of memory,
 * noted in err. */
bool pith_decoding_replace(pith_decoding *decoding, pith_str *token, pith_str what, pith_str with);
/* The spaces English tokenization leaves before punctuation and contractions. */
bool pith_decoding_clean_up(pith_decoding *decoding, pith_str *token);
/* The tokens' texts one after the other as the only token. */
bool pith_decoding_fuse(pith_decoding *decoding);

/* A setting of a decoder: its key in tokenizer.json and its place in the decoder's data. */
typedef struct pith_decoder_field {
    const char *key;                                                  /* NULL ends the list */
    enum { PITH_FIELD_STRING, PITH_FIELD_BOOL, PITH_FIELD_INT } kind; /* pith_str, bool, int64_t */
    size_t place;
} pith_decoder_field;

/* Reads a decoder's object into a copy of `usual` in the loader's arena; NULL after a failure. */
void *pith_decoder_parse(pith_json *j, pith_loader *loader, const void *usual, size_t size,
                         const pith_decoder_field *fields);

#endif
