/* tokenizer_characters.c - the tables of base/unicode/character.h, corrected where Hugging Face's
 * are older or newer (see tokenizer_characters.h). Newer characters are in newer_characters.c.
 *
 * The ranges below were found by asking both for every code point. They change only when Hugging
 * Face tokenizers does. */
#include "base/unicode/tokenizer_characters.h"

#include "base/unicode/character.h"

/* Controls that BertNormalizer keeps. */
static const uint32_t not_other[][2] = {
    { 0x890, 0x891 },
    { 0x8E2, 0x8E2 },
    { 0x110CD, 0x110CD },
    { 0x13430, 0x1343F },
};

/* Nonspacing marks that BertNormalizer keeps. */
static const uint32_t not_nonspacing[][2] = {
    { 0x7FD, 0x7FD },     { 0x898, 0x89F },     { 0x8CA, 0x8E1 },     { 0x9FE, 0x9FE },
    { 0xAFA, 0xAFF },     { 0xB55, 0xB55 },     { 0xC04, 0xC04 },     { 0xC3C, 0xC3C },
    { 0xD00, 0xD00 },     { 0xD3B, 0xD3C },     { 0xD81, 0xD81 },     { 0xEBA, 0xEBA },
    { 0xECE, 0xECE },     { 0x180F, 0x180F },   { 0x1885, 0x1886 },   { 0x1ABF, 0x1ACE },
    { 0x1DF6, 0x1DFB },   { 0xA82C, 0xA82C },   { 0xA8C5, 0xA8C5 },   { 0xA8FF, 0xA8FF },
    { 0xA9BD, 0xA9BD },   { 0x10D24, 0x10D27 }, { 0x10EAB, 0x10EAC }, { 0x10EFD, 0x10EFF },
    { 0x10F46, 0x10F50 }, { 0x10F82, 0x10F85 }, { 0x11070, 0x11070 }, { 0x11073, 0x11074 },
    { 0x110C2, 0x110C2 }, { 0x111C9, 0x111C9 }, { 0x111CF, 0x111CF }, { 0x1123E, 0x1123E },
    { 0x11241, 0x11241 }, { 0x1133B, 0x1133B }, { 0x11438, 0x1143F }, { 0x11442, 0x11444 },
    { 0x11446, 0x11446 }, { 0x1145E, 0x1145E }, { 0x1182F, 0x11837 }, { 0x11839, 0x1183A },
    { 0x1193B, 0x1193C }, { 0x1193E, 0x1193E }, { 0x11943, 0x11943 }, { 0x119D4, 0x119D7 },
    { 0x119DA, 0x119DB }, { 0x119E0, 0x119E0 }, { 0x11A01, 0x11A0A }, { 0x11A33, 0x11A38 },
    { 0x11A3B, 0x11A3E }, { 0x11A47, 0x11A47 }, { 0x11A51, 0x11A56 }, { 0x11A59, 0x11A5B },
    { 0x11A8A, 0x11A96 }, { 0x11A98, 0x11A99 }, { 0x11C30, 0x11C36 }, { 0x11C38, 0x11C3D },
    { 0x11C3F, 0x11C3F }, { 0x11C92, 0x11CA7 }, { 0x11CAA, 0x11CB0 }, { 0x11CB2, 0x11CB3 },
    { 0x11CB5, 0x11CB6 }, { 0x11D31, 0x11D36 }, { 0x11D3A, 0x11D3A }, { 0x11D3C, 0x11D3D },
    { 0x11D3F, 0x11D45 }, { 0x11D47, 0x11D47 }, { 0x11D90, 0x11D91 }, { 0x11D95, 0x11D95 },
    { 0x11D97, 0x11D97 }, { 0x11EF3, 0x11EF4 }, { 0x11F00, 0x11F01 }, { 0x11F36, 0x11F3A },
    { 0x11F40, 0x11F40 }, { 0x11F42, 0x11F42 }, { 0x13440, 0x13440 }, { 0x13447, 0x13455 },
    { 0x16F4F, 0x16F4F }, { 0x16FE4, 0x16FE4 }, { 0x1CF00, 0x1CF2D }, { 0x1CF30, 0x1CF46 },
    { 0x1E000, 0x1E006 }, { 0x1E008, 0x1E018 }, { 0x1E01B, 0x1E021 }, { 0x1E023, 0x1E024 },
    { 0x1E026, 0x1E02A }, { 0x1E08F, 0x1E08F }, { 0x1E130, 0x1E136 }, { 0x1E2AE, 0x1E2AE },
    { 0x1E2EC, 0x1E2EF }, { 0x1E4EC, 0x1E4EF }, { 0x1E944, 0x1E94A },
};

/* Marks that StripAccents keeps. */
static const uint32_t not_mark[][2] = {
    { 0x7FD, 0x7FD },     { 0x898, 0x89F },     { 0x8CA, 0x8D3 },     { 0x9FE, 0x9FE },
    { 0xAFA, 0xAFF },     { 0xB55, 0xB55 },     { 0xC04, 0xC04 },     { 0xC3C, 0xC3C },
    { 0xCF3, 0xCF3 },     { 0xD00, 0xD00 },     { 0xD3B, 0xD3C },     { 0xD81, 0xD81 },
    { 0xEBA, 0xEBA },     { 0xECE, 0xECE },     { 0x1715, 0x1715 },   { 0x180F, 0x180F },
    { 0x1ABF, 0x1ACE },   { 0x1CF7, 0x1CF7 },   { 0x1DF6, 0x1DFA },   { 0xA82C, 0xA82C },
    { 0xA8FF, 0xA8FF },   { 0x10D24, 0x10D27 }, { 0x10EAB, 0x10EAC }, { 0x10EFD, 0x10EFF },
    { 0x10F46, 0x10F50 }, { 0x10F82, 0x10F85 }, { 0x11070, 0x11070 }, { 0x11073, 0x11074 },
    { 0x110C2, 0x110C2 }, { 0x11145, 0x11146 }, { 0x111C9, 0x111C9 }, { 0x111CE, 0x111CF },
    { 0x11241, 0x11241 }, { 0x1133B, 0x1133B }, { 0x1145E, 0x1145E }, { 0x1182C, 0x1183A },
    { 0x11930, 0x11935 }, { 0x11937, 0x11938 }, { 0x1193B, 0x1193E }, { 0x11940, 0x11940 },
    { 0x11942, 0x11943 }, { 0x119D1, 0x119D7 }, { 0x119DA, 0x119E0 }, { 0x119E4, 0x119E4 },
    { 0x11A01, 0x11A0A }, { 0x11A33, 0x11A39 }, { 0x11A3B, 0x11A3E }, { 0x11A47, 0x11A47 },
    { 0x11A51, 0x11A5B }, { 0x11A8A, 0x11A99 }, { 0x11D31, 0x11D36 }, { 0x11D3A, 0x11D3A },
    { 0x11D3C, 0x11D3D }, { 0x11D3F, 0x11D45 }, { 0x11D47, 0x11D47 }, { 0x11D8A, 0x11D8E },
    { 0x11D90, 0x11D91 }, { 0x11D93, 0x11D97 }, { 0x11EF3, 0x11EF6 }, { 0x11F00, 0x11F01 },
    { 0x11F03, 0x11F03 }, { 0x11F34, 0x11F3A }, { 0x11F3E, 0x11F42 }, { 0x13440, 0x13440 },
    { 0x13447, 0x13455 }, { 0x16F4F, 0x16F4F }, { 0x16F7F, 0x16F87 }, { 0x16FE4, 0x16FE4 },
    { 0x16FF0, 0x16FF1 }, { 0x1CF00, 0x1CF2D }, { 0x1CF30, 0x1CF46 }, { 0x1E08F, 0x1E08F },
    { 0x1E130, 0x1E136 }, { 0x1E2AE, 0x1E2AE }, { 0x1E2EC, 0x1E2EF }, { 0x1E4EC, 0x1E4EF },
};

/* Punctuation that splits nothing. */
static const uint32_t not_punctuation[][2] = {
    { 0x61D, 0x61D },     { 0x9FD, 0x9FD },     { 0xA76, 0xA76 },     { 0xC77, 0xC77 },
    { 0xC84, 0xC84 },     { 0x1B7D, 0x1B7E },   { 0x2E43, 0x2E4F },   { 0x2E52, 0x2E5D },
    { 0x10EAD, 0x10EAD }, { 0x10F55, 0x10F59 }, { 0x10F86, 0x10F89 }, { 0x1144B, 0x1144F },
    { 0x1145A, 0x1145B }, { 0x1145D, 0x1145D }, { 0x11660, 0x1166C }, { 0x116B9, 0x116B9 },
    { 0x1183B, 0x1183B }, { 0x11944, 0x11946 }, { 0x119E2, 0x119E2 }, { 0x11A3F, 0x11A46 },
    { 0x11A9A, 0x11A9C }, { 0x11A9E, 0x11AA2 }, { 0x11B00, 0x11B09 }, { 0x11C41, 0x11C45 },
    { 0x11C70, 0x11C71 }, { 0x11EF7, 0x11EF8 }, { 0x11F43, 0x11F4F }, { 0x11FFF, 0x11FFF },
    { 0x12FF1, 0x12FF2 }, { 0x16E97, 0x16E9A }, { 0x16FE2, 0x16FE2 }, { 0x1E95E, 0x1E95F },
};

/* Characters of \w that are no letter, mark, decimal or connector: joiners and circled letters. */
static const uint32_t word_too[][2] = {
    { 0x200C, 0x200D },   { 0x24B6, 0x24E9 },   { 0x1F130, 0x1F149 },
    { 0x1F150, 0x1F169 }, { 0x1F170, 0x1F189 },
};

/* Characters without decomposition and combining class in the normal forms. */
static const uint32_t not_normalized[][2] = {
    { 0x7FD, 0x7FD },     { 0x898, 0x89F },     { 0x8CA, 0x8D3 },     { 0x9FE, 0x9FE },
    { 0xC3C, 0xC3C },     { 0xD3B, 0xD3C },     { 0xEBA, 0xEBA },     { 0x1715, 0x1715 },
    { 0x1ABF, 0x1ACE },   { 0x1DF6, 0x1DFA },   { 0x32FF, 0x32FF },   { 0xA7F2, 0xA7F4 },
    { 0xA82C, 0xA82C },   { 0xAB69, 0xAB69 },   { 0x10781, 0x10785 }, { 0x10787, 0x107B0 },
    { 0x107B2, 0x107BA }, { 0x10D24, 0x10D27 }, { 0x10EAB, 0x10EAC }, { 0x10EFD, 0x10EFF },
    { 0x10F46, 0x10F50 }, { 0x10F82, 0x10F85 }, { 0x11070, 0x11070 }, { 0x1133B, 0x1133B },
    { 0x1145E, 0x1145E }, { 0x11839, 0x1183A }, { 0x11938, 0x11938 }, { 0x1193D, 0x1193E },
    { 0x11943, 0x11943 }, { 0x119E0, 0x119E0 }, { 0x11A34, 0x11A34 }, { 0x11A47, 0x11A47 },
    { 0x11A99, 0x11A99 }, { 0x11D42, 0x11D42 }, { 0x11D44, 0x11D45 }, { 0x11D97, 0x11D97 },
    { 0x11F41, 0x11F42 }, { 0x16FF0, 0x16FF1 }, { 0x1E030, 0x1E06D }, { 0x1E08F, 0x1E08F },
    { 0x1E130, 0x1E136 }, { 0x1E2AE, 0x1E2AE }, { 0x1E2EC, 0x1E2EF }, { 0x1E4EC, 0x1E4EF },
    { 0x1F16C, 0x1F16C }, { 0x1FBF0, 0x1FBF9 },
};

static bool in_ranges(const uint32_t (*ranges)[2], size_t count, uint32_t c) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c > ranges[middle][1])
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && c >= ranges[low][0];
}
#define IN(ranges, c) in_ranges(ranges, sizeof ranges / sizeof ranges[0], c)

#define BIT(category) (1u << PITH_CATEGORY_##category)
#define LETTERS (BIT(LU) | BIT(LL) | BIT(LT) | BIT(LM) | BIT(LO))
#define NUMBERS (BIT(ND) | BIT(NL) | BIT(NO))
#define MARKS (BIT(MN) | BIT(MC) | BIT(ME))
#define PUNCTUATION (BIT(PC) | BIT(PD) | BIT(PS) | BIT(PE) | BIT(PI) | BIT(PF) | BIT(PO))

static bool has(uint32_t c, uint32_t categories) {
    return categories >> pith__character_of(c)->category & 1;
}

/* The same of characters that this version of Unicode brought after 15. */
static bool newer_has(uint32_t c, int version, uint32_t categories) {
    return categories >> pith__character_newer(c, version) & 1;
}

bool pith__char_is_space(uint32_t c) {
    if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
    if (c < 0x1680) return c == 0x85 || c == 0xA0;
    return c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

bool pith__char_is_other(uint32_t c) {
    return has(c, BIT(CC) | BIT(CF) | BIT(CO)) && !IN(not_other, c);
}

/* U+1734 was a nonspacing mark until Unicode 14, U+1CF2 and U+1CF3 were marks until 12. */
bool pith__char_is_nonspacing(uint32_t c) {
    return c >= 0x300 && ((has(c, BIT(MN)) && !IN(not_nonspacing, c)) || c == 0x1734);
}

bool pith__char_is_mark(uint32_t c) {
    /* Greek, Cyrillic; kana, ideographs, Yi; Hangul, private use: none there. */
    if ((c >= 0x370 && c < 0x483) || (c >= 0x309B && c < 0xA66F) || (c >= 0xAC00 && c < 0xFB1E))
        return false;
    return c >= 0x300 && ((has(c, MARKS) && !IN(not_mark, c)) || c == 0x1CF2 || c == 0x1CF3);
}

bool pith__char_is_newer_mark(uint32_t c) { return c >= 0x897 && newer_has(c, 17, MARKS); }

/* U+166D and U+111C9 were punctuation in Unicode 8. */
bool pith__char_is_punctuation(uint32_t c) {
    if (c < 0x80)
        return (c > ' ' && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') ||
               (c > 'z' && c < 0x7F);
    return (has(c, PUNCTUATION) && !IN(not_punctuation, c)) || c == 0x166D || c == 0x111C9;
}

bool pith__char_is_numeric(uint32_t c) {
    if (c < 0x80) return c >= '0' && c <= '9';
    return has(c, NUMBERS) || newer_has(c, 17, NUMBERS);
}

bool pith__char_is_word(uint32_t c) {
    if (c < 0x80)
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' ||
               (c >= 'a' && c <= 'z');
    const uint32_t word = LETTERS | MARKS | BIT(ND) | BIT(NL) | BIT(PC);
    return has(c, word) || newer_has(c, 16, word) || IN(word_too, c);
}

/* The lower case of one character, without a look at its neighbours: U+0130 becomes two characters,
 * and a capital sigma becomes the one that stands within words. ASCII, Russian and the large
 * scripts without case go without the table. */
size_t pith__char_lower(uint32_t c, uint32_t out[2]) {
    /* Capitals that Unicode 16 and 17 brought: first, last, distance. */
    static const struct {
        uint32_t first, last;
        int32_t distance;
    } newer[] = {
        { 0x1C89, 0x1C89, 1 },      { 0xA7CB, 0xA7CB, 0x264 - 0xA7CB },
        { 0xA7CC, 0xA7CC, 1 },      { 0xA7CE, 0xA7CE, 1 },
        { 0xA7D2, 0xA7D2, 1 },      { 0xA7D4, 0xA7D4, 1 },
        { 0xA7DA, 0xA7DA, 1 },      { 0xA7DC, 0xA7DC, 0x19B - 0xA7DC },
        { 0x10D50, 0x10D65, 0x20 }, { 0x16EA0, 0x16EB8, 0x1B },
    };
    if (c < 0x80) {
        out[0] = c >= 'A' && c <= 'Z' ? c + 32 : c;
        return 1;
    }
    if (c == 0x130) {
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    if ((c >= 0x3041 && c < 0xA000) || (c >= 0xAC00 && c < 0xD7A4)) { /* kana, ideographs, Hangul */
        out[0] = c;
        return 1;
    }
    if (c >= 0x410 && c < 0x450) { /* Russian */
        out[0] = c < 0x430 ? c + 0x20 : c;
        return 1;
    }
    out[0] = pith__character_lower(c);
    if (out[0] == c && c >= 0x1C89)
        for (size_t i = 0; i < sizeof newer / sizeof newer[0]; i++)
            if (c >= newer[i].first && c <= newer[i].last)
                out[0] = (uint32_t)((int32_t)c + newer[i].distance);
    return 1;
}

int pith__char_combining_class(uint32_t c) {
    if (c < 0x300) return 0;
    const int ccc = pith__character_of(c)->combining_class;
    return ccc && IN(not_normalized, c) ? 0 : ccc;
}

/* Neither c nor its neighbours change in any normal form. */
static bool is_stable(uint32_t c) {
    if (c < 0xA0) return true;
    const pith__character *p = pith__character_of(c);
    bool hangul = (c >= 0x1100 && c < 0x1200) || (c >= 0xAC00 && c < 0xD7A4);
    return !p->combining_class &&
           !(p->facts & (PITH_CHARACTER_DECOMPOSES | PITH_CHARACTER_COMPOSES)) && !hangul;
}

bool pith__char_is_decomposed(uint32_t c) {
    if (c < 0xA0 || (c >= 0x4E00 && c < 0xA000)) return true;
    if (c >= 0x410 && c < 0x450) return c != 0x419 && c != 0x439; /* Russian but for short i */
    const pith__character *p = pith__character_of(c);
    return !p->combining_class && !(p->facts & PITH_CHARACTER_DECOMPOSES) &&
           !(c >= 0xAC00 && c < 0xD7A4);
}

bool pith__char_is_settled(uint32_t c) {
    /* Latin, Cyrillic, kana and Hangul syllables that are composed already. */
    static const uint32_t composed[][2] = {
        { 0xC0, 0x131 },    { 0x134, 0x13E },   { 0x141, 0x148 },   { 0x14A, 0x17E },
        { 0x180, 0x1C3 },   { 0x1CD, 0x1F0 },   { 0x1F4, 0x24F },   { 0x400, 0x45F },
        { 0x1EA0, 0x1EF9 }, { 0x3041, 0x3096 }, { 0x30A1, 0x30FA }, { 0xAC00, 0xD7A3 },
    };
    bool common = (c >= 0x4E00 && c < 0xA000) || (c >= 0x410 && c < 0x450);
    return common || IN(composed, c) || is_stable(c);
}

size_t pith__char_decompose(uint32_t c, uint32_t out[PITH_DECOMPOSITION_MAX]) {
    if (!IN(not_normalized, c)) return pith__character_canonical_form(c, out);
    out[0] = c;
    return 1;
}

size_t pith__char_decompose_compatible(uint32_t c, uint32_t out[PITH_DECOMPOSITION_MAX]) {
    if (!IN(not_normalized, c)) return pith__character_compatible_form(c, out);
    out[0] = c;
    return 1;
}

uint32_t pith__char_compose(uint32_t a, uint32_t b) {
    return a == 0x11935 ? 0 : pith__character_composite(a, b);
}
