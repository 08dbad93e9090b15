/* copy_order.c - copies begin as soon as there is something to copy.
 *
 * Placing puts a copy in front of the first step that reads it, which would wait for it at once.
 * Behind the step that makes its input, the steps in between run beside it. Copies of inputs come
 * first. The price is memory: what is copied early is there for longer. */
#include "engine/plan/claimed_nodes.h"

typedef struct copy_order {
    const pith__plan *plan;
    pith__step *steps; /* in the new order */
    size_t count;
    uint32_t *first; /* [steps + 1]: of the copies of what a step makes, 1 + index; [0]: of what is
                        there before all steps */
    uint32_t *next;  /* [steps]: the next copy of the same */
} copy_order;

/* A copy may be copied itself: from one device to another the way leads through the host. */
static void order_put_copies(copy_order *o, size_t maker) {
    for (uint32_t at = o->first[maker]; at; at = o->next[at - 1]) {
        o->steps[o->count++] = o->plan->steps[at - 1];
        order_put_copies(o, at);
    }
}

static pith_status order_make(copy_order *o, pith__arena *scratch, pith_error *err) {
    const pith__plan *plan = o->plan;
    const size_t steps = plan->step_count;
    uint32_t *maker = pith__arena_array(scratch, plan->value_count, sizeof *maker);
    o->steps = pith__arena_array(scratch, steps, sizeof *o->steps);
    o->first = pith__arena_array(scratch, steps + 1, sizeof *o->first);
    o->next = pith__arena_array(scratch, steps, sizeof *o->next);
    if (!maker || !o->steps || !o->first || !o->next)
        return pith__fail_memory(err, steps * sizeof *o->steps);
    for (size_t i = 0; i < steps; i++)
        for (int k = 0; k < plan->steps[i].out_count; k++)
            if (plan->steps[i].out[k]) maker[plan->steps[i].out[k]->id] = (uint32_t)i + 1;
    for (size_t i = steps; i-- > 0;) {
        if (!plan->steps[i].is_copy) continue;
        uint32_t *first = &o->first[maker[plan->steps[i].in[0]->id]];
        o->next[i] = *first;
        *first = (uint32_t)i + 1;
    }
    order_put_copies(o, 0);
    for (size_t i = 0; i < steps; i++) {
        if (plan->steps[i].is_copy) continue;
        o->steps[o->count++] = plan->steps[i];
        order_put_copies(o, i + 1);
    }
    memcpy(plan->steps, o->steps, steps * sizeof *o->steps);
    return PITH_OK;
}

pith_status pith__copies_order(pith__plan *plan, pith_error *err) {
    pith__arena scratch;
    pith__arena_init(&scratch, plan->arena->allocator);
    copy_order o = { .plan = plan };
    const pith_status status = order_make(&o, &scratch, err);
    pith__arena_free(&scratch);
    return status;
}
