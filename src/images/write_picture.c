/* write_picture.c - pictures as files, by the module's encoders.
 *
 * Encoders write through a callback, so a file is never whole in memory. What a format cannot hold
 * (grey, alpha) is converted before; what must not be lost silently, such as a colour profile for
 * other channels, is an error. */
#include <string.h>

#include "base/caller_options.h"
#include "base/error.h"
#include "base/stop.h"
#include "base/writer.h"
#include "images/decoder_module.h"
#include "images/picture.h"
#include "images/picture_calls.h"
#include "images/picture_details.h"

/* Formats by the name that callers give, and by the one that the module has. */
static const struct {
    const char *given, *codec;
} encode_formats[] = { { "jpeg", "JPEG" }, { "png", "PNG" }, { "webp", "WebP" } };

typedef struct encode {
    pith_image_encode_call call; /* first: the encoder hands it back */
    pith__out out;
    pith__stop *stop;
} encode;

static int encode_write(pith_image_encode_call *call, const void *data, size_t size) {
    encode *e = (encode *)(void *)call;
    pith__out_put(&e->out, data, size);
    return e->out.failed || pith__stop_asked(e->stop);
}

static int encode_stops(pith_image_encode_call *call) {
    return pith__stop_asked(((encode *)(void *)call)->stop);
}

static pith_status encode_find(const pith_image_codec **codec, const pith_image_encode_options *o,
                               pith_error *err) {
    for (size_t i = 0; i < sizeof encode_formats / sizeof *encode_formats; i++)
        if (!strcmp(encode_formats[i].given, o->format)) {
            PITH_TRY(pith__picture_codec(codec, encode_formats[i].codec, o->module_path, err));
            if ((*codec)->encode) return PITH_OK;
        }
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      "format is '%s'; pictures are written as jpeg, png or webp", o->format);
}

/* Grey needs three channels where the format has no grey, and alpha is dropped where it has no
 * alpha. */
static uint32_t encode_channels(const pith_image_codec *codec, const pith_image *image) {
    return codec->encodes & 1u << image->channels ? (uint32_t)image->channels : 3;
}

/* What a profile of so many channels is for; see pith__profile_channels. */
static const char *encode_profile_use(int channels) {
    if (channels < 0) return "damaged";
    if (channels == 1) return "for grey";
    return channels == 3 ? "for RGB" : "for other colours than grey and RGB";
}

static pith_status encode_details(pith_image_encode_call *call, const pith_image_details *details,
                                  pith_error *err) {
    if (!details) return PITH_OK;
    memcpy(call->dots, details->dots, sizeof call->dots);
    if (!details->profile) return PITH_OK;
    const int channels = pith__profile_channels(details->profile, details->profile_size);
    if (channels != (call->channels == 1 ? 1 : 3))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the colour profile is %s; the picture has %u channels",
                          encode_profile_use(channels), call->channels);
    call->profile = details->profile;
    call->profile_size = details->profile_size;
    return PITH_OK;
}

static pith_status encode_run(const pith_image_codec *codec, encode *e, pith_error *err) {
    switch (codec->encode(&e->call)) {
    case PITH_IMAGE_DECODED: return PITH_OK;
    case PITH_IMAGE_NO_MEMORY:
        return pith__fail(err, PITH_ERR_MEMORY, "out of memory in the encoder of %s pictures",
                          codec->format);
    case PITH_IMAGE_REFUSED:
    case PITH_IMAGE_STOPPED:
        PITH_TRY(pith__stop_check(e->stop, err));
        return pith__fail(err, PITH_ERR_IO, "the %s picture could not be written", codec->format);
    default:
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "the picture cannot be written as %s: %s",
                          codec->format, e->call.message);
    }
}

pith_status pith__pictures_encode(const pith_image *image, const pith_image_encode_options *options,
                                  const pith_writer *writer, pith_error *err) {
    pith_image_encode_options o = PITH_IMAGE_ENCODE_OPTIONS_INIT;
    const pith_image_codec *codec;
    pith_image converted = { 0 };
    PITH_TAKE_OPTIONS(o, options, err);
    if (!o.format) o.format = "png";
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    PITH_TRY(pith__writer_check(writer, err));
    PITH_TRY(pith__picture_check(image, err));
    if (o.quality < 0 || o.quality > 100)
        return pith__fail(err, PITH_ERR_ARGUMENT, "quality is %d; it must be from 1 to 100",
                          o.quality);
    PITH_TRY(encode_find(&codec, &o, err));
    encode e = { .call = { .pixels = image->pixels,
                           .width = (uint32_t)image->width,
                           .height = (uint32_t)image->height,
                           .channels = encode_channels(codec, image),
                           .quality = o.quality ? o.quality : 90,
                           .write = encode_write,
                           .stops = stop ? encode_stops : NULL },
                 .out = { .writer = writer },
                 .stop = stop };
    PITH_TRY(encode_details(&e.call, o.details, err));
    if (e.call.channels != (uint32_t)image->channels) {
        PITH_TRY(pith__picture_alloc(&converted, image->width, image->height,
                                     (int32_t)e.call.channels, NULL, err));
        e.call.pixels = converted.pixels;
    }
    pith_status status = pith__stop_check(stop, err);
    if (!status && converted.pixels)
        status =
            pith__picture_convert_rows(converted.pixels, (int)e.call.channels, image, stop, err);
    if (!status) status = encode_run(codec, &e, err);
    pith__picture_free(&converted);
    return status;
}
