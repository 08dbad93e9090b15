/* call_op.c - see call_op.h. */
#include "engine/ops/shared/call_op.h"

#include "base/piece_listener.h"

pith__infer pith__invoke_infer(const pith__node *node, const pith__type *const *in, pith__type *out,
                               pith__arena *arena, pith_error *err) {
    return (pith__infer){ .node = node,
                          .in = in,
                          .out = out,
                          .in_count = node->input_count,
                          .out_count = node->output_count,
                          .arena = arena,
                          .err = err };
}

/* Tells that the operator is about to run, and on which dtypes. */
static void call_op_invoke_tell(const pith__node *node, const pith__type *const *in,
                                const pith__type *out) {
    uint32_t facts = 0;
    for (int i = 0; i < node->input_count; i++)
        if (in[i] && in[i]->dtype > PITH_UNDEFINED && in[i]->dtype < PITH_DTYPE_COUNT)
            facts |= 1u << in[i]->dtype;
    for (int i = 0; i < node->output_count; i++)
        if (out[i].dtype > PITH_UNDEFINED && out[i].dtype < PITH_DTYPE_COUNT)
            facts |= 1u << out[i].dtype;
    pith__piece_used_with(node->op, facts);
}

pith__prepare pith__invoke_prepare(const pith__node *node, const pith__type *const *in,
                                   const pith__type *out, pith__isa isa, pith__arena *arena,
                                   pith_error *err) {
    if (pith__piece_heard()) call_op_invoke_tell(node, in, out);
    return (pith__prepare){ .node = node,
                            .in = in,
                            .out = out,
                            .in_count = node->input_count,
                            .out_count = node->output_count,
                            .isa = isa,
                            .arena = arena,
                            .err = err };
}

pith__run pith__invoke_run(const pith__node *node, const void *state, const pith_tensor *const *in,
                           pith_tensor *const *out, pith__exec *exec, pith_error *err) {
    return (pith__run){ .node = node,
                        .state = state,
                        .in = in,
                        .out = out,
                        .in_count = node->input_count,
                        .out_count = node->output_count,
                        .exec = exec,
                        .err = err };
}

static void *call_op_lone_alloc(pith__exec *exec, size_t bytes) {
    return pith__arena_alloc64(((pith__lone_exec *)(void *)exec)->arena, bytes);
}

static pith_status call_op_lone_subgraph(pith__exec *exec, const pith__run *run,
                                         const char *attribute, const pith_tensor *inputs,
                                         size_t input_count, pith_tensor *outputs,
                                         size_t output_count) {
    (void)exec, (void)attribute, (void)inputs, (void)input_count, (void)outputs, (void)output_count;
    return pith__fail(run->err, PITH_ERR_UNSUPPORTED,
                      "a subgraph cannot run while the graph is being optimised");
}

pith__lone_exec pith__lone_exec_on(pith__arena *arena, pith__isa isa, pith__stop *stop) {
    return (pith__lone_exec){ .exec = { .threads = 1,
                                        .isa = isa,
                                        .stop = stop,
                                        .loop_limit = 1,
                                        .alloc = call_op_lone_alloc,
                                        .subgraph = call_op_lone_subgraph },
                              .arena = arena };
}
