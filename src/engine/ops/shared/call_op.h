/* call_op.h - the arguments of an operator's functions, put together from a node in one place; and
 * what an operator needs to run outside of an executor. Callers fill in what only they know. */
#ifndef PITH_ENGINE_OPS_SHARED_CALL_OP_H
#define PITH_ENGINE_OPS_SHARED_CALL_OP_H

#include "engine/ops/op.h"

/* The arrays have pith__node_in_room and pith__node_out_room entries. */
pith__infer pith__invoke_infer(const pith__node *node, const pith__type *const *in, pith__type *out,
                               pith__arena *arena, pith_error *err);
pith__prepare pith__invoke_prepare(const pith__node *node, const pith__type *const *in,
                                   const pith__type *out, pith__isa isa, pith__arena *arena,
                                   pith_error *err);
pith__run pith__invoke_run(const pith__node *node, const void *state, const pith_tensor *const *in,
                           pith_tensor *const *out, pith__exec *exec, pith_error *err);

/* One thread, memory from an arena, no subgraphs. */
typedef struct pith__lone_exec {
    pith__exec exec; /* first: what the operator sees */
    pith__arena *arena;
} pith__lone_exec;

pith__lone_exec pith__lone_exec_on(pith__arena *arena, pith__isa isa, pith__stop *stop);

#endif
