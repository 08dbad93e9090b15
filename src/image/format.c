/* format.c - formats by their first bytes. File names are never looked at. */
#include "image/format.h"

#include <string.h>

typedef struct magic {
    const char *format;
    bool decodes;
    uint8_t at, size;
    const char *bytes;
} magic;

static const magic magics[] = {
    { "JPEG", true, 0, 3, "\xFF\xD8\xFF" },
    { "PNG", true, 0, 8, "\x89PNG\r\n\x1A\n" },
    { "WebP", true, 8, 4, "WEBP" },
    { "TIFF", true, 0, 4, "II*\0" },
    { "TIFF", true, 0, 4, "MM\0*" },
    { "TIFF", true, 0, 4, "II+\0" }, /* more than 4 GB */
    { "TIFF", true, 0, 4, "MM\0+" },
    { "JPEG 2000", true, 4, 8, "jP  \r\n\x87\n" },
    { "JPEG 2000", true, 0, 4, "\xFF\x4F\xFF\x51" },
    { "BMP", true, 0, 2, "BM" },
    { "PNM", true, 0, 2, "P5" },
    { "PNM", true, 0, 2, "P6" },
    { "GIF", false, 0, 4, "GIF8" },
    { "AVIF or HEIF", false, 4, 4, "ftyp" },
    { "PDF", false, 0, 4, "%PDF" },
    { "SVG or XML", false, 0, 4, "<svg" },
    { "SVG or XML", false, 0, 5, "<?xml" },
    { "Photoshop", false, 0, 4, "8BPS" },
};

const char *pith_picture_format(bool *decodes, const uint8_t *data, size_t size) {
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
        const magic *m = &magics[i];
        if (size < (size_t)m->at + m->size || memcmp(data + m->at, m->bytes, m->size)) continue;
        *decodes = m->decodes;
        return m->format;
    }
    *decodes = false;
    return NULL;
}
