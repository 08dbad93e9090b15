/* text_out.c - see text_out.h. */
#include "base/text_out.h"

#include <stdio.h>
#include <string.h>

#define CUT "…"

pith__text_out pith__text_begin(char *buffer, size_t size) {
    buffer[0] = 0;
    return (pith__text_out){ .buffer = buffer, .size = size };
}

int pith__text_most(const char *data, size_t size, size_t most) {
    if (size <= most) return (int)size;
    while (most && ((unsigned char)data[most] & 0xC0) == 0x80) most--;
    return (int)most;
}

/* The buffer is filled to its end: its last characters make room for the mark, if there is room at
 * all. */
static void text_cut(pith__text_out *out) {
    size_t end = out->size >= sizeof CUT ? out->size - sizeof CUT : 0;
    while (end > 0 && ((unsigned char)out->buffer[end] & 0xC0) == 0x80) end--;
    out->used = end;
    if (out->size >= sizeof CUT) {
        memcpy(out->buffer + end, CUT, sizeof CUT);
        out->used += sizeof CUT - 1;
    }
    out->buffer[out->used] = 0;
    out->full = true;
}

static void text_put(pith__text_out *out, const char *format, va_list args) {
    size_t room = out->size - out->used;
    int n = vsnprintf(out->buffer + out->used, room, format, args);
    if (n < 0)
        out->buffer[out->used] = 0;
    else if ((size_t)n < room)
        out->used += (size_t)n;
    else
        text_cut(out);
}

void pith__text_put(pith__text_out *out, const char *format, ...) {
    if (out->full) return;
    va_list args;
    va_start(args, format);
    text_put(out, format, args);
    va_end(args);
}

size_t pith__text_format(char *buffer, size_t size, const char *format, va_list args) {
    pith__text_out out = pith__text_begin(buffer, size);
    text_put(&out, format, args);
    return out.used;
}
