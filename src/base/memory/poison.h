/* poison.h - for a build that finds those who read memory whose contents are not there yet or are
 * over. */
#ifndef PITH_BASE_MEMORY_POISON_H
#define PITH_BASE_MEMORY_POISON_H

#include <stddef.h>
#include <string.h>

/* With PITH_POISON such memory is overwritten: floats become NaN and integers negative. */
#ifdef PITH_POISON
enum { PITH_POISONS = 1 };
#else
enum { PITH_POISONS = 0 };
#endif

static inline void pith__poison(void *memory, size_t size) {
    if (PITH_POISONS && size) memset(memory, 0xFF, size);
}

#endif
