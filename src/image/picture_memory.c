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
static char *kept_blocks[PITH_PICTURE_MEMORY_BLOCKS]; /* NULL: a free place */
static size_t kept_total;

static size_t kept_size(const char *block) {
    size_t size;
    memcpy(&size, block, sizeof size);
    return size;
}

static char *kept_take(size_t bytes) {
    char *found = NULL;
    pthread_mutex_lock(&kept_lock);
    for (int i = 0; i < PITH_PICTURE_MEMORY_BLOCKS && !found; i++) {
        if (!kept_blocks[i] || kept_size(kept_blocks[i]) < bytes || kept_size(kept_blocks[i]) / 2 > bytes) continue;
        found = kept_blocks[i];
        kept_blocks[i] = NULL;
        kept_total -= kept_size(found);
    }
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

/* The new block is kept. Others go, in the order of their places, until there is room for it. */
static void kept_free(void *user, void *memory) {
    char *gone[PITH_PICTURE_MEMORY_BLOCKS + 1], *block = memory ? (char *)memory - STEP : NULL;
    int count = 0, place = -1;
    (void)user;
    if (!block) return;
    const size_t size = kept_size(block);
    if (size < KEPT_MIN || size > PITH_PICTURE_MEMORY_BYTES) {
        pith_allocator_default.free(pith_allocator_default.user, block);
        return;
    }
    pthread_mutex_lock(&kept_lock);
    for (int i = 0; i < PITH_PICTURE_MEMORY_BLOCKS; i++)
        if (!kept_blocks[i]) place = i;
    for (int i = 0; i < PITH_PICTURE_MEMORY_BLOCKS && (place < 0 || kept_total + size > PITH_PICTURE_MEMORY_BYTES);
         i++) {
        if (!kept_blocks[i]) continue;
        kept_total -= kept_size(kept_blocks[i]);
        gone[count++] = kept_blocks[i];
        kept_blocks[place = i] = NULL;
    }
    kept_blocks[place] = block;
    kept_total += size;
    pthread_mutex_unlock(&kept_lock);
    while (count) pith_allocator_default.free(pith_allocator_default.user, gone[--count]);
}

const pith_allocator pith_picture_memory = { kept_alloc, kept_free, NULL };
