/* known_regex.h - hand-written matchers for the regular expressions that well-known tokenizers use.
 */
#ifndef PITH_TEXT_REGEX_KNOWN_REGEX_H
#define PITH_TEXT_REGEX_KNOWN_REGEX_H

#include <stdbool.h>
#include <stdint.h>

#include "pith/types.h"

typedef struct pith__known_regex pith__known_regex;

/* The scanner that matches exactly what the expression matches, NULL if there is none. */
const pith__known_regex *pith__known_regex_find(pith_str regex);

/* GPT-2's, which the ByteLevel pre-tokenizer uses by itself. */
extern const pith__known_regex pith__scan_gpt2;

/* The first match at or after `at` in text[0, end), which must be valid UTF-8; false: none. Matches
 * are not empty. */
bool pith__known_regex_next(const pith__known_regex *scan, const char *text, uint32_t at,
                            uint32_t end, uint32_t *match_begin, uint32_t *match_end);

/* Whether a match begins before a single space between two ASCII letters, or one ends there, in any
 * text. */
bool pith__known_regex_cuts_words(const pith__known_regex *scan);

#endif
