/* utf8.c - UTF-8 validation: runs of ASCII 32 bytes at a time, the rest by the byte ranges of RFC
 * 3629. */
#include "base/unicode/utf8.h"

#include <string.h>

#define HIGH_BITS 0x8080808080808080u

/* Runs of ASCII are passed over 32 bytes at a time. A sequence is judged by its first two bytes:
 * the range of the second one rules out overlong forms, surrogates and numbers above U+10FFFF, so
 * no number has to be put together. Source: RFC 3629, section 4. */
size_t pith__utf8_valid_prefix(const char *data, size_t size) {
    const unsigned char *s = (const unsigned char *)data;
    size_t i = 0;
    while (i < size) {
        if (s[i] < 0x80) {
            uint64_t w[4];
            for (; size - i >= sizeof w; i += sizeof w) {
                memcpy(w, s + i, sizeof w);
                if ((w[0] | w[1] | w[2] | w[3]) & HIGH_BITS) break;
            }
            while (i < size && s[i] < 0x80) i++;
            continue;
        }
        unsigned char c = s[i], low = 0x80, high = 0xBF; /* range of the second byte */
        size_t more;
        if (c < 0xC2 || c > 0xF4) return i;
        if (c < 0xE0)
            more = 1;
        else if (c < 0xF0) {
            more = 2;
            if (c == 0xE0) low = 0xA0;  /* overlong */
            if (c == 0xED) high = 0x9F; /* surrogates */
        } else {
            more = 3;
            if (c == 0xF0) low = 0x90;  /* overlong */
            if (c == 0xF4) high = 0x8F; /* above U+10FFFF */
        }
        if (size - i <= more || s[i + 1] < low || s[i + 1] > high) return i;
        for (size_t k = 2; k <= more; k++)
            if ((s[i + k] & 0xC0) != 0x80) return i;
        i += more + 1;
    }
    return i;
}
