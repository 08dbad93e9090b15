/* elementwise_tails.c - elementwise steps that run with the step whose output they change: the part
 * "tails". */
#include "engine/exec/run_state.h"
#include "engine/ops/shared/call_op.h"

/* Whether an operand of step `index`, beside the one it changes, is there when step `host` runs. */
static bool is_ready(const pith__binder *k, const pith__value *value, uint32_t host) {
    return k->maker[value->id] == UINT32_MAX || k->maker[value->id] < host;
}

/* The step that may run this one in its tail, on its input `at`; UINT32_MAX: none. The value must
 * be what that step or the last one of its tail made, must be of no further use, and must have the
 * shape and dtype of the result, which takes its place. The step must take tails, have room for one
 * more, and run on the same CPU backend. All other operands must be made before it runs, since the
 * tail runs within it. */
static uint32_t tail_host(const pith__binder *k, const pith__step *step,
                          const pith__bound_step *bound, uint32_t index, int at) {
    const pith__value *value = step->in[at];
    const uint32_t host = value ? k->maker[value->id] : UINT32_MAX;
    if (host == UINT32_MAX || value->user_count != 1 || value->output_uses ||
        k->end[value->id] != index || k->slot_of[value->id] == PITH_NO_SLOT)
        return UINT32_MAX;
    const pith__step *by = &k->plan->steps[host];
    const pith__bound_step *made = &k->binding->steps[host];
    const uint32_t last = made->tail_count ? made->tail[made->tail_count - 1] : host;
    if (made->mode != PITH_BOUND_RUN || !(by->node->op->flags & PITH_OP_TAILS) ||
        made->tail_count == PITH_TAIL_MAX || by->device->backend != &pith__backend_cpu ||
        step->device != by->device || by->memory || k->plan->steps[last].out[0] != value)
        return UINT32_MAX;
    if (bound->out[0]->dtype != bound->in[at]->dtype ||
        !pith__tensor_same_shape(bound->out[0], bound->in[at]))
        return UINT32_MAX;
    for (int i = 0; i < step->in_count; i++)
        if (i != at && step->in[i] && !is_ready(k, step->in[i], host)) return UINT32_MAX;
    return host;
}

/* Puts an elementwise step into the tail of the step whose output it changes, if there is one. */
static bool join_tail(pith__binder *k, const pith__step *step, const pith__bound_step *bound,
                      uint32_t index) {
    const pith__op *op = step->node->op;
    uint32_t host = UINT32_MAX;
    if (!op->elementwise || !(op->flags & PITH_OP_IN_PLACE) || step->memory || step->out_count != 1)
        return false;
    pith__elementwise e;
    pith__exec exec = { .threads = 1, .isa = k->plan->isa };
    const pith__run run =
        pith__invoke_run(step->node, step->state, bound->in, bound->out, &exec, NULL);
    if (!bound->out[0] || !op->elementwise(&run, &e)) return false;
    int at = 0;
    while (at < step->in_count && (host = tail_host(k, step, bound, index, at)) == UINT32_MAX) at++;
    if (host == UINT32_MAX) return false;
    pith__bound_step *made = &k->binding->steps[host];
    const uint32_t id = step->out[0]->id;
    made->tail[made->tail_count++] = index;
    k->slot_of[id] = k->slot_of[step->in[at]->id];
    k->maker[id] = host;
    pith__slot *slot = pith__binder_slot(k, step->out[0]);
    slot->end = k->end[id] == UINT32_MAX ? index : k->end[id];
    pith__part_used("tails");
    return true;
}

/* The steps of the tail; runs: [PITH_TAIL_MAX], which the tail refers to. */
static void add_tail(pith__tail *tail, pith__run *runs, pith__running *r,
                     const pith__bound_step *bound) {
    tail->count = 0;
    const bool *skips = r->executor->skips; /* each step of a tail needs the one before */
    for (int i = 0; i < bound->tail_count && !(skips && skips[bound->tail[i]]); i++) {
        const pith__step *step = &r->executor->plan->steps[bound->tail[i]];
        const pith__bound_step *own = &r->binding->steps[bound->tail[i]];
        runs[i] = pith__invoke_run(step->node, step->state, own->in, own->out, &r->exec, NULL);
        pith__tail_add(tail, &runs[i]);
    }
}

const pith__part pith__part_tails = { "tails", &(const pith__tails_part){ join_tail, add_tail } };
