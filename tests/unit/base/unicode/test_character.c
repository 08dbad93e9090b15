/* The tables of characters say what utf8proc says, of every code point. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>
#include <utf8proc.h>

#include "base/unicode/character.h"
#include "base/unicode/utf8.h"

enum { ALL = 0x110000 };

static void properties(void **state) {
    (void)state;
    for (int32_t c = 0; c < ALL; c++) {
        const utf8proc_property_t *p = utf8proc_get_property(c);
        const pith__character *own = pith__character_of((uint32_t)c);
        const bool same =
            own->category == p->category && own->combining_class == p->combining_class &&
            own->boundary == p->boundclass &&
            !(own->facts & PITH_CHARACTER_DECOMPOSES) == (p->decomp_seqindex == UINT16_MAX) &&
            !(own->facts & PITH_CHARACTER_COMPOSES) == (p->comb_index == UINT16_MAX);
        if (!same) fail_msg("U+%04X", (unsigned)c);
        if (pith__character_lower((uint32_t)c) != (uint32_t)utf8proc_tolower(c))
            fail_msg("lower U+%04X", (unsigned)c);
        if (pith__character_upper((uint32_t)c) != (uint32_t)utf8proc_toupper(c))
            fail_msg("upper U+%04X", (unsigned)c);
    }
    assert_int_equal(pith__character_of(ALL)->category, PITH_CATEGORY_CN);
    assert_int_equal(pith__character_of(UINT32_MAX)->category, PITH_CATEGORY_CN);
}

static void forms(void **state) {
    (void)state;
    for (int32_t c = 0; c < ALL; c++) {
        for (int compatible = 0; compatible < 2; compatible++) {
            uint32_t own[PITH_CHARACTER_FORM_MAX];
            int32_t theirs[PITH_CHARACTER_FORM_MAX];
            int boundary = 0;
            const int options = UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
            const long n =
                utf8proc_decompose_char(c, theirs, PITH_CHARACTER_FORM_MAX, options, &boundary);
            const size_t m = compatible ? pith__character_compatible_form((uint32_t)c, own)
                                        : pith__character_canonical_form((uint32_t)c, own);
            if (n != (long)m || memcmp(own, theirs, m * sizeof *own))
                fail_msg("U+%04X, %d", (unsigned)c, compatible);
        }
    }
}

/* Hangul, and every pair of characters of which one composes with something. U+11A7 stands before
 * the first trailing consonant; utf8proc 2.8 takes it for one. */
static void composites(void **state) {
    static uint32_t may[1024];
    size_t count = 0, found = 0;
    (void)state;
    for (int32_t c = 0; c < ALL && count < 1000; c++)
        if (utf8proc_get_property(c)->comb_index != UINT16_MAX) may[count++] = (uint32_t)c;
    assert_in_range(count, 400, 900);
    for (uint32_t c = 0x10FF; c < 0x11FF; c++) may[count < 1024 - 3 ? count++ : count] = c;
    may[count++] = 0xAC00;
    may[count++] = 0xAC01;
    may[count++] = 'x';
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++) {
            int32_t pair[3] = { (int32_t)may[i], (int32_t)may[k], 0 };
            const long n = utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
            const uint32_t want = n == 1 && may[k] != 0x11A7 ? (uint32_t)pair[0] : 0;
            const uint32_t own = pith__character_composite(may[i], may[k]);
            if (own != want)
                fail_msg("U+%04X U+%04X: U+%04X, not U+%04X", may[i], may[k], own, want);
            found += own != 0;
        }
    }
    assert_true(found > 941);
}

/* Rows of five characters of all classes. */
static void clusters(void **state) {
    uint32_t of[32];
    size_t count = 0;
    uint32_t known = 0;
    (void)state;
    for (uint32_t c = 0; c < ALL; c++) {
        const uint8_t class = pith__character_of(c)->boundary;
        if (known >> class & 1) continue;
        known |= 1u << class;
        of[count++] = c;
    }
    assert_in_range(count, 14, 20);
    size_t rows = 1;
    for (int i = 0; i < 5; i++) rows *= count;
    for (size_t row = 0; row < rows; row++) {
        uint8_t own = 0;
        int32_t theirs = 0;
        size_t rest = row;
        uint32_t before = of[rest % count];
        pith__character_joins(&own, before);
        for (int i = 1; i < 5; i++) {
            rest /= count;
            const uint32_t c = of[rest % count];
            const bool ends =
                utf8proc_grapheme_break_stateful((int32_t)before, (int32_t)c, &theirs);
            if (pith__character_joins(&own, c) == ends)
                fail_msg("row %zu at %d: U+%04X", row, i, c);
            before = c;
        }
    }
}

/* Newer characters, as UnicodeData.txt of versions 15.1, 16 and 17 has them. */
static void newer(void **state) {
    (void)state;
    static const struct {
        uint32_t c;
        uint8_t in_16, in_17;
    } rows[] = {
        { 'A', PITH_CATEGORY_CN, PITH_CATEGORY_CN }, /* older */
        { 0x896, PITH_CATEGORY_CN, PITH_CATEGORY_CN },
        { 0x897, PITH_CATEGORY_MN, PITH_CATEGORY_MN },
        { 0x1ACF, PITH_CATEGORY_CN, PITH_CATEGORY_MN },
        { 0x1C89, PITH_CATEGORY_LU, PITH_CATEGORY_LU },
        { 0x1C8A, PITH_CATEGORY_LL, PITH_CATEGORY_LL },
        { 0x11B61, PITH_CATEGORY_CN, PITH_CATEGORY_MC },
        { 0x11DE9, PITH_CATEGORY_CN, PITH_CATEGORY_ND },
        { 0x143FA, PITH_CATEGORY_LO, PITH_CATEGORY_LO },
        { 0x143FB, PITH_CATEGORY_CN, PITH_CATEGORY_CN },
        { 0x16FF4, PITH_CATEGORY_CN, PITH_CATEGORY_NL },
        { 0x1CCF9, PITH_CATEGORY_ND, PITH_CATEGORY_ND },
        { 0x2EE5D, PITH_CATEGORY_LO, PITH_CATEGORY_LO }, /* of 15.1 */
        { 0x2EE5E, PITH_CATEGORY_CN, PITH_CATEGORY_CN },
        { 0x10FFFF, PITH_CATEGORY_CN, PITH_CATEGORY_CN },
        { UINT32_MAX, PITH_CATEGORY_CN, PITH_CATEGORY_CN },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(pith__character_newer(rows[i].c, 16), rows[i].in_16);
        assert_int_equal(pith__character_newer(rows[i].c, 17), rows[i].in_17);
    }
}

/* UTF-8: the forms of all code points, and which bytes are a character: all first two, with those
 * behind them that matter. */
static void utf8(void **state) {
    (void)state;
    for (uint32_t c = 0; c < 0x110010; c++) {
        char own[4];
        uint8_t theirs[4];
        const bool has = utf8proc_codepoint_valid((int32_t)c);
        if (pith__utf8_has(c) != has) fail_msg("U+%04X", c);
        if (!has) continue;
        const size_t size = pith__utf8_put(own, c);
        assert_int_equal(size, utf8proc_encode_char((int32_t)c, theirs));
        assert_memory_equal(own, theirs, size);
        const char *end = own;
        assert_int_equal(pith__utf8_next(&end), c);
        assert_ptr_equal(end, own + size);
    }
    assert_false(pith__utf8_has(UINT32_MAX));
    static const uint8_t more[] = { 0, 0x7F, 0x80, 0xBF, 0xC0, 0xFF };
    for (uint32_t row = 0; row < 0x10000 * 36; row++) {
        const uint8_t bytes[4] = { row & 0xFF, row >> 8 & 0xFF, more[(row >> 16) % 6],
                                   more[(row >> 16) / 6] };
        for (size_t size = 1; size <= 4; size++) {
            int32_t c;
            const int64_t n = utf8proc_iterate(bytes, (utf8proc_ssize_t)size, &c);
            const size_t valid = pith__utf8_valid_prefix((const char *)bytes, size);
            if ((n > 0) != (valid > 0) || (n > 0 && valid < (size_t)n))
                fail_msg("%02x %02x %02x %02x, %zu of them", bytes[0], bytes[1], bytes[2], bytes[3],
                         size);
        }
    }
}

int main(void) {
    if (strcmp(utf8proc_unicode_version(), "15.0.0")) return 0; /* it knows other characters */
    const struct CMUnitTest tests[] = { cmocka_unit_test(properties), cmocka_unit_test(forms),
                                        cmocka_unit_test(composites), cmocka_unit_test(clusters),
                                        cmocka_unit_test(newer),      cmocka_unit_test(utf8) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
