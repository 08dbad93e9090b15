/* op_pith_skip_norm.c - pith.SkipNorm: the normalisation of x + residual, over the last axis.
 *
 *   inputs      x, residual [..., n]; gamma [n]; beta [n] (may be absent)
 *   outputs     the normalised sum; the sum itself, if a later step reads it
 *   attributes  epsilon; rms: 1 for the root mean square form, which subtracts no mean and has no
 *               beta
 */
#include "engine/kernels/norm.h"
#include "engine/ops/op.h"

/* Elements that are worth a thread, a few microseconds. */
#define SKIP_NORM_GRAIN 20000

typedef struct skip_norm {
    pith__layer_norm_f32_fn *norm;
    float epsilon;
} skip_norm;

/* Both sides must have one shape: the pass makes this step only of an Add that does not broadcast.
 */
static pith_status skip_norm_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    for (int i = 0; i < c->in_count; i++) {
        if (c->in[i] && c->in[i]->dtype != PITH_F32)
            return pith__op_fail(c, "input %d must be float32", i);
    }
    if (x->rank == 0) return pith__op_fail(c, "x is a scalar");
    pith__type shape;
    pith__type_init(&shape);
    PITH_TRY(pith__infer_broadcast(c, x, c->in[1], &shape));
    pith__dim n = shape.rank > 0 ? shape.dims[shape.rank - 1] : PITH_DIM_UNKNOWN;
    for (int d = 0; d < shape.rank; d++) {
        bool differ = x->rank != shape.rank || c->in[1]->rank != shape.rank;
        if (differ || (pith__dim_known(x->dims[d]) && pith__dim_known(c->in[1]->dims[d]) &&
                       x->dims[d] != c->in[1]->dims[d])) {
            return pith__op_fail(c, "x and residual differ in shape");
        }
    }
    for (int i = 2; i < c->in_count; i++) {
        if (c->in[i] && (c->in[i]->rank != 1 || (pith__dim_known(n) && c->in[i]->dims[0] != n))) {
            return pith__op_fail(c, "input %d does not have the length of the last axis", i);
        }
    }
    for (int i = 0; i < c->out_count; i++)
        pith__type_set(&c->out[i], PITH_F32, shape.rank, shape.dims);
    return PITH_OK;
}

/* The kernel of layer or rms norm. */
static pith_status skip_norm_prepare(pith__prepare *c) {
    skip_norm *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    const char *family = pith__node_int(c->node, "rms", 0) ? "rms_norm" : "layer_norm";
    s->norm = PITH_PREPARE_KERNEL(pith__layer_norm_f32_fn, family, PITH_F32, c);
    if (!s->norm)
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "this build has no kernel %s", family);
    s->epsilon = pith__node_float(c->node, "epsilon", 1e-5f);
    c->state = s;
    return PITH_OK;
}

typedef struct work {
    pith__layer_norm_f32_fn *norm;
    pith__layer_norm all;
    int64_t chunk;
} work;

/* Rows of the part, with the addresses moved to its first one. */
static void skip_norm_part(void *context, size_t index, int worker) {
    const work *w = context;
    (void)worker;
    pith__layer_norm a = w->all;
    int64_t row = (int64_t)index * w->chunk, skip = row * a.n;
    a.rows = a.rows - row < w->chunk ? a.rows - row : w->chunk;
    a.x += skip, a.residual += skip, a.y += skip;
    if (a.sum) a.sum += skip;
    w->norm(&a);
}

/* The kernel adds, normalises and, if asked, keeps the sum in one pass. */
static pith_status skip_norm_run(pith__run *r) {
    const skip_norm *s = r->state;
    int64_t n = r->out[0]->dims[r->out[0]->rank - 1], count = pith__tensor_count(r->out[0]);
    if (count == 0) return PITH_OK;
    work w = { .norm = s->norm,
               .all = { .x = r->in[0]->data,
                        .residual = r->in[1]->data,
                        .gamma = r->in[2]->data,
                        .y = r->out[0]->data,
                        .rows = count / n,
                        .n = n,
                        .epsilon = s->epsilon } };
    if (r->in_count > 3 && r->in[3]) w.all.beta = r->in[3]->data;
    if (r->out_count > 1 && r->out[1]) w.all.sum = r->out[1]->data;
    w.chunk = pith__run_chunk(r, w.all.rows, n, SKIP_NORM_GRAIN);
    pith__run_parallel(r, skip_norm_part, &w, (size_t)((w.all.rows + w.chunk - 1) / w.chunk));
    return PITH_OK;
}

/* The sum, mean and variance, and the scaled result of each element. */
static void skip_norm_cost(const pith__run *r, pith__cost *cost) {
    (void)r;
    cost->operations *= 8;
    cost->kernel = "layer_norm f32";
}

const pith__op pith__op_SkipNorm_pith = {
    .domain = "pith",
    .name = "SkipNorm",
    .since = 1,
    .newest = 1,
    .min_inputs = 3,
    .max_inputs = 4,
    .max_outputs = 2,
    .attrs = "epsilon float = 1e-05; rms bool = 0",
    .flags = PITH_OP_IN_PLACE,
    .infer = skip_norm_infer,
    .prepare = skip_norm_prepare,
    .run = skip_norm_run,
    .cost = skip_norm_cost,
};
