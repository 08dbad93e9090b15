/* op_ms_gather_packed.c - com.microsoft's GatherPacked: rows picked from a table whose rows are
 * blocks in a format of ggml, as numbers.
 *
 * An index outside of the table picks row 0. Source: ONNX Runtime's schema of this name and the
 * block layouts of ggml (MIT): numbers are d * q, where d is f16 and q has a few bits minus a bias.
 * K formats also have scales for 16 or 32 numbers. */
#include <string.h>

#include "base/dtype.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/infer_shapes.h"

static float gather_packed_block_half(const uint8_t *p) {
    float v;
    pith__convert(&v, PITH_F32, 0, p, PITH_F16, 0, 1, true);
    return v;
}

static void gather_packed_block_f32(float *y, const uint8_t *p) {
    pith__convert(y, PITH_F32, 0, p, PITH_F32, 0, 1, true);
}
static void gather_packed_block_f16(float *y, const uint8_t *p) {
    *y = gather_packed_block_half(p);
}
static void gather_packed_block_bf16(float *y, const uint8_t *p) {
    pith__convert(y, PITH_F32, 0, p, PITH_BF16, 0, 1, true);
}

static void gather_packed_block_q4_0(float *y, const uint8_t *p) {
    float d = gather_packed_block_half(p);
    for (int i = 0; i < 32; i++) y[i] = d * (float)((p[2 + i % 16] >> (i < 16 ? 0 : 4) & 15) - 8);
}

static void gather_packed_block_q5_0(float *y, const uint8_t *p) {
    float d = gather_packed_block_half(p);
    for (int i = 0; i < 32; i++) {
        int high = p[2 + i / 8] >> i % 8 & 1;
        y[i] = d * (float)(((p[6 + i % 16] >> (i < 16 ? 0 : 4) & 15) | high << 4) - 16);
    }
}

static void gather_packed_block_q8_0(float *y, const uint8_t *p) {
    float d = gather_packed_block_half(p);
    for (int i = 0; i < 32; i++) y[i] = d * (float)(int8_t)p[2 + i];
}

static void gather_packed_block_iq4_nl(float *y, const uint8_t *p) {
    static const int8_t levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113 };
    float d = gather_packed_block_half(p);
    for (int i = 0; i < 32; i++) y[i] = d * (float)levels[p[2 + i % 16] >> (i < 16 ? 0 : 4) & 15];
}

/* Eight scales and eight minima of 6 bits in 12 bytes. */
static void gather_packed_block_scales(const uint8_t *q, int i, int *scale, int *least) {
    *scale = i < 4 ? q[i] & 63 : (q[i + 4] & 15) | q[i - 4] >> 6 << 4;
    *least = i < 4 ? q[i + 4] & 63 : q[i + 4] >> 4 | q[i] >> 6 << 4;
}

/* 256 numbers: two f16 factors, 12 bytes of scales and minima of 6 bits, the fifth bits, the low
 * four bits. */
static void gather_packed_block_q5_k(float *y, const uint8_t *p) {
    float d = gather_packed_block_half(p), least = gather_packed_block_half(p + 2);
    const uint8_t *high = p + 16, *low = p + 48;
    for (int part = 0; part < 8; part++) {
        int scale, minimum;
        gather_packed_block_scales(p + 4, part, &scale, &minimum);
        for (int i = 0; i < 32; i++) {
            int q = (low[part / 2 * 32 + i] >> part % 2 * 4 & 15) + (high[i] >> part & 1) * 16;
            y[part * 32 + i] = d * (float)scale * (float)q - least * (float)minimum;
        }
    }
}

static void gather_packed_block_q6_k(float *y, const uint8_t *p) {
    const uint8_t *low = p, *high = p + 128;
    float d = gather_packed_block_half(p + 208);
    for (int i = 0; i < 256; i++) {
        int half = i / 128, part = i % 128 / 32, at = i % 32;
        int bits = low[half * 64 + part % 2 * 32 + at] >> part / 2 * 4 & 15;
        int q = (bits | (high[half * 32 + at] >> part * 2 & 3) << 4) - 32;
        y[i] = d * (float)(int8_t)p[192 + i / 16] * (float)q;
    }
}

typedef struct block_format {
    int64_t id, numbers, bytes;
    void (*read)(float *y, const uint8_t *p);
} block_format;

static const block_format block_formats[] = {
    { 0, 1, 4, gather_packed_block_f32 },       { 1, 1, 2, gather_packed_block_f16 },
    { 2, 32, 18, gather_packed_block_q4_0 },    { 6, 32, 22, gather_packed_block_q5_0 },
    { 8, 32, 34, gather_packed_block_q8_0 },    { 13, 256, 176, gather_packed_block_q5_k },
    { 14, 256, 210, gather_packed_block_q6_k }, { 20, 32, 18, gather_packed_block_iq4_nl },
    { 30, 1, 2, gather_packed_block_bf16 },
};

static const block_format *gather_packed_block_find(const pith__node *node) {
    for (size_t i = 0; i < sizeof block_formats / sizeof block_formats[0]; i++)
        if (block_formats[i].id == pith__node_int(node, "packed_type", -1))
            return &block_formats[i];
    return &block_formats[0];
}

/* K is the number of columns after unpacking. Rows are whole blocks. */
static pith_status gather_packed_infer(pith__infer *c) {
    const pith__type *data = c->in[0], *indices = c->in[1];
    const block_format *f = gather_packed_block_find(c->node);
    int64_t columns = pith__node_int(c->node, "K", 0);
    pith__dim dims[PITH_MAX_RANK];
    if (columns % f->numbers)
        return pith__op_fail(c, "K is %lld, not a multiple of %lld", (long long)columns,
                             (long long)f->numbers);
    if (data->rank >= 0 && data->rank != 2)
        return pith__op_fail(c, "data has %d dimensions, not 2", data->rank);
    if (data->rank == 2 && pith__dim_known(data->dims[1]) &&
        data->dims[1] != columns / f->numbers * f->bytes)
        return pith__op_fail(c, "rows of data have %lld bytes, not %lld", (long long)data->dims[1],
                             (long long)(columns / f->numbers * f->bytes));
    if (indices->rank >= PITH_MAX_RANK)
        return pith__op_fail(c, "rank %d is too large", indices->rank);
    for (int i = 0; i < indices->rank; i++) dims[i] = indices->dims[i];
    if (indices->rank >= 0) dims[indices->rank] = columns;
    pith__infer_set(c, 0, (int)pith__node_int(c->node, "output_dtype", PITH_BF16),
                    indices->rank < 0 ? -1 : indices->rank + 1, dims);
    return PITH_OK;
}

/* Block by block through f32, of which any type of output is made. */
static pith_status gather_packed_run(pith__run *r) {
    const pith_tensor *data = r->in[0], *indices = r->in[1];
    const block_format *f = gather_packed_block_find(r->node);
    int64_t rows = data->dims[0], columns = pith__node_int(r->node, "K", 0),
            blocks = columns / f->numbers;
    float numbers[256];
    int64_t spent = 0;
    for (int64_t i = 0; i < pith__tensor_count(indices); i++) {
        int64_t row = indices->dtype == PITH_I32 ? ((const int32_t *)indices->data)[i]
                                                 : ((const int64_t *)indices->data)[i];
        PITH_TRY(pith__run_spend(r, &spent, 32 + columns));
        if (row < 0 || row >= rows) row = 0;
        if (rows < 1) return pith__op_fail(r, "the table is empty");
        for (int64_t b = 0; b < blocks; b++) {
            f->read(numbers, (const uint8_t *)data->data + (row * blocks + b) * f->bytes);
            pith__convert(r->out[0]->data, r->out[0]->dtype, i * columns + b * f->numbers, numbers,
                          PITH_F32, 0, f->numbers, true);
        }
    }
    return PITH_OK;
}

const pith__op pith__op_GatherPacked_ms = {
    .domain = "com.microsoft",
    .name = "GatherPacked",
    .since = 1,
    .newest = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "Bi",
    .attrs = "K int! 1..; output_dtype int 1|10|16 = 16; "
             "packed_type int! 0|1|2|6|8|13|14|20|30",
    .infer = gather_packed_infer,
    .run = gather_packed_run,
    .note = "formats f32, f16, bf16, q4_0, q5_0, q8_0, q5_k, q6_k, iq4_nl"
};
