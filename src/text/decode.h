/* decode.h - what decoders work on: the list of token strings, which each of them rewrites. */
#ifndef PITH_TEXT_DECODE_H
#define PITH_TEXT_DECODE_H

#include "text/pipeline.h"

typedef struct pith_decoding {
    pith_str *tokens; /* the list belongs to the decoding, the strings to the vocabulary or the arena */
    size_t count;
    pith_arena *arena; /* of the call */
    pith_error *err;
} pith_decoding;

/* token with every occurrence of `what` (not empty) replaced; the token itself if there is none. False: out of memory,
 * noted in err. */
bool pith_decoding_replace(pith_decoding *decoding, pith_str *token, pith_str what, pith_str with);
/* The spaces English tokenization leaves before punctuation and contractions. */
bool pith_decoding_clean_up(pith_decoding *decoding, pith_str *token);
/* The tokens' texts one after the other as the only token. */
bool pith_decoding_fuse(pith_decoding *decoding);
/* Copies a string of a tokenizer.json into the loader's arena. */
pith_str pith_decoder_string(pith_json *j, pith_loader *loader);

#endif
