/* evaluate_node.c - see evaluate_node.h. A node's whole life in a row: infer, prepare, scratch, run. */
#include "engine/opt/evaluate_node.h"

#include "base/dtype.h"
#include "engine/ops/shared/call_op.h"

/* Gives the outputs their shape and memory; those whose shape depends on contents are left to run. */
static pith_status eval_make_outputs(pith_tensor *out, const pith_type *types, int count, size_t max_bytes,
                                     pith_arena *arena, pith_error *err) {
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        out[i] = (pith_tensor){ .dtype = types[i].dtype, .rank = types[i].rank };
        if (!pith_type_concrete(&types[i])) continue;
        for (int d = 0; d < out[i].rank; d++) out[i].dims[d] = types[i].dims[d];
        int64_t elements = pith_dims_count(out[i].dims, out[i].rank);
        if (elements < 0 || !pith_dtype_bytes(out[i].dtype, elements, &out[i].bytes)) {
            return pith_fail(err, PITH_ERR_ARGUMENT, "the shape of output %d is impossible", i);
        }
        if (out[i].bytes > max_bytes - total) return pith_fail(err, PITH_ERR_UNSUPPORTED, "output %d is too large", i);
        total += out[i].bytes;
        out[i].data = pith_arena_alloc64(arena, out[i].bytes);
        if (!out[i].data) return pith_fail_memory(err, out[i].bytes);
    }
    return PITH_OK;
}

/* *in becomes an array of in_room entries. Constants that lie anywhere in their files (pith_constant_lies_anywhere) are
 * copied. */
static pith_status align_inputs(const pith_tensor *const **in, int count, size_t in_room, pith_arena *arena,
                                pith_error *err) {
    const pith_tensor **aligned = pith_arena_array(arena, in_room, sizeof *aligned);
    if (!aligned) return pith_fail_memory(err, in_room * sizeof *aligned);
    for (int i = 0; i < count; i++) {
        const pith_tensor *t = aligned[i] = (*in)[i];
        if (!t || t->dtype != PITH_F32 || (uintptr_t)t->data % sizeof(float) == 0) continue;
        pith_tensor *copy = pith_arena_alloc(arena, sizeof *copy);
        void *data = pith_arena_alloc64(arena, t->bytes);
        if (!copy || !data) return pith_fail_memory(err, t->bytes);
        *copy = *t;
        copy->data = memcpy(data, t->data, t->bytes);
        aligned[i] = copy;
    }
    *in = aligned;
    return PITH_OK;
}

pith_status pith_eval_node(pith_tensor *out, const pith_node *node, const pith_tensor *const *in, size_t max_bytes,
                           pith_arena *arena, pith_error *err) {
    if (node->capture_count > 0) return pith_fail(err, PITH_ERR_UNSUPPORTED, "the node has a subgraph");
    int in_count = node->input_count, out_count = node->output_count;
    size_t in_room = pith_node_in_room(node), out_room = pith_node_out_room(node);
    pith_type *types = pith_arena_array(arena, in_room + out_room, sizeof *types);
    const pith_type **in_types = pith_arena_array(arena, in_room, sizeof *in_types);
    pith_tensor **outs = pith_arena_array(arena, out_room, sizeof *outs);
    if (!types || !in_types || !outs) return pith_fail_memory(err, 0);
    PITH_TRY(align_inputs(&in, in_count, in_room, arena, err));
    for (int i = 0; i < in_count; i++) {
        if (!in[i]) continue;
        pith_type_of_tensor(&types[i], in[i]);
        in_types[i] = &types[i];
    }
    pith_type *out_types = types + in_room;
    for (int i = 0; i < out_count; i++) outs[i] = &out[i];
    pith_infer infer = pith_invoke_infer(node, in_types, out_types, arena, err);
    PITH_TRY(pith_op_infer_node(&infer));
    PITH_TRY(eval_make_outputs(out, out_types, out_count, max_bytes, arena, err));
    if (node->op->flags & PITH_OP_VIEW) {
        out[0].data = in[0]->data;
        return PITH_OK;
    }
    pith_isa isa = pith_cpu_get()->isa;
    pith_lacks lacks = { .count = 0 };
    pith_prepare prepare = pith_invoke_prepare(node, in_types, out_types, isa, arena, err);
    prepare.lacks = &lacks;
    pith_status status = node->op->prepare ? node->op->prepare(&prepare) : PITH_OK;
    PITH_TRY(pith_lacks_check(&lacks, err));
    if (status) return status;
    pith_lone_exec exec = pith_lone_exec_on(arena, isa);
    size_t scratch = 0;
    PITH_TRY(pith_op_scratch(&infer, prepare.state, 1, &scratch));
    if (scratch > max_bytes) return pith_fail(err, PITH_ERR_UNSUPPORTED, "scratch is too large");
    pith_run run = pith_invoke_run(node, prepare.state, in, outs, &exec.exec, err);
    run.scratch = pith_arena_alloc64(arena, scratch);
    if (!run.scratch) return pith_fail_memory(err, scratch);
    return node->op->run(&run);
}
