/* pass_outer.c - a matmul over a single element (k = 1) becomes a broadcast multiplication.
 * Exporters write rotary embeddings that way: frequencies by positions. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

static pith_status outer_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node; node = node->next) {
        if (!pith__match_is(node, "MatMul") || !pith__match_live(node)) continue;
        const pith__type *a = &node->inputs[0]->type, *b = &node->inputs[1]->type;
        if (a->rank < 2 || b->rank < 2 || a->dims[a->rank - 1] != 1 || b->dims[b->rank - 2] != 1)
            continue;
        pith__node *made;
        PITH_TRY(
            pith__match_put(&made, node->outputs[0], node, "", "Mul", node->inputs, 2, o->err));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_outer = { "outer", 2, false, outer_run };
