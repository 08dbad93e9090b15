/* cut_text.c - see cut_text.h. */
#include "cli/base/cut_text.h"

#include <stdio.h>

int cut_size(const char *text, size_t most) {
    size_t size = strlen(text);
    if (size <= most) return (int)size;
    while (most && ((unsigned char)text[most] & 0xC0) == 0x80) most--;
    return (int)most;
}

void cut_mark(char *text, size_t size) {
    static const char mark[] = "…";
    if (size < sizeof mark) return;
    text[size - 1] = 0;
    memcpy(text + cut_size(text, size - sizeof mark), mark, sizeof mark);
}

void cut_list(char *text, size_t size, const char *format, va_list list) {
    if (vsnprintf(text, size, format, list) >= (int)size) cut_mark(text, size);
}

void cut_print(char *text, size_t size, const char *format, ...) {
    va_list list;
    va_start(list, format);
    cut_list(text, size, format, list);
    va_end(list);
}
