/* png_write.c - PNG by libpng: 8 bits, grey, RGB or RGBA. Errors come by longjmp, as in png.c. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "codec.h"

typedef struct png_writer {
    png_structp png;
    png_infop info;
    pith_image_encode_call *call;
    pith_image_outcome outcome;
    jmp_buf leave;
} png_writer;

static void png_write_error(png_structp png, png_const_charp text) {
    png_writer *s = png_get_error_ptr(png);
    if (!s->outcome) {
        s->outcome = PITH_IMAGE_UNKNOWN;
        snprintf(s->call->message, sizeof s->call->message, "%s", text);
    }
    longjmp(s->leave, 1);
}

static void png_write_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }

static void png_write_bytes(png_structp png, png_bytep data, size_t size) {
    png_writer *s = png_get_io_ptr(png);
    if (!s->call->write(s->call, data, size)) return;
    s->outcome = PITH_IMAGE_REFUSED;
    png_error(png, "the bytes were refused");
}

static void png_write_nothing(png_structp png) { (void)png; }

static void png_write_run(png_writer *s) {
    const pith_image_encode_call *call = s->call;
    int type = PNG_COLOR_TYPE_RGBA;
    if (call->channels == 1)
        type = PNG_COLOR_TYPE_GRAY;
    else if (call->channels == 3)
        type = PNG_COLOR_TYPE_RGB;
    png_set_user_limits(s->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_write_fn(s->png, s, png_write_bytes, png_write_nothing);
    png_set_IHDR(s->png, s->info, call->width, call->height, 8, type, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (call->dots[0] > 0 && call->dots[1] > 0)
        png_set_pHYs(s->png, s->info, (png_uint_32)(call->dots[0] / 0.0254 + 0.5),
                     (png_uint_32)(call->dots[1] / 0.0254 + 0.5), PNG_RESOLUTION_METER);
    if (call->profile) {
        png_set_benign_errors(s->png, 1); /* what libpng finds fault with is a warning and not
                                             written */
        png_set_iCCP(s->png, s->info, "ICC profile", PNG_COMPRESSION_TYPE_BASE, call->profile,
                     (png_uint_32)call->profile_size);
        if (!png_get_valid(s->png, s->info, PNG_INFO_iCCP))
            png_error(s->png, "its colour profile is damaged");
    }
    png_write_info(s->png, s->info);
    for (uint32_t y = 0; y < call->height; y++) {
        if (pith__encode_stops_at(s->call, y)) {
            s->outcome = PITH_IMAGE_STOPPED;
            return;
        }
        png_write_row(s->png, call->pixels + (size_t)y * call->width * call->channels);
    }
    png_write_end(s->png, NULL);
}

pith_image_outcome pith__png_encode(pith_image_encode_call *call) {
    png_writer *s = calloc(1, sizeof *s);
    if (!s) return PITH_IMAGE_NO_MEMORY;
    s->call = call;
    if (!setjmp(s->leave)) {
        s->png =
            png_create_write_struct(PNG_LIBPNG_VER_STRING, s, png_write_error, png_write_warning);
        s->info = s->png ? png_create_info_struct(s->png) : NULL;
        if (s->info)
            png_write_run(s);
        else
            s->outcome = PITH_IMAGE_NO_MEMORY;
    }
    png_destroy_write_struct(&s->png, &s->info);
    pith_image_outcome outcome = s->outcome;
    free(s);
    return outcome;
}
