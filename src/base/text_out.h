/* text_out.h - text put together piece by piece in a buffer of fixed size, for messages.
 *
 *   char buffer[200];
 *   pith_text_out out = pith_text_begin(buffer, sizeof buffer);
 *   for (int i = 0; i < count; i++) pith_text_put(&out, "%s%s", i ? ", " : "", names[i]);
 *
 * The buffer always holds a string. Text that does not fit is cut between two characters and ends in "…"; nothing is
 * added behind that. */
#ifndef PITH_BASE_TEXT_OUT_H
#define PITH_BASE_TEXT_OUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct pith_text_out {
    char *buffer;
    size_t size, used; /* used: without the NUL */
    bool full;
} pith_text_out;

/* An empty text; size is at least 1. */
pith_text_out pith_text_begin(char *buffer, size_t size);
void pith_text_put(pith_text_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
