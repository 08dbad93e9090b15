/* op_lrn.c - LRN: each element divided by a power of the sum of squares over neighbouring channels.
 *
 * f32 with a power that is a multiple of 1/4 (0.75 is the usual one) has a kernel, which needs no
 * pow; everything else is computed in double. Sources: ONNX LRN (opset 13); A. Krizhevsky and
 * others, ImageNet Classification with Deep Convolutional Neural Networks. */
#include <math.h>

#include "engine/kernels/lrn.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/channel_affine.h"
#include "engine/ops/shared/infer_shapes.h"

/* Elements that are worth a thread. */
enum { GRAIN = 16384 };

typedef struct lrn_state {
    pith__lrn_fn *fn; /* NULL: everything is computed in double */
    int64_t size;
    double alpha, beta, bias;
} lrn_state;

/* beta is usually 0.75: the kernel computes x^(q/4) by square roots. Other powers take pow in
 * double. */
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

/* Rows are channels of all images; a call gets the rows that belong to one image. */
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

static void lrn_run_f32(pith__run *r, const lrn_state *s, const pith__channel_form *l) {
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

/* A window of `size` channels around each one, cut at both ends; with an even size one more lies
 * behind than before. */
static pith_status lrn_run(pith__run *r) {
    const lrn_state *s = r->state;
    pith__channel_form l = pith__channel_form_of(r->in[0]);
    if (s->fn) return lrn_run_f32(r, s, &l), PITH_OK;
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t spent = 0;
    for (int64_t i = 0; i < pith__tensor_count(r->in[0]); i++) {
        PITH_TRY(pith__run_spend(r, &spent, 64 + 4 * s->size));
        int64_t c = i / l.inner % l.channels, first = c - (s->size - 1) / 2, last = c + s->size / 2;
        double sum = 0;
        for (int64_t k = first < 0 ? 0 : first; k <= last && k < l.channels; k++) {
            double x = w.in[0][i + (k - c) * l.inner];
            sum += x * x;
        }
        w.out[0][i] = w.in[0][i] / pow(s->bias + s->alpha / (double)s->size * sum, s->beta);
    }
    return pith__wide_close(&w, r);
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
    .infer = pith__channel_infer,
    .prepare = lrn_prepare,
    .scratch = lrn_scratch,
    .run = lrn_run,
};
