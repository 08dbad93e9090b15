/* op_if.c - If: one of two subgraphs. Its outputs are known when the condition is; shapes are left to the run. */
#include "base/dtype.h"
#include "ops/op.h"

/* What both branches agree on. */
static void if_join(pith_type *a, const pith_type *b) {
    if (a->dtype != b->dtype) a->dtype = PITH_UNDEFINED;
    if (a->item_dtype != b->item_dtype) a->item_dtype = PITH_UNDEFINED;
    if (a->rank != b->rank) a->rank = -1;
    for (int i = 0; i < a->rank; i++)
        if (!pith_dim_equal(a->dims[i], b->dims[i])) a->dims[i] = PITH_DIM_UNKNOWN;
}

static pith_status if_infer(pith_infer *c) {
    size_t count = (size_t)c->out_count;
    pith_type *other = pith_arena_array(c->arena, count, sizeof *other);
    if (!other) return pith_fail_memory(c->err, count * sizeof *other);
    PITH_TRY(pith_infer_subgraph(c, "then_branch", NULL, 0, c->out, count));
    PITH_TRY(pith_infer_subgraph(c, "else_branch", NULL, 0, other, count));
    for (size_t i = 0; i < count; i++) if_join(&c->out[i], &other[i]);
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
