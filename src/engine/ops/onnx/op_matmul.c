/* op_matmul.c - MatMul, and com.microsoft FusedMatMul, which may transpose either side and scale
 * the result.
 *
 * Operands are [batch…, m, k] and [batch…, k, n] with NumPy's rules: batches broadcast, a vector is
 * a row on the left and a column on the right and leaves no axis in the result. */
#include "base/checked.h"
#include "engine/ops/shared/compose_ops.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/tensor_matmul.h"
#include "engine/ops/shared/widen_types.h"

/* alpha: 1 for MatMul. */
typedef struct state {
    pith__product product;
    float alpha;
} state;

/* Whether the left (0) or right (1) side is to be transposed; in a vector there is nothing to
 * transpose. */
static bool matmul_is_transposed(const pith__node *node, int side, int rank) {
    return rank != 1 && pith__node_int(node, side ? "transB" : "transA", 0);
}

/* The operands as matrices, vectors completed; false if ranks are unknown. */
static bool matmul_as_matrices(pith__type *a, pith__type *b, const pith__node *node) {
    if (a->rank < 0 || b->rank < 0) return false;
    const bool transposed[2] = { matmul_is_transposed(node, 0, a->rank),
                                 matmul_is_transposed(node, 1, b->rank) };
    if (a->rank == 1) {
        a->dims[1] = a->dims[0];
        a->dims[0] = 1;
        a->rank = 2;
    }
    if (b->rank == 1) {
        b->dims[1] = 1;
        b->rank = 2;
    }
    pith__type *both[2] = { a, b };
    for (int i = 0; i < 2; i++) {
        if (!transposed[i]) continue;
        pith__dim d = both[i]->dims[both[i]->rank - 1];
        both[i]->dims[both[i]->rank - 1] = both[i]->dims[both[i]->rank - 2];
        both[i]->dims[both[i]->rank - 2] = d;
    }
    return true;
}

/* Ranks below 2 are completed for the product and taken off the result again. */
static pith_status matmul_infer(pith__infer *c) {
    PITH_TRY(pith__infer_equal_dtypes(c, 0, 1));
    pith__type a = *c->in[0], b = *c->in[1], out;
    int dtype = a.dtype ? a.dtype : b.dtype;
    if (a.rank == 0 || b.rank == 0) return pith__op_fail(c, "an operand is a scalar");
    if (!matmul_as_matrices(&a, &b, c->node)) {
        pith__infer_set(c, 0, dtype, -1, NULL);
        return PITH_OK;
    }
    pith__dim m = a.dims[a.rank - 2], k = a.dims[a.rank - 1], k2 = b.dims[b.rank - 2],
              n = b.dims[b.rank - 1];
    if (pith__dim_known(k) && pith__dim_known(k2) && k != k2) {
        return pith__op_fail(c, "the left side has %lld columns, the right side %lld rows",
                             (long long)k, (long long)k2);
    }
    a.rank -= 2;
    b.rank -= 2;
    pith__type_init(&out);
    PITH_TRY(pith__infer_broadcast(c, &a, &b, &out));
    if (out.rank + 2 > PITH_MAX_RANK)
        return pith__op_fail(c, "rank %d is more than %d", out.rank + 2, PITH_MAX_RANK);
    if (c->in[0]->rank > 1) out.dims[out.rank++] = m;
    if (c->in[1]->rank > 1) out.dims[out.rank++] = n;
    pith__infer_set(c, 0, dtype, out.rank, out.dims);
    return PITH_OK;
}

static pith_status matmul_prepare(pith__prepare *c) {
    state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    s->alpha = pith__node_float(c->node, "alpha", 1.0f);
    PITH_TRY(pith__product_prepare(&s->product, c, c->in[0]->dtype, 1,
                                   matmul_is_transposed(c->node, 1, c->in[1]->rank)));
    c->state = s;
    return PITH_OK;
}

static int64_t matmul_batches_of(const pith__type *a, const pith__type *b) {
    int64_t count = 1;
    int rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 3; i <= rank; i++) {
        int64_t da = i <= a->rank ? a->dims[a->rank - i] : 1,
                db = i <= b->rank ? b->dims[b->rank - i] : 1;
        count *= da == 1 ? db : da;
    }
    return count;
}

/* What the matmul needs, the offsets of both sides' matrices, and a transposed copy of the left
 * side. */
static pith_status matmul_scratch(const pith__infer *c, const void *state_, int threads,
                                  size_t *bytes) {
    const state *s = state_;
    pith__type a = *c->in[0], b = *c->in[1];
    size_t product, moved = 0;
    matmul_as_matrices(&a, &b, c->node);
    int64_t batches = matmul_batches_of(&a, &b);
    bool fits = pith__product_scratch(&s->product, batches, b.dims[b.rank - 1], b.dims[b.rank - 2],
                                      threads, &product) &&
                (!matmul_is_transposed(c->node, 0, c->in[0]->rank) ||
                 pith__dtype_bytes(PITH_F64, pith__type_count(&a), &moved)) &&
                !pith__mul_overflows((size_t)batches, 2 * sizeof(int64_t), bytes) &&
                !pith__add_overflows(*bytes, product + 64, bytes) &&
                !pith__add_overflows(*bytes, moved + 64, bytes);
    if (!fits) return pith__fail_memory(c->err, SIZE_MAX);
    return pith__widen_scratch(c, s->product.packed ? 2 : 0, bytes);
}

static void matmul_scale_result(pith_tensor *y, float alpha) {
    int64_t count = pith__tensor_count(y);
    if (y->dtype == PITH_F64) {
        double *p = y->data;
        for (int64_t i = 0; i < count; i++) p[i] *= (double)alpha;
    } else {
        float *p = y->data;
        for (int64_t i = 0; i < count; i++) p[i] *= alpha;
    }
}

/* Finds which matrix of either side belongs to each of the result's, from broadcast batches. If all
 * of the left ones lie in order and the right side is one matrix, no offsets are passed, and the
 * matmul takes all rows at once. */
static pith_status matmul_run_plain(pith__run *r) {
    const state *s = r->state;
    pith_tensor *y = r->out[0];
    pith__type a, b;
    pith__type_of_tensor(&a, r->in[0]);
    pith__type_of_tensor(&b, r->in[1]);
    matmul_as_matrices(&a, &b, r->node);
    if (!pith__tensor_count(y)) return PITH_OK;
    int64_t m = a.dims[a.rank - 2], k = a.dims[a.rank - 1], n = b.dims[b.rank - 1],
            count = matmul_batches_of(&a, &b);
    int64_t *a_at = r->scratch, *b_at = a_at + count;
    char *rest = (char *)r->scratch + pith__round64((size_t)count * 2 * sizeof(int64_t));
    int rank = a.rank > b.rank ? a.rank : b.rank;
    bool dense_a = true, one_b = true;
    for (int64_t i = 0; i < count; i++) {
        int64_t at[2] = { 0, 0 }, stride[2] = { m * k, s->product.packed ? 1 : k * n }, place = i;
        for (int d = 3; d <= rank; d++) {
            int64_t own[2] = { d <= a.rank ? a.dims[a.rank - d] : 1,
                               d <= b.rank ? b.dims[b.rank - d] : 1 };
            int64_t size = own[0] == 1 ? own[1] : own[0];
            for (int o = 0; o < 2; o++) {
                if (own[o] != 1) at[o] += place % size * stride[o];
                stride[o] *= own[o];
            }
            place /= size;
        }
        a_at[i] = at[0];
        b_at[i] = at[1];
        dense_a &= at[0] == i * m * k;
        one_b &= at[1] == 0;
    }
    pith__product_job j = { .product = &s->product,
                            .a = r->in[0]->data,
                            .b = r->in[1]->data,
                            .c = y->data,
                            .count = count,
                            .m = m,
                            .n = n,
                            .k = k,
                            .a_row = k,
                            .a_column = 1,
                            .b_row = n,
                            .b_column = 1,
                            .a_at = dense_a ? NULL : a_at,
                            .b_at = one_b ? NULL : b_at };
    if (matmul_is_transposed(r->node, 1, r->in[1]->rank)) {
        j.b_row = 1;
        j.b_column = k;
    }
    if (matmul_is_transposed(r->node, 0, r->in[0]->rank)) {
        int64_t matrices = pith__tensor_count(r->in[0]) / (m * k > 0 ? m * k : 1);
        int64_t dims[3] = { matrices, m, k }, from[3] = { m * k, 1, m }, to[3] = { m * k, k, 1 };
        pith__run_move(r, rest, to, r->in[0]->data, from, dims, 3, s->product.element);
        j.a = rest;
        rest += pith__round64((size_t)(matrices * m * k) * s->product.element);
    }
    pith__product_run(r, rest, &j);
    if (s->alpha != 1.0f) matmul_scale_result(y, s->alpha);
    return PITH_OK;
}

static pith_status matmul_run(pith__run *r) {
    const state *s = r->state;
    return pith__widen_run(r, s->product.packed ? 2 : 0, matmul_run_plain);
}

static void matmul_cost(const pith__run *r, pith__cost *cost) {
    const pith_tensor *a = r->in[0];
    pith__cost_product(cost, a->dims[a->rank - 1 - matmul_is_transposed(r->node, 0, a->rank)],
                       "gemm");
}

const pith__op pith__op_MatMul = { .domain = "",
                                   .name = "MatMul",
                                   .since = 1,
                                   .newest = 13,
                                   .min_inputs = 2,
                                   .max_inputs = 2,
                                   .max_outputs = 1,
                                   .types = "r",
                                   .attrs = "",
                                   .infer = matmul_infer,
                                   .prepare = matmul_prepare,
                                   .scratch = matmul_scratch,
                                   .run = matmul_run,
                                   .cost = matmul_cost };

/* transBatchA and transBatchB: the first axis of a side stands after its batches; put there by a
 * node of its own. The older name is TransposeMatMul. */
static pith_status matmul_upgrade_fused(pith__node *node, pith_error *err) {
    static const char *const kept[] = { "alpha", "transA", "transB", NULL };
    PITH_TRY(pith__compose_require(node, 3u, 1, err));
    pith__value *a = pith__node_input(node, 0), *b = pith__node_input(node, 1);
    if (pith__node_int(node, "transBatchA", 0)) a = pith__compose_move(node, a, 0, -2);
    if (pith__node_int(node, "transBatchB", 0)) b = pith__compose_move(node, b, 0, -2);
    pith__value *y = a && b ? pith__compose(node, "com.microsoft", "FusedMatMul",
                                            (pith__value *[]){ a, b }, 2, 1)
                            : NULL;
    return pith__compose_become(node, pith__with_attributes(y, node, kept), err);
}

const pith__op pith__op_FusedMatMul_ms = {
    .domain = "com.microsoft",
    .name = "FusedMatMul",
    .since = PITH_OPSET_NEWEST,
    .newest = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "f",
    .attrs = "alpha float = 1; transA bool = 0; transB bool = 0; transBatchA bool = 0; "
             "transBatchB bool = 0",
    .upgrade = matmul_upgrade_fused,
    .infer = matmul_infer,
    .prepare = matmul_prepare,
    .scratch = matmul_scratch,
    .run = matmul_run,
    .cost = matmul_cost
};
PITH_OP_COMPOSED(TransposeMatMul_ms, "com.microsoft", "TransposeMatMul", 2, 2, 1,
                 matmul_upgrade_fused, NULL,
                 .attrs = "alpha float = 1; transA bool = 0; transB bool = 0")
