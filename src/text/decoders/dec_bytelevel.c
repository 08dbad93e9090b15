/* dec_bytelevel.c - the decoder ByteLevel: characters become the bytes they spell, and those become
 * text. Bytes that are not UTF-8 become U+FFFD. */
#include "text/byte_spelling.h"
#include "text/decoders/decode.h"

/* How many of the bytes begin one character: its length if valid, else that of the longest start of
 * a valid one. */
static size_t character_size(const unsigned char *p, size_t size, bool *valid) {
    size_t wanted = 0;
    if (p[0] < 0x80)
        wanted = 1;
    else if (p[0] < 0xC2)
        wanted = 0;
    else if (p[0] < 0xE0)
        wanted = 2;
    else if (p[0] < 0xF0)
        wanted = 3;
    else if (p[0] < 0xF5)
        wanted = 4;
    unsigned low = 0x80;
    if (p[0] == 0xE0)
        low = 0xA0;
    else if (p[0] == 0xF0)
        low = 0x90;
    unsigned high = 0xBF;
    if (p[0] == 0xED)
        high = 0x9F;
    else if (p[0] == 0xF4)
        high = 0x8F;
    size_t n = 1;
    for (; n < wanted && n < size && p[n] >= low && p[n] <= high; n++) {
        low = 0x80;
        high = 0xBF;
    }
    *valid = n == wanted;
    return n;
}

/* All tokens become one, since a character may be spread over tokens. A broken sequence becomes one
 * U+FFFD for the longest prefix that could have begun a character (Unicode 3.9), which is what
 * Rust's from_utf8_lossy gives. */
static pith_status dec_bytelevel_run(const void *self, pith__decoding *d) {
    (void)self;
    size_t most = 0, size = 0, out_size = 0;
    for (size_t i = 0; i < d->count; i++) most += d->tokens[i].size;
    char *bytes = pith__arena_alloc(d->arena, most), *out = pith__arena_alloc(d->arena, 3 * most);
    if (!bytes || !out) return pith__fail_memory(d->err, 4 * most);
    for (size_t i = 0; i < d->count; i++) {
        PITH_TRY(pith__decoding_look(d, i));
        size += pith__bytes_of_token(bytes + size, d->tokens[i]);
    }
    for (size_t i = 0, characters = 0; i < size;) {
        bool valid;
        PITH_TRY(pith__decoding_look(d, characters++));
        size_t n = character_size((const unsigned char *)bytes + i, size - i, &valid);
        memcpy(out + out_size, valid ? bytes + i : "\xEF\xBF\xBD", valid ? n : 3);
        out_size += valid ? n : 3;
        i += n;
    }
    d->tokens[0] = (pith_str){ out, out_size };
    d->count = 1;
    return PITH_OK;
}

const pith__decoder_desc pith__decoder_ByteLevel = { .name = "ByteLevel",
                                                     .run = dec_bytelevel_run };
