/* call_op.c - see call_op.h. */
#include "engine/ops/shared/call_op.h"

#include "base/piece_listener.h"

pith_infer pith_invoke_infer(const pith_node *node, const pith_type *const *in, pith_type *out, pith_arena *arena,
                             pith_error *err) {
    return (pith_infer){ .node = node,
                         .in = in,
                         .out = out,
                         .in_count = node->input_count,
                         .out_count = node->output_count,
                         .arena = arena,
                         .err = err };
}

/* Tells that the operator is about to run, and on which dtypes. */
static void invoke_tell(const pith_node *node, const pith_type *const *in, const pith_type *out) {
    uint32_t facts = 0;
    for (int i = 0; i < node->input_count; i++)
        if (in[i] && in[i]->dtype > PITH_UNDEFINED && in[i]->dtype < PITH_DTYPE_COUNT) facts |= 1u << in[i]->dtype;
    for (int i = 0; i < node->output_count; i++)
        if (out[i].dtype > PITH_UNDEFINED && out[i].dtype < PITH_DTYPE_COUNT) facts |= 1u << out[i].dtype;
    pith_piece_used_with(node->op, facts);
}

pith_prepare pith_invoke_prepare(const pith_node *node, const pith_type *const *in, const pith_type *out, pith_isa isa,
                                 pith_arena *arena, pith_error *err) {
    if (pith_piece_heard()) invoke_tell(node, in, out);
    return (pith_prepare){ .node = node,
                           .in = in,
                           .out = out,
                           .in_count = node->input_count,
                           .out_count = node->output_count,
                           .isa = isa,
                           .arena = arena,
                           .err = err };
}

pith_run pith_invoke_run(const pith_node *node, const void *state, const pith_tensor *const *in,
                         pith_tensor *const *out, pith_exec *exec, pith_error *err) {
    return (pith_run){ .node = node,
                       .state = state,
                       .in = in,
                       .out = out,
                       .in_count = node->input_count,
                       .out_count = node->output_count,
                       .exec = exec,
                       .err = err };
}

static void *lone_alloc(pith_exec *exec, size_t bytes) {
    return pith_arena_alloc64(((pith_lone_exec *)(void *)exec)->arena, bytes);
}

static pith_status lone_subgraph(pith_exec *exec, const pith_run *run, const char *attribute, const pith_tensor *inputs,
                                 size_t input_count, pith_tensor *outputs, size_t output_count) {
    (void)exec, (void)attribute, (void)inputs, (void)input_count, (void)outputs, (void)output_count;
    return pith_fail(run->err, PITH_ERR_UNSUPPORTED, "a subgraph cannot run while the graph is being optimised");
}

pith_lone_exec pith_lone_exec_on(pith_arena *arena, pith_isa isa) {
    return (pith_lone_exec){
        .exec = { .threads = 1, .isa = isa, .loop_limit = 1, .alloc = lone_alloc, .subgraph = lone_subgraph },
        .arena = arena
    };
}
