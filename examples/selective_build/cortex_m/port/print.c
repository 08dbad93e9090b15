/* print.c - snprintf for the library's messages, and print for the program: strings, characters and
 * integers. newlib's own would bring malloc. */
#include "port.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct sink {
    char *text; /* NULL: to the line */
    size_t size, count;
} sink;

static void sink_put(sink *s, char c) {
    if (!s->text && s->size == SIZE_MAX)
        port_put(c);
    else if (s->count + 1 < s->size)
        s->text[s->count] = c;
    s->count++;
}

static void sink_pad(sink *s, int count, char c) {
    while (count-- > 0) sink_put(s, c);
}

static void put_number(sink *s, uint64_t n, bool negative, unsigned base, int width, bool zeros) {
    char digits[24];
    int count = 0;
    do digits[count++] = "0123456789abcdef"[n % base];
    while (n /= base);
    if (negative && zeros) sink_put(s, '-');
    sink_pad(s, width - count - negative, zeros ? '0' : ' ');
    if (negative && !zeros) sink_put(s, '-');
    while (count) sink_put(s, digits[--count]);
}

static void put_text(sink *s, const char *text, int width, int most) {
    int size = 0;
    while ((most < 0 || size < most) && text[size]) size++;
    for (int i = 0; i < size; i++) sink_put(s, text[i]);
    sink_pad(s, width - size, ' ');
}

static void put_all(sink *s, const char *f, va_list args) {
    for (; *f; f++) {
        if (*f != '%') {
            sink_put(s, *f);
            continue;
        }
        bool zeros = false;
        int width = 0, most = -1, wide = 0;
        for (f++; *f == '0' || *f == '-' || *f == '+'; f++) zeros |= *f == '0';
        for (; *f >= '0' && *f <= '9'; f++) width = width * 10 + (*f - '0');
        if (*f == '.') {
            most = 0;
            if (*++f == '*') most = va_arg(args, int), f++;
            for (; *f >= '0' && *f <= '9'; f++) most = most * 10 + (*f - '0');
        }
        for (; *f == 'l' || *f == 'z' || *f == 'h'; f++) wide += *f == 'l';
        uint64_t n;
        switch (*f) {
        case 's': put_text(s, va_arg(args, const char *), width, most); break;
        case 'c': sink_put(s, (char)va_arg(args, int)); break;
        case 'd':
        case 'i':
            n = wide > 1 ? va_arg(args, uint64_t) : (uint64_t)(int64_t)va_arg(args, int);
            put_number(s, (int64_t)n < 0 ? -n : n, (int64_t)n < 0, 10, width, zeros);
            break;
        case 'u':
        case 'x':
            n = wide > 1 ? va_arg(args, uint64_t) : va_arg(args, unsigned);
            put_number(s, n, false, *f == 'x' ? 16 : 10, width, zeros);
            break;
        case 'g':
        case 'f':
        case 'e': va_arg(args, double), put_text(s, "<number>", 0, -1); break;
        default: sink_put(s, *f);
        }
    }
}

int vsnprintf(char *restrict text, size_t size, const char *restrict format, va_list args) {
    sink s = { text, size, 0 };
    put_all(&s, format, args);
    if (size) text[s.count < size ? s.count : size - 1] = 0;
    return (int)s.count;
}

int snprintf(char *restrict text, size_t size, const char *restrict format, ...) {
    va_list args;
    va_start(args, format);
    int count = vsnprintf(text, size, format, args);
    va_end(args);
    return count;
}

void print(const char *format, ...) {
    sink s = { NULL, SIZE_MAX, 0 };
    va_list args;
    va_start(args, format);
    put_all(&s, format, args);
    va_end(args);
}
