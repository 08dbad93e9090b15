/* arena_fails.h - an arena that refuses one request, for programs linked with --wrap for its
 * functions.
 *
 * An arena asks its allocator only for chunks, so a failing allocator reaches few of the places
 * that ask an arena. Here a run without failures is recorded first: the number of each request that
 * comes through a chain of calls not seen before. Then the work is done again for each of these,
 * and that request is refused.
 *
 * The run that is recorded also has a guard behind each piece of an arena, where no sanitizer sees
 * an overrun. The test's allocator must tell of what it frees (arena_fails_freed). */
#ifndef ARENA_FAILS_H
#define ARENA_FAILS_H

#include <execinfo.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory/memory.h"
#include "base/memory/poison.h"

/* DEPTH: calls above the one that asks which tell two requests apart. FILL: the bytes of a guard;
 * in a poison build those of pith__poison, because a reset of the arena poisons pieces and guards
 * alike. */
enum {
    ARENA_FAILS_DEPTH = 3,
    ARENA_FAILS_SEEN = 1 << 14,
    ARENA_FAILS_GUARD = 16,
    ARENA_FAILS_FILL = PITH_POISONS ? 0xFF : 0x5A
};

static struct {
    bool counts, record, refused; /* counts: false outside of arena_fails_each, where threads may
                                     ask */
    long made, fail_at;           /* requests so far; the one to refuse, from 1; 0: none */
    void *stack[16];              /* above the one that was refused */
    int depth;
    long *chosen;
    size_t chosen_count;
    uint64_t seen[ARENA_FAILS_SEEN];
    size_t seen_count;
    struct arena_guard {
        char *at; /* behind a piece */
        void *stack[8];
        int depth;
    } * guards;
    size_t guard_count, guard_capacity;
} arena_fails;

/* Whether the chain of calls above a request is new. */
static inline bool arena_fails_new(void) {
    void *stack[ARENA_FAILS_DEPTH + 3];
    int depth = backtrace(stack, ARENA_FAILS_DEPTH + 3);
    uint64_t hash = 1469598103934665603u;
    for (int i = 2; i < depth; i++) hash = (hash ^ (uint64_t)(uintptr_t)stack[i]) * 1099511628211u;
    hash |= 1;
    size_t at = (size_t)(hash >> 20) % ARENA_FAILS_SEEN;
    while (arena_fails.seen[at] && arena_fails.seen[at] != hash) at = (at + 1) % ARENA_FAILS_SEEN;
    if (arena_fails.seen[at] == hash) return false;
    if (++arena_fails.seen_count > ARENA_FAILS_SEEN / 2) abort();
    arena_fails.seen[at] = hash;
    return true;
}

static __attribute__((noinline)) bool arena_fails_now(void) {
    if (!arena_fails.counts) return false;
    arena_fails.made++;
    if (arena_fails.record && arena_fails_new()) {
        arena_fails.chosen = realloc(arena_fails.chosen,
                                     (arena_fails.chosen_count + 1) * sizeof *arena_fails.chosen);
        arena_fails.chosen[arena_fails.chosen_count++] = arena_fails.made;
    }
    if (arena_fails.made != arena_fails.fail_at) return false;
    arena_fails.depth =
        backtrace(arena_fails.stack, sizeof arena_fails.stack / sizeof *arena_fails.stack);
    return arena_fails.refused = true;
}

/* The calls above the refused request, to be read by addr2line. */
static inline void arena_fails_show(void) {
    backtrace_symbols_fd(arena_fails.stack, arena_fails.depth, 2);
}

/* Forgets the guards from begin up to end; whether none of them was written to. */
static inline bool arena_fails_forget(const char *begin, const char *end) {
    bool whole = true;
    for (size_t i = 0; i < arena_fails.guard_count;) {
        struct arena_guard *guard = &arena_fails.guards[i];
        if (guard->at + ARENA_FAILS_GUARD <= begin || guard->at >= end) {
            i++;
            continue;
        }
        for (int k = 0; k < ARENA_FAILS_GUARD && whole; k++) {
            whole = (unsigned char)guard->at[k] == ARENA_FAILS_FILL;
            if (!whole) memcpy(arena_fails.stack, guard->stack, sizeof guard->stack);
            if (!whole) arena_fails.depth = guard->depth;
        }
        *guard = arena_fails.guards[--arena_fails.guard_count];
    }
    return whole;
}

/* Puts a guard behind a piece of bytes. Guards where the piece lies are of a time before the arena
 * was rewound. */
static inline void *arena_fails_guard(char *piece, size_t bytes) {
    if (!piece) return NULL;
    arena_fails_forget(piece, piece + bytes + ARENA_FAILS_GUARD);
    if (arena_fails.guard_count == arena_fails.guard_capacity) {
        arena_fails.guard_capacity = 2 * arena_fails.guard_capacity + 1024;
        arena_fails.guards =
            realloc(arena_fails.guards, arena_fails.guard_capacity * sizeof *arena_fails.guards);
    }
    struct arena_guard *guard = &arena_fails.guards[arena_fails.guard_count++];
    guard->at = memset(piece + bytes, ARENA_FAILS_FILL, ARENA_FAILS_GUARD);
    guard->depth = backtrace(guard->stack, sizeof guard->stack / sizeof *guard->stack);
    return piece;
}

/* To be called by the test's allocator before it frees a block of malloc. */
static inline void arena_fails_freed(void *block) {
    if (block && arena_fails.guard_count &&
        !arena_fails_forget(block, (char *)block + malloc_usable_size(block))) {
        arena_fails_show();
        fail_msg("something was written behind the piece of an arena that these calls asked for");
    }
}

void *__real_pith__arena_alloc(pith__arena *arena, size_t bytes);
void *__real_pith__arena_alloc64(pith__arena *arena, size_t bytes);
void *__real_pith__arena_array(pith__arena *arena, size_t count, size_t size);
pith_str __real_pith__arena_str(pith__arena *arena, pith_str s);
bool __real_pith__arena_grow(pith__arena *arena, void **items, size_t count, size_t *capacity,
                             size_t item_size);
void *__wrap_pith__arena_alloc(pith__arena *arena, size_t bytes);
void *__wrap_pith__arena_alloc64(pith__arena *arena, size_t bytes);
void *__wrap_pith__arena_array(pith__arena *arena, size_t count, size_t size);
pith_str __wrap_pith__arena_str(pith__arena *arena, pith_str s);
pith_str __wrap_pith__arena_printf(pith__arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool __wrap_pith__arena_grow(pith__arena *arena, void **items, size_t count, size_t *capacity,
                             size_t item_size);

void *__wrap_pith__arena_alloc(pith__arena *arena, size_t bytes) {
    if (arena_fails_now()) return NULL;
    if (!arena_fails.record || bytes > SIZE_MAX - ARENA_FAILS_GUARD)
        return __real_pith__arena_alloc(arena, bytes);
    return arena_fails_guard(__real_pith__arena_alloc(arena, bytes + ARENA_FAILS_GUARD), bytes);
}

void *__wrap_pith__arena_alloc64(pith__arena *arena, size_t bytes) {
    if (arena_fails_now()) return NULL;
    if (!arena_fails.record || bytes > SIZE_MAX - ARENA_FAILS_GUARD)
        return __real_pith__arena_alloc64(arena, bytes);
    return arena_fails_guard(__real_pith__arena_alloc64(arena, bytes + ARENA_FAILS_GUARD), bytes);
}

void *__wrap_pith__arena_array(pith__arena *arena, size_t count, size_t size) {
    size_t bytes = count * size;
    if (arena_fails_now()) return NULL;
    if (!arena_fails.record || (size && count > (SIZE_MAX - ARENA_FAILS_GUARD) / size))
        return __real_pith__arena_array(arena, count, size);
    return arena_fails_guard(__real_pith__arena_array(arena, 1, bytes + ARENA_FAILS_GUARD), bytes);
}

pith_str __wrap_pith__arena_str(pith__arena *arena, pith_str s) {
    if (arena_fails_now()) return (pith_str){ NULL, 0 };
    pith_str copy = __real_pith__arena_str(arena, s);
    if (copy.data) arena_fails_forget(copy.data, copy.data + s.size + 1);
    return copy;
}

pith_str __wrap_pith__arena_printf(pith__arena *arena, const char *format, ...) {
    va_list args;
    char *text = NULL;
    va_start(args, format);
    int size = arena_fails_now() ? -1 : vasprintf(&text, format, args);
    va_end(args);
    pith_str copy = { NULL, 0 };
    if (size >= 0) copy = __real_pith__arena_str(arena, (pith_str){ text, (size_t)size });
    if (copy.data) arena_fails_forget(copy.data, copy.data + copy.size + 1);
    free(text);
    return copy;
}

/* Only where it has to grow: what was reserved before cannot be refused. */
bool __wrap_pith__arena_grow(pith__arena *arena, void **items, size_t count, size_t *capacity,
                             size_t item_size) {
    if (count < *capacity) return true;
    if (arena_fails_now() || !__real_pith__arena_grow(arena, items, count, capacity, item_size))
        return false;
    arena_fails_forget(*items, (char *)*items + *capacity * item_size);
    return true;
}

/* Does the work, on one thread, once as it is and once for each new place that asks an arena, which
 * is then refused; returns how many these are. work looks at arena_fails.refused for whether a
 * request was. */
static inline size_t arena_fails_each(void (*work)(const void *context), const void *context) {
    arena_fails.chosen_count = 0;
    arena_fails.counts = arena_fails.record = true;
    arena_fails.fail_at = 0;
    for (size_t i = 0; i <= arena_fails.chosen_count; i++) {
        arena_fails.made = 0;
        arena_fails.refused = false;
        work(context);
        arena_fails.record = false;
        if (i < arena_fails.chosen_count) arena_fails.fail_at = arena_fails.chosen[i];
    }
    arena_fails.counts = false;
    free(arena_fails.guards);
    arena_fails.guards = NULL;
    arena_fails.guard_count = arena_fails.guard_capacity = 0;
    free(arena_fails.chosen);
    arena_fails.chosen = NULL;
    return arena_fails.chosen_count;
}

#endif
