/* op_sequence_map.c - SequenceMap: a subgraph applied to each item of a sequence. Further inputs
 * that are sequences give one item each; tensors are passed as they are. */
#include <inttypes.h>

#include "base/dtype.h"
#include "engine/ops/op.h"

/* Items of a sequence may differ in shape, so the body is inferred from dtypes alone. */
static pith_status sequence_map_infer(pith__infer *c) {
    size_t in_count = (size_t)(c->in_count - c->node->capture_count),
           out_count = (size_t)c->out_count;
    pith__type *in = pith__arena_array(c->arena, in_count, sizeof *in),
               *out = pith__arena_array(c->arena, out_count, sizeof *out);
    if (!in || !out) return pith__fail_memory(c->err, (in_count + out_count) * sizeof *in);
    for (size_t i = 0; i < in_count; i++) {
        pith__type_init(&in[i]);
        in[i].dtype = c->in[i]->dtype == PITH_SEQUENCE ? c->in[i]->item_dtype : c->in[i]->dtype;
    }
    PITH_TRY(pith__infer_subgraph(c, "body", in, in_count, out, out_count));
    for (size_t i = 0; i < out_count; i++) {
        c->out[i].dtype = PITH_SEQUENCE;
        c->out[i].item_dtype = out[i].dtype;
    }
    return PITH_OK;
}

/* All sequences must be as long as the first. Results are copied: the body's outputs do not live
 * longer than the next call. */
static pith_status sequence_map_run(pith__run *r) {
    size_t in_count = (size_t)(r->in_count - r->node->capture_count),
           out_count = (size_t)r->out_count;
    if (r->in[0]->dtype != PITH_SEQUENCE) return pith__op_fail(r, "input 0 is not a sequence");
    int64_t count = r->in[0]->dims[0];
    pith_tensor *in = r->exec->alloc(r->exec, in_count * sizeof *in),
                *out = r->exec->alloc(r->exec, out_count * sizeof *out);
    if (!in || !out) return pith__fail_memory(r->err, (in_count + out_count) * sizeof *in);
    for (size_t i = 0; i < out_count; i++)
        if (r->out[i]) PITH_TRY(pith__run_alloc(r, (int)i, PITH_SEQUENCE, 1, &count));
    for (int64_t k = 0; k < count; k++) {
        for (size_t i = 0; i < in_count; i++) {
            const pith_tensor *t = r->in[i];
            if (t->dtype == PITH_SEQUENCE && t->dims[0] != count) {
                return pith__op_fail(r, "input %zu has %" PRId64 " items, the first %" PRId64, i,
                                     t->dims[0], count);
            }
            in[i] = t->dtype == PITH_SEQUENCE ? ((const pith_tensor *)t->data)[k] : *t;
        }
        PITH_TRY(r->exec->subgraph(r->exec, r, "body", in, in_count, out, out_count));
        for (size_t i = 0; i < out_count; i++)
            if (r->out[i]) PITH_TRY(pith__run_copy(r, (pith_tensor *)r->out[i]->data + k, &out[i]));
    }
    return PITH_OK;
}

const pith__op pith__op_SequenceMap = { .domain = "",
                                        .name = "SequenceMap",
                                        .since = 17,
                                        .newest = 17,
                                        .min_inputs = 1,
                                        .max_inputs = -1,
                                        .max_outputs = -1,
                                        .attrs = "body graph!",
                                        .flags = PITH_OP_FIRST_OPTIONAL | PITH_OP_LATE |
                                                 PITH_OP_SEQUENCES,
                                        .infer = sequence_map_infer,
                                        .run = sequence_map_run };
