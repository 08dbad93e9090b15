/* pass_skip_norm.c - a residual addition and the normalisation after it become pith.SkipNorm. If
 * the sum is read elsewhere too, as in networks that normalise first, it becomes the second
 * output. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

/* The normalisation goes over the last axis and its parameters are constant vectors. */
static bool plain_norm(const pith__node *node, int64_t *n) {
    int rank = node->inputs[0]->type.rank;
    int64_t axis = pith__node_int(node, "axis", -1);
    if (rank < 1 || (axis != -1 && axis != rank - 1) || !pith__match_f32(node->inputs[0]))
        return false;
    *n = node->inputs[0]->type.dims[rank - 1];
    const pith__value *beta = pith__match_input(node, 2);
    return node->output_count == 1 && pith__match_vector(node->inputs[1], *n) &&
           node->inputs[1]->type.data->rank == 1 &&
           (!beta || (pith__match_vector(beta, *n) && beta->type.data->rank == 1));
}

static pith_status skip_norm_fuse(pith__opt *o, pith__node *norm, pith__node *add, bool rms) {
    pith__value *beta = pith__match_input(norm, 2), *sum = add->outputs[0];
    pith__value *inputs[] = { add->inputs[0], add->inputs[1], norm->inputs[1], beta };
    pith__node *made =
        pith__graph_add_node(o->graph, norm, "pith", "SkipNorm", inputs, beta ? 4 : 3, NULL,
                             sum->user_count > 1 || sum->output_uses ? 2 : 1);
    if (!made || pith__node_set_float(made, "epsilon", pith__node_float(norm, "epsilon", 1e-5f)) ||
        pith__node_set_int(made, "rms", rms))
        return pith__fail_memory(o->err, 0);
    made->mark = norm->mark;
    made->name = norm->name;
    PITH_TRY(pith__op_bind_node(made, o->err));
    if (made->output_count == 2) PITH_TRY(pith__match_replace(sum, made->outputs[1], o->err));
    return pith__match_replace(norm->outputs[0], made->outputs[0], o->err);
}

/* The sum's other readers come after the normalisation, so that they may take it from there. */
static bool readers_follow(const pith__value *sum, const pith__node *norm) {
    for (size_t i = 0; i < sum->user_count; i++) {
        if (sum->users[i].node->mark < norm->mark) return false;
    }
    return true;
}

static pith_status pass_skip_norm_run(pith__opt *o, size_t *changes) {
    pith__graph_number(o->graph);
    for (pith__node *node = o->graph->first; node; node = node->next) {
        bool rms = pith__match_is(node, "RMSNormalization");
        int64_t n;
        if ((!rms && !pith__match_is(node, "LayerNormalization")) || !plain_norm(node, &n))
            continue;
        if (!pith__match_live(node)) continue;
        pith__node *add = pith__match_maker(node->inputs[0], "Add");
        if (!add) continue;
        if (pith__match_const(add->inputs[0]) || pith__match_const(add->inputs[1]) ||
            !pith__match_same_shape(&add->inputs[0]->type, &add->inputs[1]->type)) {
            pith__report_add(o->report, false, "skip_norm",
                             "the sum before '" PITH_STR_FMT "' broadcasts",
                             PITH_STR_ARG(node->name));
            continue;
        }
        if (!readers_follow(add->outputs[0], node)) {
            pith__report_add(o->report, false, "skip_norm",
                             "the sum before '" PITH_STR_FMT "' is read before it is normalised",
                             PITH_STR_ARG(node->name));
            continue;
        }
        PITH_TRY(skip_norm_fuse(o, node, add, rms));
        pith__report_add(o->report, true, "skip_norm", "residual and norm '" PITH_STR_FMT "'",
                         PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_skip_norm = { "skip_norm", 2, false, pass_skip_norm_run };
