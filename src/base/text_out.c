/* text_out.c - see text_out.h. */
#include "base/text_out.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CUT "…"

pith_text_out pith_text_begin(char *buffer, size_t size) {
    buffer[0] = 0;
    return (pith_text_out){ .buffer = buffer, .size = size };
}

/* The buffer is filled to its end: its last characters make room for the mark, if there is room at all. */
static void text_cut(pith_text_out *out) {
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

void pith_text_put(pith_text_out *out, const char *format, ...) {
    if (out->full) return;
    size_t room = out->size - out->used;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out->buffer + out->used, room, format, args);
    va_end(args);
    if (n < 0)
        out->buffer[out->used] = 0;
    else if ((size_t)n < room)
        out->used += (size_t)n;
    else
        text_cut(out);
}
