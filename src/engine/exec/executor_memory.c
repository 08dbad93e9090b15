/* executor_memory.c - see executor_memory.h.
 *
 * Buffers belong to a level: executors of subgraphs at the same depth never run at
 * the same time and share one. Every byte that is taken or given back passes pith__tree_count, so
 * that the root knows what all of them hold. */
#include "engine/exec/executor_memory.h"

#include "base/memory/account.h"
#include "base/memory/poison.h"

void pith__tree_count(pith__tree *t, size_t more, size_t fewer) {
    t->held = t->held - fewer + more;
    if (t->held > t->peak) t->peak = t->held;
}

void pith__late_count(pith__executor *e) {
    pith__tree_count(e->tree, e->late.total, e->late_counted);
    e->late_counted = e->late.total;
}

static void *store_alloc(const pith__executor *e, const pith__store *m, size_t bytes) {
    return m->device ? pith__device_functions_used->alloc(m->device, bytes)
                     : pith__memory_alloc(&e->allocator, bytes, 64);
}

static void store_free(const pith__executor *e, const pith__store *m, void *data, size_t bytes) {
    if (m->device)
        pith__device_functions_used->free(m->device, data, bytes);
    else
        pith__memory_free(&e->allocator, data);
}

void pith__late_free(pith__executor *e, pith__store *m) {
    for (; m->late; m->late = m->late->next) {
        store_free(e, m, m->late->data, m->late->bytes);
        pith__tree_count(e->tree, 0, m->late->bytes);
    }
}

static void end_slot(pith__executor *e, pith__separate_slot *slot) {
    if (!slot->data) return;
    store_free(e, &e->memories[slot->memory], slot->data, slot->bytes);
    pith__tree_count(e->tree, 0, slot->bytes);
    slot->data = NULL;
}

void pith__separate_end(pith__executor *e, pith__binding *b, size_t step) {
    for (size_t i = b->separate.ends[step]; i; i = b->separate.slots[i].next_end)
        end_slot(e, &b->separate.slots[i]);
}

/* Also what a run that failed left. */
void pith__separate_end_all(pith__executor *e) {
    pith__binding *b = e->allocated;
    const size_t count = b ? b->separate.count : 0;
    for (size_t i = 1; i <= count; i++) end_slot(e, &b->separate.slots[i]);
    e->allocated = NULL;
}

pith_status pith__separate_begin(pith__executor *e, pith__binding *b, size_t step,
                                 pith_error *err) {
    pith__separate_slot *slots = b->separate.slots;
    for (size_t i = b->separate.begins[step]; i; i = slots[i].next_begin) {
        pith__separate_slot *slot = &slots[i];
        slot->data = store_alloc(e, &e->memories[slot->memory], slot->bytes);
        if (!slot->data) return pith__fail_memory(err, slot->bytes);
        pith__tree_count(e->tree, slot->bytes, 0);
        if (!slot->memory) pith__poison(slot->data, slot->bytes);
        for (size_t p = slot->first; p; p = b->placed[p - 1].next)
            b->placed[p - 1].tensor->data = slot->data;
    }
    return PITH_OK;
}

/* The arena keeps one chunk when it is reset. If the run before needed several, they are replaced
 * by one of their total size, so that the next run like it allocates nothing. A tight executor
 * gives the memory back instead. */
pith_status pith__late_reset(pith__executor *e, pith_error *err) {
    size_t total = e->late.total;
    bool joined = true;
    pith__separate_end_all(e);
    for (size_t m = 1; m < e->plan->devices->memory_count; m++) pith__late_free(e, &e->memories[m]);
    pith__arena_reset(&e->late);
    if (e->late.total < total) {
        pith__arena_free(&e->late);
        joined = e->options.tight || pith__arena_alloc(&e->late, total);
        pith__arena_reset(&e->late);
    }
    pith__late_count(e);
    return joined ? PITH_OK : pith__fail_memory(err, total);
}

void *pith__late_alloc(pith__executor *e, size_t bytes) {
    size_t before = e->late.total;
    void *memory = pith__arena_alloc64(&e->late, bytes);
    if (e->late.total != before) pith__late_count(e);
    if (memory) pith__poison(memory, bytes);
    return memory;
}

/* The same in the memory of a device. */
void *pith__late_alloc_in(pith__executor *e, int memory, size_t bytes) {
    if (!memory) return pith__late_alloc(e, bytes);
    pith__store *m = &e->memories[memory];
    pith__late_block *block = pith__late_alloc(e, sizeof *block);
    size_t size = bytes ? bytes : 1;
    void *data = block ? store_alloc(e, m, size) : NULL;
    if (!data) e->tree->failed = m->device;
    if (!data) return NULL;
    *block = (pith__late_block){ .next = m->late, .data = data, .bytes = size };
    m->late = block;
    pith__tree_count(e->tree, size, 0);
    return data;
}

void pith__buffer_free(pith__executor *e, const pith__store *m, pith__buffer *b) {
    if (!b->data) return;
    store_free(e, m, b->data, b->bytes);
    pith__tree_count(e->tree, 0, b->bytes);
    *b = (pith__buffer){ NULL, 0 };
}

void pith__executor_note(const pith__executor *e, pith__counter which, uint64_t n) {
    if (!e->depth) pith__count(e->options.counters, which, n);
}

/* A buffer is replaced, never extended: between runs it holds nothing that is needed. It grows to
 * what is asked for and not beyond, and shrinks only in a tight executor, so in a steady state it
 * is as large as the largest binding. */
pith_status pith__buffer_reserve(pith__executor *e, size_t memory, size_t bytes, pith_error *err) {
    const pith__store *m = &e->memories[memory];
    pith__buffer *b = &e->level->buffers[memory];
    if (bytes == b->bytes || (bytes < b->bytes && !e->options.tight)) return PITH_OK;
    if (b->data && !m->device && bytes > b->bytes) { /* from now on a larger one is used */
        pith__account_discard(&e->allocator, b->data);
        pith__tree_count(e->tree, 0, b->bytes);
        *b = (pith__buffer){ NULL, 0 };
    }
    pith__buffer_free(e, m, b);
    if (!bytes) return PITH_OK;
    b->data = store_alloc(e, m, bytes);
    if (!b->data) e->tree->failed = m->device;
    if (!b->data && m->device)
        return pith__device_functions_used->no_memory(m->device, bytes, "activations", err);
    if (!b->data)
        return pith__fail(err, PITH_ERR_MEMORY, "out of memory: the activations need %zu bytes",
                          bytes);
    b->bytes = bytes;
    pith__tree_count(e->tree, bytes, 0);
    return PITH_OK;
}

pith_status pith__level_make(pith__level **made, pith__arena *arena, size_t memories,
                             pith_error *err) {
    if (*made) return PITH_OK;
    pith__level *l = pith__arena_array(arena, 1, sizeof *l);
    if (l) l->buffers = pith__arena_array(arena, memories, sizeof *l->buffers);
    if (!l || !l->buffers) return pith__fail_memory(err, sizeof *l + memories * sizeof *l->buffers);
    *made = l;
    return PITH_OK;
}
