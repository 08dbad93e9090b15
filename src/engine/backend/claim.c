/* claim.c - see claim.h. */
#include "engine/backend/claim.h"

#include <string.h>

#include "engine/ops/shared/call_op.h"

const pith__claim *pith__claim_of(const pith__node *node) {
    return node->op == &pith__claim_op ? (const pith__claim *)(const void *)node : NULL;
}

static pith_status claim_infer_member(pith__type *types, const pith__claimed_node *m,
                                      const pith__infer *c) {
    const size_t ins = pith__node_in_room(m->node), outs = pith__node_out_room(m->node);
    const pith__type **in = pith__arena_array(c->arena, ins, sizeof *in);
    pith__type *out = pith__arena_array(c->arena, outs, sizeof *out);
    if (!in || !out) return pith__fail_memory(c->err, outs * sizeof *out);
    for (int i = 0; i < m->node->input_count; i++)
        if (m->in[i] >= 0) in[i] = &types[m->in[i]];
    pith__infer own = pith__invoke_infer(m->node, in, out, c->arena, c->err);
    own.dims = c->dims;
    PITH_TRY(pith__op_infer_node(&own));
    for (int i = 0; i < m->node->output_count; i++)
        if (m->out[i] >= 0) types[m->out[i]] = out[i];
    return PITH_OK;
}

pith_status pith__claim_infer(pith__type *types, const pith__claim *claim, pith__infer *c) {
    for (size_t i = 0; i < claim->value_count; i++) pith__type_init(&types[i]);
    for (int i = 0; i < claim->node.input_count; i++)
        if (c->in[i]) types[i] = *c->in[i];
    for (size_t i = 0; i < claim->member_count; i++)
        PITH_TRY(claim_infer_member(types, &claim->members[i], c));
    return PITH_OK;
}

static pith_status claim_infer_node(pith__infer *c) {
    const pith__claim *claim = pith__claim_of(c->node);
    pith__type *types = pith__arena_array(c->arena, claim->value_count, sizeof *types);
    if (!types) return pith__fail_memory(c->err, claim->value_count * sizeof *types);
    PITH_TRY(pith__claim_infer(types, claim, c));
    for (int i = 0; i < claim->node.output_count; i++) {
        c->out[i] = types[claim->results[i]];
        c->out[i].data = NULL;
    }
    return PITH_OK;
}

const pith__op pith__claim_op = {
    .domain = "pith",
    .name = "Program",
    .since = 1,
    .newest = 1,
    .max_inputs = -1,
    .max_outputs = -1,
    .attrs = "",
    .infer = claim_infer_node,
};
