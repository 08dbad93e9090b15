/* mix.h - numbers whose bits have nothing in common with those they are made from. */
#ifndef PITH_BASE_MIX_H
#define PITH_BASE_MIX_H

#include <stdint.h>

/* The finaliser of SplitMix64 (Steele, Lea and Flood, 2014). Different numbers give different ones.
 */
static inline uint64_t pith__mix64(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

#endif
