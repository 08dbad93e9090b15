/* added_tokens.h - added tokens: strings that are found in a text before anything else happens to
 * it.
 *
 * Tokens that are not "normalized" are looked for in the raw text, the others, normalised
 * themselves, in the normalised text; leftmost and longest first. The sorted contents are the trie:
 * a search narrows a range of them byte by byte. */
#ifndef PITH_TEXT_ADDED_TOKENS_H
#define PITH_TEXT_ADDED_TOKENS_H

#include "text/pipeline.h"

/* Contents longer than this are refused: it bounds the cost of a search per byte. */
#define PITH_ADDED_MAX 4096

typedef struct pith__added_token {
    pith_str content;
    pith_str pattern; /* content, or its normalised form */
    int32_t id;
    uint32_t flags; /* PITH_ADDED_* */
} pith__added_token;

/* The names of the flags in tokenizer.json. */
enum { PITH_ADDED_FLAGS = 5 };
extern const struct pith__added_flag {
    const char *key;
    uint32_t flag;
} pith__added_flags[PITH_ADDED_FLAGS];

typedef struct pith__added_tokens_set {
    uint32_t *order; /* tokens by pattern */
    uint32_t count;
    uint32_t first[257]; /* order[first[b]] … order[first[b + 1] - 1] begin with byte b */
    int only;            /* the one byte all patterns begin with, or -1 */
} pith__added_tokens_set;

typedef struct pith__added_tokens {
    pith__added_token *tokens; /* in the order of the file; a later one with the same content
                                  replaces the earlier */
    size_t count, capacity;
    pith__map by_content; /* content → index */
    uint32_t *by_id;      /* indices, sorted by id */
    pith__added_tokens_set raw, normalized;
    bool specials_are_text; /* special tokens are not looked for */
    int32_t next_id;        /* for tokens the file gives no usable id */
} pith__added_tokens;

pith_status pith__added_tokens_create(pith__loader *loader);
/* Sorts and normalises the tokens. Call it after the model and the normalizers are loaded. */
pith_status pith__added_tokens_finish(pith__loader *loader);
/* Adds the token of an object of tokenizer.json. Its id there is ignored, as Hugging Face does,
 * except in a frozen tokenizer. */
void pith__added_tokens_parse(pith__json *j, pith__loader *loader);
/* pith__loader_add_token, but the token must get the id it is listed with. */
pith_status pith__added_tokens_add_listed(pith__loader *loader, pith_str content, int64_t listed,
                                          uint32_t flags);
/* Cuts the encoding's pieces without id at the tokens of the set. */
bool pith__added_tokens_split(pith__encoding *enc, const pith__added_tokens *added,
                              const pith__added_tokens_set *set);
/* Returns NULL if the id is not an added token. */
const pith__added_token *pith__added_tokens_find(const pith__added_tokens *added, int32_t id);

#endif
