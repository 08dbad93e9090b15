/* png.c - PNG by libpng: all depths and colour types, palettes with transparency, interlaced
 * pictures; of an animated one the default picture.
 *
 * libpng reports errors by longjmp; all that is live across it is in `png_state`. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "codec.h"

typedef struct png_state {
    png_structp png;
    png_infop info;
    pith_image_call *call;
    pith_image_outcome outcome;
    size_t at;       /* bytes of call->data that were read */
    int bad_profile; /* libpng found fault with it */
    jmp_buf leave;
} png_state;

static void png_on_error(png_structp png, png_const_charp text) {
    png_state *s = png_get_error_ptr(png);
    if (!s->outcome) s->outcome = pith__codec_fail(s->call, PITH_IMAGE_DAMAGED, "%s", text);
    longjmp(s->leave, 1);
}

static void png_on_warning(png_structp png, png_const_charp text) {
    png_state *s = png_get_error_ptr(png);
    if (!strncmp(text, "iCCP", 4)) s->bad_profile = 1;
}

static void png_on_read(png_structp png, png_bytep to, size_t count) {
    png_state *s = png_get_io_ptr(png);
    if (count > s->call->size - s->at) png_error(png, "it is cut off");
    memcpy(to, s->call->data + s->at, count);
    s->at += count;
}

/* Whether gAMA and cHRM say something else than sRGB does. */
static int png_other_colours(png_state *s) {
    static const png_fixed_point usual[8] = {
        31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000
    };
    png_fixed_point gamma, n[8];
    int other = 0;
    if (png_get_gAMA_fixed(s->png, s->info, &gamma)) other = abs(gamma - 45455) > 500;
    if (png_get_cHRM_fixed(s->png, s->info, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7]))
        for (int i = 0; i < 8; i++) other |= abs(n[i] - usual[i]) > 500;
    return other;
}

/* Whether cICP says something else than sRGB does: primaries 1, transfer function 13 (ITU-T H.273).
 */
static int png_coded_colours(png_state *s) {
#ifdef PNG_cICP_SUPPORTED
    png_byte primaries, transfer, matrix, range;
    if (!png_get_cICP(s->png, s->info, &primaries, &transfer, &matrix, &range)) return 0;
    return primaries != 1 || transfer != 13;
#else
    png_unknown_chunkp chunks;
    const int count = png_get_unknown_chunks(s->png, s->info, &chunks);
    for (int i = 0; i < count; i++)
        if (!memcmp(chunks[i].name, "cICP", 4) && chunks[i].size >= 2)
            return chunks[i].data[0] != 1 || chunks[i].data[1] != 13;
    return 0;
#endif
}

/* Resolution, orientation and colours. What is said about colours is the last that applies: cICP
 * wins over a profile, and a profile over gAMA and cHRM (PNG third edition, 4.3). */
static void png_details(pith_image_header *header, png_state *s) {
    png_bytep exif, profile;
    png_charp name;
    png_uint_32 size, across, down;
    int kind;
    if (png_get_pHYs(s->png, s->info, &across, &down, &kind) && kind == PNG_RESOLUTION_METER) {
        header->dots[0] = across * 0.0254;
        header->dots[1] = down * 0.0254;
    }
    if (png_get_eXIf_1(s->png, s->info, &size, &exif)) pith__exif_read(header, exif, size);
    if (png_get_iCCP(s->png, s->info, &name, &kind, &profile, &size)) {
        header->profile = profile;
        header->profile_size = size;
    } else if (s->bad_profile) {
        header->colours = "its colour profile is damaged";
    } else if (!png_get_valid(s->png, s->info, PNG_INFO_sRGB) && png_other_colours(s)) {
        header->colours = "its colours are not those of sRGB, by gAMA or cHRM";
    }
    if (png_coded_colours(s)) header->colours = "its colours are not those of sRGB, by cICP";
}

/* Chunks with texts and palettes are passed over: 8 KB of them unpack to 8 MB, and nothing reads
 * them. Of profiles libpng reads the first, up to 8 MB. */
static void png_pass_over(png_structp png) {
    static const png_byte chunks[] = "iTXt\0sPLT\0tEXt\0zTXt";
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, chunks, sizeof chunks / 5);
}

/* To 8 bits grey, RGB or RGBA; returns the channels. */
static uint32_t png_transform(png_state *s) {
    int type = png_get_color_type(s->png, s->info);
    int transparent =
        png_get_valid(s->png, s->info, PNG_INFO_tRNS) != 0 || (type & PNG_COLOR_MASK_ALPHA);
    png_set_strip_16(s->png);
    png_set_expand(s->png);
    if (transparent && !(type & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(s->png);
    if (transparent) return 4;
    if (type & PNG_COLOR_MASK_COLOR) return 3;
    return 1;
}

static void png_run(png_state *s) {
    png_set_read_fn(s->png, s, png_on_read);
    png_set_user_limits(s->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_pass_over(s->png);
#ifndef PNG_cICP_SUPPORTED
    png_set_keep_unknown_chunks(s->png, PNG_HANDLE_CHUNK_ALWAYS, (png_const_bytep) "cICP", 1);
#endif
    png_read_info(s->png, s->info);
    uint32_t channels = png_transform(s);
    pith_image_header header = { .width = png_get_image_width(s->png, s->info),
                                 .height = png_get_image_height(s->png, s->info),
                                 .channels = channels,
                                 .meaning = channels };
    png_details(&header, s);
    uint8_t *to = s->call->begin(s->call, &header);
    if (!to) {
        s->outcome = PITH_IMAGE_REFUSED;
        return;
    }
    int passes = png_set_interlace_handling(s->png);
    png_read_update_info(s->png, s->info);
    size_t row = (size_t)header.width * channels;
    if (png_get_rowbytes(s->png, s->info) != row)
        png_error(s->png, "rows have another length than expected");
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < header.height; y++) {
            if (pith__decode_stops_at(s->call, y, header.width)) {
                s->outcome = PITH_IMAGE_STOPPED;
                return;
            }
            png_read_row(s->png, to + y * row, NULL);
        }
}

pith_image_outcome pith__png_decode(pith_image_call *call) {
    png_state *s = calloc(1, sizeof *s);
    if (!s) return PITH_IMAGE_NO_MEMORY;
    s->call = call;
    if (!setjmp(s->leave)) {
        s->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, s, png_on_error, png_on_warning);
        s->info = s->png ? png_create_info_struct(s->png) : NULL;
        if (s->info)
            png_run(s);
        else
            s->outcome = PITH_IMAGE_NO_MEMORY;
    }
    png_destroy_read_struct(&s->png, &s->info, NULL);
    pith_image_outcome outcome = s->outcome;
    free(s);
    return outcome;
}
