/* words.c - see words.h. Sources: re and str.lower of Python; a character is \w if it is a letter,
 * a number of any kind or "_". A capital sigma at the end of a word becomes the final one. */
#include "models/lexical/words.h"

#include <string.h>

#include "base/unicode/character.h"
#include "base/unicode/utf8.h"

enum { CAPITAL_SIGMA = 0x3A3, SIGMA = 0x3C3, FINAL_SIGMA = 0x3C2, CAPITAL_I_DOT = 0x130 };

bool pith__words_has(uint32_t c) {
    if (c < 128)
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '_';
    switch (pith__character_of(c)->category) {
    case PITH_CATEGORY_LU:
    case PITH_CATEGORY_LL:
    case PITH_CATEGORY_LT:
    case PITH_CATEGORY_LM:
    case PITH_CATEGORY_LO:
    case PITH_CATEGORY_ND:
    case PITH_CATEGORY_NL:
    case PITH_CATEGORY_NO: return true;
    default: return false;
    }
}

static bool words_cased(uint32_t c) {
    const uint8_t category = pith__character_of(c)->category;
    return category == PITH_CATEGORY_LU || category == PITH_CATEGORY_LL ||
           category == PITH_CATEGORY_LT;
}

/* Whether a sigma between `before` and what begins at p is the last letter of its word. */
static bool words_ends(uint32_t before, const char *p, const char *end) {
    if (!before || !words_cased(before)) return false;
    while (p < end) {
        uint32_t c = pith__utf8_next(&p);
        if (pith__character_of(c)->category == PITH_CATEGORY_LM) continue;
        return !words_cased(c);
    }
    return true;
}

void pith__words_begin(pith__words *words, pith_str text) {
    words->at = text.data;
    words->end = text.data ? text.data + text.size : text.data;
    words->before = 0;
    words->size = 0;
    words->characters = 0;
}

static void words_put(pith__words *w, uint32_t c) {
    if (w->characters < PITH_WORD_CHARS) w->size += pith__utf8_put(w->word + w->size, c);
    w->characters++;
}

/* Puts the lower case of a character; false if the word ends behind it. */
static bool words_put_lower(pith__words *w, uint32_t c) {
    uint32_t lower = c;
    if (c == CAPITAL_SIGMA)
        lower = words_ends(w->before, w->at, w->end) ? FINAL_SIGMA : SIGMA;
    else if (c == CAPITAL_I_DOT)
        lower = 'i'; /* and a combining dot, which is no part of a word */
    else
        lower = pith__character_lower(c);
    words_put(w, lower);
    if (pith__character_of(c)->category != PITH_CATEGORY_LM) w->before = c;
    return c != CAPITAL_I_DOT;
}

bool pith__words_next(pith__words *w) {
    w->size = 0;
    w->characters = 0;
    while (w->at < w->end) {
        unsigned char first = (unsigned char)*w->at;
        if (first < 128) { /* the common case */
            w->at++;
            if (pith__words_has(first)) {
                if (w->characters < PITH_WORD_CHARS)
                    w->word[w->size++] = (char)(first >= 'A' && first <= 'Z' ? first + 32 : first);
                w->characters++;
                w->before = first;
                continue;
            }
        } else {
            uint32_t c = pith__utf8_next(&w->at);
            if (pith__words_has(c)) {
                if (words_put_lower(w, c)) continue;
                return true; /* w->before stays: for a sigma the word goes on */
            }
        }
        w->before = 0;
        if (w->characters) return true;
    }
    return w->characters > 0;
}

size_t pith__words_lower(char *to, pith_str word) {
    const char *p = word.data, *end = p + word.size;
    size_t size = 0;
    uint32_t before = 0;
    while (p < end && size + 8 <= PITH_WORD_BYTES) {
        uint32_t c = pith__utf8_next(&p), lower = pith__character_lower(c);
        if (c == CAPITAL_SIGMA) lower = words_ends(before, p, end) ? FINAL_SIGMA : SIGMA;
        size += pith__utf8_put(to + size, lower);
        before = c;
    }
    return size;
}
