/* backend.h - where steps run.
 *
 * A backend is one file and one line BACKEND(name) in select/backends.def, or a folder with what it
 * needs (cmake/backends.cmake). A node runs on the first device of a list that takes it
 * (engine/plan/placement.c). The CPU stands last and takes every operator.
 *
 * Memory: a backend without `alloc` computes in host memory. Any other has memory of its own, which
 * only its own functions look into: everybody else adds offsets to its addresses and hands them on.
 * Values get there and back through copies, and each copy is a step of the plan. A node of such a
 * backend finds its inputs in that memory, except those of op->shape_inputs, which stay in host
 * memory; outputs and scratch are in that memory. Such a backend is asked only for nodes of plain
 * tensors without subgraphs; sequences, optionals, strings and control flow are the CPU's.
 *
 * Threads: a context belongs to one plan and all executors of it, so all functions but open and
 * close may be called from several threads at once. One run of an executor calls from one thread.
 *
 * Order: what one thread gives to a context (run, copy, begin_copy) has the effects it would have
 * if each were done before the next begins; between threads there is no order. Work may be under
 * way when run and begin_copy return. Until it is done the host leaves alone the host memory that a
 * begun copy reads or writes; `run` has read its inputs in host memory when it returns. copy and
 * free wait for what they depend on. An error of work under way is given by whichever function
 * meets it next. After that, or after a wait, the work that failed writes nothing any more.
 *
 * Errors are returned without the node's place; the caller prepends it. */
#ifndef PITH_ENGINE_BACKEND_BACKEND_H
#define PITH_ENGINE_BACKEND_BACKEND_H

#include <stdatomic.h>

#include "base/counters.h"
#include "base/log.h"
#include "engine/ops/op.h"

typedef struct pith__backend pith__backend;
typedef struct pith__device pith__device;
struct pith__claim;

/* ---- lists of devices ---- */

/* Text of the list, in the list's arena. */
typedef struct pith__device_setting {
    const char *key, *value;
} pith__device_setting;

/* What a list says of one device. */
typedef struct pith__device_choice {
    const pith__backend *backend;
    const char *name;    /* as in messages: "cuda"; "cuda:1" if the list gives a device_id */
    int32_t number;      /* its place in the caller's list, from 1: pith_tensor.device */
    int32_t ordinal;     /* device_id */
    size_t memory_limit; /* bytes of its memory that all plans of the model may hold; 0: no limit */
    const pith__device_setting
        *settings; /* [setting_count] others, which backend->check has seen */
    size_t setting_count;
    atomic_size_t *held; /* bytes of its memory that they hold; NULL: nobody counts */
} pith__device_choice;

/* Which devices to open, in the order of preference. It does not change once programs use it. */
typedef struct pith__device_list {
    pith__device_choice *items;
    size_t count;
    bool falls_back; /* work of a device that fails goes on on the others */
    bool exact;      /* a device that does not compute in f32 is left out */
    pith__counters *counters;
} pith__device_list;

/* The most devices of a list. */
enum { PITH_DEVICES_MOST = 60 };

/* ---- backends ---- */

typedef enum pith__copy_way {
    PITH_COPY_TO_DEVICE,
    PITH_COPY_TO_HOST,
    PITH_COPY_WITHIN /* from the device's memory to its memory */
} pith__copy_way;

/* How the results of a device compare with the CPU's. */
typedef struct pith__accuracy {
    const char *precision; /* of matmuls of f32: "float32", "tf32", "bfloat16", … */
    double rtol, atol; /* |a - b| <= atol + rtol * |b| for b of the CPU; both 0: the same bits */
} pith__accuracy;

/* A rewriting of the main graph for one kind of device, made in a copy that belongs to the plan.
 * Rules as for passes (engine/opt/pass.h): edit through engine/graph/graph.h; types are inferred
 * again afterwards. Nodes may get operators of the backend's own, which no other takes. */
typedef struct pith__backend_pass {
    const char *name;
    pith_status (*run)(void *context, pith__graph *graph, size_t *changes, pith_error *err);
} pith__backend_pass;

struct pith__backend {
    const char *name;
    /* The names of its settings, "lanes, graphs", for messages; NULL: it has none of its own. */
    const char *settings;
    /* Whether a value may be given for one of them: PITH_ERR_NOT_FOUND for a name that is none,
     * PITH_ERR_ARGUMENT for a value that cannot be. NULL: it has none. */
    pith_status (*check)(const char *key, const char *value, pith_error *err);
    /* PITH_ERR_NOT_FOUND: there is no such device here, so its nodes run on the devices behind it;
     * any other error ends the opening of the model, unless the list falls back. NULL: there is
     * nothing to open, and context is NULL. */
    pith_status (*open)(void **context, const pith__device_choice *choice,
                        const pith_allocator *allocator, pith_error *err);
    void (*close)(void *context); /* NULL: nothing to do */
    /* NULL: float32, with the bits of the CPU. */
    void (*accuracy)(void *context, pith__accuracy *accuracy);
    const pith__backend_pass *passes; /* [pass_count], run once each, in order */
    size_t pass_count;
    bool (*supports)(void *context, const pith__node *node);
    pith_status (*prepare)(void *context, pith__prepare *c); /* constants are in host memory */
    /* The least number of connected nodes that become one program (2 or more); 0: each node is
     * prepared and run by itself, as all are where this is NULL. */
    size_t (*program_least)(void *context);
    /* Makes one program of a connected part of the graph, all of it nodes that it supports: sets
     * c->state, with which `scratch` and `run` are then called for all of it
     * (engine/backend/claim.h). */
    pith_status (*compile)(void *context, pith__prepare *c, struct pith__claim *claim);
    pith_status (*scratch)(void *context, const pith__infer *c, const void *state, int threads,
                           size_t *bytes);
    /* r->exec->alloc gives memory of the backend's own kind. */
    pith_status (*run)(void *context, pith__run *r);
    /* Makes *cost better than one operation per element of output 0; NULL: that is all that is
     * known. */
    void (*cost)(const pith__run *r, pith__cost *cost);
    /* Memory of its own, 64-byte aligned; bytes > 0; NULL: there is no more. The three are there or
     * are not there together, and so are all functions below only with them. */
    void *(*alloc)(void *context, size_t bytes);
    void (*free)(void *context, void *memory);
    pith_status (*copy)(void *context, void *to, const void *from, size_t bytes, pith__copy_way way,
                        pith_error *err);
    /* Begins a copy between its memory and the host's. NULL: `copy` is used. */
    pith_status (*begin_copy)(void *context, void *to, const void *from, size_t bytes,
                              pith__copy_way way, pith_error *err);
    /* Stands for all work that this thread has given so far. NULL, with poll: there is never work
     * under way. */
    uint64_t (*mark)(void *context);
    /* Sets *done to whether that work is done, and all that the thread gave before it. wait:
     * returns when it is. Any thread may ask. */
    pith_status (*poll)(void *context, uint64_t mark, bool wait, bool *done, pith_error *err);
    /* Whether data is memory of the device, of this or another owner. NULL: it cannot tell. */
    bool (*holds)(void *context, const void *data, size_t bytes);
    /* Lets what this thread gives from now on wait for what is in a stream of the caller
     * (await), and the stream for what the thread has given so far (follow). NULL: there are no
     * streams, and a tensor with one is an error. */
    pith_status (*await)(void *context, void *stream, pith_error *err);
    pith_status (*follow)(void *context, void *stream, pith_error *err);
};

/* In the order of select/backends.def; defined by select/tables.c. */
extern const pith__backend *const pith__backend_table[];
extern const size_t pith__backend_table_count;
/* Whether there are several. Else there is one memory, nothing is copied and no device stands in
 * for another: a program that is optimised when it is linked leaves out the code for that. */
extern const bool pith__backends_differ;

/* What only lists with other devices than the CPU need. Programs without any do not link it. */
typedef struct pith__device_functions {
    /* Takes one setting, "key=value", into a choice of a list. */
    pith_status (*set)(pith__device_choice *choice, pith_str text, pith__arena *arena,
                       pith_error *err);
    /* Says in which precision an open device computes. exact: PITH_ERR_UNSUPPORTED unless that is
     * f32. */
    pith_status (*accept)(const pith__device *device, bool exact, const pith_log *log,
                          pith_error *err);
    /* Memory of the device, counted against the limit; NULL: there is no more. bytes > 0. */
    void *(*alloc)(const pith__device *device, size_t bytes);
    void (*free)(const pith__device *device, void *memory, size_t bytes);
    /* Why alloc gave NULL: PITH_ERR_MEMORY with the device's name, and its limit if that is why.
     * what: "a constant". */
    pith_status (*no_memory)(const pith__device *device, size_t bytes, const char *what,
                             pith_error *err);
} pith__device_functions;
extern const pith__device_functions pith__device_functions_all;
/* pith__device_functions_all if the backends differ, else NULL; defined by select/tables.c. */
extern const pith__device_functions *const pith__device_functions_used;

/* Its steps have the states that the operators' own prepare made. */
extern const pith__backend pith__backend_cpu;

/* ---- devices ---- */

/* A backend that has been opened. */
struct pith__device {
    const pith__backend *backend;
    const pith__device_choice *choice;
    void *context;
    int memory; /* 0: the host's; otherwise its index in pith__devices.memories */
};

/* As backend->accuracy. */
static inline pith__accuracy pith__device_accuracy(const pith__device *d) {
    pith__accuracy accuracy = { .precision = "float32" };
    if (d->backend->accuracy) d->backend->accuracy(d->context, &accuracy);
    return accuracy;
}

/* As backend->program_least. */
static inline size_t pith__device_program_least(const pith__device *d) {
    return d->backend->program_least ? d->backend->program_least(d->context) : 0;
}

typedef struct pith__devices {
    pith__device *items; /* in the order of the table */
    size_t count;
    const pith__device **memories; /* [0] is the host's memory and NULL */
    size_t memory_count;
    const pith__device_choice *failed; /* that a plan could not be made for; NULL: none */
    pith__lacks lacks;                 /* kernels that plans needed, subgraphs' included */
} pith__devices;

/* Reads a list such as "cuda:device_id=1,cpu". "auto": all backends of this build; NULL: the same,
 * but a device that fails is an error. A name that this build does not have is left out with a
 * warning, and counted as tried and given up; one of them must be there. The items are in the
 * arena. */
pith_status pith__device_list_read(pith__device_list *list, const char *names,
                                   pith__counters *counters, pith__arena *arena,
                                   const pith_log *log, pith_error *err);
/* Sets *rest to the list without one of its devices. PITH_ERR_NOT_FOUND if no other stands behind
 * that one. */
pith_status pith__device_list_without(pith__device_list *rest, const pith__device_list *list,
                                      const pith__device_choice *choice, pith__arena *arena,
                                      pith_error *err);

/* Opens the devices of a list; NULL: those of the table. Those that are missing are left out, with
 * a warning; so are those that fail to open, if the list falls back. PITH_ERR_UNSUPPORTED if none
 * is left. */
pith_status pith__devices_open(pith__devices *devices, const pith__device_list *list,
                               pith__arena *arena, const pith_log *log, pith_error *err);
void pith__devices_close(pith__devices *devices);

#endif
