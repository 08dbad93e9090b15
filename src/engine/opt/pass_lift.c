/* pass_lift.c - moves a normalisation of the last axis before a Transpose that keeps this axis. Heads that are
 * normalised after they were split are then cut from normalised rows, and the Transpose meets the nodes that follow. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

static bool keeps_last_axis(const pith_node *transpose) {
    size_t count;
    const int64_t *perm = pith_node_ints(transpose, "perm", &count);
    return perm && count > 0 && perm[count - 1] == (int64_t)count - 1;
}

static pith_status lift_run(pith_opt *o, size_t *changes) {
    for (pith_node *node = o->graph->first; node; node = node->next) {
        if ((!pith_match_is(node, "LayerNormalization") && !pith_match_is(node, "RMSNormalization")) ||
            node->output_count != 1 || !pith_match_live(node))
            continue;
        pith_value *x = node->inputs[0], *out = node->outputs[0], *gamma = pith_match_input(node, 1);
        pith_node *transpose = pith_match_maker(x, "Transpose");
        int64_t axis = pith_node_int(node, "axis", -1);
        if (!transpose || pith_match_user(x) != node || !keeps_last_axis(transpose) || out->output_uses ||
            (axis != -1 && axis != x->type.rank - 1) || !pith_match_const(gamma) || gamma->type.data->rank != 1)
            continue;
        pith_type type = out->type;
        pith_node *after = pith_graph_add_node(o->graph, node->next, "", "Transpose", NULL, 0, NULL, 1);
        size_t count;
        const int64_t *perm = pith_node_ints(transpose, "perm", &count);
        if (!after || pith_node_set_ints(after, "perm", perm, count)) return pith_fail_memory(o->err, 0);
        PITH_TRY(pith_op_bind_node(after, o->err));
        after->outputs[0]->type = type;
        if (pith_value_replace(out, after->outputs[0]) || pith_node_set_input_count(after, 1) ||
            pith_node_set_input(after, 0, out) || pith_node_set_input(node, 0, transpose->inputs[0]) ||
            pith_node_set_int(node, "axis", -1))
            return pith_fail_memory(o->err, 0);
        out->type = transpose->inputs[0]->type;
        ++*changes;
    }
    return PITH_OK;
}

const pith_pass pith_pass_lift = { "lift", 2, false, lift_run };
