/* memory.h - the host's allocator and the arenas built on it.
 *
 * There are three lifetimes: model, session, call. Each owns arenas; nothing in an arena is freed singly.
 * An arena is a list of chunks that grow geometrically up to 1 MiB; larger requests get a chunk of their own.
 * Not thread-safe: one arena belongs to one thread at a time. */
#ifndef PITH_BASE_MEMORY_MEMORY_H
#define PITH_BASE_MEMORY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "pith/types.h"

/* malloc and free; large blocks are mappings, so that freeing them gives them back to the system. */
extern const pith_allocator pith_allocator_default;

/* The bytes that pith_memory_alloc requests from the allocator. */
#define PITH_MEMORY_COST(bytes, alignment) ((bytes) + (alignment) + 16)
/* Returns memory with the given power-of-two alignment (at most 4096), or NULL. Free it with pith_memory_free. */
void *pith_memory_alloc(const pith_allocator *allocator, size_t bytes, size_t alignment);
void pith_memory_free(const pith_allocator *allocator, void *memory);
/* Returns what the allocator gave for memory of pith_memory_alloc. */
void *pith_memory_base(const void *memory);

typedef struct pith_arena {
    const pith_allocator *allocator;
    struct pith_arena_chunk *chunks; /* newest first */
    size_t total;                    /* bytes taken from the allocator */
    size_t limit;                    /* 0: none; beyond it allocation fails */
} pith_arena;

typedef struct pith_arena_mark {
    struct pith_arena_chunk *chunk;
    size_t used;
} pith_arena_mark;

void pith_arena_init(pith_arena *arena, const pith_allocator *allocator);
void pith_arena_free(pith_arena *arena);  /* gives everything back; the arena is empty and usable again */
void pith_arena_reset(pith_arena *arena); /* forgets everything but keeps the largest chunk */
pith_arena_mark pith_arena_get_mark(const pith_arena *arena);
void pith_arena_rewind(pith_arena *arena, pith_arena_mark mark); /* forgets what came after the mark */

/* Returns uninitialised memory aligned to 16 bytes, or NULL if memory is out. Zero bytes give a valid pointer. */
void *pith_arena_alloc(pith_arena *arena, size_t bytes);
/* The same aligned to 64 bytes, for tensors, packed weights and scratch. */
void *pith_arena_alloc64(pith_arena *arena, size_t bytes);
/* Returns count * size zeroed bytes, or NULL if the product overflows or memory is out. */
void *pith_arena_array(pith_arena *arena, size_t count, size_t size);
/* Copies the bytes and adds a NUL, so that .data is also a C string. .data is NULL if memory is out. */
pith_str pith_arena_str(pith_arena *arena, pith_str s);
pith_str pith_arena_printf(pith_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes room for count + 1 items in a growable array. The old copy stays in the arena until the arena is freed. Returns
 * false if memory is out. */
bool pith_arena_grow(pith_arena *arena, void **items, size_t count, size_t *capacity, size_t item_size);

#endif
