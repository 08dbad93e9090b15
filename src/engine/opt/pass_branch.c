/* pass_branch.c - replaces an If whose condition is known by its branch. Exporters write such nodes
 * where a shape decides (squeeze this axis if its size is 1), and shapes are often known here even
 * if the exporter did not know them. */
#include "engine/opt/pass.h"

static pith_status branch_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first, *next; node; node = next) {
        next = node->next;
        pith__dim condition;
        if (!pith__str_is(node->op_type, "If") || node->domain.size || !node->inputs[0]) continue;
        const pith__type *type = &node->inputs[0]->type;
        if (pith__type_count(type) != 1 || !pith__type_elem(type, 0, &condition) ||
            !pith__dim_known(condition))
            continue;
        const pith__graph *branch =
            pith__node_graph(node, condition ? "then_branch" : "else_branch");
        if (!branch) continue;
        PITH_TRY(pith__graph_inline(node, branch, NULL, NULL, o->err));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_branch = { .name = "branch", .level = 1, .run = branch_run };
