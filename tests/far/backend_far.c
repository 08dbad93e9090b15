/* backend_far.c - a backend whose memory the host cannot look into: its pages have no access but
 * while one of its own functions works on them, so whoever else reads or writes them dies. It lets
 * the CPU's operators compute. */
#include "far.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

far_control far = { .runs_left = -1, .bytes_left = -1 };

/* Memory, at the end of its pages; the page behind is never open. */
typedef struct region {
    struct region *next;
    char *pages, *data;
    size_t page_bytes, bytes;
} region;

static pthread_mutex_t far_lock = PTHREAD_MUTEX_INITIALIZER;
static region *far_regions;
static int far_windows; /* that are open */

static void far_protect(const region *r) {
    if (mprotect(r->pages, r->page_bytes, far_windows ? PROT_READ | PROT_WRITE : PROT_NONE))
        abort();
}

static void far_window(int change) {
    pthread_mutex_lock(&far_lock);
    bool toggles = far_windows == 0 || far_windows + change == 0;
    far_windows += change;
    for (const region *r = far_regions; toggles && r; r = r->next) far_protect(r);
    pthread_mutex_unlock(&far_lock);
}

static bool far_holds(const void *data, size_t bytes) {
    bool held = bytes == 0;
    pthread_mutex_lock(&far_lock);
    for (const region *r = far_regions; !held && r; r = r->next)
        held = (const char *)data >= r->data && (const char *)data + bytes <= r->data + r->bytes;
    pthread_mutex_unlock(&far_lock);
    return held;
}

/* One more piece of work; false: the device is lost. */
static bool far_works(size_t *count) {
    pthread_mutex_lock(&far_lock);
    bool works = far.runs_left != 0;
    far.runs_left -= far.runs_left > 0;
    ++*count;
    pthread_mutex_unlock(&far_lock);
    return works;
}

static pith_status far_open(void **context, const pith_allocator *allocator, pith_error *err) {
    (void)allocator;
    if (far.open) return pith__fail(err, far.open, "no far memory in this machine");
    pthread_mutex_lock(&far_lock);
    far.opened++;
    pthread_mutex_unlock(&far_lock);
    *context = &far;
    return PITH_OK;
}

static void far_close(void *context) {
    (void)context;
    pthread_mutex_lock(&far_lock);
    far.opened--;
    pthread_mutex_unlock(&far_lock);
}

static uint32_t far_mix(uint32_t hash, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)text[i]) * 0x01000193u;
    return hash ^ hash >> 15;
}

static bool far_supports(void *context, const pith__node *node) {
    (void)context;
    if (far.seed == FAR_NONE || !node->op->run) return false;
    if (far.seed == FAR_ALL) return true;
    uint32_t hash =
        far_mix(0x811C9DC5u ^ far.seed * 0x9E3779B9u, node->op_type.data, node->op_type.size);
    for (int i = 0; far.seed % 2 && i < node->output_count; i++)
        if (node->outputs[i])
            hash = far_mix(hash, (const char *)&node->outputs[i]->id, sizeof node->outputs[i]->id);
    return hash >> 7 & 1;
}

static pith_status far_prepare(void *context, pith__prepare *c) {
    (void)context;
    return c->node->op->prepare ? c->node->op->prepare(c) : PITH_OK;
}

static pith_status far_scratch(void *context, const pith__infer *c, const void *state, int threads,
                               size_t *bytes) {
    (void)context;
    return pith__op_scratch(c, state, threads, bytes);
}

/* Everything is where the interface says it is. */
static pith_status far_check(const pith__run *r) {
    const pith__op *op = r->node->op;
    for (int i = 0; i < r->in_count && !(op->flags & PITH_OP_SHAPE_ONLY); i++) {
        /* without data: it is packed */
        if (!r->in[i] || !r->in[i]->bytes || !r->in[i]->data) continue;
        bool on_host = i < 32 && op->shape_inputs >> i & 1;
        if (far_holds(r->in[i]->data, r->in[i]->bytes) == on_host)
            return pith__fail(r->err, PITH_ERR_RUN, "input %d is in the wrong memory", i);
    }
    for (int i = 0; i < r->out_count; i++)
        if (r->out[i] && r->out[i]->dtype && !far_holds(r->out[i]->data, r->out[i]->bytes))
            return pith__fail(r->err, PITH_ERR_RUN, "output %d is in the wrong memory", i);
    if (r->scratch && !far_holds(r->scratch, 1))
        return pith__fail(r->err, PITH_ERR_RUN, "scratch is in the wrong memory");
    return PITH_OK;
}

static pith_status far_run(void *context, pith__run *r) {
    (void)context;
    if (!far_works(&far.steps)) return pith__fail(r->err, PITH_ERR_RUN, "the device is lost");
    PITH_TRY(far_check(r));
    far_window(1);
    pith_status status = r->node->op->run(r);
    far_window(-1);
    return status;
}

static void *far_alloc(void *context, size_t bytes) {
    (void)context;
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
        *r = (region){ far_regions, pages, pages + size - used, size, used };
        far_regions = r;
        far.bytes += used;
        if (far.bytes_left > 0) far.bytes_left -= (int64_t)bytes;
        if (far_windows) far_protect(r);
    }
    pthread_mutex_unlock(&far_lock);
    return r ? r->data : NULL;
}

static void far_free(void *context, void *memory) {
    (void)context;
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

static pith_status far_copy(void *context, void *to, const void *from, size_t bytes, bool to_host,
                            pith_error *err) {
    (void)context;
    if (!far_works(&far.copies)) return pith__fail(err, PITH_ERR_RUN, "the device is lost");
    if (!far_holds(to_host ? from : to, bytes) || (bytes && far_holds(to_host ? to : from, bytes)))
        return pith__fail(err, PITH_ERR_RUN, "a copy between the wrong memories");
    far_window(1);
    memcpy(to, from, bytes);
    far_window(-1);
    return PITH_OK;
}

const pith__backend pith__backend_far = {
    .name = "far",
    .open = far_open,
    .close = far_close,
    .supports = far_supports,
    .prepare = far_prepare,
    .scratch = far_scratch,
    .run = far_run,
    .alloc = far_alloc,
    .free = far_free,
    .copy = far_copy,
};
