/* murmur.h - MurmurHash3, x86, 32 bits. Source: Austin Appleby, smhasher, MurmurHash3.cpp (public domain). */
#ifndef PITH_LEXICAL_MURMUR_H
#define PITH_LEXICAL_MURMUR_H

#include <stddef.h>
#include <stdint.h>

uint32_t pith_murmur3_32(const void *data, size_t size, uint32_t seed);

#endif
