/* pass_reshape.c - makes the target of a Reshape constant if the shape of the result is known
 * symbolically: a size that stays in its place is 0, and one other size may be -1. The arithmetic
 * that computed the target, and the Shape nodes that made it read activations, are then unused. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

/* The constant target; false if more than one size would have to be found out. */
static bool target_of(const pith__type *in, const pith__type *out, int64_t *target) {
    int open = 0;
    for (int i = 0; i < out->rank; i++) {
        if (pith__dim_known(out->dims[i])) {
            if (out->dims[i] == 0) return false;
            target[i] = out->dims[i];
        } else if (i < in->rank && pith__dim_equal(in->dims[i], out->dims[i])) {
            target[i] = 0;
        } else {
            target[i] = -1;
            if (++open > 1) return false;
        }
    }
    return true;
}

static pith_status reshape_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node; node = node->next) {
        int64_t target[PITH_MAX_RANK];
        if (!pith__match_is(node, "Reshape") || pith__match_const(node->inputs[1])) continue;
        const pith__type *in = &node->inputs[0]->type, *out = &node->outputs[0]->type;
        if (in->rank < 0 || out->rank < 1 || !target_of(in, out, target)) continue;
        pith__value *shape = pith__graph_add_i64s(o->graph, PITH_STR(""), target, out->rank);
        if (!shape || pith__node_set_input(node, 1, shape) ||
            pith__node_set_int(node, "allowzero", 0)) {
            return pith__fail_memory(o->err, 0);
        }
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_reshape = { "reshape", 1, false, reshape_run };
