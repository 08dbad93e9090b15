/* op_batch_norm.c - BatchNormalization, InstanceNormalization, GroupNormalization, LRN,
 * MeanVarianceNormalization and LpNormalization. All of them scale values by statistics over some
 * axes. The first three become one multiply-add per element of an f32 tensor, with factors computed
 * in double. LRN (of usual powers) and LpNormalization of f32 are kernels; everything else is
 * computed in double. Source: ONNX operators of these names. */
#include <math.h>

#include "base/checked.h"
#include "engine/kernels/affine.h"
#include "engine/kernels/lrn.h"
#include "engine/kernels/norm.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/compose_ops.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/widen_types.h"

/* Elements that are worth a thread. */
enum { GRAIN = 16384 };

/* [batch, channels, rest] of a tensor; rank 1 is [batch]. */
typedef struct layout {
    int64_t batch, channels, inner;
} layout;

static layout batch_norm_layout_of(const pith_tensor *x) {
    layout l = { x->dims[0], x->rank > 1 ? x->dims[1] : 1, 1 };
    for (int d = 2; d < x->rank; d++) l.inner *= x->dims[d];
    return l;
}

static pith_status batch_norm_check_counts(const pith__run *r, int first, int last,
                                           int64_t wanted) {
    for (int i = first; i <= last; i++) {
        if (pith__tensor_count(r->in[i]) == wanted) continue;
        return pith__fail(r->err, PITH_ERR_ARGUMENT, "input %d has %lld elements, %lld are needed",
                          i, (long long)pith__tensor_count(r->in[i]), (long long)wanted);
    }
    return PITH_OK;
}

static pith_status infer_channels(pith__infer *c) {
    if (c->in[0]->rank == 0) return pith__op_fail(c, "the input is a scalar");
    return pith__infer_same(c);
}

/* ---- what BatchNormalization, InstanceNormalization and GroupNormalization share ---- */

typedef struct state {
    pith__affine_fn *affine; /* NULL: in double */
    pith__moments_fn *moments;
} state;

static pith_status batch_norm_prepare(pith__prepare *c) {
    state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    if (pith__compute_dtype(c->in[0]->dtype) == PITH_F32 &&
        !pith__node_int(c->node, "training_mode", 0)) {
        s->affine = PITH_PREPARE_KERNEL(pith__affine_fn, "affine", PITH_F32, c);
        s->moments = PITH_PREPARE_KERNEL(pith__moments_fn, "moments", PITH_F32, c);
    }
    c->state = s;
    return PITH_OK;
}

/* A factor and a summand for each channel of each row of the batch, of at least one row. */
static pith_status batch_norm_scratch(const pith__infer *c, const void *state_, int threads,
                                      size_t *bytes) {
    const state *s = state_;
    const pith__type *x = c->in[0];
    if (!s->affine) return pith__wide_scratch(c, s, threads, bytes);
    size_t planes = x->dims[0] ? (size_t)x->dims[0] : 1;
    if ((x->rank > 1 && pith__mul_overflows(planes, (size_t)x->dims[1], &planes)) ||
        pith__mul_overflows(planes, 2 * sizeof(float), bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    *bytes += 64;
    return pith__widen_scratch(c, 0, bytes);
}

/* y = a x + b, a and b by channel. With groups, the channels of each group of a row are first given
 * their a and b from the group's statistics, scale and bias. */
typedef struct scaling {
    const state *s;
    const float *x;
    float *y, *a, *b;
    layout l;
    int64_t per_part;
    int64_t channels; /* of a group, 0: a and b are given for each channel */
    int64_t each;     /* channels that share a scale */
    const pith_tensor *scale, *bias;
    double epsilon;
} scaling;

static void scaling_run_planes(void *context, size_t part, int worker) {
    const scaling *j = context;
    int64_t first = (int64_t)part * j->per_part, planes = j->l.batch * j->l.channels;
    (void)worker;
    for (int64_t i = first; i < first + j->per_part && i < planes; i++) {
        int64_t c = i % j->l.channels;
        j->s->affine(j->y + i * j->l.inner, j->x + i * j->l.inner, j->a + c, j->b + c, j->l.inner,
                     0);
    }
}

/* Rows of channels alone. */
static void scaling_run_rows(void *context, size_t part, int worker) {
    const scaling *j = context;
    int64_t first = (int64_t)part * j->per_part, n = j->l.channels;
    (void)worker;
    for (int64_t i = first; i < first + j->per_part && i < j->l.batch; i++)
        j->s->affine(j->y + i * n, j->x + i * n, j->a, j->b, n, 1);
}

static void scaling_run_groups(void *context, size_t part, int worker) {
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

static void scaling_run(pith__run *r, scaling *j, pith__task *task, int64_t rows, int64_t width) {
    j->per_part = pith__run_chunk(r, rows, width, GRAIN);
    pith__run_parallel(r, task, j, (size_t)((rows + j->per_part - 1) / j->per_part));
}

/* ---- BatchNormalization ---- */

static pith_status infer_batch(pith__infer *c) {
    PITH_TRY(infer_channels(c));
    if (pith__node_int(c->node, "training_mode", 0) == 0 && c->out_count > 1)
        return pith__op_fail(c, "statistics are given back in training mode only");
    for (int i = 1; i < c->out_count && i < 3; i++)
        pith__infer_set(c, i, c->in[i + 2]->dtype, c->in[i + 2]->rank, c->in[i + 2]->dims);
    return PITH_OK;
}

/* Up to opset 13 training was told by further outputs, whose values are not needed. */
static pith_status upgrade_batch(pith__node *node, pith_error *err) {
    for (int i = 1; i < node->output_count; i++)
        if (pith__compose_wanted(node, i))
            return pith__fail(err, PITH_ERR_UNSUPPORTED, "training outputs of opset %d",
                              (int)node->opset);
    node->output_count = 1;
    return PITH_OK;
}

static pith_status run_batch_f32(pith__run *r) {
    layout l = batch_norm_layout_of(r->in[0]);
    PITH_TRY(batch_norm_check_counts(r, 1, 4, l.channels));
    scaling j = {
        .s = r->state, .x = r->in[0]->data, .y = r->out[0]->data, .a = r->scratch, .l = l
    };
    double epsilon = pith__node_float(r->node, "epsilon", 1e-5f);
    j.b = j.a + l.channels;
    for (int64_t c = 0; c < l.channels; c++) {
        double scale = pith__wide_get(r->in[1], c) / sqrt(pith__wide_get(r->in[4], c) + epsilon);
        j.a[c] = (float)scale;
        j.b[c] = (float)(pith__wide_get(r->in[2], c) - pith__wide_get(r->in[3], c) * scale);
    }
    if (!pith__tensor_count(r->in[0])) return PITH_OK;
    if (l.inner == 1)
        scaling_run(r, &j, scaling_run_rows, l.batch, l.channels);
    else
        scaling_run(r, &j, scaling_run_planes, l.batch * l.channels, l.inner);
    return PITH_OK;
}

static pith_status run_batch(pith__run *r) {
    if (((const state *)r->state)->affine) return pith__widen_run(r, 0, run_batch_f32);
    layout l = batch_norm_layout_of(r->in[0]);
    PITH_TRY(batch_norm_check_counts(r, 1, 4, l.channels));
    pith__wide w;
    pith__wide_open(&w, r);
    double epsilon = pith__node_float(r->node, "epsilon", 1e-5f),
           momentum = pith__node_float(r->node, "momentum", 0.9f);
    bool training = pith__node_int(r->node, "training_mode", 0) != 0;
    for (int64_t c = 0; c < l.channels; c++) {
        double mean = w.in[3][c], variance = w.in[4][c], n = (double)(l.batch * l.inner);
        if (training) {
            double sum = 0, squares = 0;
            for (int64_t i = 0; i < l.batch * l.inner; i++)
                sum += w.in[0][(i / l.inner * l.channels + c) * l.inner + i % l.inner];
            for (int64_t i = 0; i < l.batch * l.inner; i++) {
                double d =
                    w.in[0][(i / l.inner * l.channels + c) * l.inner + i % l.inner] - sum / n;
                squares += d * d;
            }
            if (r->out_count > 1 && w.out[1])
                w.out[1][c] = mean * momentum + sum / n * (1 - momentum);
            if (r->out_count > 2 && w.out[2])
                w.out[2][c] = variance * momentum + squares / n * (1 - momentum);
            mean = sum / n;
            variance = squares / n;
        }
        double scale = w.in[1][c] / sqrt(variance + epsilon), shift = w.in[2][c];
        for (int64_t i = 0; w.out[0] && i < l.batch * l.inner; i++) {
            int64_t at = (i / l.inner * l.channels + c) * l.inner + i % l.inner;
            w.out[0][at] = (w.in[0][at] - mean) * scale + shift;
        }
    }
    pith__wide_close(&w, r);
    return PITH_OK;
}

const pith__op pith__op_BatchNormalization = {
    .domain = "",
    .name = "BatchNormalization",
    .since = 14,
    .newest = 15,
    .min_inputs = 5,
    .max_inputs = 5,
    .max_outputs = 5,
    .types = "f",
    .attrs = "consumed_inputs ints! @-5; epsilon float = 1e-05; is_test bool = 0 @-6; "
             "momentum float = 0.9; spatial bool = 1 @-8; training_mode bool = 0 @14",
    .upgrade = upgrade_batch,
    .infer = infer_batch,
    .prepare = batch_norm_prepare,
    .scratch = batch_norm_scratch,
    .run = run_batch,
};

/* ---- InstanceNormalization, GroupNormalization ---- */

/* Mean and 1 / sqrt(variance + epsilon) of n values. */
static void statistics(const double *x, int64_t n, double epsilon, double *mean, double *inverse) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) squares += (x[i] - *mean) * (x[i] - *mean);
    *inverse = 1 / sqrt(squares / (double)n + epsilon);
}

static pith_status run_groups_f32(pith__run *r, const layout *l, int64_t groups, int64_t each) {
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
        scaling_run(r, &j, scaling_run_groups, l->batch * groups, j.channels * l->inner);
    return PITH_OK;
}

/* scale and bias have an element per channel, or per `each` channels. */
static pith_status run_groups(pith__run *r, int64_t groups, int64_t each) {
    layout l = batch_norm_layout_of(r->in[0]);
    if (groups < 1 || l.channels % groups)
        return pith__op_fail(r, "%lld channels do not make %lld groups", (long long)l.channels,
                             (long long)groups);
    if (!l.channels) return PITH_OK;
    PITH_TRY(batch_norm_check_counts(r, 1, 2, l.channels / each));
    if (((const state *)r->state)->affine) return run_groups_f32(r, &l, groups, each);
    pith__wide w;
    pith__wide_open(&w, r);
    double epsilon = pith__node_float(r->node, "epsilon", 1e-5f);
    int64_t size = l.channels / groups * l.inner;
    for (int64_t g = 0; g < l.batch * groups; g++) {
        double mean, inverse;
        statistics(w.in[0] + g * size, size, epsilon, &mean, &inverse);
        for (int64_t i = 0; i < size; i++) {
            int64_t c = (g % groups * size + i) / (l.inner * each);
            w.out[0][g * size + i] =
                (w.in[0][g * size + i] - mean) * inverse * w.in[1][c] + w.in[2][c];
        }
    }
    pith__wide_close(&w, r);
    return PITH_OK;
}

static pith_status run_instance_plain(pith__run *r) {
    return run_groups(r, r->in[0]->rank > 1 ? r->in[0]->dims[1] : 1, 1);
}

/* Runs in f32 where the state says so, on the operands as they are otherwise. */
static pith_status batch_norm_widen(pith__run *r, pith_status (*run)(pith__run *r)) {
    return ((const state *)r->state)->affine ? pith__widen_run(r, 0, run) : run(r);
}
static pith_status run_instance(pith__run *r) { return batch_norm_widen(r, run_instance_plain); }

/* Opset 18 had scale and bias per group, though files with one per channel exist as well. */
static pith_status run_group_plain(pith__run *r) {
    int64_t groups = pith__node_int(r->node, "num_groups", 0),
            channels = batch_norm_layout_of(r->in[0]).channels;
    bool shared = r->node->opset < 21 && groups > 0 && pith__tensor_count(r->in[1]) == groups;
    return run_groups(r, groups, shared && channels % groups == 0 ? channels / groups : 1);
}

static pith_status run_group(pith__run *r) { return batch_norm_widen(r, run_group_plain); }

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
    .infer = infer_channels,
    .prepare = batch_norm_prepare,
    .scratch = batch_norm_scratch,
    .run = run_instance,
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
    .infer = infer_channels,
    .prepare = batch_norm_prepare,
    .scratch = batch_norm_scratch,
    .run = run_group,
    .note = "scale and bias per channel, before opset 21 also per group",
};

/* ---- LRN: divided by a power of the sum of squares over neighbouring channels ---- */

typedef struct lrn_state {
    pith__lrn_fn *fn; /* NULL: everything is computed in double */
    int64_t size;
    double alpha, beta, bias;
} lrn_state;

static pith_status lrn_prepare(pith__prepare *c) {
    lrn_state *s = c->state = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    s->size = pith__node_int(c->node, "size", 0);
    if (s->size < 1 || s->size > INT32_MAX)
        return pith__op_fail(c, "size %lld is out of range", (long long)s->size);
    s->alpha = pith__node_float(c->node, "alpha", 1e-4f);
    s->beta = pith__node_float(c->node, "beta", 0.75f);
    s->bias = pith__node_float(c->node, "bias", 1);
    const double quarters = s->beta * 4;
    if (c->in[0]->dtype != PITH_F32 || !(quarters >= 1 && quarters <= PITH_LRN_QUARTERS) ||
        quarters != trunc(quarters))
        return PITH_OK;
    pith__kernel_fn *fn;
    PITH_TRY(pith__prepare_kernel(c, "lrn", PITH_F32, &fn));
    s->fn = (pith__lrn_fn *)fn;
    return PITH_OK;
}

static pith_status lrn_scratch(const pith__infer *c, const void *own, int threads, size_t *bytes) {
    *bytes = 0;
    return ((const lrn_state *)own)->fn ? PITH_OK : pith__wide_scratch(c, own, threads, bytes);
}

typedef struct lrn_job {
    pith__lrn_fn *fn;
    pith__lrn one; /* the first picture */
    int64_t rows, per_part;
} lrn_job;

static void lrn_part(void *context, size_t part, int worker) {
    const lrn_job *j = context;
    const int64_t first = (int64_t)part * j->per_part,
                  end = first + j->per_part < j->rows ? first + j->per_part : j->rows;
    (void)worker;
    for (int64_t row = first, count; row < end; row += count) {
        const int64_t channel = row % j->one.channels, at = (row - channel) * j->one.inner;
        pith__lrn a = j->one;
        count = end - row < a.channels - channel ? end - row : a.channels - channel;
        a.x += at;
        a.y += at;
        j->fn(&a, channel, channel + count);
    }
}

static void lrn_run_f32(pith__run *r, const lrn_state *s, const layout *l) {
    lrn_job j = { .fn = s->fn,
                  .one = { .x = r->in[0]->data,
                           .y = r->out[0]->data,
                           .channels = l->channels,
                           .inner = l->inner,
                           .before = (s->size - 1) / 2,
                           .behind = s->size / 2,
                           .alpha = (float)(s->alpha / (double)s->size),
                           .bias = (float)s->bias,
                           .quarters = (int)(s->beta * 4) },
                  .rows = l->batch * l->channels };
    if (!pith__tensor_count(r->in[0])) return;
    j.per_part = pith__run_chunk(r, j.rows, l->inner * 4, GRAIN);
    pith__run_parallel(r, lrn_part, &j, (size_t)((j.rows + j.per_part - 1) / j.per_part));
}

static pith_status run_lrn(pith__run *r) {
    const lrn_state *s = r->state;
    layout l = batch_norm_layout_of(r->in[0]);
    if (s->fn) return lrn_run_f32(r, s, &l), PITH_OK;
    pith__wide w;
    pith__wide_open(&w, r);
    for (int64_t i = 0; i < pith__tensor_count(r->in[0]); i++) {
        int64_t c = i / l.inner % l.channels, first = c - (s->size - 1) / 2, last = c + s->size / 2;
        double sum = 0;
        for (int64_t k = first < 0 ? 0 : first; k <= last && k < l.channels; k++) {
            double x = w.in[0][i + (k - c) * l.inner];
            sum += x * x;
        }
        w.out[0][i] = w.in[0][i] / pow(s->bias + s->alpha / (double)s->size * sum, s->beta);
    }
    pith__wide_close(&w, r);
    return PITH_OK;
}

const pith__op pith__op_LRN = {
    .domain = "",
    .name = "LRN",
    .since = 1,
    .newest = 13,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "f",
    .attrs = "alpha float = 0.0001; beta float = 0.75; bias float = 1; size int! 1..",
    .infer = infer_channels,
    .prepare = lrn_prepare,
    .scratch = lrn_scratch,
    .run = run_lrn,
};

/* ---- over axes ---- */

/* Walks x as lines along the axes marked in `reduced`: bin[i] is the line of element i. */
static int64_t line_of(const pith_tensor *x, const bool *reduced, int64_t i) {
    int64_t line = 0, stride = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        if (!reduced[d]) line += i % x->dims[d] * stride, stride *= x->dims[d];
        i /= x->dims[d];
    }
    return line;
}

static pith_status reduced_axes(const pith__run *r, const int64_t *axes, size_t count,
                                bool *reduced) {
    for (int d = 0; d < PITH_MAX_RANK; d++) reduced[d] = false;
    for (size_t k = 0; k < count; k++) {
        int axis;
        PITH_TRY(pith__axis_normalize(axes[k], r->in[0]->rank, &axis, r->err));
        reduced[axis] = true;
    }
    return PITH_OK;
}

/* Three sums per line after the wide copies; there are at most as many lines as elements. */
static pith_status scratch_lines(const pith__infer *c, const void *none, int threads,
                                 size_t *bytes) {
    PITH_TRY(pith__wide_scratch(c, none, threads, bytes));
    size_t n = (size_t)pith__type_count(c->in[0]);
    if (n > (SIZE_MAX - *bytes) / 32)
        return pith__fail(c->err, PITH_ERR_MEMORY, "the input is too large");
    *bytes += n * 3 * sizeof(double);
    return PITH_OK;
}

static pith_status run_mvn(pith__run *r) {
    static const int64_t default_axes[] = { 0, 2, 3 };
    size_t count;
    bool reduced[PITH_MAX_RANK];
    const int64_t *axes = pith__node_ints(r->node, "axes", &count);
    if (!axes) axes = default_axes, count = 3;
    PITH_TRY(reduced_axes(r, axes, count, reduced));
    pith__wide w;
    pith__wide_open(&w, r);
    int64_t n = pith__tensor_count(r->in[0]);
    double *sum = w.rest, *squares = sum + n, *members = squares + n;
    for (int64_t i = 0; i < 3 * n; i++) sum[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t line = line_of(r->in[0], reduced, i);
        sum[line] += w.in[0][i];
        members[line] += 1;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t line = line_of(r->in[0], reduced, i);
        double d = w.in[0][i] - sum[line] / members[line];
        squares[line] += d * d;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t line = line_of(r->in[0], reduced, i);
        w.out[0][i] =
            (w.in[0][i] - sum[line] / members[line]) / (sqrt(squares[line] / members[line]) + 1e-9);
    }
    pith__wide_close(&w, r);
    return PITH_OK;
}

const pith__op pith__op_MeanVarianceNormalization = {
    .domain = "",
    .name = "MeanVarianceNormalization",
    .since = 9,
    .newest = 13,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "f",
    .attrs = "axes ints = 0,2,3",
    .infer = pith__infer_same,
    .scratch = scratch_lines,
    .run = run_mvn,
};

typedef struct lp_job {
    const float *x;
    float *y;
    int64_t n, inner, lines, per_part;
    pith__lp_normalize_fn *fn;
    bool square;
} lp_job;

static void lp_run_part(void *context, size_t part, int worker) {
    const lp_job *j = context;
    const int64_t first = (int64_t)part * j->per_part,
                  end = first + j->per_part < j->lines ? first + j->per_part : j->lines;
    (void)worker;
    for (int64_t line = first, count; line < end; line += count) {
        const int64_t column = line % j->inner, at = line / j->inner * j->n * j->inner + column;
        count = end - line < j->inner - column ? end - line : j->inner - column;
        j->fn(j->x + at, j->y + at, j->n, j->inner, count, j->square);
    }
}

static pith_status prepare_lp(pith__prepare *c) {
    pith__kernel_fn *fn;
    if (c->in[0]->dtype != PITH_F32) return PITH_OK;
    pith__lp_normalize_fn **own = c->state = pith__arena_array(c->arena, 1, sizeof *own);
    if (!own) return pith__fail_memory(c->err, sizeof *own);
    PITH_TRY(pith__prepare_kernel(c, "lp_normalize", PITH_F32, &fn));
    *own = (pith__lp_normalize_fn *)fn;
    return PITH_OK;
}

static pith_status scratch_lp(const pith__infer *c, const void *none, int threads, size_t *bytes) {
    *bytes = 0;
    return c->in[0]->dtype == PITH_F32 ? PITH_OK : scratch_lines(c, none, threads, bytes);
}

static void run_lp_f32(pith__run *r, int axis, bool square) {
    const pith_tensor *x = r->in[0];
    lp_job j = {
        .x = x->data, .y = r->out[0]->data, .n = x->dims[axis], .inner = 1, .square = square
    };
    j.fn = *(pith__lp_normalize_fn *const *)r->state;
    for (int d = axis + 1; d < x->rank; d++) j.inner *= x->dims[d];
    if (!pith__tensor_count(x)) return;
    j.lines = pith__tensor_count(x) / j.n;
    j.per_part = pith__run_chunk(r, j.lines, j.n, GRAIN);
    pith__run_parallel(r, lp_run_part, &j, (size_t)((j.lines + j.per_part - 1) / j.per_part));
}

static pith_status run_lp(pith__run *r) {
    int64_t axis = pith__node_int(r->node, "axis", -1), p = pith__node_int(r->node, "p", 2);
    bool reduced[PITH_MAX_RANK];
    int normal;
    if (p != 1 && p != 2) return pith__op_fail(r, "p is %lld, not 1 or 2", (long long)p);
    PITH_TRY(reduced_axes(r, &axis, 1, reduced));
    PITH_TRY(pith__axis_normalize(axis, r->in[0]->rank, &normal, r->err));
    if (r->in[0]->dtype == PITH_F32) return run_lp_f32(r, normal, p == 2), PITH_OK;
    pith__wide w;
    pith__wide_open(&w, r);
    int64_t n = pith__tensor_count(r->in[0]);
    double *sum = w.rest;
    for (int64_t i = 0; i < n; i++) sum[i] = 0;
    for (int64_t i = 0; i < n; i++)
        sum[line_of(r->in[0], reduced, i)] += p == 1 ? fabs(w.in[0][i]) : w.in[0][i] * w.in[0][i];
    for (int64_t i = 0; i < n; i++) {
        double norm = sum[line_of(r->in[0], reduced, i)];
        if (p == 2) norm = sqrt(norm);
        w.out[0][i] = norm != 0 ? w.in[0][i] / norm : 0;
    }
    pith__wide_close(&w, r);
    return PITH_OK;
}

const pith__op pith__op_LpNormalization = {
    .domain = "",
    .name = "LpNormalization",
    .since = 1,
    .newest = 22,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "f",
    .attrs = "axis int = -1; p int 1|2 = 2",
    .infer = infer_channels,
    .prepare = prepare_lp,
    .scratch = scratch_lp,
    .run = run_lp,
};
