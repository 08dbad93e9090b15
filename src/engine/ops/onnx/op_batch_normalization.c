/* op_batch_normalization.c - BatchNormalization: each channel scaled and shifted by statistics,
 * which are inputs, or those of the batch itself in training mode.
 *
 * Outside of training an f32 tensor takes one multiply-add per element, with a factor and a summand
 * per channel that are computed in double; a convolution before it absorbs even those (opt/). Other
 * types and training are computed in double. Source: ONNX BatchNormalization (opset 15). */
#include <math.h>

#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/channel_affine.h"
#include "engine/ops/shared/compose_ops.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/widen_types.h"

/* Elements that are worth a thread. */
enum { GRAIN = 16384 };

/* y = a x + b, a and b by channel. */
typedef struct scaling {
    const pith__channel_affine *s;
    const float *x;
    float *y, *a, *b;
    pith__channel_form l;
    int64_t per_part; /* planes or rows */
} scaling;

static void batch_norm_planes_part(void *context, size_t part, int worker) {
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
static void batch_norm_rows_part(void *context, size_t part, int worker) {
    const scaling *j = context;
    int64_t first = (int64_t)part * j->per_part, n = j->l.channels;
    (void)worker;
    for (int64_t i = first; i < first + j->per_part && i < j->l.batch; i++)
        j->s->affine(j->y + i * n, j->x + i * n, j->a, j->b, n, 1);
}

static void batch_norm_start(pith__run *r, scaling *j, pith__task *task, int64_t rows,
                             int64_t width) {
    j->per_part = pith__run_chunk(r, rows, width, GRAIN);
    pith__run_parallel(r, task, j, (size_t)((rows + j->per_part - 1) / j->per_part));
}

static pith_status batch_norm_infer(pith__infer *c) {
    PITH_TRY(pith__channel_infer(c));
    if (pith__node_int(c->node, "training_mode", 0) == 0 && c->out_count > 1)
        return pith__op_fail(c, "statistics are given back in training mode only");
    for (int i = 1; i < c->out_count && i < 3; i++)
        pith__infer_set(c, i, c->in[i + 2]->dtype, c->in[i + 2]->rank, c->in[i + 2]->dims);
    return PITH_OK;
}

/* Up to opset 13 training was told by further outputs, whose values are not needed. */
static pith_status batch_norm_upgrade(pith__node *node, pith_error *err) {
    for (int i = 1; i < node->output_count; i++)
        if (pith__compose_wanted(node, i))
            return pith__fail(err, PITH_ERR_UNSUPPORTED, "training outputs of opset %d",
                              (int)node->opset);
    node->output_count = 1;
    return PITH_OK;
}

/* scale / sqrt(variance + epsilon) and the matching summand are computed in double once per
 * channel, so the loop over the plane only multiplies and adds. A plane of one element would be a
 * call per element: then rows of channels are the unit instead. */
static pith_status batch_norm_run_f32(pith__run *r) {
    pith__channel_form l = pith__channel_form_of(r->in[0]);
    PITH_TRY(pith__channel_check_counts(r, 1, 4, l.channels));
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
        batch_norm_start(r, &j, batch_norm_rows_part, l.batch, l.channels);
    else
        batch_norm_start(r, &j, batch_norm_planes_part, l.batch * l.channels, l.inner);
    return PITH_OK;
}

/* In double: other dtypes, and training, which needs two passes over each channel for its own mean
 * and variance. The running statistics it gives back are those of the input, moved by the momentum.
 */
static pith_status batch_norm_run(pith__run *r) {
    if (((const pith__channel_affine *)r->state)->affine)
        return pith__widen_run(r, 0, batch_norm_run_f32);
    pith__channel_form l = pith__channel_form_of(r->in[0]);
    PITH_TRY(pith__channel_check_counts(r, 1, 4, l.channels));
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    double epsilon = pith__node_float(r->node, "epsilon", 1e-5f),
           momentum = pith__node_float(r->node, "momentum", 0.9f);
    bool training = pith__node_int(r->node, "training_mode", 0) != 0;
    int64_t spent = 0;
    for (int64_t c = 0; c < l.channels; c++) {
        double mean = w.in[3][c], variance = w.in[4][c], n = (double)(l.batch * l.inner);
        if (training) {
            double sum = 0, squares = 0;
            for (int64_t i = 0; i < l.batch * l.inner; i++) {
                PITH_TRY(pith__run_spend(r, &spent, 8));
                sum += w.in[0][(i / l.inner * l.channels + c) * l.inner + i % l.inner];
            }
            for (int64_t i = 0; i < l.batch * l.inner; i++) {
                PITH_TRY(pith__run_spend(r, &spent, 8));
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
        if (w.out[0]) {
            for (int64_t i = 0; i < l.batch * l.inner; i++) {
                PITH_TRY(pith__run_spend(r, &spent, 8));
                int64_t at = (i / l.inner * l.channels + c) * l.inner + i % l.inner;
                w.out[0][at] = (w.in[0][at] - mean) * scale + shift;
            }
        }
    }
    return pith__wide_close(&w, r);
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
    .upgrade = batch_norm_upgrade,
    .infer = batch_norm_infer,
    .prepare = pith__channel_affine_prepare,
    .scratch = pith__channel_affine_scratch,
    .run = batch_norm_run,
};
