/* model_wordpiece.h - what the WordPiece model knows; shared by the model, its fused form and the
 * loader of vocab.txt. */
#ifndef PITH_TEXT_MODELS_MODEL_WORDPIECE_H
#define PITH_TEXT_MODELS_MODEL_WORDPIECE_H

#include "text/vocab.h"

/* Words of more characters than this are unknown in any case: bounds scratch and prefix hashes. */
#define PITH_WORDPIECE_CHARS_MAX 100000

/* Tokens of at least three bytes are told apart by a hash of these; shorter ones are always tried.
 */
#define PITH_WORDPIECE_STARTS 4096

typedef struct pith__wordpiece {
    pith__vocab vocab; /* first: vocab.h */
    int32_t unk_id;    /* -1: not in the vocabulary, and an unknown word is an error */
    pith_str unk_token;
    pith_str prefix; /* "##" */
    uint64_t prefix_hash;
    uint32_t max_chars;
    uint32_t longest; /* bytes of a word any single token can cover */
    uint64_t *powers; /* [longest + 1] of PITH_VOCAB_PRIME */
    /* Bit n: a token of n bytes begins so, as a word or behind "##"; bit 31: one of 31 or more. */
    const uint32_t (*lengths)[PITH_WORDPIECE_STARTS]; /* [2] */
} pith__wordpiece;

/* Builds it in the loader's arena; out of loader->frozen if there is one, and vocab is not looked
 * at then. */
pith_status pith__wordpiece_build(const pith__wordpiece **wordpiece, pith__loader *loader,
                                  const pith__vocab_builder *vocab, pith_str unk_token,
                                  pith_str prefix, int64_t max_chars);

/* The greedy longest-first pieces of a word of `size` bytes, `chars` characters. hashes[i] is the
 * hash of its first i bytes. Writes ids and the end of each piece in the word, at most one per
 * byte; returns their number, 0 if the word is unknown. */
size_t pith__wordpiece_split(const pith__wordpiece *wordpiece, const char *word, uint32_t size,
                             const uint64_t *hashes, int32_t *ids, uint32_t *ends);

pith_status pith__wordpiece_no_unk(const pith__wordpiece *wordpiece, pith_error *err);

/* BertNormalizer, BertPreTokenizer and WordPiece in one pass: bert_fused.c. NULL if the steps are
 * others. */
const void *pith__bert_fuse(const void *wordpiece, pith__loader *loader);
pith_status pith__bert_encode_fused(const void *fused, pith__encoding *enc, pith__piece piece);
void pith__bert_unfuse(const void *fused, const pith_allocator *allocator);

extern const pith__model_desc pith__model_WordPiece;

#endif
