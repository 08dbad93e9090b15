/* pass_hard_swish.c - written-out HardSwish and Mish become these operators, which round in other
 * places.
 *
 *   HardSwish  x * hardsigmoid(x) with the slope 1/6 and 0.5, or x * clip(x + 3, 0, 6) / 6, divided
 *              in any place
 *   Mish       x * tanh(softplus(x))
 * Source: Howard et al., "Searching for MobileNetV3"; Misra, "Mish"; the ONNX operators. */
#include <math.h>

#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

/* v is clip(x + 3, 0, 6). */
static bool hard_swish_clip(const pith__value *v, const pith__value *x) {
    const pith__node *clip = pith__match_maker(v, "Clip");
    if (!clip || !pith__match_scalar_near(pith__match_input(clip, 1), 0.0, 0.0) ||
        !pith__match_scalar_near(pith__match_input(clip, 2), 6.0, 0.0))
        return false;
    const pith__node *add = pith__match_maker(clip->inputs[0], "Add");
    return add && (add->inputs[0] == x || add->inputs[1] == x) &&
           pith__match_scalar_near(pith__match_other(add, x), 3.0, 0.0);
}

/* v is w / 6, or w times a sixth: returns w, else NULL. */
static pith__value *hard_swish_sixth(const pith__value *v) {
    const pith__node *div = pith__match_maker(v, "Div"), *mul = pith__match_maker(v, "Mul");
    if (div) return pith__match_scalar_near(div->inputs[1], 6.0, 0.0) ? div->inputs[0] : NULL;
    if (!mul) return NULL;
    for (int i = 0; i < 2; i++)
        if (pith__match_scalar_near(mul->inputs[i], 1.0 / 6.0, 1e-7)) return mul->inputs[1 - i];
    return NULL;
}

static bool hard_swish_gate(const pith__value *v, const pith__value *x) {
    const pith__node *hard = pith__match_maker(v, "HardSigmoid");
    if (hard)
        return hard->inputs[0] == x &&
               fabs((double)pith__node_float(hard, "alpha", 0.2f) - 1.0 / 6.0) <= 1e-7 &&
               pith__node_float(hard, "beta", 0.5f) == 0.5f;
    const pith__value *whole = hard_swish_sixth(v);
    return whole && hard_swish_clip(whole, x);
}

static bool hard_swish_is_mish(const pith__value *v, const pith__value *x) {
    const pith__node *tanh = pith__match_maker(v, "Tanh");
    const pith__node *softplus = tanh ? pith__match_maker(tanh->inputs[0], "Softplus") : NULL;
    return softplus && softplus->inputs[0] == x;
}

/* The operator that v is of x, or NULL. v: f32 of x's shape. */
static const char *hard_swish_match(const pith__value *v, pith__value **x) {
    const pith__value *product = hard_swish_sixth(v);
    const pith__node *mul = pith__match_maker(product ? product : v, "Mul");
    if (!mul) return NULL;
    for (int i = 0; i < 2; i++) {
        pith__value *gate = mul->inputs[1 - i];
        *x = mul->inputs[i];
        if (!pith__match_f32(*x) || pith__match_user(gate) != mul) continue;
        if (product) {
            if (hard_swish_clip(gate, *x)) return "HardSwish";
            continue;
        }
        if (hard_swish_gate(gate, *x)) return "HardSwish";
        if (hard_swish_is_mish(gate, *x)) return "Mish";
    }
    return NULL;
}

static pith_status hard_swish_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node; node = node->next) {
        pith__value *x = NULL;
        if ((!pith__match_is(node, "Mul") && !pith__match_is(node, "Div")) ||
            !pith__match_live(node))
            continue;
        const char *op = hard_swish_match(node->outputs[0], &x);
        if (!op || !pith__op_find(PITH_STR(""), pith__str_of(op)) ||
            !pith__match_same_shape(&node->outputs[0]->type, &x->type))
            continue;
        pith__node *made;
        PITH_TRY(pith__match_put(&made, node->outputs[0], node, "", op, &x, 1, o->err));
        made->name = node->name;
        pith__report_add(o->report, true, "hard_swish", "%s from its parts at '" PITH_STR_FMT "'",
                         op, PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_hard_swish = { "hard_swish", 3, false, hard_swish_run };
