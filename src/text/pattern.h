/* pattern.h - {"String": …} and {"Regex": …} of tokenizer.json: something to find in a text.
 *
 * Strings are searched as bytes. Well-known regular expressions have hand-written scanners, all others go through PCRE2
 * with UTF and UCP and a step limit. A pattern is immutable; what a match needs is in the encoding. */
#ifndef PITH_TEXT_PATTERN_H
#define PITH_TEXT_PATTERN_H

#include "text/pipeline.h"

typedef struct pith_pattern pith_pattern;

/* Consumes the value; NULL after a failure, which is noted in j. The pattern lies in the loader's arena. */
const pith_pattern *pith_pattern_parse(pith_json *j, pith_loader *loader);

/* The first match in enc->text[piece] that begins at or after `at`, as Hugging Face's find_matches walks (empty
 * matches count; the caller steps on by one character after one). 1: *begin and *end are set, 0: no more, -1: the step
 * limit was exceeded or memory is out, enc->err says so. */
int pith_pattern_next(const pith_pattern *pattern, pith_encoding *enc, pith_piece piece, uint32_t at, uint32_t *begin,
                      uint32_t *end);

/* About the place before a single space that stands between two ASCII letters: whether no match lies across it and none
 * before it depends on what follows; and whether a match always begins or ends there. */
bool pith_pattern_is_local(const pith_pattern *pattern);
bool pith_pattern_cuts_words(const pith_pattern *pattern);

#endif
