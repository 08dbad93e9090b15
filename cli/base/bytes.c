/* bytes.c - see bytes.h. */
#include "cli/base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bytes_reserve(bytes *b, size_t more) {
    if (b->capacity - b->size >= more) return;
    size_t capacity = b->capacity ? b->capacity : 4096;
    while (capacity - b->size < more) capacity *= 2;
    b->data = grow(b->data, capacity);
    b->capacity = capacity;
}

void bytes_add(bytes *b, const void *data, size_t size) {
    bytes_reserve(b, size);
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
}

static int32_t bytes_take(void *user, const void *data, size_t size) {
    bytes_add(user, data, size);
    return 0;
}

pith_writer bytes_writer(bytes *b) { return (pith_writer){ .write = bytes_take, .user = b }; }

pith_str bytes_text(const bytes *b, size_t begin, size_t end) {
    return (pith_str){ b->data ? b->data + begin : "", end - begin };
}

void bytes_print(bytes *b, const char *format, ...) {
    va_list list;
    va_start(list, format);
    bytes_reserve(b, 512);
    int n = vsnprintf(b->data + b->size, b->capacity - b->size, format, list);
    va_end(list);
    if (n > 0) b->size += (size_t)n < b->capacity - b->size ? (size_t)n : b->capacity - b->size - 1;
}

/* Bytes of the invalid sequence at s: the longest prefix of a valid one, or 1 (Unicode, section
 * 3.9, U+FFFD). */
static size_t invalid_length(const unsigned char *s, size_t size) {
    size_t wanted = 1;
    if (s[0] >= 0xF0 && s[0] <= 0xF4)
        wanted = 4;
    else if (s[0] >= 0xE0 && s[0] < 0xF0)
        wanted = 3;
    else if (s[0] >= 0xC2 && s[0] < 0xE0)
        wanted = 2;
    unsigned low = 0x80, high = 0xBF;
    if (s[0] == 0xE0) low = 0xA0;
    if (s[0] == 0xF0) low = 0x90;
    if (s[0] == 0xED) high = 0x9F;
    if (s[0] == 0xF4) high = 0x8F;
    size_t n = 1;
    while (n < wanted && n < size && s[n] >= low && s[n] <= high) {
        n++;
        low = 0x80;
        high = 0xBF;
    }
    return n;
}

void bytes_replace_invalid(bytes *b, size_t from) {
    bytes good = { NULL, 0, 0 };
    const char *p = bytes_text(b, from, from).data;
    size_t left = b->size - from;
    while (left) {
        size_t n = pith_text_valid((pith_str){ p, left });
        bytes_add(&good, p, n);
        p += n;
        left -= n;
        if (!left) break;
        n = invalid_length((const unsigned char *)p, left);
        bytes_add(&good, "\xEF\xBF\xBD", 3);
        p += n;
        left -= n;
    }
    b->size = from;
    bytes_add(b, good.data, good.size);
    free(good.data);
}
