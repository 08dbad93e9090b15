/* op_random.c - Bernoulli, Multinomial, RandomNormal(Like) and RandomUniform(Like).
 *
 * With a seed, numbers come from random_numbers.h; without one, every run starts from the clock.
 * The standard does not name a generator, so other engines agree in distribution only. */
#include <math.h>

#include "base/dtype.h"
#include "base/os/clock.h"
#include "engine/kernels/convert.h"
#include "engine/ops/op.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/random_numbers.h"

/* The attribute is a float; its integral part counts, as in the reference. */
static void random_seed(pith__random *g, const pith__node *node) {
    const pith__attr *given = pith__node_attr(node, "seed");
    uint64_t now = pith__clock_ns();
    uint32_t s = (uint32_t)now * 2654435761u + (uint32_t)(now >> 32);
    if (given && given->kind == PITH_ATTR_FLOAT && given->real >= 0 && given->real < 4294967296.0f)
        s = (uint32_t)given->real;
    pith__random_seed(g, s);
}

static pith_status random_check_dtype(const pith__infer *c, int dtype) {
    if (dtype == PITH_F64 || pith__convert_known(PITH_F64, dtype)) return PITH_OK;
    return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "dtype %s", pith__dtype_name(dtype));
}

static pith_status random_infer_shape(pith__infer *c) {
    size_t rank;
    const int64_t *shape = pith__node_ints(c->node, "shape", &rank);
    if (!shape || rank > PITH_MAX_RANK)
        return pith__op_fail(c, "attribute 'shape' is missing or too long");
    for (size_t i = 0; i < rank; i++)
        if (shape[i] < 0) return pith__op_fail(c, "shape[%zu] is negative", i);
    pith__type_set(&c->out[0], pith__node_choice(c->node, "dtype", PITH_F32), (int)rank, shape);
    return random_check_dtype(c, c->out[0].dtype);
}

static pith_status random_infer_like(pith__infer *c) {
    pith__type_set(&c->out[0], pith__node_choice(c->node, "dtype", c->in[0]->dtype), c->in[0]->rank,
                   c->in[0]->dims);
    return random_check_dtype(c, c->out[0].dtype);
}

static pith_status random_infer_multinomial(pith__infer *c) {
    const pith__type *x = c->in[0];
    int64_t samples = pith__node_int(c->node, "sample_size", 1);
    if (x->rank >= 0 && x->rank != 2)
        return pith__op_fail(c, "input has %d dimensions, not 2", x->rank);
    if (samples < 0) return pith__op_fail(c, "sample_size is negative");
    pith__type_set(&c->out[0], pith__node_choice(c->node, "dtype", PITH_I32), 2,
                   (pith__dim[]){ x->rank == 2 ? x->dims[0] : PITH_DIM_UNKNOWN, samples });
    return random_check_dtype(c, c->out[0].dtype);
}

static pith_status random_run_normal(pith__run *r) {
    pith__random g;
    random_seed(&g, r->node);
    double mean = pith__node_float(r->node, "mean", 0),
           scale = pith__node_float(r->node, "scale", 1);
    for (int64_t i = 0; i < pith__tensor_count(r->out[0]); i++) {
        PITH_TRY(pith__run_step(r, i));
        pith__wide_put(r->out[0], i, mean + scale * pith__random_normal(&g));
    }
    return PITH_OK;
}

static pith_status random_run_uniform(pith__run *r) {
    pith__random g;
    random_seed(&g, r->node);
    double low = pith__node_float(r->node, "low", 0), high = pith__node_float(r->node, "high", 1);
    for (int64_t i = 0; i < pith__tensor_count(r->out[0]); i++) {
        PITH_TRY(pith__run_step(r, i));
        pith__wide_put(r->out[0], i, low + (high - low) * pith__random_uniform(&g));
    }
    return PITH_OK;
}

static pith_status random_run_bernoulli(pith__run *r) {
    pith__random g;
    random_seed(&g, r->node);
    for (int64_t i = 0; i < pith__tensor_count(r->out[0]); i++) {
        PITH_TRY(pith__run_step(r, i));
        double p = pith__wide_get(r->in[0], i);
        pith__wide_put(r->out[0], i, pith__random_uniform(&g) < p);
    }
    return PITH_OK;
}

/* Running sums of exp(x - max) are a table in which each sample is looked up. The last class takes
 * what rounding leaves over. */
static pith_status random_run_multinomial(pith__run *r) {
    pith__random g;
    random_seed(&g, r->node);
    const pith_tensor *x = r->in[0], *y = r->out[0];
    int64_t classes = x->dims[1], samples = y->dims[1];
    if (!classes && pith__tensor_count(y)) return pith__op_fail(r, "there are no classes");
    double *sums = r->exec->alloc(r->exec, (size_t)(classes + 1) * sizeof *sums);
    if (!sums) return pith__fail_memory(r->err, (size_t)classes * sizeof *sums);
    int64_t spent = 0;
    for (int64_t row = 0; row < x->dims[0]; row++) {
        PITH_TRY(pith__run_spend(r, &spent, 32 * classes));
        double most = -INFINITY, total = 0;
        /* log-probabilities */
        pith__convert(sums, PITH_F64, 0, x->data, x->dtype, row * classes, classes, true);
        for (int64_t k = 0; k < classes; k++) most = fmax(most, sums[k]);
        for (int64_t k = 0; k < classes; k++) sums[k] = total += exp(sums[k] - most);
        for (int64_t s = 0; s < samples; s++) {
            PITH_TRY(pith__run_spend(r, &spent, 64 + 2 * classes));
            double u = pith__random_uniform(&g) * total;
            int64_t k = 0;
            while (k < classes - 1 && sums[k] <= u) k++;
            pith__wide_put(y, row * samples + s, (double)k);
        }
    }
    return PITH_OK;
}

#define RANDOM_OP(op_name, types_, first, attrs_, inputs, infer_fn, run_fn)                        \
    const pith__op pith__op_##op_name = {                                                          \
        .domain = "",                                                                              \
        .name = #op_name,                                                                          \
        .since = first,                                                                            \
        .min_inputs = inputs,                                                                      \
        .max_inputs = inputs,                                                                      \
        .max_outputs = 1,                                                                          \
        .types = types_,                                                                           \
        .newest = 22,                                                                              \
        .attrs = attrs_,                                                                           \
        .flags = PITH_OP_RANDOM,                                                                   \
        .infer = infer_fn,                                                                         \
        .run = run_fn,                                                                             \
        .note = "own generator",                                                                   \
    }

RANDOM_OP(Bernoulli, "f", 15, "dtype dtype; seed float", 1, random_infer_like,
          random_run_bernoulli);
RANDOM_OP(Multinomial, "f", 7, "dtype dtype = 6; sample_size int 0.. = 1; seed float", 1,
          random_infer_multinomial, random_run_multinomial);
RANDOM_OP(RandomNormal, "*", 1,
          "dtype dtype = 1; mean float = 0; scale float = 1; seed float; "
          "shape ints! 0..",
          0, random_infer_shape, random_run_normal);
RANDOM_OP(RandomNormalLike, "*", 1, "dtype dtype; mean float = 0; scale float = 1; seed float", 1,
          random_infer_like, random_run_normal);
RANDOM_OP(RandomUniform, "*", 1,
          "dtype dtype = 1; high float = 1; low float = 0; seed float; shape ints! 0..", 0,
          random_infer_shape, random_run_uniform);
RANDOM_OP(RandomUniformLike, "*", 1, "dtype dtype; high float = 1; low float = 0; seed float", 1,
          random_infer_like, random_run_uniform);
