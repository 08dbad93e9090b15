/* picture_format.c - formats by their first bytes. File names are never looked at.
 *
 * The table has formats that no decoder reads, too, so that an error can name them. The first row
 * that fits wins; rows of one format have the same name. */
#include "images/picture_format.h"

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
    { "GIF", true, 0, 4, "GIF8" },
    { "PDF", false, 0, 4, "%PDF" },
    { "SVG or XML", false, 0, 4, "<svg" },
    { "SVG or XML", false, 0, 5, "<?xml" },
    { "Photoshop", false, 0, 4, "8BPS" },
};

/* Files of boxes begin with one that names what they hold: ISO/IEC 14496-12, 4.3. A brand, a
 * version, further brands. */
static const char *format_by_brand(bool *decodes, const uint8_t *data, size_t size) {
    static const char heic[][5] = {
        "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1"
    };
    static const char avif[][5] = { "avif", "avis" };
    const char *format = NULL;
    size_t end = (size_t)data[2] << 8 | data[3];
    if (data[0] || data[1] || end > size) end = size;
    for (size_t at = 8; at + 4 <= end; at += at == 8 ? 8 : 4) {
        for (size_t i = 0; i < sizeof avif / sizeof *avif; i++)
            if (!memcmp(data + at, avif[i], 4)) format = "AVIF";
        for (size_t i = 0; i < sizeof heic / sizeof *heic; i++)
            if (!format && !memcmp(data + at, heic[i], 4)) format = "HEIC";
    }
    *decodes = format != NULL;
    return format ? format : "a film, or a picture in a file of another kind,";
}

const char *pith__picture_format(bool *decodes, const uint8_t *data, size_t size) {
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
        const magic *m = &magics[i];
        if (size < (size_t)m->at + m->size || memcmp(data + m->at, m->bytes, m->size)) continue;
        *decodes = m->decodes;
        return m->format;
    }
    if (size >= 12 && !memcmp(data + 4, "ftyp", 4)) return format_by_brand(decodes, data, size);
    *decodes = false;
    return NULL;
}
