/* executor_memory.c - see executor_memory.h. */
#include "engine/exec/executor_memory.h"

#include "base/memory/account.h"
#include "base/memory/poison.h"

void pith_tree_count(pith_tree *t, size_t more, size_t fewer) {
    t->held = t->held - fewer + more;
    if (t->held > t->peak) t->peak = t->held;
}

void pith_late_count(pith_executor *e) {
    pith_tree_count(e->tree, e->late.total, e->late_counted);
    e->late_counted = e->late.total;
}

static void *store_alloc(const pith_executor *e, const pith_store *m, size_t bytes) {
    return m->device ? m->device->backend->alloc(m->device->context, bytes)
                     : pith_memory_alloc(&e->allocator, bytes, 64);
}

static void store_free(const pith_executor *e, const pith_store *m, void *data) {
    if (m->device)
        m->device->backend->free(m->device->context, data);
    else
        pith_memory_free(&e->allocator, data);
}

void pith_late_free(pith_executor *e, pith_store *m) {
    for (; m->late; m->late = m->late->next) {
        store_free(e, m, m->late->data);
        pith_tree_count(e->tree, 0, m->late->bytes);
    }
}

static void end_slot(pith_executor *e, pith_separate_slot *slot) {
    if (!slot->data) return;
    store_free(e, &e->memories[slot->memory], slot->data);
    pith_tree_count(e->tree, 0, slot->bytes);
    slot->data = NULL;
}

void pith_separate_end(pith_executor *e, pith_binding *b, size_t step) {
    for (size_t i = b->separate.ends[step]; i; i = b->separate.slots[i].next_end) end_slot(e, &b->separate.slots[i]);
}

/* Also what a run that failed left. */
void pith_separate_end_all(pith_executor *e) {
    pith_binding *b = e->allocated;
    for (size_t i = 1; b && i <= b->separate.count; i++) end_slot(e, &b->separate.slots[i]);
    e->allocated = NULL;
}

pith_status pith_separate_begin(pith_executor *e, pith_binding *b, size_t step, pith_error *err) {
    pith_separate_slot *slots = b->separate.slots;
    for (size_t i = b->separate.begins[step]; i; i = slots[i].next_begin) {
        pith_separate_slot *slot = &slots[i];
        slot->data = store_alloc(e, &e->memories[slot->memory], slot->bytes);
        if (!slot->data) return pith_fail_memory(err, slot->bytes);
        pith_tree_count(e->tree, slot->bytes, 0);
        if (!slot->memory) pith_poison(slot->data, slot->bytes);
        for (size_t p = slot->first; p; p = b->placed[p - 1].next) b->placed[p - 1].tensor->data = slot->data;
    }
    return PITH_OK;
}

pith_status pith_late_reset(pith_executor *e, pith_error *err) {
    size_t total = e->late.total;
    bool joined = true;
    pith_separate_end_all(e);
    for (size_t m = 1; m < e->plan->devices->memory_count; m++) pith_late_free(e, &e->memories[m]);
    pith_arena_reset(&e->late);
    if (e->late.total < total) {
        pith_arena_free(&e->late);
        joined = e->options.tight || pith_arena_alloc(&e->late, total);
        pith_arena_reset(&e->late);
    }
    pith_late_count(e);
    return joined ? PITH_OK : pith_fail_memory(err, total);
}

void *pith_late_alloc(pith_executor *e, size_t bytes) {
    size_t before = e->late.total;
    void *memory = pith_arena_alloc64(&e->late, bytes);
    if (e->late.total != before) pith_late_count(e);
    if (memory) pith_poison(memory, bytes);
    return memory;
}

/* The same in the memory of a device. */
void *pith_late_alloc_in(pith_executor *e, int memory, size_t bytes) {
    if (!memory) return pith_late_alloc(e, bytes);
    pith_store *m = &e->memories[memory];
    pith_late_block *block = pith_late_alloc(e, sizeof *block);
    size_t size = bytes ? bytes : 1;
    void *data = block ? store_alloc(e, m, size) : NULL;
    if (!data) e->tree->failed = m->device;
    if (!data) return NULL;
    *block = (pith_late_block){ .next = m->late, .data = data, .bytes = size };
    m->late = block;
    pith_tree_count(e->tree, size, 0);
    return data;
}

void pith_buffer_free(pith_executor *e, const pith_store *m, pith_buffer *b) {
    if (!b->data) return;
    store_free(e, m, b->data);
    pith_tree_count(e->tree, 0, b->bytes);
    *b = (pith_buffer){ NULL, 0 };
}

void pith_executor_note(const pith_executor *e, pith_counter which, uint64_t n) {
    if (!e->depth) pith_count(e->options.counters, which, n);
}

pith_status pith_buffer_reserve(pith_executor *e, size_t memory, size_t bytes, pith_error *err) {
    const pith_store *m = &e->memories[memory];
    pith_buffer *b = &e->level->buffers[memory];
    if (bytes == b->bytes || (bytes < b->bytes && !e->options.tight)) return PITH_OK;
    if (b->data && !m->device && bytes > b->bytes) { /* from now on a larger one is used */
        pith_account_discard(&e->allocator, b->data);
        pith_tree_count(e->tree, 0, b->bytes);
        *b = (pith_buffer){ NULL, 0 };
    }
    pith_buffer_free(e, m, b);
    if (!bytes) return PITH_OK;
    b->data = store_alloc(e, m, bytes);
    if (!b->data) e->tree->failed = m->device;
    if (!b->data)
        return pith_fail(err, PITH_ERR_MEMORY, "out of memory: the activations need %zu bytes%s%s", bytes,
                         m->device ? " of backend " : "", m->device ? m->device->backend->name : "");
    b->bytes = bytes;
    pith_tree_count(e->tree, bytes, 0);
    return PITH_OK;
}

pith_status pith_level_make(pith_level **made, pith_arena *arena, size_t memories, pith_error *err) {
    if (*made) return PITH_OK;
    pith_level *l = pith_arena_array(arena, 1, sizeof *l);
    if (l) l->buffers = pith_arena_array(arena, memories, sizeof *l->buffers);
    if (!l || !l->buffers) return pith_fail_memory(err, sizeof *l + memories * sizeof *l->buffers);
    *made = l;
    return PITH_OK;
}
