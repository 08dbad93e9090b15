/* pass_swish.c - x * sigmoid(x), or x * sigmoid(a * x) with a number a, becomes Swish, which rounds
 * in the same places. A convolution then applies it to its results as one step (pith__tail),
 * because a single node reads them. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

/* The factor of x inside the Sigmoid `v` comes from. */
static bool swish_argument(const pith__value *v, const pith__value *x, double *factor) {
    const pith__node *sigmoid = pith__match_maker(v, "Sigmoid");
    if (!sigmoid) return false;
    *factor = 1.0;
    if (sigmoid->inputs[0] == x) return true;
    const pith__node *mul = pith__match_maker(sigmoid->inputs[0], "Mul");
    if (!mul || (mul->inputs[0] != x && mul->inputs[1] != x)) return false;
    const pith__value *number = pith__match_other(mul, x);
    return number->type.dtype == PITH_F32 &&
           pith__match_same_shape(&mul->outputs[0]->type, &x->type) &&
           pith__match_scalar(number, factor);
}

static pith_status swish_run(pith__opt *o, size_t *changes) {
    if (!pith__op_find(PITH_STR(""), PITH_STR("Swish"))) return PITH_OK;
    for (pith__node *node = o->graph->first; node; node = node->next) {
        if (!pith__match_is(node, "Mul") || !pith__match_live(node)) continue;
        for (int i = 0; i < 2; i++) {
            pith__value *x = node->inputs[i], *gate = node->inputs[1 - i];
            double factor;
            if (!pith__match_f32(x) || pith__match_user(gate) != node ||
                !swish_argument(gate, x, &factor))
                continue;
            pith__node *made;
            PITH_TRY(pith__match_put(&made, node->outputs[0], node, "", "Swish", &x, 1, o->err));
            if (factor != 1.0 && pith__node_set_float(made, "alpha", (float)factor))
                return pith__fail_memory(o->err, 0);
            made->name = node->name;
            pith__report_add(o->report, true, "swish", "Swish from its parts at '" PITH_STR_FMT "'",
                             PITH_STR_ARG(node->name));
            ++*changes;
            break;
        }
    }
    return PITH_OK;
}

const pith__pass pith__pass_swish = { "swish", 2, false, swish_run };
