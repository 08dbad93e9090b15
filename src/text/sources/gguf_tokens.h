/* gguf_tokens.h - what a GGUF file says about its tokenizer, and the parts of source_gguf.c.
 *
 * Source: llama.cpp, src/llama-vocab.cpp for what the keys mean and for defaults, conversion/ for
 * what was in the files they were made of. */
#ifndef PITH_TEXT_SOURCES_GGUF_TOKENS_H
#define PITH_TEXT_SOURCES_GGUF_TOKENS_H

#include "formats/weights/gguf/gguf_header.h"
#include "text/pipeline.h"

/* Kinds of tokens in tokenizer.ggml.token_type. */
enum {
    PITH_GGUF_NORMAL = 1,
    PITH_GGUF_UNKNOWN = 2,
    PITH_GGUF_CONTROL = 3,
    PITH_GGUF_USER_DEFINED = 4,
    PITH_GGUF_UNUSED = 5,
    PITH_GGUF_BYTE = 6
};

typedef struct pith__gguf_tokens {
    /* tokenizer.ggml.model and .pre; "" if they are not said */
    pith_str model, pre;
    /* [count], spans of the file in UTF-8 */
    pith_str *tokens;
    uint8_t *types;                                         /* [count] */
    pith__gguf_entry list, scores, kinds, merges, charsmap; /* kind is PITH_GGUF_OTHER: not there */
    size_t count;
    int64_t unk, sep, pad, cls, mask, bos, eos;                          /* ids; -1: not said */
    int64_t add_bos, add_eos, add_sep, add_space, trims, lower, accents; /* -1: not said */
} pith__gguf_tokens;

/* Unigram as XLM-RoBERTa has it, byte-level BPE, and BPE of SentencePiece: each makes the whole
 * tokenizer. */
pith_status pith__gguf_load_unigram(pith__loader *loader, const pith__gguf_tokens *t);
pith_status pith__gguf_load_bpe(pith__loader *loader, const pith__gguf_tokens *t);
pith_status pith__gguf_load_pieces(pith__loader *loader, const pith__gguf_tokens *t);

/* A flag that the file says, or the usual one. */
static inline bool pith__gguf_flag(int64_t said, bool usual) {
    return said < 0 ? usual : said != 0;
}
/* Adds the tokens that are looked for in texts: control tokens as special ones, and those that
 * users have defined. mask_strips: the mask token takes white space before it with it. */
pith_status pith__gguf_add_tokens(pith__loader *loader, const pith__gguf_tokens *t,
                                  bool mask_strips);
/* Puts the tokens at the ends of a text, and between two. */
pith_status pith__gguf_add_frame(pith__loader *loader, const pith__gguf_tokens *t, bool bos,
                                 bool eos, bool sep);
/* A token's score, which is 0 where the file has none. */
double pith__gguf_score(const pith__gguf_tokens *t, size_t i);

#endif
