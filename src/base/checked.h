/* checked.h - size arithmetic that says when it overflows: true means overflow, as the compiler
 * builtins do; and whole cache lines. */
#ifndef PITH_BASE_CHECKED_H
#define PITH_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define pith__add_overflows(a, b, result) __builtin_add_overflow(a, b, result)
#define pith__mul_overflows(a, b, result) __builtin_mul_overflow(a, b, result)

/* Rounds n bytes up to a multiple of 64, so that parts of one block begin on cache lines. */
static inline size_t pith__round64(size_t n) { return (n + 63) & ~(size_t)63; }

#endif
