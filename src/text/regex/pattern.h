/* pattern.h - {"String": …} and {"Regex": …} of tokenizer.json: something to find in a text.
 *
 * Strings are searched as bytes. Well-known regular expressions have hand-written scanners, all
 * others go through PCRE2 with UTF and UCP and a step limit. A pattern is immutable; what a match
 * needs is in the encoding. */
#ifndef PITH_TEXT_REGEX_PATTERN_H
#define PITH_TEXT_REGEX_PATTERN_H

#include "text/pipeline.h"

typedef struct pith__pattern pith__pattern;

/* Consumes the value; NULL after a failure, which is noted in j. The pattern is in the loader's
 * arena. */
const pith__pattern *pith__pattern_parse(pith__json *j, pith__loader *loader);

/* A walk over the matches of a pattern in a piece of enc->text. */
typedef struct pith__matches {
    const pith__pattern *pattern;
    pith__encoding *enc;
    pith__piece piece;
    uint32_t at;   /* where the next match is searched */
    uint32_t last; /* where the last one ended */
} pith__matches;

static inline pith__matches pith__pattern_begin(const pith__pattern *pattern, pith__encoding *enc,
                                                pith__piece piece) {
    /* nothing matches in nothing */
    uint32_t at = piece.begin < piece.end ? piece.begin : piece.end + 1;
    return (pith__matches){ pattern, enc, piece, at, UINT32_MAX };
}

/* The next match, as Hugging Face walks: empty matches count, but for one right behind another
 * match. 1: *begin and *end are set, 0: no more, -1: the step limit was exceeded or memory is out,
 * enc->err says so. */
int pith__pattern_next(pith__matches *m, uint32_t *begin, uint32_t *end);

/* Two properties of the place before a single space between two ASCII letters. is_local: no match
 * spans the place, and no match before it depends on the text after it. cuts_words: a match always
 * begins or ends there. */
bool pith__pattern_is_local(const pith__pattern *pattern);
bool pith__pattern_cuts_words(const pith__pattern *pattern);

#endif
