/* picture_memory.h - memory of pictures for hosts that bring no allocator. Pictures follow each other, mostly of one
 * size, and the pages of a new mapping cost a fifth of the time that decoding takes. So what is freed is kept for the
 * next picture. */
#ifndef PITH_IMAGE_PICTURE_MEMORY_H
#define PITH_IMAGE_PICTURE_MEMORY_H

#include "base/memory.h"

/* The most bytes that are kept, in so many blocks. A block is used again for pictures of at least half its size. */
enum { PITH_PICTURE_MEMORY_BLOCKS = 4 };
#define PITH_PICTURE_MEMORY_BYTES ((size_t)64 << 20)

/* The library's own allocator, with this. Thread-safe. */
extern const pith_allocator pith_picture_memory;

/* The bytes that are kept at the moment. */
size_t pith_picture_memory_kept(void);

#endif
