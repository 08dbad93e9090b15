/* tokenizer_characters.h - properties of characters as Hugging Face tokenizers 0.23 sees them.
 *
 * Its parts are built on different ages of Unicode: unicode_categories knows about version 8
 * (punctuation, control, marks of BertNormalizer), unicode-normalization-alignments 9 (NFC … NFKD,
 * StripAccents), the Rust standard library and its regex crate 16 and 17 (white space, numbers, \w,
 * lower case). base/unicode/character.h knows version 15. Each function is its answer corrected by
 * the ranges in which that part differs, so that ids are equal for all code points;
 * tests/comparisons/compare_tokenizers.py --all-code-points holds this. All functions are pure and
 * thread-safe. */
#ifndef PITH_BASE_UNICODE_TOKENIZER_CHARACTERS_H
#define PITH_BASE_UNICODE_TOKENIZER_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool pith__char_is_space(uint32_t c);       /* White_Space */
bool pith__char_is_other(uint32_t c);       /* Cc, Cf, Co; also tab and newlines */
bool pith__char_is_nonspacing(uint32_t c);  /* Mn */
bool pith__char_is_mark(uint32_t c);        /* M, the one of StripAccents */
bool pith__char_is_newer_mark(uint32_t c);  /* M of Unicode 16 and 17: extends a grapheme cluster */
bool pith__char_is_punctuation(uint32_t c); /* P, and the symbols of ASCII */
bool pith__char_is_numeric(uint32_t c);     /* Nd, Nl, No */
bool pith__char_is_word(uint32_t c);        /* \w: letters, marks, decimal digits, connectors,
                                               joiners */
/* Writes one or two characters, returns how many. */
size_t pith__char_lower(uint32_t c, uint32_t out[2]);

/* Canonical combining class, 0 for a starter. */
int pith__char_combining_class(uint32_t c);
/* True if c is a starter that neither NFD nor NFKD changes; fast, may say false too often. */
bool pith__char_is_decomposed(uint32_t c);
/* True if c does not change in NFC and NFKC and composes with nothing before it; fast, may say
 * false too often. */
bool pith__char_is_settled(uint32_t c);
/* Full canonical decomposition, or the one of NFKD, unordered. Return the number of characters, at
 * most 18. */
enum { PITH_DECOMPOSITION_MAX = 18 };
size_t pith__char_decompose(uint32_t c, uint32_t out[PITH_DECOMPOSITION_MAX]);
size_t pith__char_decompose_compatible(uint32_t c, uint32_t out[PITH_DECOMPOSITION_MAX]);
/* The primary composite of two characters, 0 if there is none. */
uint32_t pith__char_compose(uint32_t a, uint32_t b);

/* The script as SentencePiece groups them (kana with Han, U+30FC is Han); 0: Any, the space. Equal
 * numbers are equal scripts; nothing else is meant by them. */
int pith__char_script(uint32_t c);

#endif
