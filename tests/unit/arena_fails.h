/* arena_fails.h - an arena that refuses one request, for programs linked with --wrap for its functions.
 *
 * An arena asks its allocator only for chunks, so a failing allocator reaches few of the places that ask an arena. Here
 * a run without failures is recorded first: the number of each request that comes through a chain of calls not seen
 * before. Then the work is done again for each of these, and that request is refused. */
#ifndef ARENA_FAILS_H
#define ARENA_FAILS_H

#include <execinfo.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* DEPTH: calls above the one that asks which tell two requests apart. */
enum { ARENA_FAILS_DEPTH = 3, ARENA_FAILS_SEEN = 1 << 14 };

static struct {
    bool counts, record, refused; /* counts: false outside of arena_fails_each, where threads may ask */
    long made, fail_at;           /* requests so far; the one to refuse, from 1; 0: none */
    void *stack[16];              /* above the one that was refused */
    int depth;
    long *chosen;
    size_t chosen_count;
    uint64_t seen[ARENA_FAILS_SEEN];
    size_t seen_count;
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
        arena_fails.chosen = realloc(arena_fails.chosen, (arena_fails.chosen_count + 1) * sizeof *arena_fails.chosen);
        arena_fails.chosen[arena_fails.chosen_count++] = arena_fails.made;
    }
    if (arena_fails.made != arena_fails.fail_at) return false;
    arena_fails.depth = backtrace(arena_fails.stack, sizeof arena_fails.stack / sizeof *arena_fails.stack);
    return arena_fails.refused = true;
}

/* The calls above the refused request, to be read by addr2line. */
static inline void arena_fails_show(void) { backtrace_symbols_fd(arena_fails.stack, arena_fails.depth, 2); }

void *__real_pith_arena_alloc(pith_arena *arena, size_t bytes);
void *__real_pith_arena_alloc64(pith_arena *arena, size_t bytes);
void *__real_pith_arena_array(pith_arena *arena, size_t count, size_t size);
pith_str __real_pith_arena_str(pith_arena *arena, pith_str s);
bool __real_pith_arena_grow(pith_arena *arena, void **items, size_t count, size_t *capacity, size_t item_size);
void *__wrap_pith_arena_alloc(pith_arena *arena, size_t bytes);
void *__wrap_pith_arena_alloc64(pith_arena *arena, size_t bytes);
void *__wrap_pith_arena_array(pith_arena *arena, size_t count, size_t size);
pith_str __wrap_pith_arena_str(pith_arena *arena, pith_str s);
pith_str __wrap_pith_arena_printf(pith_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool __wrap_pith_arena_grow(pith_arena *arena, void **items, size_t count, size_t *capacity, size_t item_size);

void *__wrap_pith_arena_alloc(pith_arena *arena, size_t bytes) {
    return arena_fails_now() ? NULL : __real_pith_arena_alloc(arena, bytes);
}

void *__wrap_pith_arena_alloc64(pith_arena *arena, size_t bytes) {
    return arena_fails_now() ? NULL : __real_pith_arena_alloc64(arena, bytes);
}

void *__wrap_pith_arena_array(pith_arena *arena, size_t count, size_t size) {
    return arena_fails_now() ? NULL : __real_pith_arena_array(arena, count, size);
}

pith_str __wrap_pith_arena_str(pith_arena *arena, pith_str s) {
    return arena_fails_now() ? (pith_str){ NULL, 0 } : __real_pith_arena_str(arena, s);
}

pith_str __wrap_pith_arena_printf(pith_arena *arena, const char *format, ...) {
    va_list args;
    char *text = NULL;
    va_start(args, format);
    int size = arena_fails_now() ? -1 : vasprintf(&text, format, args);
    va_end(args);
    pith_str copy = { NULL, 0 };
    if (size >= 0) copy = __real_pith_arena_str(arena, (pith_str){ text, (size_t)size });
    free(text);
    return copy;
}

/* Only where it has to grow: what was reserved before cannot be refused. */
bool __wrap_pith_arena_grow(pith_arena *arena, void **items, size_t count, size_t *capacity, size_t item_size) {
    if (count >= *capacity && arena_fails_now()) return false;
    return __real_pith_arena_grow(arena, items, count, capacity, item_size);
}

/* Does the work, on one thread, once as it is and once for each new place that asks an arena, which is then refused;
 * returns how many these are. work looks at arena_fails.refused for whether a request was. */
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
    free(arena_fails.chosen);
    arena_fails.chosen = NULL;
    return arena_fails.chosen_count;
}

#endif
