/* pass_conv_norm.c - a convolution by constant weights takes up the constants behind it:
 * BatchNormalization, and Mul and Add by a number or a number per output channel. w' = w a, b' = b
 * a + c, computed in double.
 *
 * Chains are taken up one by one, as the driver repeats the pass. Weights that other nodes read too
 * stay, for they would be in memory twice. */
#include <math.h>

#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

/* Item i of a constant with one item per channel, or its only item. */
static double conv_norm_item(const pith__value *v, int64_t i) {
    const pith_tensor *t = v->type.data;
    return (double)((const float *)t->data)[pith__type_count(&v->type) == 1 ? 0 : i];
}

/* A constant that gives each channel of a tensor of this rank a number. */
static bool conv_norm_by_channel(const pith__value *v, int rank, int64_t channels) {
    if (!pith__match_const(v) || v->type.dtype != PITH_F32 || v->type.data->rank > rank ||
        !v->type.data->data)
        return false;
    for (int d = 0; d < v->type.data->rank; d++) {
        bool channel = d - v->type.data->rank == 1 - rank;
        if (v->type.data->dims[d] != 1 && (!channel || v->type.data->dims[d] != channels))
            return false;
    }
    return true;
}

static bool conv_norm_plain(const pith__node *norm, const pith__value *x, int64_t channels) {
    if (!pith__match_is(norm, "BatchNormalization") || norm->input_count < 5 ||
        norm->inputs[0] != x)
        return false;
    if (pith__node_int(norm, "training_mode", 0)) return false;
    for (int i = 1; i < norm->output_count; i++)
        if (norm->outputs[i]) return false;
    for (int i = 1; i < 5; i++) {
        if (!norm->inputs[i] || !pith__match_vector(norm->inputs[i], channels) ||
            norm->inputs[i]->type.data->rank != 1)
            return false;
    }
    return true;
}

/* The factor and summand of channel i that `after` means; false if it means none. x: the
 * convolution's output. */
static bool conv_norm_terms(const pith__node *after, const pith__value *x, int64_t i,
                            double *factor, double *summand) {
    *factor = 1, *summand = 0;
    if (pith__match_is(after, "BatchNormalization")) {
        double deviation = sqrt(conv_norm_item(after->inputs[4], i) +
                                (double)pith__node_float(after, "epsilon", 1e-5f));
        *factor = conv_norm_item(after->inputs[1], i) / deviation;
        *summand =
            conv_norm_item(after->inputs[2], i) - conv_norm_item(after->inputs[3], i) * *factor;
    } else {
        const pith__value *other = pith__match_other(after, x);
        *(pith__match_is(after, "Mul") ? factor : summand) = conv_norm_item(other, i);
    }
    return isfinite(*factor) && isfinite(*summand) && fabs(*factor) < 1e15 && fabs(*summand) < 1e15;
}

static pith__value *conv_norm_constant(pith__opt *o, const pith_tensor *like, float **items) {
    pith_tensor t = *like;
    *items = pith__arena_alloc64(o->graph->arena, t.bytes ? t.bytes : 1);
    t.data = *items;
    return *items ? pith__graph_add_const(o->graph, PITH_STR(""), &t) : NULL;
}

/* The convolution with the constants of `after`; *made stays NULL if they cannot be taken up. */
static pith_status conv_norm_make(pith__opt *o, pith__node *conv, pith__node *after,
                                  pith__node **made) {
    const pith__value *x = conv->outputs[0], *old = pith__match_input(conv, 2);
    const pith_tensor *w = conv->inputs[1]->type.data;
    int64_t channels = w->dims[0], each = 1;
    double factor, summand;
    for (int d = 1; d < w->rank; d++) each *= w->dims[d];
    for (int64_t i = 0; i < channels; i++)
        if (!conv_norm_terms(after, x, i, &factor, &summand)) return PITH_OK;
    pith_tensor row = { .bytes = (size_t)channels * sizeof(float),
                        .dtype = PITH_F32,
                        .rank = 1,
                        .dims = { channels } };
    float *weights, *bias;
    pith__value *inputs[3] = { conv->inputs[0], conv_norm_constant(o, w, &weights),
                               conv_norm_constant(o, &row, &bias) };
    if (!inputs[1] || !inputs[2]) return pith__fail_memory(o->err, w->bytes);
    for (int64_t i = 0; i < channels; i++) {
        conv_norm_terms(after, x, i, &factor, &summand);
        const float *from = (const float *)w->data + i * each;
        for (int64_t k = 0; k < each; k++)
            weights[i * each + k] = (float)((double)from[k] * factor);
        bias[i] = (float)((old ? conv_norm_item(old, i) : 0) * factor + summand);
    }
    *made = pith__graph_add_like(o->graph, after, conv, inputs, 3);
    if (!*made) return pith__fail_memory(o->err, sizeof **made);
    (*made)->outputs[0]->type = after->outputs[0]->type;
    PITH_TRY(pith__op_bind_node(*made, o->err));
    pith__opt_release(o, conv->inputs[1]);
    return pith__match_replace(after->outputs[0], (*made)->outputs[0], o->err);
}

/* What follows a convolution whose weights are at hand, if it can be taken up. */
static pith__node *conv_norm_follower(pith__node *conv) {
    if (!pith__match_is(conv, "Conv") || !pith__match_live(conv) ||
        !pith__match_f32(conv->inputs[0]))
        return NULL;
    pith__value *x = conv->outputs[0], *w = conv->inputs[1], *bias = pith__match_input(conv, 2);
    if (!pith__match_const(w) || w->type.dtype != PITH_F32 || w->type.data->rank < 3 ||
        !w->type.data->data)
        return NULL;
    int64_t channels = w->type.data->dims[0];
    int rank = w->type.data->rank;
    if (pith__match_user(w) != conv ||
        (bias && (!pith__match_vector(bias, channels) || bias->type.data->rank != 1)))
        return NULL;
    pith__node *after = pith__match_user(x);
    if (!after || channels < 1) return NULL;
    if (conv_norm_plain(after, x, channels)) return after;
    if (!pith__match_is(after, "Mul") && !pith__match_is(after, "Add")) return NULL;
    return conv_norm_by_channel(pith__match_other(after, x), rank, channels) ? after : NULL;
}

static pith_status pass_conv_norm_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node; node = node->next) {
        pith__node *after = conv_norm_follower(node), *made = NULL;
        if (after) PITH_TRY(conv_norm_make(o, node, after, &made));
        if (!made) continue;
        made->name = node->name;
        pith__report_add(o->report, true, "conv_norm",
                         "constants of '" PITH_STR_FMT "' into '" PITH_STR_FMT "'",
                         PITH_STR_ARG(after->name), PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_conv_norm = { "conv_norm", 3, false, pass_conv_norm_run };
