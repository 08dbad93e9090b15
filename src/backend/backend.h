/* backend.h - where a step runs. The executor knows only this struct; the CPU is its first user (backend_cpu.c), others
 * are separately loaded libraries. All functions take the backend's own context; errors name the step. */
#ifndef PITH_BACKEND_BACKEND_H
#define PITH_BACKEND_BACKEND_H

#include "ops/op.h"

typedef struct pith_backend {
    const char *name;
    pith_status (*open)(void **context, const pith_allocator *allocator, pith_error *err);
    void (*close)(void *context);
    bool (*supports)(void *context, const pith_node *node);
    pith_status (*prepare)(void *context, pith_prepare *c);
    /* Allocates memory for activations, aligned to 64 bytes. */
    void *(*alloc)(void *context, size_t bytes);
    void (*free)(void *context, void *memory);
    /* Between host memory and the backend's; for the CPU a memcpy. */
    pith_status (*copy)(void *context, void *to, const void *from, size_t bytes, bool to_host, pith_error *err);
    pith_status (*run)(void *context, pith_run *run);
    pith_status (*finish)(void *context, pith_error *err); /* waits for everything started */
} pith_backend;

extern const pith_backend pith_backend_cpu;

#endif
