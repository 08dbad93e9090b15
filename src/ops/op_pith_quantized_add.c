/* op_pith_quantized_add.c - pith.QuantizedAdd: the sum of two dequantised tensors of 8-bit numbers, quantised.
 *
 *   inputs   a, its scale and zero point, b, its scale and zero point, scale and zero point of the output: u8 or i8,
 *            scales f32 of one element; b has the shape of a
 *   output   as a, with the type of its zero point
 * The bits are those of DequantizeLinear, Add and QuantizeLinear, whose loops it runs block by block. */
#include "kernels/binary.h"
#include "kernels/small.h"
#include "ops/infer.h"

/* BLOCK: elements of a block, whose floats stay in the L1 cache. GRAIN: elements that are worth a thread. */
enum { BLOCK = 1024, GRAIN = 1 << 15 };

typedef struct quantized_add {
    pith_dequantize_fn *from_u8, *from_i8;
    pith_binary_fn *add;
    pith_quantize_fn *quantize;
} quantized_add;

/* Scales and zero points are one number, and zero points have the type of what they belong to. */
static pith_status quantized_add_check_numbers(const pith_infer *c) {
    for (int i = 0; i < 8; i++) {
        const int64_t count = i % 3 || i == 6 ? pith_type_count(c->in[i]) : 1;
        if (count >= 0 && count != 1)
            return pith_op_fail(c, "input %d has %lld elements, expected 1", i, (long long)count);
    }
    for (int i = 0; i < 6; i += 3) {
        const int dtype = c->in[i]->dtype, zero = c->in[i + 2]->dtype;
        if (dtype && zero && dtype != zero)
            return pith_op_fail(c, "input %d has dtype %s, its zero point %s", i, pith_dtype_name(dtype),
                                pith_dtype_name(zero));
    }
    return PITH_OK;
}

static pith_status quantized_add_infer(pith_infer *c) {
    const pith_type *a = c->in[0], *b = c->in[3];
    PITH_TRY(quantized_add_check_numbers(c));
    if (a->rank >= 0 && b->rank >= 0 && a->rank != b->rank)
        return pith_op_fail(c, "the terms have ranks %d and %d", a->rank, b->rank);
    for (int i = 0; i < a->rank && i < b->rank; i++) {
        if (pith_dim_known(a->dims[i]) && pith_dim_known(b->dims[i]) && a->dims[i] != b->dims[i])
            return pith_op_fail(c, "axis %d of the terms has sizes %lld and %lld", i, (long long)a->dims[i],
                                (long long)b->dims[i]);
    }
    pith_infer_set(c, 0, c->in[7]->dtype, a->rank, a->dims);
    return PITH_OK;
}

static pith_status quantized_add_prepare(pith_prepare *c) {
    quantized_add *s = c->state = pith_arena_array(c->arena, 1, sizeof *s);
    pith_kernel_fn *fn;
    if (!s) return pith_fail_memory(c->err, sizeof *s);
    PITH_TRY(pith_prepare_kernel(c, "dequantize", PITH_U8, &fn));
    s->from_u8 = (pith_dequantize_fn *)fn;
    PITH_TRY(pith_prepare_kernel(c, "dequantize", PITH_I8, &fn));
    s->from_i8 = (pith_dequantize_fn *)fn;
    PITH_TRY(pith_prepare_kernel(c, "add", PITH_F32, &fn));
    s->add = (pith_binary_fn *)fn;
    PITH_TRY(pith_prepare_kernel(c, "quantize", PITH_U8, &fn));
    s->quantize = (pith_quantize_fn *)fn;
    return PITH_OK;
}

/* A tensor of bytes with its numbers. */
typedef struct bytes {
    uint8_t *data;
    float scale, zero;
    bool is_signed;
} bytes;

typedef struct job {
    const quantized_add *s;
    bytes a, b, y;
    int64_t count, per_part;
} job;

static bytes bytes_of(const pith_tensor *t, const pith_tensor *scale, const pith_tensor *zero) {
    const bool is_signed = t->dtype == PITH_I8;
    return (bytes){ .data = t->data,
                    .scale = *(const float *)scale->data,
                    .zero = is_signed ? *(const int8_t *)zero->data : *(const uint8_t *)zero->data,
                    .is_signed = is_signed };
}

static void quantized_add_part(void *context, size_t part, int worker) {
    const job *j = context;
    const int64_t begin = (int64_t)part * j->per_part,
                  end = j->count - begin < j->per_part ? j->count : begin + j->per_part;
    const float least = (j->y.is_signed ? -128.0f : 0.0f) - j->y.zero;
    float a[BLOCK], b[BLOCK];
    (void)worker;
    for (int64_t i = begin; i < end; i += BLOCK) {
        const size_t n = end - i < BLOCK ? (size_t)(end - i) : BLOCK;
        (j->a.is_signed ? j->s->from_i8 : j->s->from_u8)(j->a.data + i, a, n, j->a.scale, j->a.zero);
        (j->b.is_signed ? j->s->from_i8 : j->s->from_u8)(j->b.data + i, b, n, j->b.scale, j->b.zero);
        j->s->add(a, a, b, (int64_t)n, 1, 1);
        j->s->quantize(a, j->y.data + i, n, j->y.scale, least, least + 255.0f, (int32_t)j->y.zero);
    }
}

static pith_status quantized_add_run(pith_run *r) {
    job j = { .s = r->state, .count = pith_tensor_count(r->out[0]) };
    if (!j.count) return PITH_OK;
    j.a = bytes_of(r->in[0], r->in[1], r->in[2]);
    j.b = bytes_of(r->in[3], r->in[4], r->in[5]);
    j.y = bytes_of(r->out[0], r->in[6], r->in[7]);
    j.per_part = pith_run_chunk(r, j.count, 1, GRAIN);
    pith_run_parallel(r, quantized_add_part, &j, (size_t)((j.count + j.per_part - 1) / j.per_part));
    return PITH_OK;
}

const pith_op pith_op_QuantizedAdd_pith = {
    .domain = "pith",
    .name = "QuantizedAdd",
    .since = 1,
    .newest = 1,
    .min_inputs = 8,
    .max_inputs = 8,
    .max_outputs = 1,
    .flags = PITH_OP_ELEMENTWISE | PITH_OP_IN_PLACE,
    .types = "qeqqeqeq",
    .attrs = "",
    .infer = quantized_add_infer,
    .prepare = quantized_add_prepare,
    .run = quantized_add_run,
};
