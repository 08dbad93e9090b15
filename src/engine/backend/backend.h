/* backend.h - where steps run.
 *
 * A backend is one file and one line BACKEND(name) in select/backends.def. A node runs on the first
 * backend of that list that takes it (engine/plan/placement.c). The CPU stands last and takes every
 * operator.
 *
 * Memory: a backend without `alloc` computes in host memory. Any other has memory of its own, which
 * only its own functions look into: everybody else adds offsets to its addresses and hands them on.
 * Values get there and back through `copy`, and each copy is a step of the plan. A node of such a
 * backend finds its inputs in that memory, except those of op->shape_inputs, which stay in host
 * memory; outputs and scratch are in that memory. Such a backend is asked only for nodes of plain
 * tensors without subgraphs; sequences, optionals, strings and control flow are the CPU's.
 *
 * A context belongs to one plan and all executors of it, so all functions but open and close may be
 * called from several threads at once. They return errors without the node's place; the caller
 * prepends it. Work may still be under way when `run` returns: `copy` to the host and `free` wait
 * for what they depend on. */
#ifndef PITH_ENGINE_BACKEND_BACKEND_H
#define PITH_ENGINE_BACKEND_BACKEND_H

#include "base/counters.h"
#include "base/log.h"
#include "engine/ops/op.h"

typedef struct pith__backend {
    const char *name;
    /* PITH_ERR_NOT_FOUND: there is no such device here, so its nodes run on the backends behind it;
     * any other error ends the opening of the model. NULL: there is nothing to open, and context is
     * NULL. */
    pith_status (*open)(void **context, const pith_allocator *allocator, pith_error *err);
    void (*close)(void *context); /* NULL: nothing to do */
    bool (*supports)(void *context, const pith__node *node);
    pith_status (*prepare)(void *context, pith__prepare *c); /* constants are in host memory */
    pith_status (*scratch)(void *context, const pith__infer *c, const void *state, int threads,
                           size_t *bytes);
    /* r->exec->alloc gives memory of the backend's own kind. */
    pith_status (*run)(void *context, pith__run *r);
    /* Makes *cost better than one operation per element of output 0; NULL: that is all that is
     * known. */
    void (*cost)(const pith__run *r, pith__cost *cost);
    /* Memory of its own, 64-byte aligned; bytes > 0; NULL: there is no more. The three are there or
     * are not there together. */
    void *(*alloc)(void *context, size_t bytes);
    void (*free)(void *context, void *memory);
    pith_status (*copy)(void *context, void *to, const void *from, size_t bytes, bool to_host,
                        pith_error *err);
} pith__backend;

/* In the order of select/backends.def; defined by select/tables.c. */
extern const pith__backend *const pith__backend_table[];
extern const size_t pith__backend_table_count;
/* Whether there are several. Else there is one memory, nothing is copied and no device stands in
 * for another: a program that is optimised when it is linked leaves out the code for that. */
extern const bool pith__backends_differ;

/* Its steps have the states that the operators' own prepare made. */
extern const pith__backend pith__backend_cpu;

/* A backend that has been opened. */
typedef struct pith__device {
    const pith__backend *backend;
    void *context;
    int memory; /* 0: the host's; otherwise its index in pith__devices.memories */
} pith__device;

typedef struct pith__devices {
    pith__device *items; /* in the order of the table */
    size_t count;
    const pith__device **memories; /* [0] is the host's memory and NULL */
    size_t memory_count;
    const pith__backend *failed; /* that a plan could not be made for; NULL: none */
    pith__lacks lacks;           /* kernels that plans needed, subgraphs' included */
} pith__devices;

/* Which backends to open, in the order of preference. It does not change once programs use it. */
typedef struct pith__device_list {
    const pith__backend **items;
    size_t count;
    bool falls_back; /* work of a device that fails goes on on the others */
    pith__counters *counters;
} pith__device_list;

/* Reads a list such as "cuda,cpu". "auto": all backends of this build; NULL: the same, but a device
 * that fails is an error. A name that this build does not have is left out with a warning, and
 * counted as tried and given up; one of them must be there. The items are in the arena. */
pith_status pith__device_list_read(pith__device_list *list, const char *names,
                                   pith__counters *counters, pith__arena *arena,
                                   const pith_log *log, pith_error *err);
/* Sets *rest to the list without one backend. PITH_ERR_NOT_FOUND if no other stands behind that
 * one. */
pith_status pith__device_list_without(pith__device_list *rest, const pith__device_list *list,
                                      const pith__backend *backend, pith__arena *arena,
                                      pith_error *err);

/* Opens the backends of a list; NULL: those of the table. Backends whose device is missing are left
 * out, with a warning; so are those that fail to open, if the list falls back. PITH_ERR_UNSUPPORTED
 * if none is left. */
pith_status pith__devices_open(pith__devices *devices, const pith__device_list *list,
                               pith__arena *arena, const pith_log *log, pith_error *err);
void pith__devices_close(pith__devices *devices);

#endif
