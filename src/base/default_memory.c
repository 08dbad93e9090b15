/* default_memory.c - the allocator of hosts that bring none: malloc, and the system's pages for large blocks. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/memory.h"

/* Before each block. */
#define STEP 16
/* Blocks of at least this size are mapped one by one and go back to the system when they are freed. Smaller ones would
 * waste parts of pages and pay for system calls. Under sanitizers nothing is mapped, since they watch the ends of
 * malloc's blocks only. */
#ifdef PITH_SANITIZED
#define MAPPED_MIN SIZE_MAX
#else
#define MAPPED_MIN ((size_t)1 << 20)
#endif

/* The host's malloc for small blocks. A large one is a mapping of its own, in large pages if the system has some:
 * freed, it is back with the system at once, whatever lies after it in the heap. A block begins with the length of its
 * mapping, 0 for malloc's. */
static void *default_alloc(void *user, size_t bytes) {
    (void)user;
    size_t total;
    if (pith_add_overflows(bytes, STEP, &total)) return NULL;
    bool mapped = bytes >= MAPPED_MIN;
    char *block =
        mapped ? mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : malloc(total);
    if (!block || (mapped && block == MAP_FAILED)) return NULL;
    if (mapped)
        madvise(block, total, MADV_HUGEPAGE);
    else
        total = 0;
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

const pith_allocator pith_allocator_default = { default_alloc, default_free, NULL };
