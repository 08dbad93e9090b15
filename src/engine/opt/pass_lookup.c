/* pass_lookup.c - GatherElements from one row, or from rows that repeat one row, becomes a Gather
 * from that row. transformers writes token types by position that way, for models that have one
 * type. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

/* The row, perhaps behind Expand: [1, …, n, …, 1] with n along the axis. */
static pith__value *repeated_row(const pith__node *node, int64_t axis) {
    pith__node *expand = pith__match_maker(node->inputs[0], "Expand");
    pith__value *row = expand ? expand->inputs[0] : node->inputs[0];
    const pith__type *data = &node->inputs[0]->type;
    if (row->type.rank < 1 || row->type.rank != data->rank) return NULL;
    for (int d = 0; d < data->rank; d++) {
        if (d == axis ? !pith__dim_equal(row->type.dims[d], data->dims[d]) : row->type.dims[d] != 1)
            return NULL;
    }
    return row;
}

static pith_status lookup_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node; node = node->next) {
        if (!pith__match_is(node, "GatherElements") || !pith__match_live(node)) continue;
        int rank = node->inputs[0]->type.rank;
        int64_t axis = pith__node_int(node, "axis", 0), flat = -1;
        pith__value *row = repeated_row(node, axis < 0 ? axis + rank : axis);
        if (!row) continue;
        pith__value *inputs[] = { row, pith__graph_add_i64s(o->graph, PITH_STR(""), &flat, 1) };
        pith__node *reshape =
            inputs[1] ? pith__graph_add_node(o->graph, node, "", "Reshape", inputs, 2, NULL, 1)
                      : NULL;
        if (!reshape) return pith__fail_memory(o->err, 0);
        PITH_TRY(pith__op_bind_node(reshape, o->err));
        pith__value *looked_up[] = { reshape->outputs[0], node->inputs[1] };
        pith__node *gather;
        PITH_TRY(
            pith__match_put(&gather, node->outputs[0], node, "", "Gather", looked_up, 2, o->err));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_lookup = { "lookup", 1, false, lookup_run };
