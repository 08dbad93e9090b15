/* pass_precision.c - the precision that the model was opened with becomes an attribute of the nodes that know it:
 * pith.Linear, pith.Attention, and with int8 pith.EmbedNorm. Their operators do the rest. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

static bool knows(const pith_node *node, int precision) {
    return pith_match_is_own(node, "Linear") || pith_match_is_own(node, "Attention") ||
           (precision == PITH_PRECISION_INT8 && pith_match_is_own(node, "EmbedNorm"));
}

static pith_status precision_run(pith_opt *o, size_t *changes) {
    if (o->precision <= PITH_PRECISION_F32) return PITH_OK;
    for (pith_node *node = o->graph->first; node; node = node->next) {
        if (!knows(node, o->precision) || pith_node_int(node, "precision", PITH_PRECISION_AUTO) == o->precision)
            continue;
        if (pith_node_set_int(node, "precision", o->precision)) return pith_fail_memory(o->err, 0);
        ++*changes;
    }
    return PITH_OK;
}

const pith_pass pith_pass_precision = { "precision", 2, false, precision_run };
