/* op_group_normalization.c - GroupNormalization and InstanceNormalization: the channels of each
 * group of a row are normalised by their own mean and variance, then scaled and shifted. Instances
 * are groups of one channel.
 *
 * f32: mean and variance come from a kernel in double and become one factor and one summand per
 * channel, so each element takes one multiply-add. Other types are computed in double. Sources:
 * ONNX GroupNormalization (opset 21), InstanceNormalization (opset 22). */
#include <math.h>

#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/channel_affine.h"
#include "engine/ops/shared/widen_types.h"

/* Elements that are worth a thread. */
enum { GRAIN = 16384 };

/* The channels of each group of a row are given their a and b from the group's statistics, scale
 * and bias; then y = a x + b. */
typedef struct scaling {
    const pith__channel_affine *s;
    const float *x;
    float *y, *a, *b;
    pith__channel_form l;
    int64_t per_part;
    int64_t channels; /* of a group */
    int64_t each;     /* channels that share a scale */
    const pith_tensor *scale, *bias;
    double epsilon;
} scaling;

/* Groups [first, …) of all rows: moments of the group, which lies in one piece, then factor,
 * summand and the pass for each of its channels. */
static void group_norm_part(void *context, size_t part, int worker) {
    const scaling *j = context;
    int64_t size = j->channels * j->l.inner, groups = j->l.channels / j->channels;
    int64_t first = (int64_t)part * j->per_part, all = j->l.batch * groups;
    (void)worker;
    for (int64_t g = first; g < first + j->per_part && g < all; g++) {
        double mean, variance;
        j->s->moments(j->x + g * size, size, &mean, &variance);
        double inverse = 1 / sqrt(variance + j->epsilon);
        for (int64_t i = 0; i < j->channels; i++) {
            int64_t c = (g % groups * j->channels + i) / j->each, plane = g * j->channels + i;
            double scale = inverse * pith__wide_get(j->scale, c);
            j->a[plane] = (float)scale;
            j->b[plane] = (float)(pith__wide_get(j->bias, c) - mean * scale);
            j->s->affine(j->y + plane * j->l.inner, j->x + plane * j->l.inner, j->a + plane,
                         j->b + plane, j->l.inner, 0);
        }
    }
}

static void group_norm_start(pith__run *r, scaling *j, pith__task *task, int64_t rows,
                             int64_t width) {
    j->per_part = pith__run_chunk(r, rows, width, GRAIN);
    pith__run_parallel(r, task, j, (size_t)((rows + j->per_part - 1) / j->per_part));
}

/* Mean and 1 / sqrt(variance + epsilon) of n values. */
static void group_norm_statistics(const double *x, int64_t n, double epsilon, double *mean,
                                  double *inverse) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) squares += (x[i] - *mean) * (x[i] - *mean);
    *inverse = 1 / sqrt(squares / (double)n + epsilon);
}

/* The factors and summands of all planes lie in scratch, a then b, so that threads do not share
 * any. */
static pith_status group_norm_run_f32(pith__run *r, const pith__channel_form *l, int64_t groups,
                                      int64_t each) {
    scaling j = { .s = r->state,
                  .x = r->in[0]->data,
                  .y = r->out[0]->data,
                  .a = r->scratch,
                  .l = *l,
                  .channels = l->channels / groups,
                  .each = each,
                  .scale = r->in[1],
                  .bias = r->in[2],
                  .epsilon = pith__node_float(r->node, "epsilon", 1e-5f) };
    j.b = j.a + l->batch * l->channels;
    if (pith__tensor_count(r->in[0]))
        group_norm_start(r, &j, group_norm_part, l->batch * groups, j.channels * l->inner);
    return PITH_OK;
}

/* scale and bias have an element per channel, or per `each` channels. */
static pith_status group_norm_run(pith__run *r, int64_t groups, int64_t each) {
    pith__channel_form l = pith__channel_form_of(r->in[0]);
    if (groups < 1 || l.channels % groups)
        return pith__op_fail(r, "%lld channels do not make %lld groups", (long long)l.channels,
                             (long long)groups);
    if (!l.channels) return PITH_OK;
    PITH_TRY(pith__channel_check_counts(r, 1, 2, l.channels / each));
    if (((const pith__channel_affine *)r->state)->affine)
        return group_norm_run_f32(r, &l, groups, each);
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    double epsilon = pith__node_float(r->node, "epsilon", 1e-5f);
    int64_t size = l.channels / groups * l.inner, spent = 0;
    for (int64_t g = 0; g < l.batch * groups; g++) {
        double mean, inverse;
        PITH_TRY(pith__run_spend(r, &spent, 4 * size));
        group_norm_statistics(w.in[0] + g * size, size, epsilon, &mean, &inverse);
        for (int64_t i = 0; i < size; i++) {
            PITH_TRY(pith__run_spend(r, &spent, 4));
            int64_t c = (g % groups * size + i) / (l.inner * each);
            w.out[0][g * size + i] =
                (w.in[0][g * size + i] - mean) * inverse * w.in[1][c] + w.in[2][c];
        }
    }
    return pith__wide_close(&w, r);
}

static pith_status group_norm_instance_plain(pith__run *r) {
    return group_norm_run(r, r->in[0]->rank > 1 ? r->in[0]->dims[1] : 1, 1);
}

/* Runs in f32 where the state says so, on the operands as they are otherwise. */
static pith_status group_norm_widen(pith__run *r, pith_status (*run)(pith__run *r)) {
    return ((const pith__channel_affine *)r->state)->affine ? pith__widen_run(r, 0, run) : run(r);
}
static pith_status group_norm_instance(pith__run *r) {
    return group_norm_widen(r, group_norm_instance_plain);
}

/* Opset 18 had scale and bias per group, though files with one per channel exist as well. */
static pith_status group_norm_group_plain(pith__run *r) {
    int64_t groups = pith__node_int(r->node, "num_groups", 0),
            channels = pith__channel_form_of(r->in[0]).channels;
    bool shared = r->node->opset < 21 && groups > 0 && pith__tensor_count(r->in[1]) == groups;
    return group_norm_run(r, groups, shared && channels % groups == 0 ? channels / groups : 1);
}

static pith_status group_norm_group(pith__run *r) {
    return group_norm_widen(r, group_norm_group_plain);
}

const pith__op pith__op_InstanceNormalization = {
    .domain = "",
    .name = "InstanceNormalization",
    .since = 6,
    .newest = 22,
    .min_inputs = 3,
    .max_inputs = 3,
    .max_outputs = 1,
    .types = "f",
    .attrs = "consumed_inputs ints @-5; epsilon float = 1e-05",
    .infer = pith__channel_infer,
    .prepare = pith__channel_affine_prepare,
    .scratch = pith__channel_affine_scratch,
    .run = group_norm_instance,
};

const pith__op pith__op_GroupNormalization = {
    .domain = "",
    .name = "GroupNormalization",
    .since = 21,
    .newest = 21,
    .min_inputs = 3,
    .max_inputs = 3,
    .max_outputs = 1,
    .types = "f",
    .attrs = "epsilon float = 1e-05; num_groups int! 1..; stash_type dtype = 1 @21",
    .infer = pith__channel_infer,
    .prepare = pith__channel_affine_prepare,
    .scratch = pith__channel_affine_scratch,
    .run = group_norm_group,
    .note = "scale and bias per channel, before opset 21 also per group",
};
