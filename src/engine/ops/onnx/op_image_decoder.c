/* op_image_decoder.c - ImageDecoder: a file's bytes → pixels. What formats there are is image/'s
 * affair; orientation tags are ignored, as in the standard's reference. */
#include "engine/ops/op.h"
#include "images/picture.h"

static pith_status image_decoder_infer(pith__infer *c) {
    bool grey = pith__str_is(pith__node_str(c->node, "pixel_format", "RGB"), "Grayscale");
    pith__type_set(&c->out[0], PITH_U8, 3,
                   (pith__dim[]){ PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN, grey ? 1 : 3 });
    return PITH_OK;
}

static pith_status image_decoder_copy(const pith__run *r, const pith_image *image, bool bgr) {
    const size_t row = (size_t)image->width * (size_t)image->channels;
    uint8_t *y = r->out[0]->data;
    int64_t spent = 0;
    for (size_t at = 0, end; at < row * (size_t)image->height; at = end) {
        end = at + row;
        PITH_TRY(pith__run_spend(r, &spent, (int64_t)row));
        memcpy(y + at, image->pixels + at, row);
        if (!bgr) continue;
        for (size_t i = at; i < end; i += 3) {
            uint8_t red = y[i];
            y[i] = y[i + 2];
            y[i + 2] = red;
        }
    }
    return PITH_OK;
}

/* The picture belongs to the decoder, so its pixels are copied and it is freed on every way out. */
static pith_status image_decoder_run(pith__run *r) {
    pith_str format = pith__node_str(r->node, "pixel_format", "RGB");
    pith_image_options options = PITH_IMAGE_OPTIONS_INIT;
    pith_image image;
    options.channels = pith__str_is(format, "Grayscale") ? 1 : 3;
    options.keep_orientation = 1;
    options.max_pixels = PITH_IMAGE_MAX_PIXELS;
    PITH_TRY(pith__picture_decode(&image, r->in[0]->data, r->in[0]->bytes, &options, r->exec->stop,
                                  r->err));
    pith_status status =
        pith__run_alloc(r, 0, PITH_U8, 3, (int64_t[]){ image.height, image.width, image.channels });
    if (!status) status = image_decoder_copy(r, &image, pith__str_is(format, "BGR"));
    pith__picture_free(&image);
    return status;
}

const pith__op pith__op_ImageDecoder = {
    .domain = "",
    .name = "ImageDecoder",
    .since = 20,
    .newest = 20,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "B",
    .attrs = "pixel_format string RGB|BGR|Grayscale = RGB",
    .flags = PITH_OP_LATE,
    .infer = image_decoder_infer,
    .run = image_decoder_run,
    .note = "JPEG, PNG, WebP, TIFF, JPEG 2000 and GIF need the module libpith_image.so, HEIC and "
            "AVIF libpith_heif.so",
};
