/* backend_cpu.c - the CPU as a backend: its memory is host memory, and a step runs the operator's own function. */
#include "backend/backend.h"

#include <string.h>

static pith_status open_cpu(void **context, const pith_allocator *allocator, pith_error *err) {
    (void)err;
    *context = (void *)(uintptr_t)(allocator ? allocator : &pith_allocator_default);
    return PITH_OK;
}

static void close_cpu(void *context) { (void)context; }

static bool supports(void *context, const pith_node *node) {
    (void)context;
    return node->op && (node->op->run || (node->op->flags & PITH_OP_VIEW));
}

static pith_status backend_cpu_prepare(void *context, pith_prepare *c) {
    (void)context;
    return c->node->op->prepare ? c->node->op->prepare(c) : PITH_OK;
}

static void *alloc(void *context, size_t bytes) { return pith_memory_alloc(context, bytes, 64); }

static void release(void *context, void *memory) { pith_memory_free(context, memory); }

static pith_status copy(void *context, void *to, const void *from, size_t bytes, bool to_host, pith_error *err) {
    (void)context, (void)to_host, (void)err;
    if (bytes) memcpy(to, from, bytes);
    return PITH_OK;
}

static pith_status backend_cpu_run(void *context, pith_run *r) {
    (void)context;
    return r->node->op->run(r);
}

static pith_status backend_cpu_finish(void *context, pith_error *err) {
    (void)context, (void)err;
    return PITH_OK;
}

const pith_backend pith_backend_cpu = {
    .name = "cpu",
    .open = open_cpu,
    .close = close_cpu,
    .supports = supports,
    .prepare = backend_cpu_prepare,
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .run = backend_cpu_run,
    .finish = backend_cpu_finish,
};
