/* byte_spelling.h - the two ways vocabularies spell raw bytes.
 *
 * Byte-level vocabularies (GPT-2's bytes_to_unicode) write every byte as one printable character:
 * the printable ones of Latin-1 stand for themselves, the other 68 bytes in order for U+0100 and
 * up. Byte-fallback vocabularies (SentencePiece) have the tokens "<0x00>" to "<0xFF>". */
#ifndef PITH_TEXT_BYTE_SPELLING_H
#define PITH_TEXT_BYTE_SPELLING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/unicode/utf8.h"

static inline bool pith__byte_is_printable(unsigned byte) {
    return (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
}

/* 0x00–0x20 → U+0100 …, 0x7F–0xA0 → U+0121 …, 0xAD → U+0143. */
static inline uint32_t pith__byte_char(unsigned byte) {
    if (pith__byte_is_printable(byte)) return byte;
    if (byte <= 0x20) return 0x100 + byte;
    if (byte <= 0xA0) return 0x121 + (byte - 0x7F);
    return 0x143;
}

/* -1: the character stands for no byte. */
static inline int pith__byte_of_char(uint32_t c) {
    if (c < 0x100) return pith__byte_is_printable(c) ? (int)c : -1;
    if (c <= 0x120) return (int)(c - 0x100);
    if (c <= 0x142) return (int)(c - 0x121 + 0x7F);
    return c == 0x143 ? 0xAD : -1;
}

/* The bytes that a token of a byte-level vocabulary spells, or its own text if a character spells
 * none; how many. */
static inline size_t pith__bytes_of_token(char *out, pith_str token) {
    size_t size = 0;
    for (const char *p = token.data, *end = p + token.size; p < end;) {
        int byte = pith__byte_of_char(pith__utf8_next(&p));
        if (byte < 0) {
            memcpy(out, token.data, token.size);
            return token.size;
        }
        out[size++] = (char)byte;
    }
    return size;
}

typedef struct pith__byte_token {
    char text[6];
} pith__byte_token;

/* "<0xE4>". */
static inline pith__byte_token pith__byte_token_of(unsigned byte) {
    static const char hex[] = "0123456789ABCDEF";
    return (pith__byte_token){ { '<', '0', 'x', hex[byte >> 4 & 15], hex[byte & 15], '>' } };
}

#endif
