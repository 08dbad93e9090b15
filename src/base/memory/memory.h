/* memory.h - the host's allocator and the arenas built on it.
 *
 * There are three lifetimes: model, session, call. Each owns arenas; nothing in an arena is freed
 * singly. An arena is a list of chunks that grow geometrically up to 1 MiB; larger requests get a
 * chunk of their own. Not thread-safe: one arena belongs to one thread at a time. */
#ifndef PITH_BASE_MEMORY_MEMORY_H
#define PITH_BASE_MEMORY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/private_symbol.h"
#include "pith/types.h"

/* malloc and free; large blocks are mappings, so that freeing them gives them back to the system.
 */
PITH_PRIVATE extern const pith_allocator pith__allocator_default;

/* The bytes that pith__memory_alloc requests from the allocator. */
#define PITH_MEMORY_COST(bytes, alignment) ((bytes) + (alignment) + 16)
/* Returns memory with the given power-of-two alignment (at most 4096), or NULL. Free it with
 * pith__memory_free. */
PITH_PRIVATE void *pith__memory_alloc(const pith_allocator *allocator, size_t bytes,
                                      size_t alignment);
PITH_PRIVATE void pith__memory_free(const pith_allocator *allocator, void *memory);
/* Returns what the allocator gave for memory of pith__memory_alloc. */
void *pith__memory_base(const void *memory);

typedef struct pith__arena {
    const pith_allocator *allocator;
    struct pith__arena_chunk *chunks; /* newest first */
    size_t total;                     /* bytes taken from the allocator */
    size_t limit;                     /* 0: none; beyond it allocation fails */
} pith__arena;

typedef struct pith__arena_mark {
    struct pith__arena_chunk *chunk;
    size_t used;
} pith__arena_mark;

PITH_PRIVATE void pith__arena_init(pith__arena *arena, const pith_allocator *allocator);
PITH_PRIVATE void pith__arena_free(
    pith__arena *arena); /* gives everything back; the arena is empty and usable
                                               again */
PITH_PRIVATE void pith__arena_reset(
    pith__arena *arena); /* forgets everything but keeps the largest chunk */
PITH_PRIVATE pith__arena_mark pith__arena_get_mark(const pith__arena *arena);
/* forgets what came after the mark */
PITH_PRIVATE void pith__arena_rewind(pith__arena *arena, pith__arena_mark mark);
/* True if the chunks are linked, no more of each is in use than it has, and their sizes are the
 * total. Builds with assertions check whatever is reset, rewound or freed. */
bool pith__arena_check(const pith__arena *arena);

/* Returns uninitialised memory aligned to 16 bytes, or NULL if memory is out. Zero bytes give a
 * valid pointer. */
PITH_PRIVATE void *pith__arena_alloc(pith__arena *arena, size_t bytes);
/* The same aligned to 64 bytes, for tensors, packed weights and scratch. */
PITH_PRIVATE void *pith__arena_alloc64(pith__arena *arena, size_t bytes);
/* Returns count * size zeroed bytes, or NULL if the product overflows or memory is out. */
PITH_PRIVATE void *pith__arena_array(pith__arena *arena, size_t count, size_t size);
/* Copies the bytes and adds a NUL, so that .data is also a C string. .data is NULL if memory is
 * out. */
PITH_PRIVATE pith_str pith__arena_str(pith__arena *arena, pith_str s);
PITH_PRIVATE pith_str pith__arena_printf(pith__arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes room for count + 1 items in a growable array. The old copy stays in the arena until the
 * arena is freed. Returns false if memory is out. */
PITH_PRIVATE bool pith__arena_grow(pith__arena *arena, void **items, size_t count, size_t *capacity,
                                   size_t item_size);

#endif
