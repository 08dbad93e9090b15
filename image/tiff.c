/* tiff.c - TIFF by libtiff's RGBA interface: strips and tiles, palettes, CMYK, YCbCr, Lab, up to 16
 * bits per sample, every compression that libtiff was built with; the first page.
 *
 * Rows of 4 channels come from libtiff whatever the picture is. Alpha is taken as it is stored, not
 * multiplied into the colours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

#include "codec.h"

/* Samples per pixel: CMYK with alpha has 5. More would let a small file ask for large strips. */
enum { MAX_SAMPLES = 8 };

/* The bytes that strips and tiles may have in all, for each byte of the file and each pixel; the
 * pixels a tile may have for each of the picture's, and what it may have in any case. */
enum { PACKED_PER_BYTE = 4, PACKED_PER_PIXEL = 16, PIXELS_OF_TILE = 8, FREE_TILE = 1 << 20 };

typedef struct tiff_state {
    pith_image_call *call;
    uint64_t at;
} tiff_state;

static tmsize_t tiff_read(thandle_t handle, void *to, tmsize_t count) {
    tiff_state *s = handle;
    if (count < 0 || s->at > s->call->size) return 0;
    if ((uint64_t)count > s->call->size - s->at) count = (tmsize_t)(s->call->size - s->at);
    memcpy(to, s->call->data + s->at, (size_t)count);
    s->at += (uint64_t)count;
    return count;
}

static tmsize_t tiff_write(thandle_t handle, void *from, tmsize_t count) {
    (void)handle, (void)from, (void)count;
    return 0;
}

static toff_t tiff_seek(thandle_t handle, toff_t offset, int whence) {
    tiff_state *s = handle;
    s->at = s->call->size + offset;
    if (whence == SEEK_SET)
        s->at = offset;
    else if (whence == SEEK_CUR)
        s->at = s->at + offset;
    return s->at;
}

static int tiff_close(thandle_t handle) {
    (void)handle;
    return 0;
}

static toff_t tiff_size(thandle_t handle) { return ((tiff_state *)handle)->call->size; }

static int tiff_map(thandle_t handle, void **base, toff_t *size) {
    tiff_state *s = handle;
    *base = (void *)(uintptr_t)s->call->data;
    *size = s->call->size;
    return 1;
}

static void tiff_unmap(thandle_t handle, void *base, toff_t size) {
    (void)handle, (void)base, (void)size;
}

/* The first error is the cause. */
static int tiff_on_error(TIFF *tiff, void *user, const char *module, const char *format,
                         va_list args) {
    pith_image_call *call = user;
    char text[sizeof call->message];
    (void)tiff, (void)module;
    vsnprintf(text, sizeof text, format, args);
    if (!call->message[0]) pith__codec_fail(call, PITH_IMAGE_DAMAGED, "%s", text);
    return 1;
}

static int tiff_on_warning(TIFF *tiff, void *user, const char *module, const char *format,
                           va_list args) {
    (void)tiff, (void)user, (void)module, (void)format, (void)args;
    return 1;
}

static TIFF *tiff_open(tiff_state *s) {
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return NULL;
    uint64_t most = s->call->max_pixels < (uint64_t)1 << 40 ? s->call->max_pixels * 2 * MAX_SAMPLES
                                                            : (uint64_t)1 << 44;
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)(most + (1 << 20)));
    TIFFOpenOptionsSetErrorHandlerExtR(options, tiff_on_error, s->call);
    TIFFOpenOptionsSetWarningHandlerExtR(options, tiff_on_warning, s->call);
    TIFF *tiff = TIFFClientOpenExt("picture", "r", s, tiff_read, tiff_write, tiff_seek, tiff_close,
                                   tiff_size, tiff_map, tiff_unmap, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}

/* What the first directory says. Fields that are missing keep libtiff's defaults or zero; the size
 * is checked by the caller. */
static pith_image_header tiff_header(TIFF *tiff, uint16_t samples) {
    pith_image_header header = { .channels = 4 };
    uint16_t photometric = PHOTOMETRIC_RGB, orientation = 0, extra = 0, *kinds = NULL;
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &header.width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &header.height);
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric);
    if (TIFFGetField(tiff, TIFFTAG_ORIENTATION, &orientation) && orientation <= 8)
        header.orientation = orientation;
    TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &extra, &kinds);
    int alpha = extra && (kinds[0] == EXTRASAMPLE_ASSOCALPHA || kinds[0] == EXTRASAMPLE_UNASSALPHA);
    int grey = photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE;
    header.meaning = 3;
    if (alpha)
        header.meaning = 4;
    else if (grey && samples == 1)
        header.meaning = 1;
    /* libtiff multiplies the colours with alpha unless it believes that it was done before. */
    if (alpha && kinds[0] == EXTRASAMPLE_UNASSALPHA)
        TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, (uint16_t[]){ 1 });
    return header;
}

static void tiff_details(pith_image_header *header, TIFF *tiff) {
    float across = 0, down = 0;
    uint16_t unit = RESUNIT_INCH;
    uint32_t size = 0;
    void *profile = NULL;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_RESOLUTIONUNIT, &unit);
    if (unit != RESUNIT_NONE && TIFFGetField(tiff, TIFFTAG_XRESOLUTION, &across) &&
        TIFFGetField(tiff, TIFFTAG_YRESOLUTION, &down)) {
        header->dots[0] = (double)across * (unit == RESUNIT_CENTIMETER ? 2.54 : 1);
        header->dots[1] = (double)down * (unit == RESUNIT_CENTIMETER ? 2.54 : 1);
    }
    if (!TIFFGetField(tiff, TIFFTAG_ICCPROFILE, &size, &profile)) return;
    header->profile = profile;
    header->profile_size = size;
}

static void tiff_order_bytes(uint8_t *pixels, uint64_t count) {
    for (uint64_t i = 0; i < count; i++, pixels += 4) {
        uint32_t pixel;
        memcpy(&pixel, pixels, sizeof pixel);
        pixels[0] = (uint8_t)TIFFGetR(pixel);
        pixels[1] = (uint8_t)TIFFGetG(pixel);
        pixels[2] = (uint8_t)TIFFGetB(pixel);
        pixels[3] = (uint8_t)TIFFGetA(pixel);
    }
}

/* Strips and tiles may lie over each other, and each may hold bytes that give no pixel. All of them
 * together may be as large as the file and the pixels, some times over. libtiff takes memory for a
 * whole tile. */
static pith_image_outcome tiff_check(pith_image_call *call, TIFF *tiff,
                                     const pith_image_header *header) {
    const uint64_t pixels = (uint64_t)header->width * header->height;
    const uint64_t most = PACKED_PER_BYTE * (uint64_t)call->size + PACKED_PER_PIXEL * pixels;
    uint32_t width = 0, height = 0,
             count = TIFFIsTiled(tiff) ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
    TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &width);
    TIFFGetField(tiff, TIFFTAG_TILELENGTH, &height);
    if (TIFFIsTiled(tiff) && (uint64_t)width * height > FREE_TILE + PIXELS_OF_TILE * pixels)
        return pith__codec_fail(call, PITH_IMAGE_UNKNOWN,
                                "its tiles of %u x %u pixels are larger than the picture", width,
                                height);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count && sum <= most; i++) {
        const uint64_t bytes = TIFFGetStrileByteCount(tiff, i);
        sum += bytes < call->size ? bytes : call->size;
    }
    if (sum <= most) return PITH_IMAGE_DECODED;
    return pith__codec_fail(call, PITH_IMAGE_UNKNOWN,
                            "its %u strips or tiles lie over each other in the file", count);
}

/* Rows that are decoded at once: whole strips or rows of tiles, so that none is decoded twice, and
 * as many as make up PITH_STOP_PIXELS. */
static uint32_t tiff_band(TIFF *tiff, const pith_image_header *header) {
    uint32_t rows = 0;
    if (TIFFIsTiled(tiff))
        TIFFGetField(tiff, TIFFTAG_TILELENGTH, &rows);
    else
        TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &rows);
    if (!rows || rows >= header->height) return header->height;
    const uint64_t pixels = (uint64_t)rows * header->width,
                   band = (PITH_STOP_PIXELS / pixels + 1) * rows;
    return band < header->height ? (uint32_t)band : header->height;
}

static pith_image_outcome tiff_rows(pith_image_call *call, TIFFRGBAImage *image, uint32_t band,
                                    uint8_t *to, const pith_image_header *header) {
    for (uint32_t y = 0, rows; y < header->height; y += rows) {
        rows = header->height - y < band ? header->height - y : band;
        uint8_t *at = to + (size_t)y * header->width * 4;
        if (pith__decode_stops(call)) return PITH_IMAGE_STOPPED;
        image->row_offset = (int)y;
        if (!TIFFRGBAImageGet(image, (uint32_t *)(void *)at, header->width, rows) ||
            call->message[0])
            return PITH_IMAGE_DAMAGED;
        tiff_order_bytes(at, (uint64_t)header->width * rows);
    }
    return PITH_IMAGE_DECODED;
}

static pith_image_outcome tiff_page(pith_image_call *call, TIFF *tiff) {
    uint16_t samples = 1;
    char text[1024] = "";
    TIFFRGBAImage image;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
    if (samples > MAX_SAMPLES)
        return pith__codec_fail(call, PITH_IMAGE_UNKNOWN,
                                "it has %d samples per pixel; %d are the most", samples,
                                MAX_SAMPLES);
    if (!TIFFRGBAImageOK(tiff, text)) return pith__codec_fail(call, PITH_IMAGE_UNKNOWN, "%s", text);
    pith_image_header header = tiff_header(tiff, samples);
    pith_image_outcome outcome = tiff_check(call, tiff, &header);
    if (outcome) return outcome;
    tiff_details(&header, tiff);
    uint8_t *to = call->begin(call, &header);
    if (!to) return PITH_IMAGE_REFUSED;
    if (!TIFFRGBAImageBegin(&image, tiff, 1, text))
        return pith__codec_fail(call, PITH_IMAGE_DAMAGED, "%s", text);
    image.req_orientation = image.orientation;
    const uint32_t band = call->stops ? tiff_band(tiff, &header) : header.height;
    outcome = tiff_rows(call, &image, band, to, &header);
    TIFFRGBAImageEnd(&image);
    if (outcome == PITH_IMAGE_DAMAGED && !call->message[0])
        return pith__codec_fail(call, PITH_IMAGE_DAMAGED, "its rows are broken");
    return outcome;
}

pith_image_outcome pith__tiff_decode(pith_image_call *call) {
    tiff_state state = { call, 0 };
    TIFF *tiff = tiff_open(&state);
    if (!tiff)
        return call->message[0]
                   ? PITH_IMAGE_DAMAGED
                   : pith__codec_fail(call, PITH_IMAGE_DAMAGED, "its header is broken");
    pith_image_outcome outcome = tiff_page(call, tiff);
    TIFFClose(tiff);
    return outcome;
}
