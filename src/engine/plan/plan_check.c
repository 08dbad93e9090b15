/* plan_check.c - checks the invariants of plan.h, as graph_check.c does those of a graph.
 *
 * One walk over the steps in their order marks what is made, and finds every input that is read
 * before. The same walk counts the last readers anew and compares them with plan->last_use, on
 * which the binding's places rest. Builds with assertions call it for every plan. Memory comes from
 * the C library: tests that count or refuse the requests of a plan do not see those of a check. Not
 * checked: what backends keep in step->state, and the contents of packed constants. */
#include <stdlib.h>

#include "base/dtype.h"
#include "engine/plan/placement.h"

typedef struct checked {
    bool made;
    uint32_t last_use;
} checked;

static pith_status plan_wrong(const pith__step *step, pith_error *err, const char *what) {
    char place[256];
    return pith__fail(err, PITH_ERR_FORMAT, "%s: %s",
                      pith__node_place(step->node, place, sizeof place), what);
}

static bool plan_owns(const pith__plan *plan, const pith__value *value) {
    return value->id < plan->value_count && plan->values[value->id] == value;
}

/* What is there before the first step. */
static bool plan_is_given(const pith__plan *plan, size_t id) {
    const pith__value *value = plan->values[id];
    return value->kind == PITH_VALUE_INPUT || value->kind == PITH_VALUE_CAPTURE ||
           plan->constants[id] || pith__value_is_symbolic(value);
}

static pith_status plan_check_step(const pith__plan *plan, uint32_t index, checked *values,
                                   pith_error *err) {
    const pith__step *step = &plan->steps[index];
    if (!step->device) return plan_wrong(step, err, "no device runs it");
    if (!step->run && !(step->node->op->flags & PITH_OP_VIEW))
        return plan_wrong(step, err, "it has no kernel");
    if (step->memory < 0 || (size_t)step->memory >= plan->devices->memory_count)
        return plan_wrong(step, err, "its memory is none of the plan's");
    if (pith__node_in_room(step->node) > plan->widest_in ||
        pith__node_out_room(step->node) > plan->widest_out)
        return plan_wrong(step, err, "it has more inputs or outputs than the widest step");
    for (int i = 0; i < step->in_count; i++) {
        const pith__value *value = step->in[i];
        if (!value) continue;
        if (!plan_owns(plan, value)) return plan_wrong(step, err, "an input is not of this plan");
        if (!values[value->id].made)
            return plan_wrong(step, err, "an input is read before it is made");
        values[value->id].last_use = index;
    }
    for (int i = 0; i < step->out_count; i++) {
        const pith__value *value = step->out[i];
        if (!value) continue;
        if (!plan_owns(plan, value)) return plan_wrong(step, err, "an output is not of this plan");
        if (plan->memory_of[value->id] != step->memory)
            return plan_wrong(step, err, "an output lies in another memory than the step's");
        values[value->id].made = true;
    }
    for (size_t i = 0; i < step->subplan_count; i++)
        PITH_TRY(pith__plan_check(step->subplans[i].plan, err));
    return PITH_OK;
}

/* A constant has the bytes that its shape needs, and they are somewhere: only what is packed, or
 * lies in a device's memory where nobody reads it, may be without. */
static pith_status plan_check_constants(const pith__plan *plan, pith_error *err) {
    for (size_t i = 0; i < plan->value_count; i++) {
        const pith_tensor *t = plan->constants[i];
        if (!t) continue;
        size_t bytes;
        const bool sized =
            pith__dtype_bytes(t->dtype, pith__dims_count(t->dims, t->rank), &bytes) &&
            bytes <= t->bytes;
        const bool may_lack = plan->values[i]->kind == PITH_VALUE_PACKED || plan->memory_of[i];
        if (!sized || (t->bytes && !t->data && !may_lack))
            return pith__fail(err, PITH_ERR_FORMAT,
                              "constant '" PITH_STR_FMT "' lacks bytes of its shape",
                              PITH_STR_ARG(plan->values[i]->name));
    }
    return PITH_OK;
}

/* The packed forms follow the order of the steps and do not reach into each other. Those of one
 * plan are one block, in the same order, so neighbours tell. */
static pith_status plan_check_packed(const pith__plan *plan, pith_error *err) {
    size_t at = 0;
    const char *end = NULL;
    for (size_t i = 0; i < plan->packed_count; i++) {
        const pith__packed_step *p = &plan->packed[i];
        while (at < plan->step_count && plan->steps[at].node != p->node) at++;
        if (at == plan->step_count)
            return pith__fail(err, PITH_ERR_FORMAT, "packed constant %zu is of no step", i);
        if (p->ready) continue;
        const char *data = *p->packed;
        if ((p->pack.bytes && !data) || (uintptr_t)data % 64)
            return plan_wrong(&plan->steps[at], err, "its packed constant is nowhere");
        if (end && data < end)
            return plan_wrong(&plan->steps[at], err, "its packed constant lies in another");
        end = data + p->pack.bytes;
    }
    return PITH_OK;
}

static pith_status plan_check_uses(const pith__plan *plan, checked *values, pith_error *err) {
    for (size_t i = 0; i < plan->graph->output_count; i++) {
        const pith__value *value = plan->outputs[i];
        if (!plan_owns(plan, value) || !values[value->id].made || plan->memory_of[value->id])
            return pith__fail(err, PITH_ERR_FORMAT, "output %zu is not made in host memory", i);
        values[value->id].last_use = (uint32_t)plan->step_count;
    }
    for (size_t i = 0; i < plan->value_count; i++)
        if (values[i].last_use != plan->last_use[i])
            return pith__fail(err, PITH_ERR_FORMAT,
                              "value '" PITH_STR_FMT "': the last step that reads it is wrong",
                              PITH_STR_ARG(plan->values[i]->name));
    return PITH_OK;
}

static pith_status plan_check_all(const pith__plan *plan, checked *values, pith_error *err) {
    for (size_t i = 0; i < plan->value_count; i++)
        values[i] = (checked){ .made = plan_is_given(plan, i), .last_use = UINT32_MAX };
    for (size_t i = 0; i < plan->step_count; i++)
        PITH_TRY(plan_check_step(plan, (uint32_t)i, values, err));
    PITH_TRY(plan_check_uses(plan, values, err));
    PITH_TRY(plan_check_constants(plan, err));
    return plan_check_packed(plan, err);
}

pith_status pith__plan_check(const pith__plan *plan, pith_error *err) {
    if (!plan->last_use) return PITH_OK; /* it has a fault, or a device lacks an operator */
    checked *values = calloc(plan->value_count + 1, sizeof *values);
    if (!values) return pith__fail_memory(err, plan->value_count * sizeof *values);
    pith_status status = plan_check_all(plan, values, err);
    free(values);
    return status;
}
