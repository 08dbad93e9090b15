/* op_gemm.c - Gemm: y = alpha * a' * b' + beta * c. If alpha and beta are 1 and c is a row, c is
 * the bias of the matmul; else c is added by a loop of its own afterwards. */
#include "base/checked.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/tensor_matmul.h"
#include "engine/ops/shared/widen_types.h"

/* alpha and beta as the attributes have them; compute: f32 or f64. */
typedef struct state {
    pith__product product;
    bool transpose_a, transpose_b;
    double alpha, beta;
    int compute;
} state;

/* c broadcasts to the product from the right and may have fewer axes. */
static pith_status gemm_infer(pith__infer *c) {
    PITH_TRY(pith__infer_equal_dtypes(c, 0, 2));
    const pith__type *a = c->in[0], *b = c->in[1];
    int ta = pith__node_int(c->node, "transA", 0) != 0,
        tb = pith__node_int(c->node, "transB", 0) != 0;
    if ((a->rank >= 0 && a->rank != 2) || (b->rank >= 0 && b->rank != 2)) {
        return pith__op_fail(c, "operands have ranks %d and %d, expected 2", a->rank, b->rank);
    }
    pith__dim dims[2] = { a->rank == 2 ? a->dims[ta] : PITH_DIM_UNKNOWN,
                          b->rank == 2 ? b->dims[1 - tb] : PITH_DIM_UNKNOWN };
    pith__dim k = a->rank == 2 ? a->dims[1 - ta] : PITH_DIM_UNKNOWN,
              k2 = b->rank == 2 ? b->dims[tb] : PITH_DIM_UNKNOWN;
    if (pith__dim_known(k) && pith__dim_known(k2) && k != k2) {
        return pith__op_fail(c, "the left side has %lld columns, the right side %lld rows",
                             (long long)k, (long long)k2);
    }
    pith__infer_set(c, 0, a->dtype ? a->dtype : b->dtype, 2, dims);
    if (!pith__has_input(c, 2) || c->in[2]->rank < 0) return PITH_OK;
    const pith__type *bias = c->in[2];
    if (bias->rank > 2) return pith__op_fail(c, "c has rank %d", bias->rank);
    for (int i = 0; i < bias->rank; i++) {
        pith__dim own = bias->dims[i], of = dims[2 - bias->rank + i];
        if (pith__dim_known(own) && pith__dim_known(of) && own != of && own != 1) {
            return pith__op_fail(c, "c has size %lld at axis %d, the product %lld", (long long)own,
                                 i, (long long)of);
        }
    }
    return PITH_OK;
}

static pith_status gemm_prepare(pith__prepare *c) {
    state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    s->transpose_a = pith__node_int(c->node, "transA", 0) != 0;
    s->transpose_b = pith__node_int(c->node, "transB", 0) != 0;
    s->alpha = (double)pith__node_float(c->node, "alpha", 1.0f);
    s->beta = (double)pith__node_float(c->node, "beta", 1.0f);
    s->compute = pith__compute_dtype(c->in[0]->dtype);
    PITH_TRY(pith__product_prepare(&s->product, c, c->in[0]->dtype, 1, s->transpose_b));
    c->state = s;
    return PITH_OK;
}

/* What the matmul needs, and a transposed copy of a, whose rows the GEMM reads along k. */
static pith_status gemm_scratch(const pith__infer *c, const void *state_, int threads,
                                size_t *bytes) {
    const state *s = state_;
    size_t moved = 0;
    const pith__type *b = c->in[1];
    bool fits =
        pith__product_scratch(&s->product, 1, b->dims[!s->transpose_b], b->dims[s->transpose_b],
                              threads, bytes) &&
        (!s->transpose_a || pith__dtype_bytes(PITH_F64, pith__type_count(c->in[0]), &moved)) &&
        !pith__add_overflows(*bytes, moved + 128, bytes);
    if (!fits) return pith__fail_memory(c->err, SIZE_MAX);
    return pith__widen_scratch(c, s->product.packed ? 2 : 0, bytes);
}

/* y = alpha * y + beta * c */
#define BLEND(T)                                                                                   \
    do {                                                                                           \
        const T *p = x[0], *q = x[1];                                                              \
        T *r = y, alpha = (T)s->alpha, beta = (T)s->beta;                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            r[i] = alpha * p[i * strides[0]] + beta * q[i * strides[1]];                           \
    } while (0)
static void gemm_blend_loop(const void *context, void *y, const void *const *x, const int *strides,
                            int64_t n) {
    const state *s = context;
    if (s->compute == PITH_F32)
        BLEND(float);
    else
        BLEND(double);
}

/* A bias that is one f32 row and unscaled is added inside the matmul. Everything else is a second
 * pass over y: alpha y + beta c, with c broadcast, or a zero if there is none but alpha is not 1.
 */
static pith_status gemm_run_plain(pith__run *r) {
    const state *s = r->state;
    const pith_tensor *a = r->in[0], *b = r->in[1],
                      *c = pith__has_input(r, 2) && s->beta != 0 ? r->in[2] : NULL;
    pith_tensor *y = r->out[0];
    int64_t m = y->dims[0], n = y->dims[1], k = a->dims[!s->transpose_a];
    char *rest = r->scratch;
    bool row = c && s->alpha == 1 && s->beta == 1 && s->compute == PITH_F32 &&
               pith__tensor_count(c) == n && c->rank > 0 && c->dims[c->rank - 1] == n;
    if (!pith__tensor_count(y)) return PITH_OK;
    pith__product_job j = { .product = &s->product,
                            .a = a->data,
                            .b = b->data,
                            .c = y->data,
                            .bias = row ? c->data : NULL,
                            .count = 1,
                            .m = m,
                            .n = n,
                            .k = k,
                            .a_row = k,
                            .a_column = 1,
                            .b_row = s->transpose_b ? 1 : n,
                            .b_column = s->transpose_b ? k : 1 };
    if (s->transpose_a) {
        int64_t dims[2] = { m, k }, from[2] = { 1, m }, to[2] = { k, 1 };
        if (k) pith__run_move(r, rest, to, a->data, from, dims, 2, s->product.element);
        j.a = rest;
        rest += pith__round64((size_t)(m * k) * s->product.element);
    }
    pith__product_run(r, rest, &j);
    if (row || (!c && s->alpha == 1)) return PITH_OK;
    float zero32 = 0;
    double zero64 = 0;
    pith_tensor zero = { .data = s->compute == PITH_F32 ? (void *)&zero32 : &zero64,
                         .dtype = s->compute };
    pith__elementwise e = { .count = 2,
                            .in = { y, c ? c : &zero },
                            .out = y,
                            .compute = { y->dtype, s->compute },
                            .result = y->dtype,
                            .loop = gemm_blend_loop,
                            .context = s };
    if (s->compute != PITH_F32) e.compute[0] = e.compute[1] = e.result = PITH_F64;
    pith__elementwise_run(r, &e);
    return PITH_OK;
}

static pith_status gemm_run(pith__run *r) {
    const state *s = r->state;
    return pith__widen_run(r, s->product.packed ? 2 : 0, gemm_run_plain);
}

static void gemm_cost(const pith__run *r, pith__cost *cost) {
    const state *s = r->state;
    pith__cost_product(cost, r->in[0]->dims[!s->transpose_a], "gemm");
}

const pith__op pith__op_Gemm = {
    .domain = "",
    .name = "Gemm",
    .since = 1,
    .newest = 13,
    .min_inputs = 2,
    .max_inputs = 3,
    .max_outputs = 1,
    .types = "r",
    .attrs = "alpha float = 1; beta float = 1; broadcast bool = 0 @-6; transA bool = 0; "
             "transB bool = 0",
    .infer = gemm_infer,
    .prepare = gemm_prepare,
    .scratch = gemm_scratch,
    .run = gemm_run,
    .cost = gemm_cost
};
