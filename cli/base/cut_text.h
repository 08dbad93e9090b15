/* cut_text.h - texts in messages that are too long: cut between characters, and marked. */
#ifndef PITH_CLI_BASE_CUT_TEXT_H
#define PITH_CLI_BASE_CUT_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

/* snprintf and vsnprintf that cut between two characters of UTF-8 and put "…" at the end of what is
 * cut. */
void cut_print(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void cut_list(char *text, size_t size, const char *format, va_list list)
    __attribute__((format(printf, 3, 0)));
/* Takes whole characters off the text, which fills size, until the mark fits behind it. */
void cut_mark(char *text, size_t size);

/* The first bytes of a text, whole characters, and "…" if that is not all: printf(CUT_FORMAT,
 * CUT(text, 60)). */
#define CUT_FORMAT "%.*s%s"
#define CUT(text, most)                                                                            \
    cut_size(text, most), text, cut_size(text, most) < (int)strlen(text) ? "…" : ""
int cut_size(const char *text, size_t most);

#endif
