/* pass_lift.c - moves a normalisation of the last axis before a Transpose that keeps this axis.
 * Heads that are normalised after they were split are then cut from normalised rows, and the
 * Transpose meets the nodes that follow. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

static bool keeps_last_axis(const pith__node *transpose) {
    size_t count;
    const int64_t *perm = pith__node_ints(transpose, "perm", &count);
    return perm && count > 0 && perm[count - 1] == (int64_t)count - 1;
}

/* The Transpose is not moved but made anew after the normalisation; the old one goes by itself if
 * nobody else reads it. */
static pith_status lift_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node; node = node->next) {
        if ((!pith__match_is(node, "LayerNormalization") &&
             !pith__match_is(node, "RMSNormalization")) ||
            node->output_count != 1 || !pith__match_live(node))
            continue;
        pith__value *x = node->inputs[0], *out = node->outputs[0],
                    *gamma = pith__match_input(node, 1);
        pith__node *transpose = pith__match_maker(x, "Transpose");
        int64_t axis = pith__node_int(node, "axis", -1);
        if (!transpose || pith__match_user(x) != node || !keeps_last_axis(transpose) ||
            out->output_uses || (axis != -1 && axis != x->type.rank - 1) ||
            !pith__match_const(gamma) || gamma->type.data->rank != 1)
            continue;
        pith__type type = out->type;
        pith__node *after =
            pith__graph_add_node(o->graph, node->next, "", "Transpose", NULL, 0, NULL, 1);
        size_t count;
        const int64_t *perm = pith__node_ints(transpose, "perm", &count);
        if (!after || pith__node_set_ints(after, "perm", perm, count))
            return pith__fail_memory(o->err, 0);
        PITH_TRY(pith__op_bind_node(after, o->err));
        after->outputs[0]->type = type;
        if (pith__value_replace(out, after->outputs[0]) || pith__node_set_input_count(after, 1) ||
            pith__node_set_input(after, 0, out) ||
            pith__node_set_input(node, 0, transpose->inputs[0]) ||
            pith__node_set_int(node, "axis", -1))
            return pith__fail_memory(o->err, 0);
        out->type = transpose->inputs[0]->type;
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_lift = { "lift", 2, false, lift_run };
