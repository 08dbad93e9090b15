/* backend_cpu.c - the CPU as a backend: it computes in host memory, and a step is the operator's
 * own run. */
#include "engine/backend/backend.h"

static bool backend_cpu_supports(void *context, const pith__node *node) {
    (void)context;
    return node->op && (node->op->run || (node->op->flags & PITH_OP_VIEW));
}

static pith_status backend_cpu_prepare(void *context, pith__prepare *c) {
    (void)context;
    return c->node->op->prepare ? c->node->op->prepare(c) : PITH_OK;
}

static pith_status backend_cpu_scratch(void *context, const pith__infer *c, const void *state,
                                       int threads, size_t *bytes) {
    (void)context;
    return pith__op_scratch(c, state, threads, bytes);
}

static pith_status backend_cpu_run(void *context, pith__run *r) {
    (void)context;
    return r->node->op->run(r);
}

static void backend_cpu_cost(const pith__run *r, pith__cost *cost) {
    if (r->node->op->cost) r->node->op->cost(r, cost);
}

const pith__backend pith__backend_cpu = {
    .name = "cpu",
    .supports = backend_cpu_supports,
    .prepare = backend_cpu_prepare,
    .scratch = backend_cpu_scratch,
    .run = backend_cpu_run,
    .cost = backend_cpu_cost,
};
