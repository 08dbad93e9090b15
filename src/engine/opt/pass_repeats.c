/* pass_repeats.c - marks a linear whose rows are looked up, because duplicate rows are likely: a
 * token at the same place in two texts of a batch, or at any place if positions are added later. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

static bool is_marked(const pith__value *v) { return v->producer && v->producer->mark; }

/* Is each row a function of a few integers: one of a table, or made of such a row alone? Nodes
 * before it are marked. */
static bool is_looked_up(const pith__node *n) {
    if (pith__match_is_own(n, "EmbedNorm")) return true;
    if (pith__match_is(n, "Gather"))
        return pith__match_const(n->inputs[0]) && n->inputs[0]->type.rank == 2 &&
               !pith__node_int(n, "axis", 0);
    bool by_row = pith__match_is(n, "RMSNormalization") ||
                  pith__match_is(n, "LayerNormalization") || pith__match_is_own(n, "Linear");
    return by_row && is_marked(n->inputs[0]);
}

static pith_status repeats_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node; node = node->next) {
        node->mark = is_looked_up(node);
        if (!pith__match_is_own(node, "Linear") || pith__node_int(node, "repeats", 0) ||
            !is_marked(node->inputs[0]))
            continue;
        if (pith__node_set_int(node, "repeats", 1)) return pith__fail_memory(o->err, 0);
        pith__report_add(o->report, true, "repeats",
                         "equal rows of '" PITH_STR_FMT "' are multiplied once",
                         PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_repeats = { "repeats", 2, false, repeats_run };
