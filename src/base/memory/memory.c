/* memory.c - aligned memory from the host's allocator, and arenas.
 *
 * The chunks of an arena form a list, newest first. Small requests are cut from the head. A request
 * that is too large for the rest of the head gets a chunk of its own *after* the head, so that the
 * free space of the head stays in use. Such a chunk records where the head stood (`at`), after the
 * head was moved on by 16 bytes. A mark taken before it is below `at`, and one taken after it is
 * not; so a rewind knows which of these chunks to free. */
#include "base/memory/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory/poison.h"

/* An arena's chunks grow from CHUNK_MIN to CHUNK_MAX. Smaller chunks mean more calls of the
 * allocator; larger ones waste memory in small models, whose last chunk stays half empty. STEP is
 * the least alignment, and how far the head moves past a large chunk (see above). */
#define CHUNK_MIN ((size_t)4 << 10)
#define CHUNK_MAX ((size_t)1 << 20)
#define STEP 16

struct pith__arena_chunk {
    struct pith__arena_chunk *next;
    size_t size, used; /* of data */
    size_t at;         /* chunk of its own: `used` of its head when it was made; else 0 */
    _Alignas(64) unsigned char data[];
};

void *pith__memory_alloc(const pith_allocator *allocator, size_t bytes, size_t alignment) {
    assert(alignment && (alignment & (alignment - 1)) == 0 && alignment <= 4096);
    size_t total;
    if (alignment < STEP) alignment = STEP;
    if (pith__add_overflows(bytes, alignment + STEP, &total)) return NULL;
    char *base = allocator->alloc(allocator->user, total);
    if (!base) return NULL;
    /* The pointer to give back stands right before the memory. */
    char *memory = base + STEP;
    memory += -(uintptr_t)memory & (alignment - 1);
    memcpy(memory - sizeof base, &base, sizeof base);
    return memory;
}

void *pith__memory_base(const void *memory) {
    void *base;
    memcpy(&base, (const char *)memory - sizeof base, sizeof base);
    return base;
}

void pith__memory_free(const pith_allocator *allocator, void *memory) {
    if (memory) allocator->free(allocator->user, pith__memory_base(memory));
}

void pith__arena_init(pith__arena *arena, const pith_allocator *allocator) {
    *arena = (pith__arena){ .allocator = allocator ? allocator : &pith__allocator_default };
}

static struct pith__arena_chunk *chunk_new(pith__arena *arena, size_t size) {
    size_t bytes, total;
    if (pith__add_overflows(size, sizeof(struct pith__arena_chunk), &bytes)) return NULL;
    if (pith__add_overflows(arena->total, bytes, &total) || (arena->limit && total > arena->limit))
        return NULL;
    struct pith__arena_chunk *chunk = pith__memory_alloc(arena->allocator, bytes, 64);
    if (!chunk) return NULL;
    arena->total = total;
    *chunk = (struct pith__arena_chunk){ .size = size };
    return chunk;
}

/* Frees the chunk *link points to and closes the list. */
static void chunk_free(pith__arena *arena, struct pith__arena_chunk **link) {
    struct pith__arena_chunk *chunk = *link;
    *link = chunk->next;
    arena->total -= chunk->size + sizeof *chunk;
    pith__memory_free(arena->allocator, chunk);
}

/* The total bounds the walk, so that a list in a circle ends too. A chunk of its own lies behind
 * the head it was made for, and began where that head stood. */
bool pith__arena_check(const pith__arena *arena) {
    size_t left = arena->total;
    for (const struct pith__arena_chunk *c = arena->chunks; c; c = c->next) {
        if (left < sizeof *c || left - sizeof *c < c->size || c->used > c->size) return false;
        left -= sizeof *c + c->size;
        if (c->at % STEP) return false;
    }
    return left == 0;
}

void pith__arena_free(pith__arena *arena) {
    assert(pith__arena_check(arena));
    while (arena->chunks) chunk_free(arena, &arena->chunks);
}

void pith__arena_reset(pith__arena *arena) {
    struct pith__arena_chunk *largest = arena->chunks;
    assert(pith__arena_check(arena));
    if (!largest) return;
    for (struct pith__arena_chunk *c = largest->next; c; c = c->next)
        if (c->size > largest->size) largest = c;
    struct pith__arena_chunk **link = &arena->chunks;
    while (*link) {
        if (*link == largest)
            link = &largest->next;
        else
            chunk_free(arena, link);
    }
    pith__poison(largest->data, largest->used);
    largest->used = largest->at = 0;
}

pith__arena_mark pith__arena_get_mark(const pith__arena *arena) {
    return (pith__arena_mark){ arena->chunks, arena->chunks ? arena->chunks->used : 0 };
}

void pith__arena_rewind(pith__arena *arena, pith__arena_mark mark) {
    assert(pith__arena_check(arena));
    while (arena->chunks != mark.chunk) chunk_free(arena, &arena->chunks);
    if (!mark.chunk) return;
    while (mark.chunk->next && mark.chunk->next->at > mark.used)
        chunk_free(arena, &mark.chunk->next);
    mark.chunk->used = mark.used;
}

/* Three steps: the rest of the head; a chunk of its own behind the head, if the request is large
 * and the head has room left (see above); a new head. Chunks double with the total, so there are
 * few of them and at most half is wasted. Near the arena's limit a chunk is no larger than the
 * request. */
static void *alloc_aligned(pith__arena *arena, size_t bytes, size_t alignment) {
    struct pith__arena_chunk *head = arena->chunks;
    if (head) {
        size_t begin = (head->used + alignment - 1) & ~(alignment - 1);
        if (begin <= head->size && bytes <= head->size - begin) {
            head->used = begin + bytes;
            return head->data + begin;
        }
    }
    size_t next = arena->total;
    if (next < CHUNK_MIN) next = CHUNK_MIN;
    if (next > CHUNK_MAX) next = CHUNK_MAX;
    bool own = head && bytes > next / 4 && head->size - head->used >= 2 * STEP;
    bool tight =
        arena->limit && arena->limit - arena->total < next + sizeof(struct pith__arena_chunk);
    struct pith__arena_chunk *chunk = chunk_new(arena, own || tight || bytes > next ? bytes : next);
    if (!chunk) return NULL;
    chunk->used = bytes;
    if (own) {
        head->used = ((head->used + STEP - 1) & ~(size_t)(STEP - 1)) + STEP;
        chunk->at = head->used;
        chunk->next = head->next;
        head->next = chunk;
    } else {
        chunk->next = head;
        arena->chunks = chunk;
    }
    return chunk->data;
}

void *pith__arena_alloc(pith__arena *arena, size_t bytes) {
    return alloc_aligned(arena, bytes, STEP);
}

void *pith__arena_alloc64(pith__arena *arena, size_t bytes) {
    return alloc_aligned(arena, bytes, 64);
}

void *pith__arena_array(pith__arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (pith__mul_overflows(count, size, &bytes)) return NULL;
    void *memory = pith__arena_alloc(arena, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

pith_str pith__arena_str(pith__arena *arena, pith_str s) {
    size_t bytes;
    char *copy = pith__add_overflows(s.size, 1, &bytes) ? NULL : pith__arena_alloc(arena, bytes);
    if (!copy) return (pith_str){ NULL, 0 };
    if (s.size) memcpy(copy, s.data, s.size);
    copy[s.size] = 0;
    return (pith_str){ copy, s.size };
}

pith_str pith__arena_printf(pith__arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = size < 0 ? NULL : pith__arena_alloc(arena, (size_t)size + 1);
    if (!text) return (pith_str){ NULL, 0 };
    va_start(args, format);
    vsnprintf(text, (size_t)size + 1, format, args);
    va_end(args);
    return (pith_str){ text, (size_t)size };
}

bool pith__arena_grow(pith__arena *arena, void **items, size_t count, size_t *capacity,
                      size_t item_size) {
    if (count < *capacity) return true;
    size_t wanted, bytes;
    if (pith__mul_overflows(*capacity, 2, &wanted)) return false;
    if (wanted < 8) wanted = 8;
    if (wanted <= count && pith__add_overflows(count, 1, &wanted)) return false;
    if (pith__mul_overflows(wanted, item_size, &bytes)) return false;
    void *grown = pith__arena_alloc(arena, bytes);
    if (!grown) return false;
    if (count) memcpy(grown, *items, count * item_size);
    *items = grown;
    *capacity = wanted;
    return true;
}
