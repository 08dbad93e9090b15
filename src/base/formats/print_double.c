/* print_double.c - see print_double.h. The C library prints in the host's locale, and the point of
 * that is replaced. An object for the locale "C" would be larger. */
#include "base/formats/print_double.h"

#include <stdio.h>
#include <string.h>

size_t pith__print_double(char text[PITH_DOUBLE_CHARS], int digits, double x) {
    const size_t size = (size_t)snprintf(text, PITH_DOUBLE_CHARS, "%.*g", digits, x);
    char *point = text + strspn(text, "+-0123456789aefin"); /* "e", "inf" and "nan" have letters */
    if (!*point) return size;
    const size_t bytes = strcspn(point, "0123456789");
    *point = '.';
    memmove(point + 1, point + bytes, strlen(point + bytes) + 1);
    return size + 1 - bytes;
}
