/* call_op.h - the arguments of an operator's functions, put together from a node in one place; and what an operator
 * needs to run outside of an executor. Callers fill in what only they know. */
#ifndef PITH_ENGINE_OPS_SHARED_CALL_OP_H
#define PITH_ENGINE_OPS_SHARED_CALL_OP_H

#include "engine/ops/op.h"

/* The arrays have pith_node_in_room and pith_node_out_room entries. */
pith_infer pith_invoke_infer(const pith_node *node, const pith_type *const *in, pith_type *out, pith_arena *arena,
                             pith_error *err);
pith_prepare pith_invoke_prepare(const pith_node *node, const pith_type *const *in, const pith_type *out, pith_isa isa,
                                 pith_arena *arena, pith_error *err);
pith_run pith_invoke_run(const pith_node *node, const void *state, const pith_tensor *const *in,
                         pith_tensor *const *out, pith_exec *exec, pith_error *err);

/* One thread, memory from an arena, no subgraphs. */
typedef struct pith_lone_exec {
    pith_exec exec; /* first: what the operator sees */
    pith_arena *arena;
} pith_lone_exec;

pith_lone_exec pith_lone_exec_on(pith_arena *arena, pith_isa isa);

#endif
