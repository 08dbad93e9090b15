/* ml_scores.c - see ml_scores.h. */
#include "engine/ops/shared/ml_scores.h"

#include <math.h>

pith_status pith__post_read(pith__post *post, const pith__node *node, pith_error *err) {
    static const char *const names[] = { "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT" };
    pith_str name = pith__node_str(node, "post_transform", "NONE");
    for (int i = 0; i < 5; i++)
        if (pith__str_is(name, names[i])) return *post = (pith__post)i, PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT, "post_transform '" PITH_STR_FMT "' is unknown",
                      PITH_STR_ARG(name));
}

/* Inverse of the normal distribution's, by Winitzki's approximation of the inverse error function
 * (as the standard's reference has it). */
static double ml_probit(double p) {
    double x = 2 * p - 1, log_part = log((1 - x) * (1 + x)),
           a = 2 / (3.14159 * 0.147) + 0.5 * log_part;
    return 1.41421356 * (x < 0 ? -1 : 1) * sqrt(sqrt(a * a - log_part / 0.147) - a);
}

/* SOFTMAX_ZERO leaves scores of exactly 0 as they are. The largest score is taken off before exp,
 * so nothing overflows. */
void pith__post_apply(pith__post post, double *y, int64_t n) {
    double most = -INFINITY, sum = 0;
    switch (post) {
    case PITH_POST_NONE: return;
    case PITH_POST_LOGISTIC:
        for (int64_t i = 0; i < n; i++) y[i] = 1 / (1 + exp(-y[i]));
        return;
    case PITH_POST_PROBIT:
        for (int64_t i = 0; i < n; i++) y[i] = ml_probit(y[i]);
        return;
    case PITH_POST_SOFTMAX:
    case PITH_POST_SOFTMAX_ZERO:
        for (int64_t i = 0; i < n; i++) most = fmax(most, y[i]);
        for (int64_t i = 0; i < n; i++) {
            if (post == PITH_POST_SOFTMAX || y[i] != 0) y[i] = exp(y[i] - most), sum += y[i];
        }
        for (int64_t i = 0; i < n; i++) y[i] = sum != 0 ? y[i] / sum : y[i];
    }
}

void pith__post_second(pith__post post, double *y, double rest) {
    y[1] = y[0];
    y[0] = (post == PITH_POST_NONE ? rest : 0) - y[1];
    pith__post_apply(post, y, 2);
}

pith__labels pith__labels_read(const pith__node *node, const char *strings, const char *ints) {
    pith__labels l;
    size_t n;
    l.strings = pith__node_strs(node, strings, &n);
    if (!n) l.strings = NULL;
    l.ints = l.strings ? NULL : pith__node_ints(node, ints, &n);
    l.count = (int64_t)n;
    return l;
}

void pith__labels_put(const pith__labels *labels, pith_tensor *to, int64_t row, int64_t label) {
    if (labels->strings)
        ((pith_str *)to->data)[row] = labels->strings[label];
    else
        ((int64_t *)to->data)[row] = labels->ints[label];
}
