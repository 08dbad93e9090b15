/* pass_skip_norm.c - a residual addition and the normalisation after it become pith.SkipNorm. If the sum is read
 * elsewhere too, as in networks that normalise first, it becomes the second output. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

/* The normalisation goes over the last axis and its parameters are constant vectors. */
static bool plain_norm(const pith_node *node, int64_t *n) {
    int rank = node->inputs[0]->type.rank;
    int64_t axis = pith_node_int(node, "axis", -1);
    if (rank < 1 || (axis != -1 && axis != rank - 1) || !pith_match_f32(node->inputs[0])) return false;
    *n = node->inputs[0]->type.dims[rank - 1];
    const pith_value *beta = pith_match_input(node, 2);
    return node->output_count == 1 && pith_match_vector(node->inputs[1], *n) && node->inputs[1]->type.data->rank == 1 &&
           (!beta || (pith_match_vector(beta, *n) && beta->type.data->rank == 1));
}

static pith_status skip_norm_fuse(pith_opt *o, pith_node *norm, pith_node *add, bool rms) {
    pith_value *beta = pith_match_input(norm, 2), *sum = add->outputs[0];
    pith_value *inputs[] = { add->inputs[0], add->inputs[1], norm->inputs[1], beta };
    pith_node *made = pith_graph_add_node(o->graph, norm, "pith", "SkipNorm", inputs, beta ? 4 : 3, NULL,
                                          sum->user_count > 1 || sum->output_uses ? 2 : 1);
    if (!made || pith_node_set_float(made, "epsilon", pith_node_float(norm, "epsilon", 1e-5f)) ||
        pith_node_set_int(made, "rms", rms))
        return pith_fail_memory(o->err, 0);
    made->mark = norm->mark;
    made->name = norm->name;
    PITH_TRY(pith_op_bind_node(made, o->err));
    if (made->output_count == 2) PITH_TRY(pith_match_replace(sum, made->outputs[1], o->err));
    return pith_match_replace(norm->outputs[0], made->outputs[0], o->err);
}

/* The sum's other readers come after the normalisation, so that they may take it from there. */
static bool readers_follow(const pith_value *sum, const pith_node *norm) {
    for (size_t i = 0; i < sum->user_count; i++) {
        if (sum->users[i].node->mark < norm->mark) return false;
    }
    return true;
}

static pith_status pass_skip_norm_run(pith_opt *o, size_t *changes) {
    pith_graph_number(o->graph);
    for (pith_node *node = o->graph->first; node; node = node->next) {
        bool rms = pith_match_is(node, "RMSNormalization");
        int64_t n;
        if ((!rms && !pith_match_is(node, "LayerNormalization")) || !plain_norm(node, &n)) continue;
        if (!pith_match_live(node)) continue;
        pith_node *add = pith_match_maker(node->inputs[0], "Add");
        if (!add) continue;
        if (pith_match_const(add->inputs[0]) || pith_match_const(add->inputs[1]) ||
            !pith_match_same_shape(&add->inputs[0]->type, &add->inputs[1]->type)) {
            pith_report_add(o->report, false, "skip_norm", "the sum before '" PITH_STR_FMT "' broadcasts",
                            PITH_STR_ARG(node->name));
            continue;
        }
        if (!readers_follow(add->outputs[0], node)) {
            pith_report_add(o->report, false, "skip_norm",
                            "the sum before '" PITH_STR_FMT "' is read before it is normalised",
                            PITH_STR_ARG(node->name));
            continue;
        }
        PITH_TRY(skip_norm_fuse(o, node, add, rms));
        pith_report_add(o->report, true, "skip_norm", "residual and norm '" PITH_STR_FMT "'", PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith_pass pith_pass_skip_norm = { "skip_norm", 2, false, pass_skip_norm_run };
