/* pass_gelu.c - written-out GELU becomes the Gelu operator.
 *
 *   erf form   x * 0.5 * (1 + erf(x / sqrt(2)))
 *   tanh form  x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
 * The factors may come in any order and nesting. The argument of erf or tanh is compared as a
 * polynomial in x, so it does not matter how a file spells the cube or which constant was
 * multiplied into which. Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", and the ONNX
 * Gelu operator. */
#include <math.h>

#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

/* The degree of the polynomial in tanh's argument, and how deep its nodes may be nested. */
#define DEGREE 3
#define DEPTH_MAX 12

typedef struct polynomial {
    double c[DEGREE + 1];
} polynomial;

static bool gelu_multiply(polynomial *p, const polynomial *a, const polynomial *b) {
    polynomial r = { { 0 } };
    for (int i = 0; i <= DEGREE; i++) {
        for (int j = 0; j <= DEGREE; j++) {
            double term = a->c[i] * b->c[j];
            if (term == 0.0) continue;
            if (i + j > DEGREE) return false;
            r.c[i + j] += term;
        }
    }
    *p = r;
    return true;
}

/* v as a polynomial in x, through Add, Sub, Mul, Div and Pow by constants. False for any other
 * operator, and for a degree above DEGREE. Comparing coefficients replaces a list of spellings,
 * which would never be complete. */
static bool polynomial_of(polynomial *p, const pith__value *v, const pith__value *x, int depth) {
    *p = (polynomial){ { 0 } };
    if (v == x) {
        p->c[1] = 1.0;
        return true;
    }
    if (pith__match_scalar(v, &p->c[0])) return true;
    const pith__node *n = v->producer;
    if (depth == 0 || !n || n->domain.size != 0 || n->input_count != 2 || !n->inputs[0] ||
        !n->inputs[1])
        return false;
    polynomial a, b;
    if (!polynomial_of(&a, n->inputs[0], x, depth - 1) ||
        !polynomial_of(&b, n->inputs[1], x, depth - 1))
        return false;
    bool b_is_number = b.c[1] == 0.0 && b.c[2] == 0.0 && b.c[3] == 0.0;
    double sign = pith__str_is(n->op_type, "Sub") ? -1.0 : 1.0;
    if (pith__str_is(n->op_type, "Add") || sign < 0.0) {
        for (int i = 0; i <= DEGREE; i++) p->c[i] = a.c[i] + sign * b.c[i];
        return true;
    }
    if (pith__str_is(n->op_type, "Mul")) return gelu_multiply(p, &a, &b);
    if (pith__str_is(n->op_type, "Div") && b_is_number && b.c[0] != 0.0) {
        for (int i = 0; i <= DEGREE; i++) p->c[i] = a.c[i] / b.c[0];
        return true;
    }
    if (pith__str_is(n->op_type, "Pow") && b_is_number && (b.c[0] == 2.0 || b.c[0] == 3.0)) {
        if (!gelu_multiply(p, &a, &a)) return false;
        return b.c[0] == 2.0 || gelu_multiply(p, p, &a);
    }
    return false;
}

/* Constants may have been rounded to f16. */
static bool near(double a, double b) { return fabs(a - b) <= 1e-3 * fabs(b); }

/* Is the argument of this Erf or Tanh what GELU of x has? */
static bool argument_fits(const pith__node *node, const pith__value *x) {
    polynomial p;
    if (!polynomial_of(&p, node->inputs[0], x, DEPTH_MAX) || p.c[0] != 0.0 || p.c[2] != 0.0)
        return false;
    if (pith__match_is(node, "Erf")) return near(p.c[1], 0.70710678118654752) && p.c[3] == 0.0;
    return near(p.c[1], 0.79788456080286536) && near(p.c[3], 0.79788456080286536 * 0.044715);
}

/* Takes the factors v brings: x, 0.5, or x * 0.5. */
static bool take_factors(const pith__node *node, const pith__value *v, pith__value **x,
                         bool *half) {
    if (!*half && pith__match_scalar_near(v, 0.5, 0.0)) return *half = true;
    if (*x) return false;
    if (argument_fits(node, v)) {
        *x = (pith__value *)v;
        return true;
    }
    const pith__node *mul = pith__match_maker(v, "Mul");
    if (!mul || *half) return false;
    for (int i = 0; i < 2; i++) {
        if (pith__match_scalar_near(mul->inputs[i], 0.5, 0.0) &&
            argument_fits(node, mul->inputs[1 - i])) {
            *x = mul->inputs[1 - i];
            return *half = true;
        }
    }
    return false;
}

/* From Erf or Tanh forward to the node whose output is gelu(x). */
static pith__node *gelu_match(pith__node *node, pith__value **x) {
    pith__node *add = pith__match_user(node->outputs[0]);
    if (!pith__match_is(add, "Add") ||
        !pith__match_scalar_near(pith__match_other(add, node->outputs[0]), 1.0, 0.0))
        return NULL;
    bool half = false;
    pith__node *last = add;
    while (!*x || !half) {
        pith__node *mul = pith__match_user(last->outputs[0]);
        if (!pith__match_is(mul, "Mul")) return NULL;
        if (!take_factors(node, pith__match_other(mul, last->outputs[0]), x, &half)) return NULL;
        last = mul;
    }
    return pith__match_f32(*x) ? last : NULL;
}

static pith_status gelu_run(pith__opt *o, size_t *changes) {
    if (!pith__op_find(PITH_STR(""), PITH_STR("Gelu"))) return PITH_OK;
    for (pith__node *node = o->graph->first; node; node = node->next) {
        bool erf = pith__match_is(node, "Erf");
        if (!erf && !pith__match_is(node, "Tanh")) continue;
        pith__value *x = NULL;
        pith__node *last = gelu_match(node, &x);
        if (!last) {
            if (erf) {
                pith__report_add(o->report, false, "gelu",
                                 "Erf '" PITH_STR_FMT "' is not in the form of a GELU",
                                 PITH_STR_ARG(node->name));
            }
            continue;
        }
        pith__node *made;
        PITH_TRY(pith__match_put(&made, last->outputs[0], last, "", "Gelu", &x, 1, o->err));
        if (pith__node_set_str(made, "approximate", erf ? PITH_STR("none") : PITH_STR("tanh"))) {
            return pith__fail_memory(o->err, 0);
        }
        pith__report_add(o->report, true, "gelu", "GELU (%s) from its parts at '" PITH_STR_FMT "'",
                         erf ? "erf" : "tanh", PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_gelu = { "gelu", 2, false, gelu_run };
