/* fuzz_isa.c - the promise that every instruction set level gives the same bits.
 *
 * The input picks a row of the kernel table and fills its operands; every level of this machine
 * runs it and must agree with scalar, NaN payloads excepted. GEMM and attention get their shapes
 * from the input too. */
#include <stdlib.h>

#include "../unit/support/kernel_families.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/binary.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/reduce.h"
#include "engine/kernels/unary.h"

enum { MOST = 512, LEVELS = PITH_ISA_COUNT };

typedef struct input {
    const uint8_t *data;
    size_t size, at;
} input;

/* Beyond its end the input goes on with zeros. */
static uint8_t byte(input *in) { return in->at < in->size ? in->data[in->at++] : 0; }

static void floats(input *in, float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        uint8_t bytes[4] = { byte(in), byte(in), byte(in), byte(in) };
        memcpy(&x[i], bytes, sizeof bytes);
    }
}

static void same(const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (isnan(a[i]) && isnan(b[i])) continue;
        if (memcmp(&a[i], &b[i], sizeof a[i]) != 0) abort();
    }
}

static void run_gemm(input *in, pith__kernel_fn *fn, float *out) {
    static float a[MOST], b[MOST], packed[MOST * 32], bias[64];
    int64_t m = 1 + byte(in) % 16, n = 1 + byte(in) % 24, k = byte(in) % 20;
    pith__gemm_activation activation = (pith__gemm_activation)(byte(in) % (PITH_ACT_SILU + 1));
    floats(in, a, m * k);
    floats(in, b, k * n);
    floats(in, bias, n);
    pith__gemm_pack_f32_fn *pack =
        PITH_KERNEL_FIND(pith__gemm_pack_f32_fn, "gemm_pack", PITH_F32, PITH_ISA_scalar);
    pack(packed, b, n, 1, k, n, 0, n);
    pith__gemm g = { .a = a,
                     .b = packed,
                     .c = out,
                     .bias = bias,
                     .m = m,
                     .n = n,
                     .k = k,
                     .lda = k,
                     .ldc = n,
                     .activation = activation };
    ((pith__gemm_f32_fn *)fn)(&g, 0, m, 0, n);
}

static void run_attention(input *in, pith__kernel_fn *fn, float *out) {
    static float q[MOST], k[MOST], v[MOST], scratch[1 << 16];
    static uint8_t mask[32];
    int64_t queries = 1 + byte(in) % 8, keys = 1 + byte(in) % 24, d = 1 + byte(in) % 20;
    floats(in, q, queries * d);
    floats(in, k, keys * d);
    floats(in, v, keys * d);
    for (int64_t j = 0; j < keys; j++) mask[j] = byte(in) & 1;
    pith__attention a = { .q = q,
                          .k = k,
                          .v = v,
                          .o = out,
                          .q_stride = d,
                          .k_stride = d,
                          .v_stride = d,
                          .o_stride = d,
                          .queries = queries,
                          .keys = keys,
                          .d = d,
                          .dv = d,
                          .scale = 0.25f,
                          .key_mask = mask,
                          .causal_offset = INT64_MAX,
                          .window_left = -1,
                          .window_right = -1,
                          .none_left = (pith__none_left)(byte(in) % 3) };
    if (pith__attention_f32_scratch(keys, d, d) > (int64_t)(sizeof scratch / sizeof *scratch))
        return;
    ((pith__attention_f32_fn *)fn)(&a, scratch);
}

/* One kernel on operands taken from the input, which is read from the same place for every level.
 */
static void run_row(const pith__kernel_row *row, pith__kernel_fn *fn, input in, float *out) {
    static float x[MOST], y[MOST];
    if (strcmp(row->family, "gemm") == 0) {
        run_gemm(&in, fn, out);
        return;
    }
    if (strcmp(row->family, "attention") == 0) {
        run_attention(&in, fn, out);
        return;
    }
    int64_t n = byte(&in) % 80, rows = 1 + byte(&in) % 4;
    if (LISTED(unary_families, row->family)) {
        floats(&in, x, n);
        ((pith__unary_f32_fn *)fn)(x, out, (size_t)n);
    } else if (LISTED(binary_families, row->family)) {
        int steps = byte(&in) % 3; /* both arrays, or one of them a scalar */
        floats(&in, x, n + 1);
        floats(&in, y, n + 1);
        ((pith__binary_fn *)fn)(out, x, y, n, steps != 1, steps != 2);
    } else if (LISTED(row_to_row_families, row->family)) {
        floats(&in, x, n * rows);
        ((pith__row_f32_fn *)fn)(x, out, rows, n);
    } else if (LISTED(norms_families, row->family)) {
        floats(&in, x, n * rows);
        floats(&in, y, n);
        pith__layer_norm a = {
            .x = x, .gamma = y, .beta = y, .y = out, .rows = rows, .n = n, .epsilon = 1e-5f
        };
        ((pith__layer_norm_f32_fn *)fn)(&a);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static float out[LEVELS][MOST];
    if (size < 2) return 0;
    const pith__kernel_row *row =
        &pith__kernel_table[(data[0] | data[1] << 8) % (int)pith__kernel_table_count];
    if (row->dtype != PITH_F32) return 0;
    for (int level = 0; level < LEVELS; level++) {
        if (!(pith__cpu_get()->supported >> level & 1) || !row->fn[level]) continue;
        memset(out[level], 0, sizeof out[level]);
        run_row(row, row->fn[level], (input){ data, size, 2 }, out[level]);
        same(out[0], out[level], MOST);
    }
    return 0;
}
