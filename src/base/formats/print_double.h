/* print_double.h - a double as decimal text, whatever locale the host has set. */
#ifndef PITH_BASE_FORMATS_PRINT_DOUBLE_H
#define PITH_BASE_FORMATS_PRINT_DOUBLE_H

#include <stddef.h>

#include "base/private_symbol.h"

/* Bytes that suffice, with the NUL. */
#define PITH_DOUBLE_CHARS 32

/* What printf writes for %.*g in the locale "C", with at most 17 digits. Returns the length. */
PITH_PRIVATE size_t pith__print_double(char text[PITH_DOUBLE_CHARS], int digits, double x);

#endif
