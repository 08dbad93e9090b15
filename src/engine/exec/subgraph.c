/* subgraph.c - runs the graphs that steps own, such as the branches of an If: the part "subgraphs".
 */
#include "engine/exec/run_state.h"

static void end_children(pith__executor *e, pith__binding *b) {
    if (!b->steps) return;
    for (size_t i = 0; i < e->plan->step_count; i++) {
        pith__child **children = b->steps[i].children;
        if (!children) continue;
        for (size_t s = 0; s < e->plan->steps[i].subplan_count; s++)
            if (children[s]) pith__executor_destroy(children[s]->executor);
    }
}

static void end_results(pith__executor *e) {
    for (size_t i = 0; i < e->plan->step_count; i++) {
        pith__child_results *results = e->results[i];
        if (!results) continue;
        for (size_t s = 0; s < e->plan->steps[i].subplan_count; s++) {
            pith__kept_free(&results[s].kept);
            pith__tree_count(e->tree, 0, results[s].counted);
        }
    }
}

static pith__child_results *step_results(pith__running *r, size_t which) {
    pith__executor *e = r->executor;
    pith__child_results **results = &e->results[r->step];
    if (*results) return *results + which;
    size_t count = e->plan->steps[r->step].subplan_count;
    *results = pith__arena_array(&e->arena, count, sizeof **results);
    if (!*results) return NULL;
    for (size_t s = 0; s < count; s++) pith__kept_init(&(*results)[s].kept, &e->allocator);
    return *results + which;
}

/* The root's arena holds the levels, since executors of subgraphs may end before others of their
 * depth. */
static pith_status make_child(pith__child **out, pith__running *r, size_t which, pith_error *err) {
    pith__executor *e = r->executor;
    const pith__plan *plan = e->plan->steps[r->step].subplans[which].plan;
    pith__child *child = pith__arena_array(&r->binding->arena, 1, sizeof *child);
    if (!child) return pith__fail_memory(err, sizeof *child);
    child->results = step_results(r, which);
    if (!child->results) return pith__fail_memory(err, sizeof *child->results);
    PITH_TRY(pith__level_make(&e->level->below, e->tree->arena, plan->devices->memory_count, err));
    PITH_TRY(pith__executor_make(&child->executor, plan, &e->options, e, r->binding->symbols, err));
    *out = child;
    return PITH_OK;
}

static void count_kept(pith__executor *e, pith__child_results *results) {
    size_t total = pith__kept_bytes(&results->kept);
    pith__tree_count(e->tree, total, results->counted);
    results->counted = total;
}

/* Runs the graph in an attribute of the running step. Its executor is made at the first call and
 * kept by the binding. The captures are the last inputs of the step; they follow the graph's own
 * inputs as ports. The results are copied out of the buffer that all executors of this depth share
 * before the next graph runs (pith__kept_keep). */
static pith_status run_subgraph(pith__exec *exec, const pith__run *run, const char *attribute,
                                const pith_tensor *inputs, size_t input_count, pith_tensor *outputs,
                                size_t output_count) {
    pith__running *r = (pith__running *)exec;
    const pith__step *step = &r->executor->plan->steps[r->step];
    size_t which = 0;
    while (which < step->subplan_count && !pith__str_is(step->subplans[which].attribute, attribute))
        which++;
    if (which == step->subplan_count) {
        return pith__fail(run->err, PITH_ERR_FORMAT, "attribute '%s' is missing", attribute);
    }
    const pith__plan *plan = step->subplans[which].plan;
    if (input_count != plan->graph->input_count || output_count != plan->graph->output_count) {
        return pith__fail(run->err, PITH_ERR_FORMAT,
                          "'%s' has %zu inputs and %zu outputs, not %zu and %zu", attribute,
                          plan->graph->input_count, plan->graph->output_count, input_count,
                          output_count);
    }
    if (plan->graph->fault.size) {
        return pith__fail(run->err, PITH_ERR_RUN, PITH_STR_FMT, PITH_STR_ARG(plan->graph->fault));
    }
    pith__child **child = &r->binding->steps[r->step].children[which];
    if (!*child) PITH_TRY(make_child(child, r, which, run->err));
    pith__executor *e = (*child)->executor;
    size_t captures = plan->graph->capture_count;
    for (size_t i = 0; i < input_count; i++) e->given[i] = inputs[i];
    for (size_t i = 0; i < captures; i++) {
        const pith_tensor *outer = run->in[(size_t)run->in_count - captures + i];
        e->given[input_count + i] = outer ? *outer : (pith_tensor){ .dtype = PITH_UNDEFINED };
    }
    pith_status status =
        pith__executor_run_ports(e, outputs, e->given, exec->threads, exec->stop, run->err);
    if (status)
        return pith__status_stops(status) ? status
                                          : pith__fail_at(run->err, status, "%s: ", attribute);
    status = pith__kept_keep(&(*child)->results->kept, outputs, output_count, e->given,
                             input_count + captures, exec->stop, run->err);
    count_kept(r->executor, (*child)->results);
    return status;
}

const pith__part pith__part_subgraphs = {
    "subgraphs", &(const pith__subgraphs_part){ run_subgraph, end_children, end_results }
};
