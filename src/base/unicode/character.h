/* character.h - what Unicode 15 says of a character: category, case, normal forms and grapheme
 * clusters.
 *
 * The tables stand in files of their own, so that a program links those that it reads. All
 * functions are pure and thread-safe; beyond U+10FFFF there are characters without properties.
 * base/unicode/tokenizer_characters.h corrects them to what tokenizers expect. */
#ifndef PITH_BASE_UNICODE_CHARACTER_H
#define PITH_BASE_UNICODE_CHARACTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pith__category {
    PITH_CATEGORY_CN, /* not assigned */
    PITH_CATEGORY_LU,
    PITH_CATEGORY_LL,
    PITH_CATEGORY_LT,
    PITH_CATEGORY_LM,
    PITH_CATEGORY_LO,
    PITH_CATEGORY_MN,
    PITH_CATEGORY_MC,
    PITH_CATEGORY_ME,
    PITH_CATEGORY_ND,
    PITH_CATEGORY_NL,
    PITH_CATEGORY_NO,
    PITH_CATEGORY_PC,
    PITH_CATEGORY_PD,
    PITH_CATEGORY_PS,
    PITH_CATEGORY_PE,
    PITH_CATEGORY_PI,
    PITH_CATEGORY_PF,
    PITH_CATEGORY_PO,
    PITH_CATEGORY_SM,
    PITH_CATEGORY_SC,
    PITH_CATEGORY_SK,
    PITH_CATEGORY_SO,
    PITH_CATEGORY_ZS,
    PITH_CATEGORY_ZL,
    PITH_CATEGORY_ZP,
    PITH_CATEGORY_CC,
    PITH_CATEGORY_CF,
    PITH_CATEGORY_CS,
    PITH_CATEGORY_CO
} pith__category;

/* Of pith__character.facts. */
enum {
    PITH_CHARACTER_DECOMPOSES = 1, /* in any normal form; Hangul syllables have no mark */
    PITH_CHARACTER_COMPOSES = 2,   /* it is the first or second of a pair that has a primary
                                      composite */
    PITH_CHARACTER_LOWERS = 4,     /* its lower case is another character */
    PITH_CHARACTER_UPPERS = 8,
    PITH_CHARACTER_DIFFERS = 16 /* its compatible form is not its canonical one */
};

typedef struct pith__character {
    uint8_t category;        /* pith__category */
    uint8_t combining_class; /* 0: a starter */
    uint8_t boundary;        /* for pith__character_joins */
    uint8_t facts;
} pith__character;

extern const uint8_t pith__character_top[];
extern const uint16_t pith__character_middle[];
extern const uint8_t pith__character_blocks[];
extern const pith__character pith__character_kinds[];

static inline const pith__character *pith__character_of(uint32_t c) {
    if (c >= 0x110000) c = 0x10FFFF;
    const uint32_t block =
        pith__character_middle[pith__character_top[c >> 9] * 32u + (c >> 4 & 31)];
    return &pith__character_kinds[pith__character_blocks[block * 16 + (c & 15)]];
}

/* The category that a newer version of Unicode, 16 or 17, gives a character that 15 does not know;
 * PITH_CATEGORY_CN for others. Of version 17 only numbers and marks are known. */
pith__category pith__character_newer(uint32_t c, int version);

/* The simple mappings, of one character to one. */
uint32_t pith__character_lower(uint32_t c);
uint32_t pith__character_upper(uint32_t c);

/* Full decompositions, unordered. Write at most PITH_CHARACTER_FORM_MAX characters and return how
 * many; c itself if it has none. compatible: of NFKD, else of NFD. */
enum { PITH_CHARACTER_FORM_MAX = 18 };
size_t pith__character_canonical_form(uint32_t c, uint32_t out[PITH_CHARACTER_FORM_MAX]);
size_t pith__character_compatible_form(uint32_t c, uint32_t out[PITH_CHARACTER_FORM_MAX]);
/* The primary composite of two characters, 0 if there is none. */
uint32_t pith__character_composite(uint32_t a, uint32_t b);

/* Whether a grapheme cluster goes on with c (Unicode Standard Annex 29, rules GB3 to GB13). *state:
 * 0 before the first character of a cluster, for which the result means nothing. */
bool pith__character_joins(uint8_t *state, uint32_t c);

/* ---- tables, each in character_<name>.c ---- */

/* Decompositions of keys: UTF-16 from units[starts[i]] up to units[starts[i + 1]]. Keys are the low
 * 16 bits of characters; those of plane p are [planes[p], planes[p + 1]), sorted. */
typedef struct pith__character_forms {
    uint16_t planes[4];
    const uint16_t *keys, *starts, *units;
} pith__character_forms;

extern const uint16_t pith__character_canonical_units[], pith__character_compatible_units[];
extern const pith__character_forms pith__character_canonical, pith__character_compatible;

typedef struct pith__character_pair { /* sorted by first, then second */
    uint32_t first, second, composite;
} pith__character_pair;

extern const pith__character_pair pith__character_pairs[];
extern const size_t pith__character_pair_count;

typedef struct pith__character_run { /* every step-th character from first to last */
    uint32_t first, last;
    int32_t distance, step;
} pith__character_run;

typedef struct pith__character_runs {
    const pith__character_run *runs;
    size_t count;
} pith__character_runs;

extern const pith__character_runs pith__character_lower_runs, pith__character_upper_runs;

#endif
