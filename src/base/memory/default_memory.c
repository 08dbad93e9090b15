/* default_memory.c - the allocator of hosts that bring none: malloc, and the system's pages for
 * large blocks. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/memory/memory.h"

/* Before each block. */
#define STEP 16
/* Blocks of at least this size are mapped one by one and go back to the system when they are freed.
 * Smaller ones would waste parts of pages and pay for system calls. Under sanitizers nothing is
 * mapped, since they watch the ends of malloc's blocks only. */
#ifdef PITH_SANITIZED
#define MAPPED_MIN SIZE_MAX
#else
#define MAPPED_MIN ((size_t)1 << 20)
#endif

/* The size of the system's large pages. Where it is another one, mappings are aligned to no
 * purpose, and work. */
#define LARGE_PAGE ((size_t)1 << 21)

/* A mapping of at least *total bytes, which becomes its length. It begins where a large page can:
 * otherwise its ends consist of up to a thousand small pages, each of which costs a fault when it
 * is first written. It also ends there if that makes it longer by a quarter at most. NULL: none is
 * left. */
static char *default_map(size_t *total) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), rest = -*total & (LARGE_PAGE - 1),
                 small = -*total & (page - 1);
    size_t length, whole;
    if (pith__add_overflows(*total, rest <= *total / 4 ? rest : small, &length)) return NULL;
    const size_t slack = length < LARGE_PAGE ? 0 : LARGE_PAGE - page;
    if (pith__add_overflows(length, slack, &whole)) return NULL;
    char *from = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (from == MAP_FAILED) return NULL;
    const size_t before = slack ? -(uintptr_t)from & (LARGE_PAGE - 1) : 0;
    if (before) munmap(from, before);
    if (before < slack) munmap(from + before + length, slack - before);
    madvise(from + before, length, MADV_HUGEPAGE);
    *total = length;
    return from + before;
}

/* The host's malloc for small blocks. A large one is a mapping of its own, in large pages if the
 * system has some: freed, it is back with the system at once, whatever lies after it in the heap. A
 * block begins with the length of its mapping, 0 for malloc's. */
static void *default_alloc(void *user, size_t bytes) {
    (void)user;
    size_t total;
    if (pith__add_overflows(bytes, STEP, &total)) return NULL;
    const bool mapped = bytes >= MAPPED_MIN;
    char *block = mapped ? default_map(&total) : malloc(total);
    if (!block) return NULL;
    if (!mapped) total = 0;
    memcpy(block, &total, sizeof total);
    return block + STEP;
}

static void default_free(void *user, void *memory) {
    (void)user;
    if (!memory) return;
    char *block = (char *)memory - STEP;
    size_t mapped;
    memcpy(&mapped, block, sizeof mapped);
    if (mapped)
        munmap(block, mapped);
    else
        free(block);
}

const pith_allocator pith__allocator_default = { default_alloc, default_free, NULL };
