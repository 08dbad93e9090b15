/* str.h - spans of bytes; and the printf form of one: printf(PITH_STR_FMT, PITH_STR_ARG(s)). */
#ifndef PITH_BASE_STR_H
#define PITH_BASE_STR_H

#include <stdbool.h>
#include <limits.h>
#include <string.h>

#include "pith/types.h"

#define PITH_STR_FMT "%.*s"
/* For messages: at most 200 bytes are shown, whole characters of UTF-8. */
#define PITH_STR_ARG(s) pith__str_shown(s), (s).data ? (s).data : ""
/* For names that are kept: all of it, up to 2 GiB. */
#define PITH_STR_ALL(s) (int)((s).size < INT_MAX ? (s).size : INT_MAX), (s).data ? (s).data : ""
#define PITH_STR(literal) ((pith_str){ (literal), sizeof(literal) - 1 })

static inline int pith__str_shown(pith_str s) {
    size_t n = s.size < 200 ? s.size : 200;
    while (s.size > n && n > 196 && ((unsigned char)s.data[n] & 0xC0) == 0x80) n--;
    return (int)n;
}

static inline pith_str pith__str_of(const char *zero_terminated) {
    return (pith_str){ zero_terminated, strlen(zero_terminated) };
}
static inline bool pith__str_eq(pith_str a, pith_str b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
static inline bool pith__str_is(pith_str a, const char *zero_terminated) {
    return pith__str_eq(a, pith__str_of(zero_terminated));
}

#endif
