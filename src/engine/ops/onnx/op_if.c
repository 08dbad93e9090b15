/* op_if.c - If: one of two subgraphs. Its outputs are known when the condition is; shapes are left to the run. */
#include "base/dtype.h"
#include "engine/ops/op.h"

/* What both branches agree on. */
static void if_join(pith_type *a, const pith_type *b) {
    if (a->dtype != b->dtype) a->dtype = PITH_UNDEFINED;
    if (a->item_dtype != b->item_dtype) a->item_dtype = PITH_UNDEFINED;
    if (a->rank != b->rank) a->rank = -1;
    for (int i = 0; i < a->rank; i++)
        if (!pith_dim_equal(a->dims[i], b->dims[i])) a->dims[i] = PITH_DIM_UNKNOWN;
}

/* Types of a branch's outputs. A branch whose shapes cannot be is left in its graph's fault, since it may never be
 * taken: exporters write a branch for each rank that an input can have. *possible becomes false then. */
static pith_status if_branch(pith_infer *c, const char *attribute, pith_type *out, bool *possible) {
    pith_graph *graph = pith_node_graph(c->node, attribute);
    pith_error fault = PITH_ERROR_INIT;
    pith_infer inner = *c;
    inner.err = &fault;
    if (!c->dims || c->strict || !graph || graph->output_count != (size_t)c->out_count || graph->input_count)
        return pith_infer_subgraph(c, attribute, NULL, 0, out, (size_t)c->out_count);
    pith_status status = pith_infer_subgraph(&inner, attribute, NULL, 0, out, (size_t)c->out_count);
    graph->fault = PITH_STR("");
    *possible = !status;
    if (!status) return PITH_OK;
    if (status != PITH_ERR_FORMAT && status != PITH_ERR_RUN && status != PITH_ERR_ARGUMENT)
        return pith_fail(c->err, status, "%s", fault.message);
    graph->fault = pith_arena_str(graph->arena, pith_str_of(fault.message));
    return graph->fault.data ? PITH_OK : pith_fail_memory(c->err, sizeof fault.message);
}

/* A branch that is known not to be taken says nothing of the outputs. */
static pith_status if_infer(pith_infer *c) {
    size_t count = (size_t)c->out_count;
    bool possible[2] = { true, true };
    pith_dim condition = PITH_DIM_UNKNOWN;
    pith_type *other = pith_arena_array(c->arena, count, sizeof *other);
    if (!other) return pith_fail_memory(c->err, count * sizeof *other);
    PITH_TRY(if_branch(c, "then_branch", c->out, &possible[0]));
    PITH_TRY(if_branch(c, "else_branch", other, &possible[1]));
    if (pith_type_count(c->in[0]) != 1 || !pith_type_elem(c->in[0], 0, &condition)) condition = PITH_DIM_UNKNOWN;
    if (pith_dim_known(condition)) possible[condition != 0] = false;
    if (!possible[0] && !possible[1]) {
        const bool taken = pith_dim_known(condition) && !condition;
        const char *attribute = taken ? "else_branch" : "then_branch";
        return pith_fail(c->err, PITH_ERR_FORMAT, PITH_STR_FMT,
                         PITH_STR_ARG(pith_node_graph(c->node, attribute)->fault));
    }
    for (size_t i = 0; i < count; i++) {
        if (!possible[0]) c->out[i] = other[i];
        if (possible[0] && possible[1]) if_join(&c->out[i], &other[i]);
    }
    return PITH_OK;
}

static pith_status if_run(pith_run *r) {
    const pith_tensor *condition = r->in[0];
    if (condition->dtype != PITH_BOOL || pith_tensor_count(condition) != 1) {
        return pith_op_fail(r, "the condition is not one bool");
    }
    size_t count = (size_t)r->out_count;
    pith_tensor *made = r->exec->alloc(r->exec, count * sizeof *made);
    if (!made) return pith_fail_memory(r->err, count * sizeof *made);
    const char *branch = *(const uint8_t *)condition->data ? "then_branch" : "else_branch";
    PITH_TRY(r->exec->subgraph(r->exec, r, branch, NULL, 0, made, count));
    for (size_t i = 0; i < count; i++)
        if (r->out[i]) *r->out[i] = made[i];
    return PITH_OK;
}

const pith_op pith_op_If = { .domain = "",
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
