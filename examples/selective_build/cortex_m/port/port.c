/* port.c - the arena, and what Pith asks a system for, on a machine with one thread and no clock.
 */
#include "port.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <pith/types.h>

/* ---- the arena: blocks one behind the other, each with its size in front; free neighbours unite
 * ---- */

typedef struct block {
    size_t size; /* of what follows, a multiple of 16 */
    size_t used;
    size_t pad[2];
} block;

static _Alignas(64) unsigned char memory[ARENA_BYTES];
static size_t end, most, held; /* bytes up to the last block that was ever cut off; those in use */

static block *block_at(size_t at) { return (block *)(void *)(memory + at); }

void *arena_alloc(void *user, size_t bytes) {
    (void)user;
    if (bytes > ARENA_BYTES) return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    for (size_t at = 0; at < end; at += sizeof(block) + block_at(at)->size) {
        block *b = block_at(at);
        if (b->used) continue;
        for (block *next;
             at + sizeof *b + b->size < end && !(next = block_at(at + sizeof *b + b->size))->used;)
            b->size += sizeof *b + next->size;
        if (at + sizeof *b + b->size == end) end = at; /* the last block: cut anew */
        if (end == at || b->size < bytes) continue;
        if (b->size >= bytes + 2 * sizeof *b) {
            *block_at(at + sizeof *b + bytes) = (block){ .size = b->size - bytes - sizeof *b };
            b->size = bytes;
        }
        b->used = 1;
        held += b->size;
        return b + 1;
    }
    if (bytes + sizeof(block) > ARENA_BYTES - end) return NULL;
    block *b = block_at(end);
    *b = (block){ .size = bytes, .used = 1 };
    end += sizeof *b + bytes;
    if (end > most) most = end;
    held += bytes;
    return b + 1;
}

void arena_free(void *user, void *p) {
    (void)user;
    if (!p) return;
    block *b = (block *)p - 1;
    b->used = 0;
    held -= b->size;
}

size_t arena_most(void) { return most; }
size_t arena_used(void) { return held; }

/* The library's own allocator, for whoever names none: there is no memory but the arena. */
static void *no_memory(void *user, size_t bytes) { return (void)user, (void)bytes, NULL; }
static void no_free(void *user, void *p) { (void)user, (void)p; }
const pith_allocator pith__allocator_default = { no_memory, no_free, NULL };

/* ---- one thread ---- */

int pthread_mutex_init(pthread_mutex_t *lock, const pthread_mutexattr_t *attributes) {
    return (void)lock, (void)attributes, 0;
}
int pthread_mutex_destroy(pthread_mutex_t *lock) { return (void)lock, 0; }
int pthread_mutex_lock(pthread_mutex_t *lock) { return (void)lock, 0; }
int pthread_mutex_unlock(pthread_mutex_t *lock) { return (void)lock, 0; }
int pthread_once(pthread_once_t *once, void (*first)(void)) {
    if (!once->init_executed) {
        once->init_executed = 1;
        first();
    }
    return 0;
}

/* No interrupt of this program touches what these change. */
uint64_t atomic_add_8(volatile void *at, uint64_t n, int order) __asm__("__atomic_fetch_add_8");
uint64_t atomic_load_8(const volatile void *at, int order) __asm__("__atomic_load_8");
void atomic_store_8(volatile void *at, uint64_t value, int order) __asm__("__atomic_store_8");
bool atomic_exchange_8(volatile void *at, void *expected, uint64_t value, bool weak, int good,
                       int bad) __asm__("__atomic_compare_exchange_8");

uint64_t atomic_add_8(volatile void *at, uint64_t n, int order) {
    (void)order;
    uint64_t before = *(volatile uint64_t *)at;
    *(volatile uint64_t *)at = before + n;
    return before;
}
uint64_t atomic_load_8(const volatile void *at, int order) {
    return (void)order, *(const volatile uint64_t *)at;
}
void atomic_store_8(volatile void *at, uint64_t value, int order) {
    (void)order;
    *(volatile uint64_t *)at = value;
}
bool atomic_exchange_8(volatile void *at, void *expected, uint64_t value, bool weak, int good,
                       int bad) {
    (void)weak, (void)good, (void)bad;
    const uint64_t now = *(volatile uint64_t *)at, wanted = *(uint64_t *)expected;
    *(uint64_t *)expected = now;
    if (now == wanted) *(volatile uint64_t *)at = value;
    return now == wanted;
}

/* ---- no clock, no environment ---- */

int clock_gettime(clockid_t clock, struct timespec *t) {
    (void)clock;
    *t = (struct timespec){ 0, 0 };
    return 0;
}
char *getenv(const char *name) { return (void)name, NULL; }
