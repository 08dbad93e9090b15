/* output_subsets.c - see output_subsets.h. */
#include "engine/exec/output_subsets.h"

#include <string.h>

#include "base/error.h"
#include "base/optional_part.h"
#include "engine/exec/executor_memory.h"

/* A walk from the last step to the first has seen all readers of a value before the step that makes
 * it. What the steps of owned graphs read are inputs of the owner. */
static void mark_skips(bool *skips, bool *needed, const pith__plan *plan, const bool *wanted) {
    for (size_t i = 0; i < plan->graph->output_count; i++)
        if (wanted[i]) needed[plan->outputs[i]->id] = true;
    for (size_t i = plan->step_count; i-- > 0;) {
        const pith__step *step = &plan->steps[i];
        skips[i] = true;
        for (int k = 0; k < step->out_count; k++)
            if (step->out[k] && needed[step->out[k]->id]) skips[i] = false;
        if (skips[i]) continue;
        for (int k = 0; k < step->in_count; k++)
            if (step->in[k]) needed[step->in[k]->id] = true;
    }
}

/* One that is of no use yet, else the one unused for longest. Its arrays are made with it, so that
 * an executor holds no more than PITH_SUBSETS_MOST of them. */
static pith_status take_subset(pith__subset **subset, pith__executor *e, pith_error *err) {
    const size_t outputs = e->plan->graph->output_count, steps = e->plan->step_count;
    pith__subset *s = &e->subsets->items[0];
    for (size_t i = 1; i < PITH_SUBSETS_MOST && s->wanted; i++)
        if (!e->subsets->items[i].wanted || e->subsets->items[i].last_used < s->last_used)
            s = &e->subsets->items[i];
    if (!s->wanted) {
        bool *both = pith__arena_array(&e->arena, outputs + steps, sizeof *both);
        if (!both) return pith__fail_memory(err, outputs + steps);
        s->wanted = both;
        s->skips = both + outputs;
    }
    *subset = s;
    return PITH_OK;
}

static pith_status find_subset(const bool **skips, pith__executor *e, pith_error *err) {
    const size_t outputs = e->plan->graph->output_count;
    if (!e->subsets) e->subsets = pith__arena_array(&e->arena, 1, sizeof *e->subsets);
    if (!e->subsets) return pith__fail_memory(err, sizeof *e->subsets);
    pith__subset *s = NULL;
    for (size_t i = 0; i < PITH_SUBSETS_MOST && !s; i++) {
        pith__subset *known = &e->subsets->items[i];
        if (known->wanted && !memcmp(known->wanted, e->wanted, outputs * sizeof *e->wanted))
            s = known;
    }
    if (!s) {
        pith__arena_reset(&e->scratch);
        bool *needed = pith__arena_array(&e->scratch, e->plan->value_count, sizeof *needed);
        if (!needed) return pith__fail_memory(err, e->plan->value_count);
        PITH_TRY(take_subset(&s, e, err));
        memcpy(s->wanted, e->wanted, outputs * sizeof *e->wanted);
        mark_skips(s->skips, needed, e->plan, s->wanted);
    }
    s->last_used = ++e->subsets->clock;
    *skips = s->skips;
    return PITH_OK;
}

static pith_status read_asked(bool *wanted, size_t *order, const pith__asked_outputs *asked,
                              pith_error *err) {
    if (!asked->count || !asked->names)
        return pith__fail(err, PITH_ERR_ARGUMENT, "output_names names no output");
    for (size_t i = 0; i < asked->count; i++) {
        size_t output;
        const pith_status status = asked->find(&output, asked->model, asked->names[i], err);
        if (status) return pith__fail_at(err, status, "output_names[%zu]: ", i);
        if (wanted[output])
            return pith__fail(err, PITH_ERR_ARGUMENT, "output_names: '%s' is there twice",
                              asked->names[i]);
        wanted[output] = true;
        order[i] = output;
    }
    pith__part_used("subsets");
    return PITH_OK;
}

const pith__part pith__part_subsets = { "subsets", &(const pith__subsets_part){
                                                       .read = read_asked, .find = find_subset } };
