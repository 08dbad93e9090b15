/* bpe_cuts.c - the pairs of characters that merges join, as a set of bits. */
#include "text/models/bpe_cuts.h"

#include "text/byte_spelling.h"
#include "text/frozen_tokenizer.h"

/* Bits of the table: BITS_PER_MERGE for each merge, within powers of two from 2^LOG2_LEAST to
 * 2^LOG2_MOST. More bits mean fewer pairs that look joined and are not, but the table leaves the
 * cache. */
enum { BITS_PER_MERGE = 8, LOG2_LEAST = 9, LOG2_MOST = 21 };

static const char *character_before(const char *begin, const char *p) {
    do p--;
    while (p > begin && (*p & 0xC0) == 0x80);
    return p;
}

static uint64_t bit_of_pair(const pith__bpe_cuts *j, uint32_t left, uint32_t right) {
    return ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u >> j->shift;
}

/* The bit of the characters at left and right. Strings of a vocabulary have some bytes after them,
 * so that even a damaged character can be read. */
static uint64_t bit_of(const pith__bpe_cuts *j, const char *left, const char *right) {
    uint32_t l = pith__utf8_next(&left);
    return bit_of_pair(j, l, pith__utf8_next(&right));
}

static bool has_bit(const pith__bpe_cuts *j, uint64_t bit) {
    return j->bits[bit / 64] >> bit % 64 & 1;
}

bool pith__bpe_cuts_join_bytes(const pith__bpe_cuts *j, unsigned char left, unsigned char right) {
    return has_bit(j, bit_of_pair(j, pith__byte_char(left), pith__byte_char(right)));
}

bool pith__bpe_cuts_join(const pith__bpe_cuts *j, const char *text, uint32_t at) {
    return has_bit(j, bit_of(j, character_before(text, text + at), text + at));
}

/* Enters, for each merge, the last character of its left side and the first one of its right side.
 * Merges have tokens on both sides, so a pair of characters that no merge joins is never inside a
 * token. */
pith_status pith__bpe_cuts_build(pith__bpe_cuts *j, const pith__merges *merges,
                                 const pith__vocab *vocab, pith__arena *arena, pith_error *err) {
    unsigned log2 = LOG2_LEAST;
    while (log2 < LOG2_MOST && (size_t)1 << log2 < BITS_PER_MERGE * (size_t)merges->count) log2++;
    size_t words = ((size_t)1 << log2) / 64;
    uint64_t *bits = pith__arena_alloc64(arena, words * sizeof *bits);
    if (!bits) return pith__fail_memory(err, words * sizeof *bits);
    memset(bits, 0, words * sizeof *bits);
    *j = (pith__bpe_cuts){ bits, 64 - log2 };
    for (size_t i = 0; i < merges->count; i++) {
        const pith__merge *merge = &merges->merges[i];
        pith_str left = pith__vocab_token(vocab, merge->left),
                 right = pith__vocab_token(vocab, merge->right);
        uint64_t bit = bit_of(j, character_before(left.data, left.data + left.size), right.data);
        bits[bit / 64] |= (uint64_t)1 << bit % 64;
    }
    return PITH_OK;
}

void pith__bpe_cuts_save(const pith__bpe_cuts *j, pith__frozen_writer *writer) {
    size_t words = j->bits ? ((size_t)1 << (64 - j->shift)) / 64 : 0;
    pith__frozen_put(writer, "junctions", j->bits, words, sizeof *j->bits);
}

pith_status pith__bpe_cuts_open(pith__bpe_cuts *j, pith__loader *loader) {
    size_t words;
    const uint64_t *bits = pith__frozen_table(loader, "junctions", sizeof *bits, &words);
    if (!bits) return loader->err->code;
    for (unsigned log2 = LOG2_LEAST; log2 <= LOG2_MOST; log2++)
        if (words == ((size_t)1 << log2) / 64) *j = (pith__bpe_cuts){ bits, 64 - log2 };
    return j->bits || !words ? PITH_OK : pith__frozen_damaged(loader, "junctions");
}
