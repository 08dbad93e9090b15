/* pass_lookup.c - GatherElements from one row, or from rows that repeat one row, becomes a Gather from that row.
 * transformers writes token types by position that way, for models that have one type. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

/* The row, perhaps behind Expand: [1, …, n, …, 1] with n along the axis. */
static pith_value *repeated_row(const pith_node *node, int64_t axis) {
    pith_node *expand = pith_match_maker(node->inputs[0], "Expand");
    pith_value *row = expand ? expand->inputs[0] : node->inputs[0];
    const pith_type *data = &node->inputs[0]->type;
    if (row->type.rank < 1 || row->type.rank != data->rank) return NULL;
    for (int d = 0; d < data->rank; d++) {
        if (d == axis ? !pith_dim_equal(row->type.dims[d], data->dims[d]) : row->type.dims[d] != 1) return NULL;
    }
    return row;
}

static pith_status lookup_run(pith_opt *o, size_t *changes) {
    for (pith_node *node = o->graph->first; node; node = node->next) {
        if (!pith_match_is(node, "GatherElements") || !pith_match_live(node)) continue;
        int rank = node->inputs[0]->type.rank;
        int64_t axis = pith_node_int(node, "axis", 0), flat = -1;
        pith_value *row = repeated_row(node, axis < 0 ? axis + rank : axis);
        if (!row) continue;
        pith_value *inputs[] = { row, pith_graph_add_i64s(o->graph, PITH_STR(""), &flat, 1) };
        pith_node *reshape = inputs[1] ? pith_graph_add_node(o->graph, node, "", "Reshape", inputs, 2, NULL, 1) : NULL;
        if (!reshape) return pith_fail_memory(o->err, 0);
        PITH_TRY(pith_op_bind_node(reshape, o->err));
        pith_value *looked_up[] = { reshape->outputs[0], node->inputs[1] };
        pith_node *gather;
        PITH_TRY(pith_match_put(&gather, node->outputs[0], node, "", "Gather", looked_up, 2, o->err));
        ++*changes;
    }
    return PITH_OK;
}

const pith_pass pith_pass_lookup = { "lookup", 1, false, lookup_run };
