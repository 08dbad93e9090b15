/* op_random.c - Bernoulli, Multinomial, RandomNormal(Like) and RandomUniform(Like).
 *
 * The generator is SplitMix64 (Steele, Lea, Flood 2014), seeded by the attribute; without one every run draws anew from
 * the clock. The standard does not say which generator, so results agree with other engines in distribution only. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/dtype.h"
#include "kernels/convert.h"
#include "ops/op.h"

static uint64_t next(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* In [0, 1). */
static double uniform(uint64_t *state) { return (double)(next(state) >> 11) * 0x1p-53; }

/* Box and Muller 1958. */
static double normal(uint64_t *state) {
    double u = 1 - uniform(state), v = uniform(state);
    return sqrt(-2 * log(u)) * cos(6.28318530717958647692 * v);
}

static uint64_t seed_of(const pith_node *node) {
    const pith_attr *seed = pith_node_attr(node, "seed");
    uint64_t state = 0;
    if (seed && seed->kind == PITH_ATTR_FLOAT && !isnan(seed->f)) {
        memcpy(&state, &seed->f, sizeof seed->f);
        return state;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    state = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return next(&state);
}

static pith_status check_dtype(const pith_infer *c, int dtype) {
    if (dtype == PITH_F64 || pith_convert_known(PITH_F64, dtype)) return PITH_OK;
    return pith_fail(c->err, PITH_ERR_UNSUPPORTED, "dtype %s", pith_dtype_name(dtype));
}

static pith_status infer_shape(pith_infer *c) {
    size_t rank;
    const int64_t *shape = pith_node_ints(c->node, "shape", &rank);
    if (!shape || rank > PITH_MAX_RANK) return pith_op_fail(c, "attribute 'shape' is missing or too long");
    for (size_t i = 0; i < rank; i++)
        if (shape[i] < 0) return pith_op_fail(c, "shape[%zu] is negative", i);
    pith_type_set(&c->out[0], (int)pith_node_int(c->node, "dtype", PITH_F32), (int)rank, shape);
    return check_dtype(c, c->out[0].dtype);
}

static pith_status infer_like(pith_infer *c) {
    pith_type_set(&c->out[0], (int)pith_node_int(c->node, "dtype", c->in[0]->dtype), c->in[0]->rank, c->in[0]->dims);
    return check_dtype(c, c->out[0].dtype);
}

static pith_status infer_multinomial(pith_infer *c) {
    const pith_type *x = c->in[0];
    int64_t samples = pith_node_int(c->node, "sample_size", 1);
    if (x->rank >= 0 && x->rank != 2) return pith_op_fail(c, "input has %d dimensions, not 2", x->rank);
    if (samples < 0) return pith_op_fail(c, "sample_size is negative");
    pith_type_set(&c->out[0], (int)pith_node_int(c->node, "dtype", PITH_I32), 2, (pith_dim[]){ x->rank == 2 ? x->dims[0] : PITH_DIM_UNKNOWN, samples });
    return check_dtype(c, c->out[0].dtype);
}

static void put(const pith_tensor *t, int64_t i, double x) { pith_convert(t->data, t->dtype, i, &x, PITH_F64, 0, 1, true); }

static pith_status run_normal(pith_run *r) {
    uint64_t state = seed_of(r->node);
    double mean = pith_node_float(r->node, "mean", 0), scale = pith_node_float(r->node, "scale", 1);
    for (int64_t i = 0; i < pith_tensor_count(r->out[0]); i++) put(r->out[0], i, mean + scale * normal(&state));
    return PITH_OK;
}

static pith_status run_uniform(pith_run *r) {
    uint64_t state = seed_of(r->node);
    double low = pith_node_float(r->node, "low", 0), high = pith_node_float(r->node, "high", 1);
    for (int64_t i = 0; i < pith_tensor_count(r->out[0]); i++) put(r->out[0], i, low + (high - low) * uniform(&state));
    return PITH_OK;
}

static pith_status run_bernoulli(pith_run *r) {
    uint64_t state = seed_of(r->node);
    for (int64_t i = 0; i < pith_tensor_count(r->out[0]); i++) {
        double p;
        pith_convert(&p, PITH_F64, 0, r->in[0]->data, r->in[0]->dtype, i, 1, true);
        put(r->out[0], i, uniform(&state) < p);
    }
    return PITH_OK;
}

static pith_status run_multinomial(pith_run *r) {
    uint64_t state = seed_of(r->node);
    const pith_tensor *x = r->in[0], *y = r->out[0];
    int64_t classes = x->dims[1], samples = y->dims[1];
    if (!classes && pith_tensor_count(y)) return pith_op_fail(r, "there are no classes");
    double *sums = r->exec->alloc(r->exec, (size_t)(classes + 1) * sizeof *sums);
    if (!sums) return pith_fail_memory(r->err, (size_t)classes * sizeof *sums);
    for (int64_t row = 0; row < x->dims[0]; row++) {
        double most = -INFINITY, total = 0;
        pith_convert(sums, PITH_F64, 0, x->data, x->dtype, row * classes, classes, true); /* log-probabilities */
        for (int64_t k = 0; k < classes; k++) most = fmax(most, sums[k]);
        for (int64_t k = 0; k < classes; k++) sums[k] = total += exp(sums[k] - most);
        for (int64_t s = 0; s < samples; s++) {
            double u = uniform(&state) * total;
            int64_t k = 0;
            while (k < classes - 1 && sums[k] <= u) k++;
            put(y, row * samples + s, (double)k);
        }
    }
    return PITH_OK;
}

#define RANDOM_OP(op_name, first, inputs, infer_fn, run_fn)                                                          \
    const pith_op pith_op_##op_name = {                                                                              \
        .domain = "", .name = #op_name, .since = first, .min_inputs = inputs, .max_inputs = inputs, .max_outputs = 1, \
        .flags = PITH_OP_RANDOM, .infer = infer_fn, .run = run_fn, .note = "own generator",                          \
    }

RANDOM_OP(Bernoulli, 15, 1, infer_like, run_bernoulli);
RANDOM_OP(Multinomial, 7, 1, infer_multinomial, run_multinomial);
RANDOM_OP(RandomNormal, 1, 0, infer_shape, run_normal);
RANDOM_OP(RandomNormalLike, 1, 1, infer_like, run_normal);
RANDOM_OP(RandomUniform, 1, 0, infer_shape, run_uniform);
RANDOM_OP(RandomUniformLike, 1, 1, infer_like, run_uniform);
