/* op_losses.c - NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
 *
 * For every place (n, d…), both pick the entry of one class along axis 1 of [N, C, d…] and weight
 * it. They differ in whether log-probabilities are given or computed. Source: ONNX operators of
 * these names. */
#include <math.h>

#include "engine/ops/shared/as_doubles.h"

enum { MEAN, SUM, NONE };

typedef struct loss {
    int reduction;
    bool softmax, ignores;
    int64_t ignored;
} loss;

static pith_status losses_read_reduction(const pith__node *node, int *reduction, pith_error *err) {
    pith_str name = pith__node_str(node, "reduction", "mean");
    if (pith__str_is(name, "mean"))
        *reduction = MEAN;
    else if (pith__str_is(name, "sum"))
        *reduction = SUM;
    else if (pith__str_is(name, "none"))
        *reduction = NONE;
    else
        return pith__fail(err, PITH_ERR_ARGUMENT, "reduction '" PITH_STR_FMT "' is unknown",
                          PITH_STR_ARG(name));
    return PITH_OK;
}

/* Labels have the shape of the scores without the axis of classes. Without a reduction that is the
 * shape of the loss. */
static pith_status losses_infer(pith__infer *c) {
    int reduction;
    PITH_TRY(losses_read_reduction(c->node, &reduction, c->err));
    const pith__type *x = c->in[0], *labels = c->in[1];
    if (x->rank >= 0 && x->rank < 2)
        return pith__op_fail(c, "scores have %d dimensions, at least 2 are needed", x->rank);
    if (x->rank >= 0 && labels->rank >= 0 && labels->rank != x->rank - 1)
        return pith__op_fail(c, "labels have %d dimensions, %d are needed", labels->rank,
                             x->rank - 1);
    if (x->rank >= 0) {
        for (int i = 0; i < labels->rank; i++) {
            pith__dim d = x->dims[i ? i + 1 : 0];
            if (pith__dim_known(d) && pith__dim_known(labels->dims[i]) && d != labels->dims[i])
                return pith__op_fail(c, "labels do not fit the scores in dimension %d", i);
        }
    }
    pith__type_set(&c->out[0], x->dtype, reduction == NONE ? labels->rank : 0, labels->dims);
    if (c->out_count > 1) pith__type_set(&c->out[1], x->dtype, x->rank, x->dims);
    return PITH_OK;
}

static pith_status losses_prepare(pith__prepare *c, bool softmax) {
    loss *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    PITH_TRY(losses_read_reduction(c->node, &s->reduction, c->err));
    s->softmax = softmax;
    s->ignores = pith__node_attr(c->node, "ignore_index") != NULL;
    s->ignored = pith__node_int(c->node, "ignore_index", 0);
    c->state = s;
    return PITH_OK;
}

static pith_status losses_prepare_nll(pith__prepare *c) { return losses_prepare(c, false); }
static pith_status losses_prepare_softmax(pith__prepare *c) { return losses_prepare(c, true); }

/* x[c * inner] for c < classes becomes its log-softmax. */
static void losses_log_softmax(double *x, int64_t classes, int64_t inner) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < classes; i++) most = fmax(most, x[i * inner]);
    for (int64_t i = 0; i < classes; i++) sum += exp(x[i * inner] - most);
    double shift = most + log(sum);
    for (int64_t i = 0; i < classes; i++) x[i * inner] -= shift;
}

/* Place by place. An ignored label adds neither loss nor weight, so the mean is over the others.
 * The log-probabilities are an output of their own, computed in place. */
static pith_status losses_run(pith__run *r) {
    const loss *s = r->state;
    const pith_tensor *x = r->in[0], *labels = r->in[1],
                      *weights = r->in_count > 2 ? r->in[2] : NULL;
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t batch = x->dims[0], classes = x->dims[1], inner = 1;
    for (int i = 2; i < x->rank; i++) inner *= x->dims[i];
    if (weights && pith__tensor_count(weights) != classes)
        return pith__fail(r->err, PITH_ERR_ARGUMENT, "%lld weights for %lld classes",
                          (long long)pith__tensor_count(weights), (long long)classes);
    if (labels->dtype != PITH_I64 && labels->dtype != PITH_I32) {
        return pith__fail(r->err, PITH_ERR_ARGUMENT, "labels are neither int64 nor int32");
    }
    double sum = 0, weight_sum = 0;
    int64_t spent = 0;
    for (int64_t i = 0; i < batch * inner; i++) {
        PITH_TRY(pith__run_spend(r, &spent, 32 + (s->softmax ? 32 * classes : 0)));
        double *column = w.in[0] + i / inner * classes * inner + i % inner;
        if (s->softmax) losses_log_softmax(column, classes, inner);
        int64_t label = labels->dtype == PITH_I64 ? ((const int64_t *)labels->data)[i]
                                                  : ((const int32_t *)labels->data)[i];
        bool ignored = s->ignores && label == s->ignored;
        if (!ignored && (label < 0 || label >= classes))
            return pith__fail(r->err, PITH_ERR_RUN, "label %lld is outside of %lld classes",
                              (long long)label, (long long)classes);
        double weight = 0, value = 0;
        if (!ignored) {
            weight = weights ? w.in[2][label] : 1;
            value = -weight * column[label * inner];
        }
        if (s->reduction == NONE && w.out[0]) w.out[0][i] = value;
        sum += value;
        weight_sum += weight;
    }
    if (s->reduction != NONE && w.out[0])
        w.out[0][0] = s->reduction == MEAN ? sum / weight_sum : sum;
    if (r->out_count > 1 && w.out[1])
        PITH_TRY(pith__run_bytes(r, w.out[1], w.in[0],
                                 (size_t)(batch * classes * inner) * sizeof(double)));
    return pith__wide_close(&w, r);
}

const pith__op pith__op_NegativeLogLikelihoodLoss = {
    .domain = "",
    .name = "NegativeLogLikelihoodLoss",
    .since = 12,
    .newest = 22,
    .min_inputs = 2,
    .max_inputs = 3,
    .max_outputs = 1,
    .types = "fif",
    .attrs = "ignore_index int any; reduction string none|sum|mean = mean",
    .infer = losses_infer,
    .prepare = losses_prepare_nll,
    .scratch = pith__wide_scratch,
    .run = losses_run,
};

const pith__op pith__op_SoftmaxCrossEntropyLoss = {
    .domain = "",
    .name = "SoftmaxCrossEntropyLoss",
    .since = 12,
    .newest = 13,
    .min_inputs = 2,
    .max_inputs = 3,
    .max_outputs = 2,
    .types = "fif",
    .attrs = "ignore_index int any; reduction string none|sum|mean = mean",
    .infer = losses_infer,
    .prepare = losses_prepare_softmax,
    .scratch = pith__wide_scratch,
    .run = losses_run,
};
