/* heif.c - HEIC and AVIF by libheif: the primary picture, turned and cut as the file says. This is
 * libpith_heif.so, a module of its own, so that all others work where libheif is not installed.
 *
 * libheif turns pictures by their boxes irot and imir; an orientation in EXIF has no meaning there.
 * The size that the file states is told before anything is decoded; then those in its streams are
 * held to the limit (heif_check.c). */
#include <stdlib.h>
#include <string.h>

#include <libheif/heif.h>

#include "heif_check.h"

typedef struct heif_state {
    pith_image_call *call;
    struct heif_context *context;
    struct heif_image_handle *handle;
    struct heif_image *image;
    struct heif_decoding_options *options;
    uint8_t *profile, *exif;
} heif_state;

/* Since libheif 1.17 the decoders may be plug-ins, which are Debian packages of their own. */
static pith_image_outcome heif_fail(heif_state *s, struct heif_error error) {
    if (error.code == heif_error_Memory_allocation_error &&
        error.subcode != heif_suberror_Security_limit_exceeded)
        return PITH_IMAGE_NO_MEMORY;
    if (error.subcode == heif_suberror_Unsupported_codec)
        return pith__codec_fail(
            s->call, PITH_IMAGE_UNKNOWN,
            "libheif has no decoder for it; install the Debian package libheif-plugin-libde265 "
            "(HEIC) or libheif-plugin-dav1d (AVIF)");
    const int unknown = error.code == heif_error_Unsupported_feature ||
                        error.code == heif_error_Unsupported_filetype;
    return pith__codec_fail(s->call, unknown ? PITH_IMAGE_UNKNOWN : PITH_IMAGE_DAMAGED, "%s",
                            error.message ? error.message : "libheif refuses it");
}

/* Primaries and transfer functions of ITU-T H.273; 2: not said. */
static const char *heif_nclx(const struct heif_image_handle *handle) {
    struct heif_color_profile_nclx *n = NULL;
    if (heif_image_handle_get_nclx_color_profile(handle, &n).code || !n) return NULL;
    const int primaries = (int)n->color_primaries, transfer = (int)n->transfer_characteristics;
    heif_nclx_color_profile_free(n);
    const int usual = (primaries == 1 || primaries == 2) &&
                      (transfer == 1 || transfer == 2 || transfer == 6 || transfer == 13);
    return usual ? NULL : "its colours are not those of sRGB, by nclx";
}

/* The resolution stands in EXIF, after four bytes that say where EXIF begins. */
static void heif_exif(pith_image_header *header, heif_state *s) {
    heif_item_id id;
    pith_image_header read = { .orientation = 0 };
    if (heif_image_handle_get_list_of_metadata_block_IDs(s->handle, "Exif", &id, 1) != 1) return;
    const size_t size = heif_image_handle_get_metadata_size(s->handle, id);
    if (size < 4 || size > s->call->size || !(s->exif = malloc(size))) return;
    if (heif_image_handle_get_metadata(s->handle, id, s->exif).code) return;
    const size_t skip =
        (size_t)s->exif[0] << 24 | (size_t)s->exif[1] << 16 | (size_t)s->exif[2] << 8 | s->exif[3];
    if (skip > size - 4) return;
    pith__exif_read(&read, s->exif + 4 + skip, size - 4 - skip);
    memcpy(header->dots, read.dots, sizeof header->dots);
}

/* An ICC profile wins over the coded colours (nclx). A damaged one is told, and the picture is read
 * without it. */
static void heif_details(pith_image_header *header, heif_state *s) {
    const enum heif_color_profile_type kind = heif_image_handle_get_color_profile_type(s->handle);
    heif_exif(header, s);
    if (kind != heif_color_profile_type_rICC && kind != heif_color_profile_type_prof) {
        header->colours = heif_nclx(s->handle);
        return;
    }
    const size_t size = heif_image_handle_get_raw_color_profile_size(s->handle);
    s->profile = size && size <= s->call->size ? malloc(size) : NULL;
    if (!s->profile || heif_image_handle_get_raw_color_profile(s->handle, s->profile).code) {
        header->colours = "its colour profile is damaged";
        return;
    }
    header->profile = s->profile;
    header->profile_size = size;
}

/* Colours that were multiplied with alpha, divided by it. */
static void heif_divide(uint8_t *pixels, size_t count) {
    for (size_t i = 0; i < count; i++, pixels += 4)
        for (int c = 0; c < 3; c++) {
            const unsigned colour = pixels[3] ? (pixels[c] * 255u + pixels[3] / 2u) / pixels[3] : 0;
            pixels[c] = (uint8_t)(colour > 255 ? 255 : colour);
        }
}

/* Copies rows, since libheif pads them, and checks the size once more: the decoder may give another
 * one than the file states. */
static pith_image_outcome heif_copy(heif_state *s, uint8_t *to, const pith_image_header *h) {
    int stride = 0;
    const uint8_t *from =
        heif_image_get_plane_readonly(s->image, heif_channel_interleaved, &stride);
    const size_t row = (size_t)h->width * h->channels;
    if (!from || stride < 0 || (size_t)stride < row ||
        heif_image_get_width(s->image, heif_channel_interleaved) != (int)h->width ||
        heif_image_get_height(s->image, heif_channel_interleaved) != (int)h->height)
        return pith__codec_fail(s->call, PITH_IMAGE_DAMAGED, "it has another size than it says");
    const int divide = h->channels == 4 && heif_image_handle_is_premultiplied_alpha(s->handle);
    for (uint32_t y = 0; y < h->height; y++) {
        if (pith__decode_stops_at(s->call, y, h->width)) return PITH_IMAGE_STOPPED;
        memcpy(to + y * row, from + y * (size_t)stride, row);
        if (divide) heif_divide(to + y * row, h->width);
    }
    return PITH_IMAGE_DECODED;
}

static pith_image_outcome heif_run(heif_state *s) {
    struct heif_error error;
    /* No edge is longer than the picture may have pixels. */
    heif_context_set_maximum_image_size_limit(
        s->context, s->call->max_pixels < 65535 ? (int)s->call->max_pixels : 65535);
    heif_context_set_max_decoding_threads(s->context, 0);
    error =
        heif_context_read_from_memory_without_copy(s->context, s->call->data, s->call->size, NULL);
    if (!error.code) error = heif_context_get_primary_image_handle(s->context, &s->handle);
    if (error.code) return heif_fail(s, error);
    const int width = heif_image_handle_get_width(s->handle),
              height = heif_image_handle_get_height(s->handle);
    const uint32_t channels = heif_image_handle_has_alpha_channel(s->handle) ? 4 : 3;
    pith_image_header header = { .width = width > 0 ? (uint32_t)width : 0,
                                 .height = height > 0 ? (uint32_t)height : 0,
                                 .channels = channels,
                                 .meaning = channels };
    heif_details(&header, s);
    uint8_t *to = s->call->begin(s->call, &header);
    if (!to) return PITH_IMAGE_REFUSED;
    pith_image_outcome outcome = pith__heif_check(s->call);
    if (outcome) return outcome;
    if (pith__decode_stops(s->call)) return PITH_IMAGE_STOPPED;
    if (!(s->options = heif_decoding_options_alloc())) return PITH_IMAGE_NO_MEMORY;
    s->options->convert_hdr_to_8bit = 1;
    s->options->strict_decoding = 1;
    error = heif_decode_image(
        s->handle, &s->image, heif_colorspace_RGB,
        channels == 4 ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB, s->options);
    return error.code ? heif_fail(s, error) : heif_copy(s, to, &header);
}

static pith_image_outcome heif_decode(pith_image_call *call) {
    heif_state s = { .call = call, .context = heif_context_alloc() };
    pith_image_outcome outcome = s.context ? heif_run(&s) : PITH_IMAGE_NO_MEMORY;
    if (s.image) heif_image_release(s.image);
    if (s.options) heif_decoding_options_free(s.options);
    if (s.handle) heif_image_handle_release(s.handle);
    if (s.context) heif_context_free(s.context);
    free(s.profile);
    free(s.exif);
    return outcome;
}

static const pith_image_codec codecs[] = { { "HEIC", heif_decode, NULL, 0 },
                                           { "AVIF", heif_decode, NULL, 0 } };

__attribute__((visibility("default")))
const pith_image_module pith_image_codecs = { PITH_IMAGE_MODULE_ABI, PITH_IMAGE_VERSION, codecs,
                                              sizeof codecs / sizeof codecs[0] };
