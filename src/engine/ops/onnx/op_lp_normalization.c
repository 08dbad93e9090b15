/* op_lp_normalization.c - LpNormalization: each line along an axis divided by its sum of magnitudes
 * (p 1) or its Euclidean length (p 2); a line of zeros stays. f32 has a kernel, which takes
 * neighbouring lines at a time; other types are computed in double. Source: ONNX LpNormalization
 * (opset 22). */
#include <math.h>

#include "engine/kernels/norm.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/channel_affine.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/reduced_lines.h"

/* Elements that are worth a thread. */
enum { GRAIN = 16384 };

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

static pith_status lp_prepare(pith__prepare *c) {
    pith__kernel_fn *fn;
    if (c->in[0]->dtype != PITH_F32) return PITH_OK;
    pith__lp_normalize_fn **own = c->state = pith__arena_array(c->arena, 1, sizeof *own);
    if (!own) return pith__fail_memory(c->err, sizeof *own);
    PITH_TRY(pith__prepare_kernel(c, "lp_normalize", PITH_F32, &fn));
    *own = (pith__lp_normalize_fn *)fn;
    return PITH_OK;
}

static pith_status lp_scratch(const pith__infer *c, const void *none, int threads, size_t *bytes) {
    *bytes = 0;
    return c->in[0]->dtype == PITH_F32 ? PITH_OK : pith__line_scratch(c, none, threads, bytes);
}

/* Lines side by side are one call of the kernel, which reads along them. */
static void lp_run_f32(pith__run *r, int axis, bool square) {
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

/* The wide way sums each line in one pass over all elements in memory order, whatever the axis. */
static pith_status lp_run(pith__run *r) {
    int64_t axis = pith__node_int(r->node, "axis", -1), p = pith__node_int(r->node, "p", 2);
    bool reduced[PITH_MAX_RANK];
    int normal;
    if (p != 1 && p != 2) return pith__op_fail(r, "p is %lld, not 1 or 2", (long long)p);
    PITH_TRY(pith__line_axes(r, &axis, 1, reduced));
    PITH_TRY(pith__axis_normalize(axis, r->in[0]->rank, &normal, r->err));
    if (r->in[0]->dtype == PITH_F32) return lp_run_f32(r, normal, p == 2), PITH_OK;
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t n = pith__tensor_count(r->in[0]);
    double *sum = w.rest;
    PITH_TRY(pith__run_bytes(r, sum, NULL, (size_t)n * sizeof *sum));
    for (int64_t i = 0; i < n; i++) {
        PITH_TRY(pith__run_step(r, i));
        sum[pith__line_of(r->in[0], reduced, i)] +=
            p == 1 ? fabs(w.in[0][i]) : w.in[0][i] * w.in[0][i];
    }
    for (int64_t i = 0; i < n; i++) {
        PITH_TRY(pith__run_step(r, i));
        double norm = sum[pith__line_of(r->in[0], reduced, i)];
        if (p == 2) norm = sqrt(norm);
        w.out[0][i] = norm != 0 ? w.in[0][i] / norm : 0;
    }
    return pith__wide_close(&w, r);
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
    .infer = pith__channel_infer,
    .prepare = lp_prepare,
    .scratch = lp_scratch,
    .run = lp_run,
};
