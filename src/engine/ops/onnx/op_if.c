/* op_if.c - If: one of two subgraphs. Its outputs are known when the condition is; shapes are left
 * to the run. */
#include "base/dtype.h"
#include "engine/ops/op.h"

/* What both branches agree on. */
static void if_join(pith__type *a, const pith__type *b) {
    if (a->dtype != b->dtype) a->dtype = PITH_UNDEFINED;
    if (a->item_dtype != b->item_dtype) a->item_dtype = PITH_UNDEFINED;
    if (a->rank != b->rank) a->rank = -1;
    for (int i = 0; i < a->rank; i++)
        if (!pith__dim_equal(a->dims[i], b->dims[i])) a->dims[i] = PITH_DIM_UNKNOWN;
}

/* Types of a branch's outputs. A branch whose shapes cannot be is left in its graph's fault, since
 * it may never be taken: exporters write a branch for each rank that an input can have. *possible
 * becomes false then. */
static pith_status if_branch(pith__infer *c, const char *attribute, pith__type *out,
                             bool *possible) {
    pith__graph *graph = pith__node_graph(c->node, attribute);
    pith_error fault = PITH_ERROR_INIT;
    pith__infer inner = *c;
    inner.err = &fault;
    if (!c->dims || c->strict || !graph || graph->output_count != (size_t)c->out_count ||
        graph->input_count)
        return pith__infer_subgraph(c, attribute, NULL, 0, out, (size_t)c->out_count);
    pith_status status =
        pith__infer_subgraph(&inner, attribute, NULL, 0, out, (size_t)c->out_count);
    graph->fault = PITH_STR("");
    *possible = !status;
    if (!status) return PITH_OK;
    if (status != PITH_ERR_FORMAT && status != PITH_ERR_RUN && status != PITH_ERR_ARGUMENT)
        return pith__fail(c->err, status, "%s", fault.message);
    graph->fault = pith__arena_str(graph->arena, pith__str_of(fault.message));
    return graph->fault.data ? PITH_OK : pith__fail_memory(c->err, sizeof fault.message);
}

/* A branch that is known not to be taken says nothing of the outputs. */
static pith_status if_infer(pith__infer *c) {
    size_t count = (size_t)c->out_count;
    bool possible[2] = { true, true };
    pith__dim condition = PITH_DIM_UNKNOWN;
    pith__type *other = pith__arena_array(c->arena, count, sizeof *other);
    if (!other) return pith__fail_memory(c->err, count * sizeof *other);
    PITH_TRY(if_branch(c, "then_branch", c->out, &possible[0]));
    PITH_TRY(if_branch(c, "else_branch", other, &possible[1]));
    if (pith__type_count(c->in[0]) != 1 || !pith__type_elem(c->in[0], 0, &condition))
        condition = PITH_DIM_UNKNOWN;
    if (pith__dim_known(condition)) possible[condition != 0] = false;
    if (!possible[0] && !possible[1]) {
        const bool taken = pith__dim_known(condition) && !condition;
        const char *attribute = taken ? "else_branch" : "then_branch";
        return pith__fail(c->err, PITH_ERR_FORMAT, PITH_STR_FMT,
                          PITH_STR_ARG(pith__node_graph(c->node, attribute)->fault));
    }
    for (size_t i = 0; i < count; i++) {
        if (!possible[0]) c->out[i] = other[i];
        if (possible[0] && possible[1]) if_join(&c->out[i], &other[i]);
    }
    return PITH_OK;
}

/* The branch's outputs live until the end of the run and are handed on without a copy. */
static pith_status if_run(pith__run *r) {
    const pith_tensor *condition = r->in[0];
    if (condition->dtype != PITH_BOOL || pith__tensor_count(condition) != 1) {
        return pith__op_fail(r, "the condition is not one bool");
    }
    size_t count = (size_t)r->out_count;
    pith_tensor *made = r->exec->alloc(r->exec, count * sizeof *made);
    if (!made) return pith__fail_memory(r->err, count * sizeof *made);
    const char *branch = *(const uint8_t *)condition->data ? "then_branch" : "else_branch";
    PITH_TRY(r->exec->subgraph(r->exec, r, branch, NULL, 0, made, count));
    for (size_t i = 0; i < count; i++)
        if (r->out[i]) *r->out[i] = made[i];
    return PITH_OK;
}

const pith__op pith__op_If = { .domain = "",
                               .name = "If",
                               .since = 1,
                               .newest = 25,
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .max_outputs = -1,
                               .types = "b",
                               .attrs = "else_branch graph!; then_branch graph!",
                               .flags = PITH_OP_FIRST_OPTIONAL | PITH_OP_LATE,
                               .infer = if_infer,
                               .run = if_run };
