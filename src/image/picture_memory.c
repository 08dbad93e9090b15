/* picture_memory.c - see picture_memory.h. Small blocks are not kept: they come from malloc, which keeps them itself.
 */
#include "image/picture_memory.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"

/* Before each block: its size. */
#define STEP 16
/* Sanitizers watch the ends of blocks, which must be those of the picture. */
#ifdef PITH_SANITIZED
#define KEPT_MIN SIZE_MAX
#else
#define KEPT_MIN ((size_t)1 << 20)
#endif

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static char *kept_blocks[PITH_PICTURE_MEMORY_BLOCKS]; /* the oldest first */
static int kept_count;
static size_t kept_total; /* their sizes */

static size_t kept_size(const char *block) {
    size_t size;
    memcpy(&size, block, sizeof size);
    return size;
}

/* Takes a block out; the lock is held. */
static char *kept_remove(int place) {
    char *block = kept_blocks[place];
    kept_count--;
    memmove(kept_blocks + place, kept_blocks + place + 1, (size_t)(kept_count - place) * sizeof *kept_blocks);
    kept_total -= kept_size(block);
    return block;
}

/* The newest block that fits: what it holds is most likely still in the caches. NULL: there is none. */
static char *kept_take(size_t bytes) {
    char *found = NULL;
    pthread_mutex_lock(&kept_lock);
    for (int i = kept_count - 1; i >= 0 && !found; i--)
        if (kept_size(kept_blocks[i]) >= bytes && kept_size(kept_blocks[i]) / 2 <= bytes) found = kept_remove(i);
    pthread_mutex_unlock(&kept_lock);
    return found;
}

static void *kept_alloc(void *user, size_t bytes) {
    size_t total;
    (void)user;
    if (pith_add_overflows(bytes, STEP, &total)) return NULL;
    char *block = bytes >= KEPT_MIN ? kept_take(bytes) : NULL;
    if (block) return block + STEP;
    block = pith_allocator_default.alloc(pith_allocator_default.user, total);
    if (!block) return NULL;
    memcpy(block, &bytes, sizeof bytes);
    return block + STEP;
}

/* The new block is kept. The oldest ones go until there is room for it. */
static void kept_free(void *user, void *memory) {
    char *gone[PITH_PICTURE_MEMORY_BLOCKS], *block = memory ? (char *)memory - STEP : NULL;
    int count = 0;
    (void)user;
    if (!block) return;
    const size_t size = kept_size(block);
    if (size < KEPT_MIN || size > PITH_PICTURE_MEMORY_BYTES) {
        pith_allocator_default.free(pith_allocator_default.user, block);
        return;
    }
    pthread_mutex_lock(&kept_lock);
    while (kept_count == PITH_PICTURE_MEMORY_BLOCKS || kept_total + size > PITH_PICTURE_MEMORY_BYTES)
        gone[count++] = kept_remove(0);
    kept_blocks[kept_count++] = block;
    kept_total += size;
    pthread_mutex_unlock(&kept_lock);
    while (count) pith_allocator_default.free(pith_allocator_default.user, gone[--count]);
}

size_t pith_picture_memory_kept(void) {
    pthread_mutex_lock(&kept_lock);
    const size_t total = kept_total;
    pthread_mutex_unlock(&kept_lock);
    return total;
}

const pith_allocator pith_picture_memory = { kept_alloc, kept_free, NULL };
