/* binding_check.c - checks that no two values of a binding lie in the same memory while both are
 * needed.
 *
 * Every value with a place is a span of a buffer and a span of steps. Views, results that were
 * written over an input, and elementwise steps in the tail of another share a place on purpose:
 * they are joined into one holder, whose spans cover all of them. What is left must be disjoint, in
 * memory or in time; holders are visited by their first step, and only those that still live are
 * compared. Builds with assertions call it for every binding. Memory comes from the C library:
 * tests that count or refuse requests do not see those of a check. Not checked: what late steps are
 * given during a run, and bindings whose values have memory of their own (pith__bind.separate). */
#include <stdlib.h>

#include "engine/exec/branches.h"

/* A span [offset, end) of a memory, needed from step begin to step last. */
typedef struct holder {
    size_t offset, end;
    uint32_t begin, last;
    int memory;
    bool used;       /* has a place */
    uint32_t joined; /* by value: another value of the same holder, or itself */
} holder;

typedef struct binding_checker {
    const pith__binding *b;
    const pith__plan *plan;
    holder *holders; /* by value id, then the scratch of each step */
    uint32_t *host;  /* by step: the step whose tail it is in, or itself */
    pith_error *err;
} binding_checker;

static uint32_t holder_of(binding_checker *k, uint32_t id) {
    while (k->holders[id].joined != id) id = k->holders[id].joined;
    return id;
}

static void holder_join(binding_checker *k, uint32_t a, uint32_t b) {
    a = holder_of(k, a);
    b = holder_of(k, b);
    if (a == b) return;
    holder *to = &k->holders[a], *from = &k->holders[b];
    if (from->offset < to->offset) to->offset = from->offset;
    if (from->end > to->end) to->end = from->end;
    if (from->begin < to->begin) to->begin = from->begin;
    if (from->last > to->last) to->last = from->last;
    from->joined = a;
    from->used = false;
}

static pith_status binding_wrong(const binding_checker *k, size_t step, const char *what) {
    char place[256];
    return pith__fail(k->err, PITH_ERR_FORMAT, "%s: %s",
                      pith__node_place(k->plan->steps[step].node, place, sizeof place), what);
}

/* The places, and that each is inside of its buffer. */
static pith_status take_places(binding_checker *k) {
    for (size_t i = 0; i < k->b->placed_count; i++) {
        const pith__placed *p = &k->b->placed[i];
        const size_t id = (size_t)(p->tensor - k->b->tensors);
        if (id >= k->plan->value_count || p->memory != k->plan->memory_of[id])
            return pith__fail(k->err, PITH_ERR_FORMAT, "place %zu is of no value", i);
        holder *h = &k->holders[id];
        h->offset = p->offset;
        h->end = p->offset + p->tensor->bytes;
        h->memory = p->memory;
        h->used = true;
        if (h->end < h->offset || h->end > k->b->memories[p->memory].bytes)
            return pith__fail(k->err, PITH_ERR_FORMAT,
                              "value '" PITH_STR_FMT "' lies outside of the buffer",
                              PITH_STR_ARG(k->plan->values[id]->name));
    }
    return PITH_OK;
}

/* Joins what a step made with the input that it shares memory with. Sharing is allowed for a view
 * of input 0, and for an operator that works in place on an input that ends with this step. Any
 * other overlap leaves two holders, which compare_holders then reports. */
static pith_status take_step(binding_checker *k, uint32_t index) {
    const pith__step *step = &k->plan->steps[index];
    const uint32_t flags = step->node->op->flags;
    for (int i = 0; i < step->out_count; i++) {
        if (!step->out[i] || !k->holders[step->out[i]->id].used) continue;
        holder *out = &k->holders[step->out[i]->id];
        const uint32_t last = k->plan->last_use[step->out[i]->id];
        out->begin = k->host[index];
        out->last = last == UINT32_MAX ? index : last;
        if (i > 0) continue;
        for (int j = 0; j < step->in_count; j++) {
            if (!step->in[j]) continue;
            const uint32_t from = holder_of(k, step->in[j]->id);
            const holder *in = &k->holders[from];
            if (!in->used || in->memory != out->memory) continue;
            const bool view = flags & PITH_OP_VIEW && j == 0;
            if (view && (out->offset < in->offset || out->end > in->end))
                return binding_wrong(k, index, "a view reaches out of what it shows");
            const bool over = flags & PITH_OP_IN_PLACE && in->last <= index;
            if (in->offset != out->offset || (!view && !over)) continue;
            holder_join(k, from, step->out[0]->id);
            break;
        }
    }
    return PITH_OK;
}

static const pith__region *region_at(const pith__binding *b, uint32_t step) {
    for (size_t i = 0; i < b->region_count; i++)
        if (b->regions[i].begin <= step && step < b->regions[i].end) return &b->regions[i];
    return NULL;
}

/* Steps that run side by side keep what they touch until all of them are done. */
static void holder_widen(const binding_checker *k, holder *h) {
    const pith__region *first = region_at(k->b, h->begin), *last = region_at(k->b, h->last);
    if (h->memory) return;
    if (first) h->begin = first->begin;
    if (last) h->last = last->end - 1;
}

/* Spans of memory and of steps that meet. */
static bool holders_meet(const holder *a, const holder *b) {
    return a->memory == b->memory && a->offset < b->end && b->offset < a->end &&
           a->begin <= b->last && b->begin <= a->last;
}

/* A sweep over the steps with the list of holders that are alive: each holder is compared with
 * those only when it begins. The cost is the number of holders times the number that live at one
 * time, and two that never live together are never compared. next: by holder, the next one that
 * begins at the same step, 1 + index; live: the holders whose last step is not over. */
static pith_status compare_holders(binding_checker *k, size_t count, uint32_t *first,
                                   uint32_t *next, uint32_t *live) {
    size_t lives = 0;
    for (size_t i = 0; i < count; i++) {
        holder *h = &k->holders[i];
        if (!h->used || h->joined != i) continue;
        holder_widen(k, h);
        next[i] = first[h->begin];
        first[h->begin] = (uint32_t)i + 1;
    }
    for (uint32_t step = 0; step < k->plan->step_count; step++) {
        for (size_t i = lives; i-- > 0;)
            if (k->holders[live[i]].last < step) live[i] = live[--lives];
        for (uint32_t at = first[step]; at; at = next[at - 1]) {
            for (size_t i = 0; i < lives; i++)
                if (holders_meet(&k->holders[at - 1], &k->holders[live[i]]))
                    return binding_wrong(k, step, "it shares memory with what is still needed");
            live[lives++] = at - 1;
        }
    }
    return PITH_OK;
}

static pith_status binding_check_all(binding_checker *k, size_t count, uint32_t *room) {
    const size_t values = k->plan->value_count, steps = k->plan->step_count;
    for (size_t i = 0; i < count; i++) k->holders[i].joined = (uint32_t)i;
    for (uint32_t i = 0; i < steps; i++) k->host[i] = i;
    for (uint32_t i = 0; i < steps; i++)
        for (int t = 0; t < k->b->steps[i].tail_count; t++) k->host[k->b->steps[i].tail[t]] = i;
    PITH_TRY(take_places(k));
    for (uint32_t i = 0; i < steps; i++) {
        const pith__bound_step *bound = &k->b->steps[i];
        PITH_TRY(take_step(k, i));
        if (bound->mode != PITH_BOUND_RUN || !bound->scratch_bytes) continue;
        const int memory = k->plan->steps[i].memory;
        k->holders[values + i] = (holder){ .offset = bound->scratch,
                                           .end = bound->scratch + bound->scratch_bytes,
                                           .begin = i,
                                           .last = i,
                                           .memory = memory,
                                           .used = true,
                                           .joined = (uint32_t)(values + i) };
        if (bound->scratch + bound->scratch_bytes > k->b->memories[memory].bytes)
            return binding_wrong(k, i, "its scratch lies outside of the buffer");
    }
    return compare_holders(k, count, room, room + steps, room + steps + count);
}

pith_status pith__binding_check(const pith__binding *binding, const pith__plan *plan,
                                pith_error *err) {
    if (binding->separate.slots) return PITH_OK;
    const size_t steps = plan->step_count, count = plan->value_count + steps;
    binding_checker k = { .b = binding, .plan = plan, .err = err };
    k.holders = calloc(count + 1, sizeof *k.holders);
    uint32_t *room = calloc(2 * steps + 2 * count + 1, sizeof *room);
    k.host = room;
    pith_status status = k.holders && room ? binding_check_all(&k, count, room + steps)
                                           : pith__fail_memory(err, count * sizeof *k.holders);
    free(k.holders);
    free(room);
    return status;
}
