/* op_pith_quantized_add.c - pith.QuantizedAdd: the sum of two dequantised tensors of 8-bit numbers,
 * quantised.
 *
 *   inputs   a, its scale and zero point, b, its scale and zero point, scale and zero point of the
 *            output: u8 or i8, scales f32 of one element; a and b have one rank, and are broadcast
 *   output   the sum, with the type of its zero point
 * The bits are those of DequantizeLinear, Add and QuantizeLinear. */
#include "base/checked.h"
#include "engine/kernels/move.h"
#include "engine/kernels/small_floats.h"
#include "engine/ops/shared/infer_shapes.h"

/* Elements that are worth a thread. */
enum { GRAIN = 1 << 15 };

/* Scales and zero points are one number, and zero points have the type of what they belong to. */
static pith_status quantized_add_check_numbers(const pith__infer *c) {
    for (int i = 0; i < 8; i++) {
        const int64_t count = i % 3 || i == 6 ? pith__type_count(c->in[i]) : 1;
        if (count >= 0 && count != 1)
            return pith__op_fail(c, "input %d has %lld elements, expected 1", i, (long long)count);
    }
    for (int i = 0; i < 6; i += 3) {
        const int dtype = c->in[i]->dtype, zero = c->in[i + 2]->dtype;
        if (dtype && zero && dtype != zero)
            return pith__op_fail(c, "input %d has dtype %s, its zero point %s", i,
                                 pith__dtype_name(dtype), pith__dtype_name(zero));
    }
    return PITH_OK;
}

/* The operands broadcast; the type of the output is that of its zero point. */
static pith_status quantized_add_infer(pith__infer *c) {
    const pith__type *a = c->in[0], *b = c->in[3];
    PITH_TRY(quantized_add_check_numbers(c));
    if (a->rank >= 0 && b->rank >= 0 && a->rank != b->rank)
        return pith__op_fail(c, "the terms have ranks %d and %d", a->rank, b->rank);
    pith__type out;
    pith__type_init(&out);
    PITH_TRY(pith__infer_broadcast(c, a, b, &out));
    pith__infer_set(c, 0, c->in[7]->dtype, out.rank, out.dims);
    return PITH_OK;
}

/* Copies of the terms that are broadcast. */
static pith_status quantized_add_scratch(const pith__infer *c, const void *state, int threads,
                                         size_t *bytes) {
    const int64_t count = pith__type_count(&c->out[0]);
    (void)state, (void)threads;
    *bytes = 0;
    for (int i = 0; i < 6; i += 3) {
        if (pith__type_count(c->in[i]) == count) continue;
        if (pith__add_overflows(*bytes, (size_t)count, bytes))
            return pith__fail_memory(c->err, SIZE_MAX);
    }
    return PITH_OK;
}

/* The kernel adds and rounds in one pass. */
static pith_status quantized_add_prepare(pith__prepare *c) {
    pith__kernel_fn *fn;
    pith__quantized_add_fn **own = c->state = pith__arena_array(c->arena, 1, sizeof *own);
    if (!own) return pith__fail_memory(c->err, sizeof *own);
    PITH_TRY(pith__prepare_kernel(c, "quantized_add", PITH_U8, &fn));
    *own = (pith__quantized_add_fn *)fn;
    return PITH_OK;
}

typedef struct job {
    pith__quantized_add_fn *fn;
    pith__quantized_sum sum;
    int64_t count, per_part;
} job;

static float quantized_add_zero(const pith_tensor *zero) {
    return zero->dtype == PITH_I8 ? *(const int8_t *)zero->data : *(const uint8_t *)zero->data;
}

/* The bytes of t, repeated at *rest if there are fewer than in y. */
static const uint8_t *quantized_add_bytes(pith__run *r, const pith_tensor *t, uint8_t **rest) {
    const pith_tensor *y = r->out[0];
    int64_t from[PITH_MAX_RANK], to[PITH_MAX_RANK];
    if (pith__tensor_count(t) == pith__tensor_count(y)) return t->data;
    uint8_t *copy = *rest;
    *rest += pith__tensor_count(y);
    pith__strides(from, t->dims, t->rank);
    pith__strides(to, y->dims, y->rank);
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] == 1) from[i] = 0;
    pith__run_move(r, copy, to, t->data, from, y->dims, y->rank, 1);
    return copy;
}

/* An operand as table or contiguous bytes: one that broadcasts is spread into the scratch, and rest
 * moves behind it. */
static pith__quantized_term quantized_add_term(pith__run *r, int i, uint8_t **rest) {
    const pith_tensor *scale = r->in[i + 1], *zero = r->in[i + 2];
    const bool is_signed = zero->dtype == PITH_I8;
    return (pith__quantized_term){ .x = quantized_add_bytes(r, r->in[i], rest),
                                   .scale = *(const float *)scale->data,
                                   .zero = quantized_add_zero(zero) + (is_signed ? 128.0f : 0.0f),
                                   .flip = is_signed ? 0x80 : 0 };
}

static void quantized_add_part(void *context, size_t part, int worker) {
    const job *j = context;
    const int64_t begin = (int64_t)part * j->per_part,
                  end = j->count - begin < j->per_part ? j->count : begin + j->per_part;
    (void)worker;
    j->fn(&j->sum, (size_t)begin, (size_t)(end - begin));
}

/* low and high are the limits of the output type, as floats before the zero point is added. */
static pith_status quantized_add_run(pith__run *r) {
    const pith_tensor *y = r->out[0];
    const float zero = quantized_add_zero(r->in[7]),
                least = (y->dtype == PITH_I8 ? -128.0f : 0.0f) - zero;
    job j = { .fn = *(pith__quantized_add_fn *const *)r->state, .count = pith__tensor_count(y) };
    if (!j.count) return PITH_OK;
    uint8_t *rest = r->scratch;
    j.sum = (pith__quantized_sum){ .a = quantized_add_term(r, 0, &rest),
                                   .b = quantized_add_term(r, 3, &rest),
                                   .y = y->data,
                                   .scale = *(const float *)r->in[6]->data,
                                   .low = least,
                                   .high = least + 255.0f,
                                   .zero = (int32_t)zero };
    j.per_part = pith__run_chunk(r, j.count, 1, GRAIN);
    pith__run_parallel(r, quantized_add_part, &j,
                       (size_t)((j.count + j.per_part - 1) / j.per_part));
    return PITH_OK;
}

const pith__op pith__op_QuantizedAdd_pith = {
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
    .scratch = quantized_add_scratch,
    .run = quantized_add_run,
};
