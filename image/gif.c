/* gif.c - GIF by giflib: the first picture, on its canvas.
 *
 * As in Pillow, what the picture leaves of the canvas has the transparent colour, or colour 0 if
 * there is none; colours that the palette lacks are black; a file without a palette is grey. */
#include <stdlib.h>
#include <string.h>

#include <gif_lib.h>

#include "codec.h"

enum { GIF_COLOURS = 256, GIF_GRAPHICS = 0xF9 };

typedef struct gif_state {
    pith_image_call *call;
    size_t at;
    GifFileType *gif;
    int transparent; /* index of the colour; -1: none */
    uint8_t *row;    /* of the picture */
    uint8_t colours[GIF_COLOURS][4];
} gif_state;

static int gif_read(GifFileType *gif, GifByteType *to, int count) {
    gif_state *s = gif->UserData;
    const size_t left = s->call->size - s->at, wanted = count < 0 ? 0 : (size_t)count;
    const size_t size = wanted < left ? wanted : left;
    memcpy(to, s->call->data + s->at, size);
    s->at += size;
    return (int)size;
}

static pith_image_outcome gif_fail(gif_state *s) {
    const int error = s->gif->Error;
    if (error == D_GIF_ERR_NOT_ENOUGH_MEM) return PITH_IMAGE_NO_MEMORY;
    if (error == D_GIF_ERR_EOF_TOO_SOON || s->at == s->call->size)
        return pith__codec_fail(s->call, PITH_IMAGE_DAMAGED, "it is cut off");
    const char *text = GifErrorString(error);
    return pith__codec_fail(s->call, PITH_IMAGE_DAMAGED, "%s",
                            text ? text : "its bytes are no picture");
}

static int gif_extension(gif_state *s) {
    int code;
    GifByteType *block;
    GraphicsControlBlock graphics;
    if (DGifGetExtension(s->gif, &code, &block) == GIF_ERROR) return 0;
    if (code == GIF_GRAPHICS && block &&
        DGifExtensionToGCB(block[0], block + 1, &graphics) == GIF_OK)
        s->transparent = graphics.TransparentColor;
    while (block)
        if (DGifGetExtensionNext(s->gif, &block) == GIF_ERROR) return 0;
    return 1;
}

/* Reads up to the description of the first picture. */
static pith_image_outcome gif_find(gif_state *s) {
    for (;;) {
        GifRecordType kind;
        if (DGifGetRecordType(s->gif, &kind) == GIF_ERROR) return gif_fail(s);
        if (kind == TERMINATE_RECORD_TYPE)
            return pith__codec_fail(s->call, PITH_IMAGE_DAMAGED, "there is no picture in it");
        if (kind == IMAGE_DESC_RECORD_TYPE)
            return DGifGetImageDesc(s->gif) == GIF_ERROR ? gif_fail(s) : PITH_IMAGE_DECODED;
        if (kind == EXTENSION_RECORD_TYPE && !gif_extension(s)) return gif_fail(s);
    }
}

static void gif_palette(gif_state *s) {
    const ColorMapObject *map = s->gif->Image.ColorMap ? s->gif->Image.ColorMap : s->gif->SColorMap;
    for (int i = 0; i < GIF_COLOURS; i++) {
        uint8_t *to = s->colours[i];
        to[0] = to[1] = to[2] = map ? 0 : (uint8_t)i;
        to[3] = i == s->transparent ? 0 : 255;
        if (!map || i >= map->ColorCount) continue;
        to[0] = map->Colors[i].Red;
        to[1] = map->Colors[i].Green;
        to[2] = map->Colors[i].Blue;
    }
}

/* Rows come in order, or every eighth, the fourth ones between, and so on. */
static pith_image_outcome gif_rows(gif_state *s, uint8_t *to, const pith_image_header *h) {
    static const int first[] = { 0, 4, 2, 1 }, step[] = { 8, 8, 4, 2 };
    const GifImageDesc *d = &s->gif->Image;
    const size_t pixel = h->channels;
    uint32_t row = 0;
    for (int pass = 0; pass < (d->Interlace ? 4 : 1); pass++)
        for (int y = d->Interlace ? first[pass] : 0; y < d->Height;
             y += d->Interlace ? step[pass] : 1) {
            if (pith__decode_stops_at(s->call, row++, h->width)) return PITH_IMAGE_STOPPED;
            if (DGifGetLine(s->gif, s->row, d->Width) == GIF_ERROR) return gif_fail(s);
            uint8_t *at = to + ((size_t)(d->Top + y) * h->width + (size_t)d->Left) * pixel;
            for (int x = 0; x < d->Width; x++)
                memcpy(at + (size_t)x * pixel, s->colours[s->row[x]], pixel);
        }
    return PITH_IMAGE_DECODED;
}

/* The picture may lie beyond the canvas that the file states; then the canvas grows, as in Pillow.
 * What the picture leaves of it is filled first. */
static pith_image_outcome gif_run(gif_state *s) {
    pith_image_outcome outcome = gif_find(s);
    if (outcome) return outcome;
    const GifImageDesc *d = &s->gif->Image;
    const int right = d->Left + d->Width, bottom = d->Top + d->Height;
    pith_image_header header = {
        .width = (uint32_t)(right > s->gif->SWidth ? right : s->gif->SWidth),
        .height = (uint32_t)(bottom > s->gif->SHeight ? bottom : s->gif->SHeight),
        .channels = s->transparent < 0 ? 3 : 4
    };
    if (d->Width < 1 || d->Height < 1)
        return pith__codec_fail(s->call, PITH_IMAGE_DAMAGED, "its picture has no pixels");
    header.meaning =
        s->gif->Image.ColorMap || s->gif->SColorMap || header.channels == 4 ? header.channels : 1;
    uint8_t *to = s->call->begin(s->call, &header);
    if (!to) return PITH_IMAGE_REFUSED;
    if (!(s->row = malloc((size_t)d->Width))) return PITH_IMAGE_NO_MEMORY;
    gif_palette(s);
    const uint8_t *rest = s->colours[s->transparent < 0 ? 0 : s->transparent];
    uint8_t *at = to;
    for (uint32_t y = 0; y < header.height; y++) {
        if (pith__decode_stops_at(s->call, y, header.width)) return PITH_IMAGE_STOPPED;
        for (uint32_t x = 0; x < header.width; x++, at += header.channels)
            memcpy(at, rest, header.channels);
    }
    return gif_rows(s, to, &header);
}

pith_image_outcome pith__gif_decode(pith_image_call *call) {
    int error = 0;
    gif_state *s = calloc(1, sizeof *s);
    if (!s) return PITH_IMAGE_NO_MEMORY;
    s->call = call;
    s->transparent = -1;
    s->gif = DGifOpen(s, gif_read, &error);
    pith_image_outcome outcome = PITH_IMAGE_DAMAGED;
    if (s->gif)
        outcome = gif_run(s);
    else if (error == D_GIF_ERR_NOT_ENOUGH_MEM)
        outcome = PITH_IMAGE_NO_MEMORY;
    if (!s->gif && outcome == PITH_IMAGE_DAMAGED)
        pith__codec_fail(call, outcome, "its header is broken");
    if (s->gif) DGifCloseFile(s->gif, &error);
    free(s->row);
    free(s);
    return outcome;
}
