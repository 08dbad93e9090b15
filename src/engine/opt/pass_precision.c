/* pass_precision.c - the precision that the model was opened with becomes an attribute of the nodes
 * that know it: pith.Linear, pith.Attention, and with int8 pith.EmbedNorm. Their operators do the
 * rest. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

static bool knows(const pith__node *node, int precision) {
    return pith__match_is_own(node, "Linear") || pith__match_is_own(node, "Attention") ||
           (precision == PITH_PRECISION_INT8 && pith__match_is_own(node, "EmbedNorm"));
}

static pith_status precision_run(pith__opt *o, size_t *changes) {
    if (o->precision <= PITH_PRECISION_F32) return PITH_OK;
    for (pith__node *node = o->graph->first; node; node = node->next) {
        if (!knows(node, o->precision) ||
            pith__node_int(node, "precision", PITH_PRECISION_AUTO) == o->precision)
            continue;
        if (pith__node_set_int(node, "precision", o->precision))
            return pith__fail_memory(o->err, 0);
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_precision = { "precision", 2, false, precision_run };
