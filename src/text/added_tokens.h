/* added_tokens.h - added tokens: strings that are found in a text before anything else happens to it.
 *
 * Tokens that are not "normalized" are looked for in the raw text, the others, normalised themselves, in the normalised
 * text; leftmost and longest first. The sorted contents are the trie: a search narrows a range of them byte by byte. */
#ifndef PITH_TEXT_ADDED_TOKENS_H
#define PITH_TEXT_ADDED_TOKENS_H

#include "text/pipeline.h"

/* Contents longer than this are refused: it bounds the cost of a search per byte. */
#define PITH_ADDED_MAX 4096

typedef struct pith_added_token {
    pith_str content;
    pith_str pattern; /* content, or its normalised form */
    int32_t id;
    uint32_t flags; /* PITH_ADDED_* */
} pith_added_token;

/* The names of the flags in tokenizer.json. */
enum { PITH_ADDED_FLAGS = 5 };
extern const struct pith_added_flag {
    const char *key;
    uint32_t flag;
} pith_added_flags[PITH_ADDED_FLAGS];

typedef struct pith_added_set {
    uint32_t *order; /* tokens by pattern */
    uint32_t count;
    uint32_t first[257]; /* order[first[b]] … order[first[b + 1] - 1] begin with byte b */
    int only;            /* the one byte all patterns begin with, or -1 */
} pith_added_set;

typedef struct pith_added {
    pith_added_token *tokens; /* in the order of the file; a later one with the same content replaces the earlier */
    size_t count, capacity;
    pith_map by_content; /* content → index */
    uint32_t *by_id;     /* indices, sorted by id */
    pith_added_set raw, normalized;
    bool specials_are_text; /* special tokens are not looked for */
    int32_t next_id;        /* for tokens the file gives no usable id */
} pith_added;

pith_status pith_added_create(pith_loader *loader);
/* Sorts and normalises the tokens. Call it after the model and the normalizers are loaded. */
pith_status pith_added_finish(pith_loader *loader);
/* Adds the token of an object of tokenizer.json. Its id there is ignored, as Hugging Face does, except in a frozen
 * tokenizer. */
void pith_added_parse(pith_json *j, pith_loader *loader);
/* pith_loader_add_token, but the token must get the id it is listed with. */
pith_status pith_added_add_listed(pith_loader *loader, pith_str content, int64_t listed, uint32_t flags);
/* Cuts the encoding's pieces without id at the tokens of the set. */
bool pith_added_split(pith_encoding *enc, const pith_added *added, const pith_added_set *set);
/* Returns NULL if the id is not an added token. */
const pith_added_token *pith_added_find(const pith_added *added, int32_t id);

#endif
