/* op_layer_normalization.c - LayerNormalization and RMSNormalization: rows from an axis on, scaled
 * to variance 1, and to mean 0 in the first case. com.microsoft's SimplifiedLayerNormalization is
 * RMSNormalization by another name. The result has the dtype of the scale, which may differ from
 * that of x. If either is float64, it is computed in float64. */
#include "engine/kernels/norm.h"
#include "engine/kernels/plain_rows.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/widen_types.h"

/* fn is a kernel of norm.h for f32 and of plain_rows.h for f64. */
typedef struct state {
    pith__kernel_fn *fn;
    int compute;
    float epsilon;
} state;

/* Mean and inverse deviation have 1 in place of the normalised axes, and the precision of the
 * computation. Scale and bias must have exactly the elements of a row. */
static pith_status layer_norm_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    int axis = 0;
    if (x->rank >= 0)
        PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", -1), x->rank, &axis, c->err));
    bool layer = pith__str_is(c->node->op_type, "LayerNormalization");
    pith__infer_set(c, 0, layer ? x->dtype : c->in[1]->dtype, x->rank, x->dims);
    pith__dim dims[PITH_MAX_RANK],
        n = x->rank >= 0 ? pith__dim_product(c->dims, x->dims + axis, x->rank - axis)
                         : PITH_DIM_UNKNOWN;
    for (int i = 0; i < x->rank; i++) dims[i] = i < axis ? x->dims[i] : 1;
    for (int i = 1; i < c->out_count; i++)
        pith__infer_set(c, i, x->dtype == PITH_F64 ? PITH_F64 : PITH_F32, x->rank, dims);
    for (int i = 1; i < c->in_count; i++) {
        int dtype = c->in[i] ? c->in[i]->dtype : PITH_UNDEFINED;
        if (layer && dtype && x->dtype &&
            pith__compute_dtype(dtype) != pith__compute_dtype(x->dtype))
            return pith__fail_dtype(c->err, dtype);
        int64_t own = c->in[i] ? pith__type_count(c->in[i]) : -1;
        if (own >= 0 && pith__dim_known(n) && own != n) {
            return pith__op_fail(c, "input %d has %lld elements, a row has %lld", i, (long long)own,
                                 (long long)n);
        }
    }
    return PITH_OK;
}

static pith_status layer_norm_prepare(pith__prepare *c) {
    state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    s->compute = c->in[0]->dtype == PITH_F64 || c->in[1]->dtype == PITH_F64 ? PITH_F64 : PITH_F32;
    s->epsilon = pith__node_float(c->node, "epsilon", 1e-5f);
    bool layer = pith__str_is(c->node->op_type, "LayerNormalization");
    PITH_TRY(pith__prepare_kernel(c, layer ? "layer_norm" : "rms_norm", s->compute, &s->fn));
    c->state = s;
    return PITH_OK;
}

static pith_status layer_norm_scratch(const pith__infer *c, const void *state_, int threads,
                                      size_t *bytes) {
    const state *s = state_;
    (void)threads;
    *bytes = 0;
    return pith__widen_scratch_to(c, s->compute, 0, bytes);
}

typedef struct job {
    const pith__run *r;
    int64_t rows, n, per_part;
} job;

static void *layer_norm_at(const pith_tensor *t, int64_t i) {
    return t ? (char *)t->data + (size_t)i * pith__element_size(t->dtype) : NULL;
}

/* Rows [first, first + rows). RMSNormalization has no mean, so its second output is the inverse
 * deviation. */
static void layer_norm_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    const pith__run *r = j->r;
    const state *s = r->state;
    (void)worker;
    int64_t first = (int64_t)part * j->per_part,
            rows = j->rows - first < j->per_part ? j->rows - first : j->per_part;
    const pith_tensor *gamma = pith__has_input(r, 1) ? r->in[1] : NULL,
                      *beta = pith__has_input(r, 2) ? r->in[2] : NULL;
    bool layer = r->node->op_type.data[0] == 'L';
    const pith_tensor *mean = layer && r->out_count > 1 ? r->out[1] : NULL;
    const pith_tensor *inv = r->out_count > 1 + layer ? r->out[1 + layer] : NULL;
    if (s->compute == PITH_F32) {
        pith__layer_norm a = { .x = layer_norm_at(r->in[0], first * j->n),
                               .gamma = layer_norm_at(gamma, 0),
                               .beta = layer_norm_at(beta, 0),
                               .y = layer_norm_at(r->out[0], first * j->n),
                               .mean_out = layer_norm_at(mean, first),
                               .inv_out = layer_norm_at(inv, first),
                               .rows = rows,
                               .n = j->n,
                               .epsilon = s->epsilon };
        ((pith__layer_norm_f32_fn *)s->fn)(&a);
    } else {
        pith__norm_f64 a = { layer_norm_at(r->in[0], first * j->n),
                             layer_norm_at(gamma, 0),
                             layer_norm_at(beta, 0),
                             layer_norm_at(r->out[0], first * j->n),
                             layer_norm_at(mean, first),
                             layer_norm_at(inv, first),
                             rows,
                             j->n,
                             (double)s->epsilon };
        ((pith__norm_f64_fn *)s->fn)(&a);
    }
}

static pith_status layer_norm_run_plain(pith__run *r) {
    int axis;
    job j = { r, 1, 1, 0 };
    PITH_TRY(
        pith__axis_normalize(pith__node_int(r->node, "axis", -1), r->in[0]->rank, &axis, r->err));
    for (int i = 0; i < r->in[0]->rank; i++) *(i < axis ? &j.rows : &j.n) *= r->in[0]->dims[i];
    if (j.rows == 0) return PITH_OK;
    j.per_part = pith__run_chunk(r, j.rows, j.n, 8192);
    pith__run_parallel(r, layer_norm_run_part, &j,
                       (size_t)((j.rows + j.per_part - 1) / j.per_part));
    return PITH_OK;
}

static pith_status layer_norm_run(pith__run *r) {
    return pith__widen_run_to(r, ((const state *)r->state)->compute, 0, layer_norm_run_plain);
}

const pith__op pith__op_LayerNormalization = {
    .domain = "",
    .name = "LayerNormalization",
    .since = 17,
    .newest = 17,
    .min_inputs = 2,
    .max_inputs = 3,
    .max_outputs = 3,
    .types = "f",
    .attrs = "axis int = -1; epsilon float = 1e-05; stash_type dtype = 1",
    .infer = layer_norm_infer,
    .prepare = layer_norm_prepare,
    .scratch = layer_norm_scratch,
    .run = layer_norm_run
};
const pith__op pith__op_RMSNormalization = {
    .domain = "",
    .name = "RMSNormalization",
    .since = 23,
    .newest = 23,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "f",
    .attrs = "axis int = -1; epsilon float = 1e-05; stash_type dtype = 1",
    .infer = layer_norm_infer,
    .prepare = layer_norm_prepare,
    .scratch = layer_norm_scratch,
    .run = layer_norm_run
};
const pith__op pith__op_SimplifiedLayerNormalization = {
    .domain = "",
    .name = "SimplifiedLayerNormalization",
    .since = 1,
    .newest = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 2,
    .types = "f",
    .attrs = "axis int = -1; epsilon float = 1e-05; stash_type dtype = 1",
    .infer = layer_norm_infer,
    .prepare = layer_norm_prepare,
    .scratch = layer_norm_scratch,
    .run = layer_norm_run
};
