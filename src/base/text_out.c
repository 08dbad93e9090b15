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

size_t pith__text_cut(char *buffer, size_t size) {
    if (size < sizeof CUT) {
        buffer[0] = 0;
        return 0;
    }
    const size_t end = (size_t)pith__text_most(buffer, size, size - sizeof CUT);
    memcpy(buffer + end, CUT, sizeof CUT);
    return end + sizeof CUT - 1;
}

static void text_put(pith__text_out *out, const char *format, va_list args) {
    size_t room = out->size - out->used;
    int n = vsnprintf(out->buffer + out->used, room, format, args);
    if (n < 0) {
        out->buffer[out->used] = 0;
    } else if ((size_t)n < room) {
        out->used += (size_t)n;
    } else {
        out->used = pith__text_cut(out->buffer, out->size);
        out->full = true;
    }
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

void pith__text_print(char *buffer, size_t size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    pith__text_format(buffer, size, format, args);
    va_end(args);
}
