/* op_matmul_nbits.c - com.microsoft MatMulNBits: a product with weights of 2, 4 or 8 bits in blocks along k.
 *
 * b is [n, blocks, bytes of a block], low bits first; scales [n * blocks]; zero points packed like b, or of the scales'
 * type, or absent (the middle of the range). Constant weights become packed f32 once; the products are those of MatMul.
 */
#include "base/checked.h"
#include "kernels/convert.h"
#include "ops/pack.h"
#include "ops/product.h"
#include "ops/widen.h"

enum { A, B, SCALES, ZEROS, GROUPS, BIAS };

typedef struct state {
    pith_product product;
    int64_t n, k;
} state;

typedef struct weights {
    pith_gemm_pack_f32_fn *pack;
    const pith_tensor *b, *scales, *zeros; /* zeros may be NULL */
    int64_t n, k, bits, block, blocks;
} weights;

static pith_status infer(pith_infer *c) {
    const pith_type *a = c->in[A];
    int64_t n = pith_node_int(c->node, "N", 0), k = pith_node_int(c->node, "K", 0);
    if (n < 1 || k < 1) return pith_op_fail(c, "attributes N and K are %lld and %lld", (long long)n, (long long)k);
    if (a->rank < 0) {
        pith_infer_set(c, 0, a->dtype, -1, NULL);
        return PITH_OK;
    }
    if (a->rank < 1 || (pith_dim_known(a->dims[a->rank - 1]) && a->dims[a->rank - 1] != k)) {
        return pith_op_fail(c, "the last axis of a is not K (%lld)", (long long)k);
    }
    pith_dim dims[PITH_MAX_RANK];
    for (int i = 0; i < a->rank; i++) dims[i] = i < a->rank - 1 ? a->dims[i] : n;
    pith_infer_set(c, 0, a->dtype, a->rank, dims);
    return PITH_OK;
}

static pith_status describe(weights *w, const pith_prepare *c) {
    w->n = pith_node_int(c->node, "N", 0);
    w->k = pith_node_int(c->node, "K", 0);
    w->bits = pith_node_int(c->node, "bits", 4);
    w->block = pith_node_int(c->node, "block_size", 32);
    if ((w->bits != 2 && w->bits != 4 && w->bits != 8) || w->block < 16 || w->block > 1 << 20) {
        return pith_fail(c->err, PITH_ERR_UNSUPPORTED, "%lld bits in blocks of %lld are not supported",
                         (long long)w->bits, (long long)w->block);
    }
    const pith_type *b = c->in[B], *scales = c->in[SCALES], *zeros = pith_has_input(c, ZEROS) ? c->in[ZEROS] : NULL;
    w->blocks = (w->k + w->block - 1) / w->block;
    int64_t scale_count, weight_count, zero_row = (w->blocks * w->bits + 7) / 8;
    if (pith_mul_overflows(w->n, w->blocks, &scale_count) ||
        pith_mul_overflows(scale_count, w->block * w->bits / 8, &weight_count) || b->dtype != PITH_U8 ||
        pith_type_count(b) != weight_count || pith_type_count(scales) != scale_count ||
        !pith_convert_known(scales->dtype, PITH_F32) ||
        (zeros && (!pith_convert_known(zeros->dtype, PITH_F32) ||
                   pith_type_count(zeros) != (zeros->dtype == PITH_U8 ? w->n * zero_row : scale_count)))) {
        return pith_op_fail(c, "weights, scales or zero points do not have the sizes that N, K and block_size ask for");
    }
    w->b = b->data;
    w->scales = scales->data;
    w->zeros = zeros ? zeros->data : NULL;
    return PITH_OK;
}

/* Column j as floats. */
static void unpack(float *to, const weights *w, int64_t j) {
    int64_t zero_row = (w->blocks * w->bits + 7) / 8;
    unsigned mask = (1u << w->bits) - 1;
    for (int64_t at = 0; at < w->blocks; at++) {
        float scale, zero = (float)(1 << (w->bits - 1));
        pith_convert(&scale, PITH_F32, 0, w->scales->data, w->scales->dtype, j * w->blocks + at, 1, true);
        if (w->zeros && w->zeros->dtype == PITH_U8) {
            uint8_t byte = ((const uint8_t *)w->zeros->data)[j * zero_row + at * w->bits / 8];
            zero = (float)(byte >> (at * w->bits % 8) & mask);
        } else if (w->zeros) {
            pith_convert(&zero, PITH_F32, 0, w->zeros->data, w->zeros->dtype, j * w->blocks + at, 1, true);
        }
        const uint8_t *bytes = (const uint8_t *)w->b->data + (j * w->blocks + at) * w->block * w->bits / 8;
        int64_t begin = at * w->block, n = w->k - begin < w->block ? w->k - begin : w->block;
        for (int64_t i = 0; i < n; i++) {
            unsigned q = bytes[i * w->bits / 8] >> (i * w->bits % 8) & mask;
            to[begin + i] = ((float)q - zero) * scale;
        }
    }
}

static void fill_panel(void *packed, const void *context, size_t part, void *scratch) {
    const weights *w = context;
    float *columns = scratch;
    int64_t n0 = (int64_t)part * PITH_GEMM_PANEL, n = w->n - n0 < PITH_GEMM_PANEL ? w->n - n0 : PITH_GEMM_PANEL;
    for (int64_t j = 0; j < n; j++) unpack(columns + j * w->k, w, n0 + j);
    w->pack((float *)packed + n0 * w->k, columns, 1, w->k, w->k, n, 0, n);
}

static pith_status prepare(pith_prepare *c) {
    state *s = pith_arena_array(c->arena, 1, sizeof *s);
    weights *w = pith_arena_array(c->arena, 1, sizeof *w);
    if (!s || !w) return pith_fail_memory(c->err, sizeof *s);
    int dtype = c->in[A]->dtype;
    if (dtype != PITH_F32 && dtype != PITH_F16 && dtype != PITH_BF16) return pith_fail_dtype(c->err, dtype);
    if (!pith_pack_can(c, B) || !pith_pack_can(c, SCALES) || (pith_has_input(c, ZEROS) && !pith_pack_can(c, ZEROS)) ||
        pith_has_input(c, GROUPS)) {
        return pith_fail(c->err, PITH_ERR_UNSUPPORTED, "weights must be constants, without a group index");
    }
    PITH_TRY(describe(w, c));
    PITH_TRY(pith_product_prepare(&s->product, c, PITH_F32, -1, false));
    w->pack = s->product.pack;
    s->n = w->n;
    s->k = w->k;
    s->product.matrices = 1;
    s->product.packed_size = pith_gemm_f32_packed_size(w->k, w->n);
    pith_pack pack = { .layout = "nbits-f32x16",
                       .inputs = 1u << B | 1u << SCALES | (pith_has_input(c, ZEROS) ? 1u << ZEROS : 0),
                       .fill = fill_panel,
                       .context = w,
                       .parts = (size_t)(w->n + PITH_GEMM_PANEL - 1) / PITH_GEMM_PANEL };
    if (s->product.packed_size < 0 || pith_mul_overflows((size_t)s->product.packed_size, sizeof(float), &pack.bytes) ||
        pith_mul_overflows((size_t)w->k, PITH_GEMM_PANEL * sizeof(float), &pack.scratch))
        return pith_fail_memory(c->err, SIZE_MAX);
    const void *packed;
    PITH_TRY(pith_prepare_pack(c, &packed, &pack));
    s->product.packed = packed;
    c->state = s;
    return PITH_OK;
}

enum { SKIPPED = 1 << B | 1 << SCALES | 1 << ZEROS };

static pith_status scratch(const pith_infer *c, const void *state_, int threads, size_t *bytes) {
    (void)state_;
    (void)threads;
    *bytes = 0;
    return pith_widen_scratch(c, SKIPPED, bytes);
}

static pith_status run_plain(pith_run *r) {
    const state *s = r->state;
    pith_tensor *y = r->out[0];
    pith_product_job j = { .p = &s->product,
                           .a = r->in[A]->data,
                           .c = y->data,
                           .bias = pith_has_input(r, BIAS) ? r->in[BIAS]->data : NULL,
                           .count = 1,
                           .m = pith_tensor_count(y) / s->n,
                           .n = s->n,
                           .k = s->k,
                           .a_row = s->k,
                           .a_column = 1 };
    pith_product_run(r, r->scratch, &j);
    return PITH_OK;
}

static pith_status run(pith_run *r) { return pith_widen_run(r, SKIPPED, run_plain); }

static void cost(const pith_run *r, pith_cost *cost) {
    pith_cost_product(r, cost, ((const state *)r->state)->k, "gemm");
}

const pith_op pith_op_MatMulNBits_ms = { .domain = "com.microsoft",
                                         .name = "MatMulNBits",
                                         .since = 1,
                                         .min_inputs = 3,
                                         .max_inputs = 6,
                                         .max_outputs = 1,
                                         .infer = infer,
                                         .prepare = prepare,
                                         .scratch = scratch,
                                         .run = run,
                                         .cost = cost,
                                         .note = "constant weights of 2, 4 or 8 bits; no group index" };
