/* regex.h - any other regular expression: Oniguruma's (Ruby) syntax, as Hugging Face writes it, run
 * by PCRE2.
 *
 * UTF and UCP are on, and a step limit bounds every match. What the two engines understand
 * differently is rewritten (\h, \s, \w, [:class:], scripts, {,n}, \uHHHH, lines for ^ and $) or
 * refused (&&, nested sets, intervals followed by +). What stays different: characters newer than
 * the Unicode of PCRE2, and \b next to combining marks. */
#ifndef PITH_TEXT_REGEX_REGEX_H
#define PITH_TEXT_REGEX_REGEX_H

#include "base/memory/memory.h"
#include "base/optional_part.h"

typedef struct pith__regex pith__regex;

/* Compiles an expression, in the arena. Returns PITH_ERR_UNSUPPORTED, with the reason, for one that
 * is not supported. */
pith_status pith__regex_compile(const pith__regex **regex, pith_str pattern, pith__arena *arena,
                                pith_error *err);

/* The first match in text[0, size) that begins at or after `at`; the text before is seen by
 * look-behind. 1: found, 0: none, -1: the step limit was exceeded or memory is out, err says so.
 * Memory comes from the allocator and is given back. */
int pith__regex_next(const pith__regex *regex, const char *text, size_t size, size_t at,
                     size_t *begin, size_t *end, const pith_allocator *allocator, pith_error *err);

/* The functions of the part "regex" (base/optional_part.h), without which only known expressions
 * work (known_regex.h). */
typedef struct pith__regex_part {
    pith_status (*compile)(const pith__regex **regex, pith_str pattern, pith__arena *arena,
                           pith_error *err);
    int (*next)(const pith__regex *regex, const char *text, size_t size, size_t at, size_t *begin,
                size_t *end, const pith_allocator *allocator, pith_error *err);
} pith__regex_part;

#endif
