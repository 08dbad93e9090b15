/* far.h - a kind of device whose memory the host cannot look into. Its settings:
 *   - delay=N: work is done by every N-th look at it, or when somebody waits; 0: at once.
 *   - programs=N: N connected nodes or more become one program; 0: none do.
 *   - precision=float32|bfloat16: results of f32 are rounded to it.
 *   - rewrite=1: a pass gives some nodes operators that no other device has. */
#ifndef PITH_TESTS_FAR_H
#define PITH_TESTS_FAR_H

#include "engine/backend/claim.h"

enum { FAR_ALL = 0, FAR_NONE = UINT32_MAX, FAR_DEVICES = 2 };

/* What the tests want of it. seed: FAR_ALL takes every node it may, FAR_NONE none, an even number a
 * choice of operators, an odd one a choice of nodes. */
typedef struct far_control {
    uint32_t seed;
    pith_status open;                    /* what open gives */
    int64_t runs_left;                   /* steps and copies that still work; negative: all */
    int64_t bytes_left;                  /* memory that it still gives; negative: any */
    int loses;                           /* 1 + the device_id that runs_left is for; 0: all */
    int64_t delay;                       /* of contexts without the setting */
    size_t programs;                     /* the same */
    size_t opened, steps, copies, bytes; /* contexts and bytes held now; steps and copies done so
                                            far */
    size_t device_steps[FAR_DEVICES];
    size_t claims, rewritten; /* programs and operators made so far */
    size_t begun;             /* pieces of work that were under way when their function returned */
} far_control;

extern far_control far;

/* ---- memory (far_memory.c) ---- */

/* Pages without access, unless somebody has opened a window. ordinal: the device's. */
void *far_memory_alloc(int ordinal, size_t bytes);
void far_memory_free(void *memory);
bool far_memory_holds(int ordinal, const void *data, size_t bytes);
void far_window(int change); /* 1: opens one; -1: closes one */

/* For tests, which play the host's other programs. */
void far_write(void *memory, const void *data, size_t bytes);
void far_read(void *data, const void *memory, size_t bytes);

/* A stream of the caller: one write that is still to be done, and the work of the device that it
 * has to wait for. */
typedef struct far_stream {
    void *to;
    const void *from;
    size_t bytes; /* 0: nothing to write */
    void *context;
    uint64_t mark; /* 0: nothing to wait for */
    size_t awaited, followed;
} far_stream;

void far_stream_finish(far_stream *stream);

/* ---- programs (far_programs.c) ---- */

/* The operator that computes, also for a node that the pass has rewritten. */
const pith__op *far_op(const pith__node *node);
pith_status far_compile(void *context, pith__prepare *c, pith__claim *claim);
pith_status far_run_program(const pith__claim *claim, pith__run *r);
pith_status far_rewrite(pith__graph *graph, size_t *changes, pith_error *err);

#endif
