/* dec_bytefallback.c - the decoder ByteFallback: runs of tokens like "<0xE4>" become the text of
 * their bytes, or U+FFFD for each byte if they are not UTF-8. */
#include "text/decoders/decode.h"

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* -1: no byte token. */
static int byte_of(pith_str token) {
    if (token.size != 6 || memcmp(token.data, "<0x", 3) != 0 || token.data[5] != '>') return -1;
    int high = hex_digit(token.data[3]), low = hex_digit(token.data[4]);
    if (token.data[3] == '+' && low >= 0) return low; /* as Rust reads numbers */
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Joins each run of byte tokens. A run that is not UTF-8 as a whole becomes one U+FFFD for each of
 * its bytes, as in Hugging Face tokenizers, even where a part of it would be valid. */
static pith_status dec_bytefallback_run(const void *self, pith__decoding *d) {
    (void)self;
    size_t kept = 0;
    for (size_t i = 0; i < d->count;) {
        size_t end = i;
        PITH_TRY(pith__decoding_look(d, kept));
        while (end < d->count && byte_of(d->tokens[end]) >= 0) end++;
        if (end == i) {
            d->tokens[kept++] = d->tokens[i++];
            continue;
        }
        char *bytes = pith__arena_alloc(d->arena, end - i);
        if (!bytes) return pith__fail_memory(d->err, end - i);
        for (size_t k = i; k < end; k++) bytes[k - i] = (char)byte_of(d->tokens[k]);
        if (pith__utf8_valid_prefix(bytes, end - i) == end - i) {
            d->tokens[kept++] = (pith_str){ bytes, end - i };
            i = end;
        }
        for (; i < end; i++) d->tokens[kept++] = PITH_STR("\xEF\xBF\xBD");
    }
    d->count = kept;
    return PITH_OK;
}

const pith__decoder_desc pith__decoder_ByteFallback = { .name = "ByteFallback",
                                                        .run = dec_bytefallback_run };
