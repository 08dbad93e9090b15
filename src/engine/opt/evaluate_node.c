/* evaluate_node.c - see evaluate_node.h. A node's whole life in a row: infer, prepare, scratch,
 * run. */
#include "engine/opt/evaluate_node.h"

#include "base/dtype.h"
#include "engine/ops/shared/call_op.h"

/* Gives the outputs their shape and memory; those whose shape depends on contents are left to run.
 */
static pith_status eval_make_outputs(pith_tensor *out, const pith__type *types, int count,
                                     size_t max_bytes, pith__arena *arena, pith_error *err) {
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        out[i] = (pith_tensor){ .dtype = types[i].dtype, .rank = types[i].rank };
        if (!pith__type_concrete(&types[i])) continue;
        for (int d = 0; d < out[i].rank; d++) out[i].dims[d] = types[i].dims[d];
        int64_t elements = pith__dims_count(out[i].dims, out[i].rank);
        if (elements < 0 || !pith__dtype_bytes(out[i].dtype, elements, &out[i].bytes)) {
            return pith__fail(err, PITH_ERR_ARGUMENT, "the shape of output %d is impossible", i);
        }
        if (out[i].bytes > max_bytes - total)
            return pith__fail(err, PITH_ERR_UNSUPPORTED, "output %d is too large", i);
        total += out[i].bytes;
        out[i].data = pith__arena_alloc64(arena, out[i].bytes);
        if (!out[i].data) return pith__fail_memory(err, out[i].bytes);
    }
    return PITH_OK;
}

/* *in becomes an array of in_room entries. Constants that lie anywhere in their files
 * (pith__constant_lies_anywhere) are copied. */
static pith_status align_inputs(const pith_tensor *const **in, int count, size_t in_room,
                                pith__arena *arena, pith_error *err) {
    const pith_tensor **aligned = pith__arena_array(arena, in_room, sizeof *aligned);
    if (!aligned) return pith__fail_memory(err, in_room * sizeof *aligned);
    for (int i = 0; i < count; i++) {
        const pith_tensor *t = aligned[i] = (*in)[i];
        if (!t || t->dtype != PITH_F32 || (uintptr_t)t->data % sizeof(float) == 0) continue;
        pith_tensor *copy = pith__arena_alloc(arena, sizeof *copy);
        void *data = pith__arena_alloc64(arena, t->bytes);
        if (!copy || !data) return pith__fail_memory(err, t->bytes);
        *copy = *t;
        copy->data = memcpy(data, t->data, t->bytes);
        aligned[i] = copy;
    }
    *in = aligned;
    return PITH_OK;
}

pith_status pith__eval_node(pith_tensor *out, const pith__node *node, const pith_tensor *const *in,
                            size_t max_bytes, pith__arena *arena, pith_error *err) {
    if (node->capture_count > 0)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "the node has a subgraph");
    int in_count = node->input_count, out_count = node->output_count;
    size_t in_room = pith__node_in_room(node), out_room = pith__node_out_room(node);
    pith__type *types = pith__arena_array(arena, in_room + out_room, sizeof *types);
    const pith__type **in_types = pith__arena_array(arena, in_room, sizeof *in_types);
    pith_tensor **outs = pith__arena_array(arena, out_room, sizeof *outs);
    if (!types || !in_types || !outs) return pith__fail_memory(err, 0);
    PITH_TRY(align_inputs(&in, in_count, in_room, arena, err));
    for (int i = 0; i < in_count; i++) {
        if (!in[i]) continue;
        pith__type_of_tensor(&types[i], in[i]);
        in_types[i] = &types[i];
    }
    pith__type *out_types = types + in_room;
    for (int i = 0; i < out_count; i++) outs[i] = &out[i];
    pith__infer infer = pith__invoke_infer(node, in_types, out_types, arena, err);
    PITH_TRY(pith__op_infer_node(&infer));
    PITH_TRY(eval_make_outputs(out, out_types, out_count, max_bytes, arena, err));
    if (node->op->flags & PITH_OP_VIEW) {
        out[0].data = in[0]->data;
        return PITH_OK;
    }
    pith__isa isa = pith__cpu_get()->isa;
    pith__lacks lacks = { .count = 0 };
    pith__prepare prepare = pith__invoke_prepare(node, in_types, out_types, isa, arena, err);
    prepare.lacks = &lacks;
    pith_status status = node->op->prepare ? node->op->prepare(&prepare) : PITH_OK;
    PITH_TRY(pith__lacks_check(&lacks, err));
    if (status) return status;
    pith__stop *stop = pith__graph_stop(node->graph);
    pith__lone_exec exec = pith__lone_exec_on(arena, isa, stop);
    size_t scratch = 0;
    PITH_TRY(pith__op_scratch(&infer, prepare.state, 1, &scratch));
    if (scratch > max_bytes) return pith__fail(err, PITH_ERR_UNSUPPORTED, "scratch is too large");
    pith__run run = pith__invoke_run(node, prepare.state, in, outs, &exec.exec, err);
    run.scratch = pith__arena_alloc64(arena, scratch);
    if (!run.scratch) return pith__fail_memory(err, scratch);
    status = node->op->run(&run);
    const pith_status stopped = pith__stop_check(stop, err);
    return stopped ? stopped : status;
}
