/* far_memory.c - memory whose pages have no access but while one of the backend's own functions
 * works on them, so whoever else reads or writes them dies. */
#include "far.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Memory, at the end of its pages; the page behind is never open. */
typedef struct region {
    struct region *next;
    char *pages, *data;
    size_t page_bytes, bytes;
    int ordinal;
} region;

static pthread_mutex_t far_lock = PTHREAD_MUTEX_INITIALIZER;
static region *far_regions;
static int far_windows; /* that are open */

static void far_protect(const region *r) {
    if (mprotect(r->pages, r->page_bytes, far_windows ? PROT_READ | PROT_WRITE : PROT_NONE))
        abort();
}

void far_window(int change) {
    pthread_mutex_lock(&far_lock);
    bool toggles = far_windows == 0 || far_windows + change == 0;
    far_windows += change;
    for (const region *r = far_regions; toggles && r; r = r->next) far_protect(r);
    pthread_mutex_unlock(&far_lock);
}

bool far_memory_holds(int ordinal, const void *data, size_t bytes) {
    bool held = bytes == 0;
    pthread_mutex_lock(&far_lock);
    for (const region *r = far_regions; !held && r; r = r->next)
        held = r->ordinal == ordinal && (const char *)data >= r->data &&
               (const char *)data + bytes <= r->data + r->bytes;
    pthread_mutex_unlock(&far_lock);
    return held;
}

void *far_memory_alloc(int ordinal, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), used = (bytes + 63) / 64 * 64,
           size = (used + page - 1) / page * page;
    region *r = malloc(sizeof *r);
    pthread_mutex_lock(&far_lock);
    bool given = r && (far.bytes_left < 0 || (size_t)far.bytes_left >= bytes);
    char *pages =
        given ? mmap(NULL, size + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    if (pages == MAP_FAILED) {
        free(r);
        r = NULL;
    } else {
        *r = (region){ far_regions, pages, pages + size - used, size, used, ordinal };
        far_regions = r;
        far.bytes += used;
        if (far.bytes_left > 0) far.bytes_left -= (int64_t)bytes;
        if (far_windows) far_protect(r);
    }
    pthread_mutex_unlock(&far_lock);
    return r ? r->data : NULL;
}

void far_memory_free(void *memory) {
    pthread_mutex_lock(&far_lock);
    region **link = &far_regions;
    while (*link && (*link)->data != memory) link = &(*link)->next;
    region *r = *link;
    if (!r) abort();
    *link = r->next;
    munmap(r->pages, r->page_bytes + (size_t)sysconf(_SC_PAGESIZE));
    far.bytes -= r->bytes;
    pthread_mutex_unlock(&far_lock);
    free(r);
}

void far_write(void *memory, const void *data, size_t bytes) {
    far_window(1);
    memcpy(memory, data, bytes);
    far_window(-1);
}

void far_read(void *data, const void *memory, size_t bytes) {
    far_window(1);
    memcpy(data, memory, bytes);
    far_window(-1);
}
