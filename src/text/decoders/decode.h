/* decode.h - the list of token strings that decoders rewrite, and helpers for decoders. */
#ifndef PITH_TEXT_DECODERS_DECODE_H
#define PITH_TEXT_DECODERS_DECODE_H

#include <stddef.h>

#include "text/pipeline.h"

typedef struct pith__decoding {
    pith_str *tokens; /* the list belongs to the decoding, the strings to the vocabulary or the
                         arena */
    size_t count;
    pith__arena *arena; /* of the encoding */
    pith__stop *stop;   /* may be NULL */
    pith_error *err;
} pith__decoding;

/* PITH_OK, or the error of a call that must end: for step i of a loop over tokens. */
static inline pith_status pith__decoding_look(const pith__decoding *decoding, size_t i) {
    enum { DECODING_LOOK = 4096 };
    return i % DECODING_LOOK ? PITH_OK : pith__stop_check(decoding->stop, decoding->err);
}

/* token with every occurrence of `what` (not empty) replaced; the token itself if there is none.
 * False: out of memory, noted in err. */
bool pith__decoding_replace(pith__decoding *decoding, pith_str *token, pith_str what,
                            pith_str with);
/* The spaces English tokenization leaves before punctuation and contractions. */
bool pith__decoding_clean_up(pith__decoding *decoding, pith_str *token);
/* The tokens' texts one after the other as the only token. */
bool pith__decoding_fuse(pith__decoding *decoding);

/* A setting of a decoder: its key in tokenizer.json and its place in the decoder's data. */
typedef struct pith__decoder_field {
    const char *key;                                                  /* NULL ends the list */
    enum { PITH_FIELD_STRING, PITH_FIELD_BOOL, PITH_FIELD_INT } kind; /* pith_str, bool, int64_t */
    size_t place;
} pith__decoder_field;

/* Reads a decoder's object into a copy of `usual` in the loader's arena; NULL after a failure. */
void *pith__decoder_parse(pith__json *j, pith__loader *loader, const void *usual, size_t size,
                          const pith__decoder_field *fields);

#endif
