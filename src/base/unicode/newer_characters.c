/* newer_characters.c - characters that Unicode 15.1, 16 and 17 brought. The data is
 * UnicodeData.txt of these versions; of version 17 it is numbers and marks only, since nothing asks
 * for others. */
#include "base/unicode/character.h"

#define LU PITH_CATEGORY_LU
#define LL PITH_CATEGORY_LL
#define LM PITH_CATEGORY_LM
#define LO PITH_CATEGORY_LO
#define MN PITH_CATEGORY_MN
#define MC PITH_CATEGORY_MC
#define ND PITH_CATEGORY_ND
#define NL PITH_CATEGORY_NL
#define PD PITH_CATEGORY_PD
#define PO PITH_CATEGORY_PO
#define SM PITH_CATEGORY_SM
#define SO PITH_CATEGORY_SO

static const struct { /* sorted by first */
    uint32_t first;
    uint16_t count;
    uint8_t category, version;
} newer[] = {
    { 0x897, 1, MN, 16 },     { 0x1ACF, 15, MN, 17 },   { 0x1AE0, 12, MN, 17 },
    { 0x1B4E, 2, PO, 16 },    { 0x1B7F, 1, PO, 16 },    { 0x1C89, 1, LU, 16 },
    { 0x1C8A, 1, LL, 16 },    { 0x2427, 3, SO, 16 },    { 0x2FFC, 4, SO, 16 },
    { 0x31E4, 2, SO, 16 },    { 0x31EF, 1, SO, 16 },    { 0xA7CB, 2, LU, 16 },
    { 0xA7CD, 1, LL, 16 },    { 0xA7DA, 1, LU, 16 },    { 0xA7DB, 1, LL, 16 },
    { 0xA7DC, 1, LU, 16 },    { 0x105C0, 52, LO, 16 },  { 0x10D40, 10, ND, 16 },
    { 0x10D4A, 4, LO, 16 },   { 0x10D4E, 1, LM, 16 },   { 0x10D4F, 1, LO, 16 },
    { 0x10D50, 22, LU, 16 },  { 0x10D69, 5, MN, 16 },   { 0x10D6E, 1, PD, 16 },
    { 0x10D6F, 1, LM, 16 },   { 0x10D70, 22, LL, 16 },  { 0x10D8E, 2, SM, 16 },
    { 0x10EC2, 3, LO, 16 },   { 0x10EFA, 2, MN, 17 },   { 0x10EFC, 1, MN, 16 },
    { 0x11380, 10, LO, 16 },  { 0x1138B, 1, LO, 16 },   { 0x1138E, 1, LO, 16 },
    { 0x11390, 38, LO, 16 },  { 0x113B7, 1, LO, 16 },   { 0x113B8, 3, MC, 16 },
    { 0x113BB, 6, MN, 16 },   { 0x113C2, 1, MC, 16 },   { 0x113C5, 1, MC, 16 },
    { 0x113C7, 4, MC, 16 },   { 0x113CC, 2, MC, 16 },   { 0x113CE, 1, MN, 16 },
    { 0x113CF, 1, MC, 16 },   { 0x113D0, 1, MN, 16 },   { 0x113D1, 1, LO, 16 },
    { 0x113D2, 1, MN, 16 },   { 0x113D3, 1, LO, 16 },   { 0x113D4, 2, PO, 16 },
    { 0x113D7, 2, PO, 16 },   { 0x113E1, 2, MN, 16 },   { 0x116D0, 20, ND, 16 },
    { 0x11B60, 1, MN, 17 },   { 0x11B61, 1, MC, 17 },   { 0x11B62, 3, MN, 17 },
    { 0x11B65, 1, MC, 17 },   { 0x11B66, 1, MN, 17 },   { 0x11B67, 1, MC, 17 },
    { 0x11BC0, 33, LO, 16 },  { 0x11BE1, 1, PO, 16 },   { 0x11BF0, 10, ND, 16 },
    { 0x11DE0, 10, ND, 17 },  { 0x11F5A, 1, MN, 16 },   { 0x13460, 3995, LO, 16 },
    { 0x16100, 30, LO, 16 },  { 0x1611E, 12, MN, 16 },  { 0x1612A, 3, MC, 16 },
    { 0x1612D, 3, MN, 16 },   { 0x16130, 10, ND, 16 },  { 0x16D40, 3, LM, 16 },
    { 0x16D43, 40, LO, 16 },  { 0x16D6B, 2, LM, 16 },   { 0x16D6D, 3, PO, 16 },
    { 0x16D70, 10, ND, 16 },  { 0x16FF4, 3, NL, 17 },   { 0x18CFF, 1, LO, 16 },
    { 0x1CC00, 240, SO, 16 }, { 0x1CCF0, 10, ND, 16 },  { 0x1CD00, 436, SO, 16 },
    { 0x1E5D0, 30, LO, 16 },  { 0x1E5EE, 2, MN, 16 },   { 0x1E5F0, 1, LO, 16 },
    { 0x1E5F1, 10, ND, 16 },  { 0x1E5FF, 1, PO, 16 },   { 0x1E6E3, 1, MN, 17 },
    { 0x1E6E6, 1, MN, 17 },   { 0x1E6EE, 2, MN, 17 },   { 0x1E6F5, 1, MN, 17 },
    { 0x1F8B2, 10, SO, 16 },  { 0x1F8C0, 2, SO, 16 },   { 0x1FA89, 1, SO, 16 },
    { 0x1FA8F, 1, SO, 16 },   { 0x1FABE, 1, SO, 16 },   { 0x1FAC6, 1, SO, 16 },
    { 0x1FADC, 1, SO, 16 },   { 0x1FADF, 1, SO, 16 },   { 0x1FAE9, 1, SO, 16 },
    { 0x1FBCB, 37, SO, 16 },  { 0x2EBF0, 622, LO, 16 },
};

pith__category pith__character_newer(uint32_t c, int version) {
    if (pith__character_of(c)->category != PITH_CATEGORY_CN) return PITH_CATEGORY_CN;
    size_t low = 0, high = sizeof newer / sizeof newer[0];
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (c >= newer[middle].first + newer[middle].count)
            low = middle + 1;
        else
            high = middle;
    }
    const bool has = low < sizeof newer / sizeof newer[0] && c >= newer[low].first &&
                     newer[low].version <= version;
    return has ? (pith__category)newer[low].category : PITH_CATEGORY_CN;
}
