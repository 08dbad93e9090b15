/* text_rules.h - what some models do to texts and tokens beside their tokenizer: they add no
 * special tokens, leave unknown words out, or cut texts at a number of characters first. */
#ifndef PITH_TEXT_TEXT_RULES_H
#define PITH_TEXT_TEXT_RULES_H

#include "text/tokenizer.h"

typedef struct pith__text_rules {
    bool bare;  /* no special tokens are added */
    bool drops; /* tokens with the id `dropped` are left out */
    int32_t dropped;
    int32_t characters; /* texts are first cut at so many for each token of the limit; 0: they are
                           not */
} pith__text_rules;

/* From now on pith__tokenizer_tokenize and its batches do as the model does, unless they are asked
 * for what tokenizer.json says (pith_tokenize_options.raw). No call may be running. */
void pith__tokenizer_take_rules(pith_tokenizer *tokenizer, pith__text_rules rules);

/* The median length of the vocabulary's tokens in characters, rounded down. */
int32_t pith__text_median_token(const pith_tokenizer *tokenizer);
/* The beginning of a text with at most so many characters. A byte that is not UTF-8 counts as part
 * of one. */
pith_str pith__text_first_characters(pith_str text, int64_t characters);
/* Leaves out the tokens with this id from number `first` on, in all columns. */
void pith__text_drop(pith_tokens *tokens, size_t first, int32_t id);

#endif
