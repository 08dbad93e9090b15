/* op_matmul_nbits.c - com.microsoft MatMulNBits: a product with weights of 2, 4 or 8 bits in blocks along k.
 *
 * b is [n, blocks, bytes of a block], low bits first; scales [n * blocks]; zero points packed like b, or of the scales'
 * type, or absent (the middle of the range). Constant weights become packed f32 once; the products are those of MatMul.
 */
#include "base/checked.h"
#include "kernels/convert.h"
#include "ops/product.h"
#include "ops/widen.h"

enum { A, B, SCALES, ZEROS, GROUPS, BIAS };

typedef struct state {
    pith_product product;
    int64_t n, k;
} state;

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

static pith_status unpack(float *to, pith_prepare *c, int64_t n, int64_t k) {
    int64_t bits = pith_node_int(c->node, "bits", 4), block = pith_node_int(c->node, "block_size", 32);
    if ((bits != 2 && bits != 4 && bits != 8) || block < 16 || block > 1 << 20) {
        return pith_fail(c->err, PITH_ERR_UNSUPPORTED, "%lld bits in blocks of %lld are not supported", (long long)bits,
                         (long long)block);
    }
    int64_t blocks = (k + block - 1) / block, zero_row = (blocks * bits + 7) / 8, bytes = block * bits / 8;
    const pith_tensor *b = c->in[B]->data, *scales = c->in[SCALES]->data,
                      *zeros = pith_has_input(c, ZEROS) ? c->in[ZEROS]->data : NULL;
    bool packed_zeros = zeros && zeros->dtype == PITH_U8;
    if (b->dtype != PITH_U8 || pith_tensor_count(b) != n * blocks * bytes || pith_tensor_count(scales) != n * blocks ||
        !pith_convert_known(scales->dtype, PITH_F32) ||
        (zeros && (!pith_convert_known(zeros->dtype, PITH_F32) ||
                   pith_tensor_count(zeros) != n * (packed_zeros ? zero_row : blocks)))) {
        return pith_op_fail(c, "weights, scales or zero points do not have the sizes that N, K and block_size ask for");
    }
    const uint8_t *w = b->data;
    unsigned mask = (1u << bits) - 1;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < k; i++) {
            int64_t at = i / block, bit = i % block * bits;
            float scale, zero = (float)(1 << (bits - 1));
            pith_convert(&scale, PITH_F32, 0, scales->data, scales->dtype, j * blocks + at, 1, true);
            if (packed_zeros)
                zero = (float)(((const uint8_t *)zeros->data)[j * zero_row + at * bits / 8] >> (at * bits % 8) & mask);
            else if (zeros)
                pith_convert(&zero, PITH_F32, 0, zeros->data, zeros->dtype, j * blocks + at, 1, true);
            unsigned q = w[(j * blocks + at) * bytes + bit / 8] >> (bit % 8) & mask;
            to[j * k + i] = ((float)q - zero) * scale;
        }
    }
    return PITH_OK;
}

static pith_status prepare(pith_prepare *c) {
    state *s = pith_arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith_fail_memory(c->err, sizeof *s);
    s->n = pith_node_int(c->node, "N", 0);
    s->k = pith_node_int(c->node, "K", 0);
    int dtype = c->in[A]->dtype;
    if (dtype != PITH_F32 && dtype != PITH_F16 && dtype != PITH_BF16) return pith_fail_dtype(c->err, dtype);
    if (!c->in[B]->data || !c->in[SCALES]->data || (pith_has_input(c, ZEROS) && !c->in[ZEROS]->data) ||
        pith_has_input(c, GROUPS)) {
        return pith_fail(c->err, PITH_ERR_UNSUPPORTED, "weights must be constants, without a group index");
    }
    int64_t count;
    if (pith_mul_overflows(s->n, s->k, &count) || count > INT64_MAX / 8) return pith_fail_memory(c->err, SIZE_MAX);
    pith_type none;
    pith_type_init(&none);
    PITH_TRY(pith_product_prepare(&s->product, c, PITH_F32, &none, false));
    int64_t size = pith_gemm_f32_packed_size(s->k, s->n);
    if (size < 0) return pith_fail_memory(c->err, SIZE_MAX);
    float *packed = pith_arena_alloc64(c->arena, (size_t)size * sizeof *packed);
    pith_arena_mark mark = pith_arena_get_mark(c->arena);
    float *plain = pith_arena_alloc64(c->arena, (size_t)count * sizeof *plain);
    if (!packed || !plain) return pith_fail_memory(c->err, (size_t)count * sizeof *plain);
    PITH_TRY(unpack(plain, c, s->n, s->k));
    s->product.pack(packed, plain, 1, s->k, s->k, s->n, 0, s->n);
    pith_arena_rewind(c->arena, mark);
    s->product.packed = packed;
    s->product.matrices = 1;
    s->product.packed_size = size;
    c->consumed = 1u << B | 1u << SCALES | (pith_has_input(c, ZEROS) ? 1u << ZEROS : 0);
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
                                         .note = "constant weights of 2, 4 or 8 bits; no group index" };
