/* character.c - see character.h. Sources: the Unicode Standard 15, chapter 3.12 (Hangul), and its
 * annex 29. */
#include "base/unicode/character.h"

/* ---- case ---- */

static uint32_t character_change(const pith__character_runs *runs, uint32_t c) {
    size_t low = 0, high = runs->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (c > runs->runs[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)((int32_t)c + runs->runs[low].distance);
}

uint32_t pith__character_lower(uint32_t c) {
    if (!(pith__character_of(c)->facts & PITH_CHARACTER_LOWERS)) return c;
    return character_change(&pith__character_lower_runs, c);
}

uint32_t pith__character_upper(uint32_t c) {
    if (!(pith__character_of(c)->facts & PITH_CHARACTER_UPPERS)) return c;
    return character_change(&pith__character_upper_runs, c);
}

/* ---- normal forms ---- */

/* Hangul syllables are leading consonant, vowel and trailing consonant, or none of the last. */
enum { S = 0xAC00, L = 0x1100, V = 0x1161, T = 0x11A7, L_COUNT = 19, V_COUNT = 21, T_COUNT = 28 };
enum { S_COUNT = L_COUNT * V_COUNT * T_COUNT };

static bool character_is_syllable(uint32_t c) { return c >= S && c < S + S_COUNT; }

/* The decomposition in the table; 0: it has none. */
static size_t character_form(const pith__character_forms *forms, uint32_t c, uint32_t *out) {
    const uint32_t plane = c >> 16, key = c & 0xFFFF;
    if (plane > 2) return 0;
    size_t low = forms->planes[plane], high = forms->planes[plane + 1], size = 0;
    const size_t end = high;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (key > forms->keys[middle])
            low = middle + 1;
        else
            high = middle;
    }
    if (low == end || forms->keys[low] != key) return 0;
    for (size_t i = forms->starts[low]; i < forms->starts[low + 1]; i++) {
        const uint32_t unit = forms->units[i];
        const bool leads = unit >= 0xD800 && unit < 0xDC00;
        out[size++] =
            leads ? 0x10000 + ((unit - 0xD800) << 10) + (forms->units[++i] - 0xDC00u) : unit;
    }
    return size;
}

size_t pith__character_canonical_form(uint32_t c, uint32_t out[PITH_CHARACTER_FORM_MAX]) {
    if (character_is_syllable(c)) {
        const uint32_t at = c - S;
        out[0] = L + at / (V_COUNT * T_COUNT);
        out[1] = V + at / T_COUNT % V_COUNT;
        out[2] = T + at % T_COUNT;
        return at % T_COUNT ? 3 : 2;
    }
    const bool may = pith__character_of(c)->facts & PITH_CHARACTER_DECOMPOSES;
    const size_t size = may ? character_form(&pith__character_canonical, c, out) : 0;
    if (!size) out[0] = c;
    return size ? size : 1;
}

size_t pith__character_compatible_form(uint32_t c, uint32_t out[PITH_CHARACTER_FORM_MAX]) {
    if (!(pith__character_of(c)->facts & PITH_CHARACTER_DIFFERS))
        return pith__character_canonical_form(c, out);
    return character_form(&pith__character_compatible, c, out);
}

/* Hangul syllables are composed by arithmetic (chapter 3.12), all other pairs by a binary search in
 * the table. */
uint32_t pith__character_composite(uint32_t a, uint32_t b) {
    if (a >= L && a < L + L_COUNT && b >= V && b < V + V_COUNT)
        return S + ((a - L) * V_COUNT + b - V) * T_COUNT;
    if (character_is_syllable(a) && (a - S) % T_COUNT == 0 && b > T && b < T + T_COUNT)
        return a + b - T;
    size_t low = 0, high = pith__character_pair_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const pith__character_pair *pair = &pith__character_pairs[middle];
        if (a > pair->first || (a == pair->first && b > pair->second))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == pith__character_pair_count) return 0;
    const pith__character_pair *pair = &pith__character_pairs[low];
    return pair->first == a && pair->second == b ? pair->composite : 0;
}

/* ---- grapheme clusters ---- */

/* Values of pith__character.boundary, and two more states: after an odd number of regional
 * indicators the class itself, after an even one OTHER; after a picture and a joiner
 * PICTURE_JOINED. */
enum {
    START,
    OTHER,
    CR,
    LF,
    CONTROL,
    EXTEND,
    LEADING,
    VOWEL,
    TRAILING,
    SYLLABLE_LV,
    SYLLABLE_LVT,
    REGIONAL,
    SPACING,
    PREPEND,
    JOINER,
    PICTURE = 19,
    PICTURE_JOINED = 20
};

static bool boundary_joins(uint8_t before, uint8_t c) {
    if (before == CR) return c == LF;
    if (before == LF || before == CONTROL || c == CR || c == LF || c == CONTROL) return false;
    if (c == EXTEND || c == JOINER || c == SPACING || before == PREPEND) return true;
    switch (before) {
    case LEADING: return c == LEADING || c == VOWEL || c == SYLLABLE_LV || c == SYLLABLE_LVT;
    case SYLLABLE_LV:
    case VOWEL: return c == VOWEL || c == TRAILING;
    case SYLLABLE_LVT:
    case TRAILING: return c == TRAILING;
    case PICTURE_JOINED: return c == PICTURE;
    case REGIONAL: return c == REGIONAL;
    default: return false;
    }
}

bool pith__character_joins(uint8_t *state, uint32_t c) {
    const uint8_t before = *state, own = pith__character_of(c)->boundary;
    *state = own;
    if (before == START) return false;
    if (before == REGIONAL && own == REGIONAL) *state = OTHER;
    if (before == PICTURE && own == EXTEND) *state = PICTURE;
    if (before == PICTURE && own == JOINER) *state = PICTURE_JOINED;
    return boundary_joins(before, own);
}
