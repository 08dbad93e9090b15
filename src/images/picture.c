/* picture.c - the way from a file's bytes to the pixels that were asked for.
 *
 * The decoder, of the module or of plain_formats.c, tells the size before it decodes; here it is
 * held to the limit and memory is taken. What the decoder delivers is then turned upright and
 * converted in one walk, in place if it fits. */
#include "images/picture.h"

#include <stdbool.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory/memory.h"
#include "images/decoder_module.h"
#include "images/picture_details.h"
#include "images/picture_format.h"
#include "images/plain_formats.h"

typedef struct decode {
    pith_image_call call; /* first: the decoder hands it back */
    const pith_image_options *options;
    const char *format;
    pith_image read; /* as the decoder delivers it */
    int meaning, orientation;
    pith_status status; /* why the decoder got no memory */
    pith__stop *stop;
    pith_error *err;
} decode;

static const pith_allocator *picture_allocator(const pith_allocator *allocator) {
    return allocator ? allocator : &pith__allocator_default;
}

pith_status pith__picture_alloc(pith_image *image, int32_t width, int32_t height, int32_t channels,
                                const pith_allocator *allocator, pith_error *err) {
    size_t bytes;
    if (pith__mul_overflows((size_t)width, (size_t)height, &bytes) ||
        pith__mul_overflows(bytes, (size_t)channels, &bytes))
        bytes = SIZE_MAX;
    uint8_t *pixels = pith__memory_alloc(picture_allocator(allocator), bytes, 64);
    if (!pixels) return pith__fail_memory(err, bytes);
    *image = (pith_image){ pixels, width, height, channels, allocator };
    return PITH_OK;
}

void pith__picture_free(pith_image *image) {
    if (!image) return;
    if (image->pixels) pith__memory_free(picture_allocator(image->allocator), image->pixels);
    *image = (pith_image){ 0 };
}

pith_status pith__picture_check(const pith_image *image, pith_error *err) {
    if (!image->pixels || image->width < 1 || image->height < 1)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the picture is empty: %d x %d pixels",
                          image->width, image->height);
    if (image->channels != 1 && image->channels != 3 && image->channels != 4)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the picture has %d channels; 1, 3 or 4 are possible", image->channels);
    return PITH_OK;
}

static uint8_t picture_luma(const uint8_t *rgb) {
    return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

static inline void picture_convert_pixel(uint8_t *to, int to_channels, const uint8_t *from,
                                         int from_channels) {
    uint8_t rgba[4] = { from[0], from[0], from[0], 255 };
    for (int c = 1; c < from_channels; c++) rgba[c] = from[c];
    if (to_channels == 1)
        to[0] = from_channels == 1 ? from[0] : picture_luma(rgba);
    else
        for (int c = 0; c < to_channels; c++) to[c] = rgba[c];
}

pith_status pith__picture_convert_rows(uint8_t *to, int to_channels, const pith_image *from,
                                       pith__stop *stop, pith_error *err) {
    const size_t width = (size_t)from->width;
    for (size_t y = 0; y < (size_t)from->height; y++) {
        PITH_TRY(pith__stop_check(stop, err));
        pith__picture_convert(to + y * width * (size_t)to_channels, to_channels,
                              from->pixels + y * width * (size_t)from->channels, from->channels,
                              width);
    }
    return PITH_OK;
}

void pith__picture_convert(uint8_t *to, int to_channels, const uint8_t *from, int from_channels,
                           size_t count) {
    for (size_t i = 0; i < count; i++)
        picture_convert_pixel(to + i * to_channels, to_channels, from + i * from_channels,
                              from_channels);
}

/* The decoder knows the size. */
static uint8_t *decode_begin(pith_image_call *call, const pith_image_header *header) {
    decode *d = (decode *)(void *)call;
    uint64_t most = call->max_pixels, pixels = (uint64_t)header->width * header->height;
    if (!header->width || !header->height || header->width > INT32_MAX ||
        header->height > INT32_MAX)
        d->status = pith__fail(d->err, PITH_ERR_FORMAT, "the %s picture says it has %u x %u pixels",
                               d->format, header->width, header->height);
    else if (pixels > most)
        d->status = pith__fail(
            d->err, PITH_ERR_ARGUMENT,
            "the %s picture has %u x %u = %llu pixels, max_pixels is %llu; raise it or make the "
            "picture smaller",
            d->format, header->width, header->height, (unsigned long long)pixels,
            (unsigned long long)most);
    else
        d->status =
            pith__picture_alloc(&d->read, (int32_t)header->width, (int32_t)header->height,
                                (int32_t)header->channels, d->options->call.allocator, d->err);
    d->meaning = (int)header->meaning;
    d->orientation =
        d->options->keep_orientation || header->orientation < 2 ? 1 : (int)header->orientation;
    if (!d->status && d->options->details)
        d->status = pith__details_take(d->options->details, header, d->orientation > 4,
                                       d->options->call.allocator, d->err);
    return d->status ? NULL : d->read.pixels;
}

static int decode_stops(pith_image_call *call) {
    return pith__stop_asked(((decode *)(void *)call)->stop);
}

/* EXIF's orientations: what is in which corner of the stored picture. 2, 3, 7, 8 read rows from
 * their end, 3, 4, 6, 7 from the last row, 5 to 8 exchange rows and columns. */
static pith_status decode_turn(uint8_t *to, int channels, const decode *d) {
    const pith_image *from = &d->read;
    const int orientation = d->orientation;
    int64_t w = from->width, h = from->height, pixel = from->channels, row = w * pixel;
    bool mirrored = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    bool upside_down = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const uint8_t *first =
        from->pixels + (mirrored ? (w - 1) * pixel : 0) + (upside_down ? (h - 1) * row : 0);
    int64_t along = mirrored ? -pixel : pixel, down = upside_down ? -row : row;
    bool turned = orientation > 4;
    int64_t rows = turned ? w : h, columns = turned ? h : w, step = turned ? down : along,
            next = turned ? along : down;
    for (int64_t y = 0; y < rows; y++) {
        PITH_TRY(pith__stop_check(d->stop, d->err));
        for (int64_t x = 0; x < columns; x++, to += channels)
            picture_convert_pixel(to, channels, first + y * next + x * step, from->channels);
    }
    return PITH_OK;
}

/* From what the decoder delivered to what was asked for. */
static pith_status decode_finish(pith_image *image, decode *d) {
    pith_image *read = &d->read;
    int channels = d->options->channels ? d->options->channels : d->meaning;
    if (d->orientation == 1 && channels <= read->channels) {
        const pith_status narrowed =
            channels < read->channels
                ? pith__picture_convert_rows(read->pixels, channels, read, d->stop, d->err)
                : PITH_OK;
        if (narrowed) {
            pith__picture_free(read);
            return narrowed;
        }
        *image = *read;
        image->channels = channels;
        return PITH_OK;
    }
    bool turned = d->orientation > 4;
    pith_image result;
    pith_status status = pith__picture_alloc(&result, turned ? read->height : read->width,
                                             turned ? read->width : read->height, channels,
                                             d->options->call.allocator, d->err);
    if (!status) {
        status = decode_turn(result.pixels, channels, d);
        if (status)
            pith__picture_free(&result);
        else
            *image = result;
    }
    pith__picture_free(read);
    return status;
}

static pith_status decode_fail(decode *d, pith_image_outcome outcome) {
    pith__picture_free(&d->read);
    pith__details_free(d->options->details);
    if (d->status) return d->status;
    if (outcome == PITH_IMAGE_STOPPED) PITH_TRY(pith__stop_check(d->stop, d->err));
    if (outcome == PITH_IMAGE_NO_MEMORY)
        return pith__fail(d->err, PITH_ERR_MEMORY, "out of memory in the decoder of %s pictures",
                          d->format);
    return pith__fail(
        d->err, outcome == PITH_IMAGE_UNKNOWN ? PITH_ERR_UNSUPPORTED : PITH_ERR_FORMAT,
        outcome == PITH_IMAGE_UNKNOWN ? "the %s picture is of a kind that is not supported: %s"
                                      : "the %s picture is damaged: %s",
        d->format, d->call.message);
}

pith_status pith__picture_decode(pith_image *image, const uint8_t *data, size_t size,
                                 const pith_image_options *options, pith__stop *stop,
                                 pith_error *err) {
    bool decodes;
    const char *format = pith__picture_format(&decodes, data, size);
    if (options->details) *options->details = (pith_image_details)PITH_IMAGE_DETAILS_INIT;
    if (options->channels != 0 && options->channels != 1 && options->channels != 3 &&
        options->channels != 4)
        return pith__fail(err, PITH_ERR_ARGUMENT, "channels is %d; it must be 0, 1, 3 or 4",
                          options->channels);
    if (!decodes)
        return pith__fail(
            err, PITH_ERR_UNSUPPORTED,
            "%s%s is not a format that is decoded; use JPEG, PNG, WebP, TIFF, JPEG 2000, HEIC, "
            "AVIF, GIF, BMP or PNM",
            size ? "" : "the file is empty: ", format ? format : "what the bytes hold");
    const pith_image_codec *codec = pith__plain_codec(format);
    if (!codec) PITH_TRY(pith__picture_codec(&codec, format, options->module_path, err));
    PITH_TRY(pith__stop_check(stop, err));
    decode d = {
        .call = { .data = data,
                  .size = size,
                  .max_pixels = options->max_pixels,
                  .begin = decode_begin,
                  .stops = stop ? decode_stops : NULL },
        .options = options,
        .format = format,
        .stop = stop,
        .err = err,
    };
    pith_image_outcome outcome = codec->decode(&d.call);
    if (outcome) return decode_fail(&d, outcome);
    pith_status status = decode_finish(image, &d);
    if (status) pith__details_free(options->details);
    return status;
}
