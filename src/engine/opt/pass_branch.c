/* pass_branch.c - replaces an If whose condition is known by its branch. Exporters write such nodes where a shape
 * decides (squeeze this axis if its size is 1), and shapes are often known here even if the exporter did not know
 * them. */
#include "engine/opt/pass.h"

static pith_status branch_run(pith_opt *o, size_t *changes) {
    for (pith_node *node = o->graph->first, *next; node; node = next) {
        next = node->next;
        pith_dim condition;
        if (!pith_str_is(node->op_type, "If") || node->domain.size || !node->inputs[0]) continue;
        const pith_type *type = &node->inputs[0]->type;
        if (pith_type_count(type) != 1 || !pith_type_elem(type, 0, &condition) || !pith_dim_known(condition)) continue;
        const pith_graph *branch = pith_node_graph(node, condition ? "then_branch" : "else_branch");
        if (!branch) continue;
        PITH_TRY(pith_graph_inline(node, branch, NULL, NULL, o->err));
        ++*changes;
    }
    return PITH_OK;
}

const pith_pass pith_pass_branch = { .name = "branch", .level = 1, .run = branch_run };
