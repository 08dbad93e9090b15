/* safe_text.c - see safe_text.h. */
#include "cli/base/safe_text.h"

#include "cli/base/cut_text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <utf8proc.h>

#include <pith/pith.h>

void cleaned_print(char *message, size_t size, const char *format, ...) {
    char text[PITH_ERROR_MESSAGE_SIZE];
    va_list list;
    va_start(list, format);
    cut_list(text, sizeof text, format, list);
    va_end(list);
    size_t used = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p; message[used] = 0) {
        utf8proc_int32_t c;
        utf8proc_ssize_t n = utf8proc_iterate(p, -1, &c);
        bool shown = n > 0 && c >= 0x20 && (c < 0x7F || c >= 0xA0);
        size_t length = shown ? (size_t)n : 1, step = shown ? length : 4; /* \xNN byte by byte */
        if (used + step >= size) {
            cut_mark(message, used + 1);
            return;
        }
        if (shown)
            memcpy(message + used, p, length);
        else
            snprintf(message + used, size - used, "\\x%02x", *p);
        used += step;
        p += length;
    }
    message[used] = 0;
}
