/* model_runs.c - runs of a model for callers without a session, and results that the caller owns.
 *
 * The session that came back last goes out first. Of more than options.sessions, the one that has
 * waited longest ends. Sessions are made and destroyed while the lock is not held.
 *
 * A result is one block: a header with the allocator, and behind it all that the tensor points to,
 * the tensors of a sequence and the bytes of strings included. */
#include "models/session/model_runs.h"

#include <string.h>

#include "base/caller_options.h"
#include "base/error.h"
#include "base/os/clock.h"
#include "engine/ops/op.h"

/* ---- sessions ---- */

typedef struct kept_session {
    pith_session *session;
    uint64_t since; /* pith__clock_ns */
} kept_session;

typedef struct kept_list {
    pith__kept_sessions base;
    size_t most;
    uint64_t patience;    /* nanoseconds; 0: any time */
    pthread_mutex_t lock; /* guards the members below */
    size_t count;
    kept_session items[]; /* [most], the longest idle first */
} kept_list;

static void kept_count(const pith_model *model, pith__counter which) {
    pith__count((pith__counters *)&model->account.counters, which, 1);
}

static void kept_note_idle(const pith_model *model, size_t more, size_t fewer) {
    pith_model *m = (pith_model *)(uintptr_t)model;
    atomic_fetch_add_explicit(&m->pooled_idle, more - fewer, memory_order_relaxed);
}

/* With the lock held. */
static pith_session *kept_take_first(kept_list *k, const pith_model *m) {
    pith_session *first = k->items[0].session;
    k->count--;
    memmove(k->items, k->items + 1, k->count * sizeof *k->items);
    kept_note_idle(m, 0, 1);
    return first;
}

static void kept_empty(pith__kept_sessions *kept, const pith_model *m) {
    kept_list *k = (kept_list *)kept;
    for (;;) {
        pthread_mutex_lock(&k->lock);
        pith_session *session = k->count ? kept_take_first(k, m) : NULL;
        pthread_mutex_unlock(&k->lock);
        if (!session) return;
        pith__model_destroy_session(session);
    }
}

static void kept_close(pith__kept_sessions *kept, const pith_model *m) {
    kept_list *k = (kept_list *)kept;
    kept_empty(kept, m);
    pthread_mutex_destroy(&k->lock);
    pith__memory_free(&m->account.allocator, k);
}

/* The model's list, which the first call makes. Of two threads that make it, one throws its own
 * away. */
static pith_status kept_find(kept_list **list, const pith_model *model, pith_error *err) {
    pith_model *m = (pith_model *)(uintptr_t)model;
    pith__kept_sessions *there = atomic_load_explicit(&m->kept_sessions, memory_order_acquire);
    *list = (kept_list *)there;
    if (there) return PITH_OK;
    const size_t most = (size_t)m->options.sessions;
    const size_t bytes = sizeof(kept_list) + most * sizeof(kept_session);
    kept_list *k = pith__memory_alloc(&m->account.allocator, bytes, 64);
    if (!k) return pith__fail_memory(err, bytes);
    memset(k, 0, bytes);
    k->base = (pith__kept_sessions){ kept_empty, kept_close };
    k->most = most;
    k->patience = (uint64_t)m->options.session_idle_ms * 1000000;
    if (pthread_mutex_init(&k->lock, NULL)) {
        pith__memory_free(&m->account.allocator, k);
        return pith__fail_memory(err, sizeof k->lock);
    }
    if (atomic_compare_exchange_strong_explicit(&m->kept_sessions, &there, &k->base,
                                                memory_order_acq_rel, memory_order_acquire)) {
        *list = k;
    } else {
        kept_close(&k->base, m);
        *list = (kept_list *)there;
    }
    return PITH_OK;
}

static pith_status kept_take(pith_session **session, kept_list *k, const pith_model *m,
                             pith_error *err) {
    *session = NULL;
    pthread_mutex_lock(&k->lock);
    if (k->count) *session = k->items[--k->count].session;
    pthread_mutex_unlock(&k->lock);
    if (*session) {
        kept_note_idle(m, 0, 1);
        kept_count(m, PITH_COUNT_sessions_borrowed);
        return PITH_OK;
    }
    PITH_TRY(pith__model_create_session(session, m, err));
    kept_count(m, PITH_COUNT_sessions_made);
    return PITH_OK;
}

/* Makes room for the session, and ends those that have waited too long. */
static void kept_give(kept_list *k, const pith_model *m, pith_session *session) {
    const uint64_t now = pith__clock_ns();
    for (bool given = false; !given;) {
        pith_session *old = session;
        pthread_mutex_lock(&k->lock);
        const bool late = k->count && k->patience && now - k->items[0].since > k->patience;
        if (k->count && (late || k->count == k->most)) {
            old = kept_take_first(k, m);
        } else {
            given = true;
            if (k->most) {
                k->items[k->count++] = (kept_session){ session, now };
                kept_note_idle(m, 1, 0);
                old = NULL;
            }
        }
        pthread_mutex_unlock(&k->lock);
        if (old) kept_count(m, PITH_COUNT_sessions_evicted);
        pith__model_destroy_session(old);
    }
}

/* ---- results ---- */

enum { OWNED_ALIGNMENT = 64 };

typedef struct owned_block {
    pith_allocator allocator;
    char padding[OWNED_ALIGNMENT - sizeof(pith_allocator)];
} owned_block;
_Static_assert(sizeof(owned_block) == OWNED_ALIGNMENT, "what follows the header is aligned");

static size_t owned_round(size_t bytes) {
    return (bytes + OWNED_ALIGNMENT - 1) & ~(size_t)(OWNED_ALIGNMENT - 1);
}

static void *owned_place(void *at, size_t bytes) {
    char **end = at, *place = *end;
    *end += owned_round(bytes);
    return place;
}

/* What pith__tensor_copy asks owned_place for. The tensors lie in memory, so that a sum of their
 * sizes and of some padding does not overflow. */
static size_t owned_bytes(const pith_tensor *t) {
    size_t bytes = owned_round(t->bytes);
    if (t->dtype == PITH_SEQUENCE) {
        const pith_tensor *items = t->data;
        for (int64_t i = 0; i < t->dims[0]; i++) bytes += owned_bytes(&items[i]);
    } else if (t->dtype == PITH_STRING) {
        const pith_str *strings = t->data;
        for (size_t i = 0; i < t->bytes / sizeof *strings; i++)
            bytes += owned_round(strings[i].size);
    }
    return bytes;
}

/* Replaces what a session lent by a copy. */
static pith_status own(pith_tensor *t, const pith_allocator *allocator, pith__stop *stop,
                       pith_error *err) {
    const size_t bytes = sizeof(owned_block) + owned_bytes(t);
    owned_block *block = pith__memory_alloc(allocator, bytes, OWNED_ALIGNMENT);
    if (!block) return pith__fail_memory(err, bytes);
    block->allocator = *allocator;
    char *end = (char *)(block + 1);
    const pith_status status = pith__tensor_copy(t, t, owned_place, &end, stop, err);
    if (status) pith__memory_free(allocator, block);
    return status;
}

void pith__tensor_free(pith_tensor *tensor) {
    if (!tensor) return;
    if (tensor->data) {
        owned_block *block = (owned_block *)tensor->data - 1;
        const pith_allocator allocator = block->allocator;
        pith__memory_free(&allocator, block);
    }
    *tensor = (pith_tensor){ .data = NULL };
}

static pith_status own_all(pith_tensor *outputs, size_t count, const pith_allocator *allocator,
                           pith__stop *stop, pith_error *err) {
    for (size_t i = 0; i < count; i++) {
        pith_status status = own(&outputs[i], allocator, stop, err);
        if (!status) continue;
        while (i) pith__tensor_free(&outputs[--i]);
        return status;
    }
    return PITH_OK;
}

pith_status pith__model_run_kept(pith_tensor *outputs, const pith_model *model,
                                 const char *const *names, const pith_tensor *inputs,
                                 size_t input_count, const pith_run_options *options,
                                 pith_error *err) {
    pith_run_options o = PITH_RUN_OPTIONS_INIT;
    kept_list *list;
    pith_session *session = NULL;
    pith__stop stop;
    PITH_TAKE_OPTIONS(o, options, err);
    const bool some = o.output_names || o.output_count;
    const size_t count = some ? o.output_count : model->graph->output_count;
    const pith_allocator *allocator =
        o.call.allocator ? o.call.allocator : &pith__allocator_default;
    pith_status status = kept_find(&list, model, err);
    if (!status) status = kept_take(&session, list, model, err);
    if (!status)
        status = pith__model_run_session(session, outputs, names, inputs, input_count, &o, err);
    if (!status) status = own_all(outputs, count, allocator, pith__stop_begin(&stop, &o.call), err);
    if (session) kept_give(list, model, session);
    if (status && count) memset(outputs, 0, count * sizeof *outputs);
    return status;
}
