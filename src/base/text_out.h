/* text_out.h - text put together piece by piece in a buffer of fixed size, for messages.
 *
 *   char buffer[200];
 *   pith__text_out out = pith__text_begin(buffer, sizeof buffer);
 *   for (int i = 0; i < count; i++) pith__text_put(&out, "%s%s", i ? ", " : "", names[i]);
 *
 * The buffer always holds a string. Text that does not fit is cut between two characters and ends
 * in "…"; nothing is added behind that. */
#ifndef PITH_BASE_TEXT_OUT_H
#define PITH_BASE_TEXT_OUT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/private_symbol.h"

typedef struct pith__text_out {
    char *buffer;
    size_t size, used; /* used: without the NUL */
    bool full;
} pith__text_out;

/* An empty text; size is at least 1. */
pith__text_out pith__text_begin(char *buffer, size_t size);
void pith__text_put(pith__text_out *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* vsnprintf that cuts as above. Returns the length. */
PITH_PRIVATE size_t pith__text_format(char *buffer, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
/* snprintf that does. */
void pith__text_print(char *buffer, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Marks a buffer that is filled to its end as cut: its last characters make room for the mark, if
 * there is room at all. Returns the length. */
size_t pith__text_cut(char *buffer, size_t size);

/* The first bytes of a span in a message, whole characters, and "…" if that is not all:
 * printf(PITH_CUT_FMT, PITH_CUT(text, 60)). */
#define PITH_CUT_FMT "%.*s%s"
#define PITH_CUT(s, most)                                                                          \
    pith__text_most((s).data, (s).size, most), (s).data ? (s).data : "",                           \
        (s).size > (most) ? "…" : ""
PITH_PRIVATE int pith__text_most(const char *data, size_t size, size_t most);

#endif
