/* exif.c - what is used of EXIF blocks: the orientation, and the resolution. Source: TIFF 6.0 and
 * EXIF 2.3, whose first directory has both. */
#include <string.h>

#include "codec.h"

enum { EXIF_ORIENTATION = 0x112, EXIF_ACROSS = 0x11A, EXIF_DOWN = 0x11B, EXIF_UNIT = 0x128 };
enum { EXIF_SHORT = 3, EXIF_RATIONAL = 5, EXIF_INCHES = 2, EXIF_CENTIMETRES = 3, EXIF_ENTRY = 12 };

typedef struct exif_block {
    const uint8_t *bytes;
    size_t size;
    int big;
} exif_block;

static uint32_t exif_number(const exif_block *e, size_t at, int bytes) {
    uint32_t n = 0;
    for (int i = 0; i < bytes; i++)
        n = n << 8 | e->bytes[at + (size_t)(e->big ? i : bytes - 1 - i)];
    return n;
}

static uint32_t exif_short(const exif_block *e, size_t at) {
    return exif_number(e, at + 2, 2) == EXIF_SHORT ? exif_number(e, at + 8, 2) : 0;
}

static double exif_rational(const exif_block *e, size_t at) {
    const size_t there = exif_number(e, at + 8, 4);
    if (exif_number(e, at + 2, 2) != EXIF_RATIONAL || there > e->size - 8) return 0;
    const uint32_t by = exif_number(e, there + 4, 4);
    return by ? (double)exif_number(e, there, 4) / by : 0;
}

void pith__exif_read(pith_image_header *header, const uint8_t *exif, size_t size) {
    double dots[2] = { 0, 0 };
    uint32_t unit = EXIF_INCHES;
    if (size >= 6 && !memcmp(exif, "Exif\0", 6)) exif += 6, size -= 6;
    if (size < 8 || (memcmp(exif, "II*\0", 4) && memcmp(exif, "MM\0*", 4))) return;
    const exif_block e = { exif, size, exif[0] == 'M' };
    size_t at = exif_number(&e, 4, 4);
    if (at > size - 2) return;
    uint32_t count = exif_number(&e, at, 2);
    at += 2;
    for (; count && size - at >= EXIF_ENTRY; count--, at += EXIF_ENTRY)
        switch (exif_number(&e, at, 2)) {
        case EXIF_ORIENTATION:
            if (!header->orientation && exif_short(&e, at) <= 8)
                header->orientation = exif_short(&e, at);
            break;
        case EXIF_ACROSS: dots[0] = exif_rational(&e, at); break;
        case EXIF_DOWN: dots[1] = exif_rational(&e, at); break;
        case EXIF_UNIT: unit = exif_short(&e, at); break;
        default: break;
        }
    if (header->dots[0] > 0 || (unit != EXIF_INCHES && unit != EXIF_CENTIMETRES)) return;
    for (int i = 0; i < 2; i++) header->dots[i] = unit == EXIF_INCHES ? dots[i] : dots[i] * 2.54;
}

static uint8_t *exif_put(uint8_t *to, uint32_t n, int bytes) {
    for (int i = 0; i < bytes; i++, n >>= 8) *to++ = (uint8_t)n;
    return to;
}

static uint8_t *exif_entry(uint8_t *to, uint32_t tag, uint32_t type, uint32_t value) {
    return exif_put(exif_put(exif_put(exif_put(to, tag, 2), type, 2), 1, 4), value, 4);
}

size_t pith__exif_of_dots(uint8_t exif[PITH_EXIF_DOTS], const double dots[2]) {
    enum { ENTRIES = 3, VALUES = 8 + 2 + ENTRIES * EXIF_ENTRY + 4, PARTS = 1000 };
    memcpy(exif, "II*\0", 4);
    uint8_t *to = exif_put(exif_put(exif + 4, 8, 4), ENTRIES, 2);
    to = exif_entry(to, EXIF_ACROSS, EXIF_RATIONAL, VALUES);
    to = exif_entry(to, EXIF_DOWN, EXIF_RATIONAL, VALUES + 8);
    to = exif_put(exif_entry(to, EXIF_UNIT, EXIF_SHORT, EXIF_INCHES), 0, 4);
    for (int i = 0; i < 2; i++)
        to = exif_put(exif_put(to, (uint32_t)(dots[i] * PARTS + 0.5), 4), PARTS, 4);
    return (size_t)(to - exif);
}
