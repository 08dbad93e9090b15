/* failing_alloc.h - memory for tests: counts what is out, and runs out when told; from any thread.
 *
 *   counter c = { .fail_at = 3 };
 *   pith_allocator allocator = { count_alloc, count_free, &c }; */
#ifndef FAILING_ALLOC_H
#define FAILING_ALLOC_H

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

typedef struct counter {
    atomic_long calls, live; /* so far; blocks that are out */
    atomic_size_t bytes;     /* that are out */
    long fail_at;            /* the call that gets NULL, from 1; 0: none */
    bool for_good;           /* and all calls after it */
    size_t limit;            /* bytes that may be out; 0: any */
    void (*freed)(void *);   /* is told of a block before it is freed; NULL: nobody */
} counter;

static inline void *count_alloc(void *user, size_t bytes) {
    counter *c = user;
    long call = atomic_fetch_add(&c->calls, 1) + 1;
    if (c->fail_at && (call == c->fail_at || (c->for_good && call > c->fail_at))) return NULL;
    if (c->limit && (bytes > c->limit || atomic_load(&c->bytes) > c->limit - bytes)) return NULL;
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) return NULL;
    atomic_fetch_add(&c->live, 1);
    atomic_fetch_add(&c->bytes, malloc_usable_size(memory));
    return memory;
}

static inline void count_free(void *user, void *memory) {
    counter *c = user;
    if (!memory) return;
    if (c->freed) c->freed(memory);
    atomic_fetch_sub(&c->live, 1);
    atomic_fetch_sub(&c->bytes, malloc_usable_size(memory));
    free(memory);
}

#endif
