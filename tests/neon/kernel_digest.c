/* kernel_digest.c - a line per kernel and level with a digest of its output on fixed input, for
 * comparing machines that one program cannot run on both of (neon.sh). Levels must agree within a
 * run too: exit status 1 if they do not, or if a kernel that has levels belongs to a family that is
 * not called here. Each such kernel is named. */
#include "kernel_digest.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "engine/kernels/affine.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/binary.h"
#include "engine/kernels/cast.h"
#include "engine/kernels/cells.h"
#include "engine/kernels/gemm_blocks.h"
#include "engine/kernels/gemm_half.h"
#include "engine/kernels/gemm_int8.h"
#include "engine/kernels/int_sums.h"
#include "engine/kernels/interpolate.h"
#include "engine/kernels/lrn.h"
#include "engine/kernels/maps.h"
#include "engine/kernels/matmul.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/quantize.h"
#include "engine/kernels/reduce.h"
#include "engine/kernels/rotary.h"
#include "engine/kernels/scores.h"
#include "engine/kernels/sliding_windows.h"
#include "engine/kernels/small_floats.h"
#include "engine/kernels/unary.h"

float x[DIGEST_ROOM], y[DIGEST_ROOM], z[DIGEST_ROOM], out[DIGEST_ROOM];
static float packed[N * 4];

static uint64_t digest(uint64_t h, const float *v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = 0x7FC00000;
        if (v[i] == v[i]) memcpy(&bits, &v[i], sizeof bits);
        h = (h ^ bits) * 0x100000001B3u;
    }
    return h;
}

void need_room(int64_t n) {
    if (n >= 0 && n <= DIGEST_ROOM) return;
    fprintf(stderr, "a digest of %lld numbers has room for %d\n", (long long)n, DIGEST_ROOM);
    exit(1);
}

size_t put_bytes(size_t at, const void *bytes, size_t n) {
    need_room((int64_t)(at + n));
    for (size_t i = 0; i < n; i++) out[at++] = (float)((const uint8_t *)bytes)[i];
    return at;
}

/* infinity: its bits; beyond them are NaN, which count as one. */
static void put_halves(const uint16_t *halves, size_t n, uint16_t infinity) {
    for (size_t i = 0; i < n; i++)
        out[i] = (halves[i] & 0x7FFF) > infinity ? -1.0f : (float)halves[i];
}

/* Columns [j, j + 16) of from[k][M], packed. */
static const float *panel_of(const call *c, const float *from, int64_t j, int64_t k) {
    static float panel[D * 16];
    const int64_t width = M - j < 16 ? M - j : 16;
    PITH_KERNEL_FIND(pith__gemm_pack_f32_fn, "gemm_pack", PITH_F32, c->isa)
    (panel, from + j, M, 1, k, width, 0, width);
    return panel;
}

/* 8-bit products of rows of y by z: wide, signed and narrow, sums and what is made of them. */
static void run_int8_product(const call *c) {
    static uint8_t q[M * K];
    static int8_t b[K * M];
    static float scale[M], b_scale[2 * 16];
    static int32_t zero[M], sums[M * M];
    static pith__i8_extra extra[M * PITH_I8_EXTRAS];
    _Alignas(64) static int8_t b_packed[2 * 16 * (K + 7)];
    const int narrow = c->round % 3 == 2;
    const int64_t panel_bytes = pith__gemm_int8_packed_size(K, 16);
    pith__quantize_rows rows = { .x = y,
                                 .q = q,
                                 .scale = scale,
                                 .zero = zero,
                                 .extra = extra,
                                 .rows = M,
                                 .n = K,
                                 .ldx = K,
                                 .ldq = K };
    PITH_KERNEL_FIND(pith__quantize_rows_fn, "quantize_rows", PITH_U8, c->isa)(&rows);
    for (int i = 0; i < K * M; i++) b[i] = (int8_t)(z[i] * 127.0f);
    memcpy(b_scale, y, sizeof b_scale);
    if (narrow) {
        for (int64_t j = 0; j < M; j += 16) {
            PITH_KERNEL_FIND(pith__quantize_panel_fn, "quantize_panel", PITH_I8, c->isa)
            (b_packed + j / 16 * panel_bytes, b_scale + j, panel_of(c, z, j, K), K, NULL, NULL);
        }
    } else {
        PITH_KERNEL_FIND(pith__gemm_pack_i8_fn, "gemm_pack", PITH_I8, c->isa)
        (b_packed, b, M, 1, K, M, 0, M);
    }
    pith__gemm_int8 g = { .a = q,
                          .b = b_packed,
                          .c = c->round % 4 == 3 ? sums : NULL,
                          .out = out,
                          .a_scale = scale,
                          .a_zero = zero,
                          .a_extra = extra,
                          .b_scale = b_scale,
                          .bias = c->round % 5 ? z : NULL,
                          .m = 1 + c->round % M,
                          .n = M,
                          .k = K,
                          .lda = K,
                          .ldc = M,
                          .a_signed = c->round % 3 == 1,
                          .narrow = narrow,
                          .activation = (pith__gemm_activation)(c->round % 8) };
    ((pith__gemm_i8_fn *)c->fn)(&g, 0, g.m, 0, M);
    if (g.c) put_bytes(0, sums, (size_t)g.m * M * sizeof *sums);
}

/* Numbers of 8 bits with scales, and their products; 0 if it is none of them. */
static int run_int8(const call *c) {
    if (is(c, "quantize_rows")) {
        static uint8_t q[M * K];
        static struct {
            float scale[M];
            int32_t zero[M];
            pith__i8_extra extra[M * PITH_I8_EXTRAS];
        } made;
        pith__quantize_rows a = { y, q, made.scale, made.zero, made.extra, M, K, K, K };
        ((pith__quantize_rows_fn *)c->fn)(&a);
        put_bytes(put_bytes(0, q, sizeof q), &made, sizeof made);
    } else if (is(c, "quantize_panel")) {
        static int32_t panel[16 * (K + 7) / 4];
        static float u[K * (K + 15)], work[16 * K], column[K];
        int32_t order[K];
        for (int64_t i = 0; i < K; i++) {
            order[i] = (int32_t)(i * 7 % K); /* K is a prime */
            for (int64_t j = i; j < K; j++)
                u[i * pith__factor_stride(K) + j] = (i == j ? 9.0f : 0.0f) + z[i] * z[j];
        }
        const bool fit = c->round % 2 && PITH_KERNEL_FIND(pith__unit_factor_fn, "unit_factor",
                                                          PITH_F32, c->isa)(u, K, column, NULL);
        ((pith__quantize_panel_fn *)c->fn)(panel, out, panel_of(c, y, c->round % M / 16 * 16, K), K,
                                           fit ? &(pith__factor){ u, order } : NULL, work);
        put_bytes(16, panel, sizeof panel);
    } else if (is(c, "unit_factor")) {
        static float column[K];
        for (int64_t i = 0; i < K; i++) {
            for (int64_t j = i; j < K; j++)
                out[i * pith__factor_stride(K) + j] =
                    (i == j ? 9.0f : 0.0f) + y[i] * y[j] + z[i] * z[j];
        }
        const bool done = ((pith__unit_factor_fn *)c->fn)(out, K, column, NULL);
        for (int64_t i = 0; i < K; i++)
            memset(out + i * pith__factor_stride(K), 0, (size_t)i * sizeof *out);
        put_bytes(N, &done, sizeof done);
    } else if (is(c, "quantize_table")) {
        enum { ROWS = 3, LONGEST = 10 * ROUNDS };
        static int8_t q[ROWS * LONGEST];
        memset(q, 0, sizeof q);
        ((pith__quantize_table_fn *)c->fn)(y, q, out, ROWS, 1 + c->round * 7);
        put_bytes(N, q, sizeof q);
    } else if (is(c, "dequantize_row")) {
        ((pith__dequantize_row_fn *)c->fn)((const int8_t *)(const void *)x, y, out, c->n);
    } else if (c->row->dtype != PITH_I8) {
        return 0;
    } else if (is(c, "gemm_pack")) {
        static int8_t panels[2 * 16 * (K + 7)];
        const int by_row = c->round % 2;
        ((pith__gemm_pack_i8_fn *)c->fn)(panels, (const int8_t *)(const void *)x, by_row ? M : 1,
                                         by_row ? 1 : K, K, M, 0, M);
        put_bytes(0, panels, sizeof panels);
    } else if (is(c, "gemm") || is(c, "gemm_amx") || is(c, "gemm_vnni")) {
        run_int8_product(c);
    } else {
        return 0;
    }
    return 1;
}

/* Rows with a scale for every block, and their products; 0 if it is none of them. */
static int run_blocks(const call *c) {
    enum { DEPTH = 100, COLUMNS = 23, BLOCK = 32 }; /* the last block is not full */
    const pith__blocks_form f = { .k = DEPTH,
                                  .blocks = 4,
                                  .block = BLOCK,
                                  .bits = c->round % 2 ? 4 : 8,
                                  .zeros = c->round % 3 == 0 };
    static _Alignas(64) uint8_t rows[M * 4 * (BLOCK + 8)],
        panels[2 * 4 * (2 * BLOCK * 8 + 64 + 16)];
    const int64_t row = f.blocks * BLOCK * f.bits / 8, zero_row = (f.blocks * f.bits + 7) / 8;
    const uint8_t *bytes = (const uint8_t *)(const void *)x;
    pith__quantize_blocks a = { .x = y, .q = rows, .form = &f, .rows = M, .ldx = DEPTH };
    if (is(c, "quantize_blocks")) {
        ((pith__quantize_blocks_fn *)c->fn)(&a);
        put_bytes(0, rows, (size_t)(M * pith__blocks_row_bytes(&f)));
        return 1;
    }
    if (!is(c, "gemm_blocks") && !is(c, "gemm_blocks_vnni")) return 0;
    PITH_KERNEL_FIND(pith__quantize_blocks_fn, "quantize_blocks", PITH_I8, c->isa)(&a);
    for (int64_t j = 0; j < COLUMNS; j += 16) {
        const pith__blocks_columns from = { bytes + j * row, z + j * f.blocks,
                                            bytes + N + j * zero_row,
                                            COLUMNS - j < 16 ? COLUMNS - j : 16 };
        pith__blocks_pack_panel(panels + j / 16 * pith__blocks_panel_bytes(&f), &f, &from);
    }
    const pith__gemm_blocks g = { .a = rows,
                                  .b = panels,
                                  .c = out,
                                  .bias = c->round % 5 ? z : NULL,
                                  .form = &f,
                                  .n = COLUMNS,
                                  .ldc = COLUMNS };
    ((pith__gemm_blocks_fn *)c->fn)(&g, 0, 1 + c->round % M, 0, COLUMNS);
    return 1;
}

/* Numbers of 16 bits and products with them; 0 if it is none of them. */
static int run_half(const call *c) {
    _Alignas(64) static uint16_t halves[2 * 16 * D];
    const int dtype = c->row->dtype;
    const uint16_t infinity = dtype == PITH_F16 ? 0x7C00 : 0x7F80;
    const int64_t k = D - c->round % 2, panel_size = pith__gemm_half_packed_size(k, 16) / 2;
    if (is(c, "to_bf16")) {
        static uint16_t rounded[N];
        ((pith__round_bf16_fn *)c->fn)(x, dtype == PITH_BF16 ? (void *)rounded : out, c->n);
        if (dtype == PITH_BF16) put_halves(rounded, (size_t)c->n, infinity);
    } else if (dtype != PITH_F16 && dtype != PITH_BF16) {
        return 0;
    } else if (is(c, "gemm_pack")) {
        ((pith__gemm_pack_half_fn *)c->fn)(halves, x + c->round, k);
        put_halves(halves, (size_t)panel_size, infinity);
    } else if (is(c, "gemm") || is(c, "gemm_amx") || is(c, "gemm_dp")) {
        for (int64_t j = 0; j < M; j += 16) {
            PITH_KERNEL_FIND(pith__gemm_pack_half_fn, "gemm_pack", dtype, c->isa)
            (halves + j / 16 * panel_size, panel_of(c, z, j, k), k);
        }
        pith__gemm_half g = { .a = y,
                              .b = halves,
                              .c = out,
                              .bias = c->round % 3 ? z : NULL,
                              .m = 1 + c->round,
                              .n = M,
                              .k = k,
                              .lda = D,
                              .ldc = M,
                              .activation = (pith__gemm_activation)(c->round % 8) };
        ((pith__gemm_half_fn *)c->fn)(&g, 0, g.m, 0, g.n);
    } else {
        return 0;
    }
    return 1;
}

/* Conversions to and from 8 and 16 bits, and taps; 0 if it is none of them. */
static int run_small(const call *c) {
    const size_t n = (size_t)c->n;
    if (is(c, "widen")) {
        ((pith__widen_f16_fn *)c->fn)((const uint16_t *)(const void *)x, out, n);
    } else if (is(c, "narrow")) {
        static uint16_t halves[N];
        ((pith__narrow_f16_fn *)c->fn)(y, halves, n);
        put_halves(halves, n, 0x7C00);
    } else if (is(c, "cast")) {
        /* Of floats there is none: NaN may have any payload. */
        static const int to[] = { PITH_I64, PITH_I32, PITH_BOOL, PITH_U8, PITH_F32 };
        static uint8_t bytes[N];
        const bool floats = c->row->dtype == PITH_F32 || c->row->dtype == PITH_F64;
        for (size_t i = 0, at = 0; i < COUNT(to) - (floats ? 1 : 0); i++) {
            memset(bytes, 0, sizeof bytes);
            ((pith__cast_fn *)c->fn)(bytes, to[i], x, n / 8);
            at = put_bytes(at, bytes, n / 3);
        }
    } else if (is(c, "quantize")) {
        static uint8_t bytes[N];
        ((pith__quantize_fn *)c->fn)(y, bytes, n, 0.03f, -100, 155, 100);
        put_bytes(0, bytes, n);
    } else if (is(c, "quantized_add")) {
        static uint8_t bytes[N];
        pith__quantized_sum sum = { .a = { (const uint8_t *)x, 0.03f, 100, 0 },
                                    .b = { (const uint8_t *)y, 0.02f, 120,
                                           c->round % 2 ? 0x80 : 0 },
                                    .y = bytes,
                                    .scale = 0.04f,
                                    .low = -100,
                                    .high = 155,
                                    .zero = 100 };
        ((pith__quantized_add_fn *)c->fn)(&sum, 0, n);
        put_bytes(0, bytes, n);
    } else if (is(c, "dequantize")) {
        ((pith__dequantize_fn *)c->fn)((const uint8_t *)x, out, n, 0.03f, 100);
    } else if (is(c, "sums_scale")) {
        const int32_t *sums = (const int32_t *)(const void *)x;
        ((pith__sums_scale_fn *)c->fn)(out, sums, c->n, 0.03f, y, c->round % 2 ? z : NULL);
    } else if (is(c, "sums_shift")) {
        static int32_t sums[N];
        const int32_t *numbers = (const int32_t *)(const void *)x;
        const int64_t columns = 1 + c->round * 5 % 90;
        memcpy(sums, y, sizeof sums);
        ((pith__sums_shift_fn *)c->fn)(
            &(pith__sums_shift){ .c = sums,
                                 .a = (const uint8_t *)x,
                                 .row_zeros = numbers,
                                 .column_sums = numbers + 90,
                                 .column_zeros = c->round % 3 ? numbers + 180 : NULL,
                                 .rows = 9,
                                 .n = columns,
                                 .row = columns,
                                 .k = c->round * 3,
                                 .a_signed = c->round % 2 });
        put_bytes(0, sums, (size_t)columns * 9 * sizeof *sums);
    } else if (is(c, "lrn")) {
        const pith__lrn lrn = { .x = y,
                                .y = out,
                                .channels = 9,
                                .inner = 1 + c->round * 11 % 300,
                                .before = c->round % 3,
                                .behind = c->round % 4,
                                .alpha = 0.1f,
                                .bias = 1,
                                .quarters = 1 + c->round % PITH_LRN_QUARTERS };
        ((pith__lrn_fn *)c->fn)(&lrn, 0, 9);
    } else if (is(c, "lp_normalize")) {
        const int64_t inner = c->round % 5 ? 1 : 23;
        ((pith__lp_normalize_fn *)c->fn)(x, out, c->n / inner, inner, inner, c->round % 2);
    } else if (is(c, "range")) {
        ((pith__range_fn *)c->fn)(x, n, &out[0], &out[1]);
    } else if (is(c, "taps_max") || is(c, "taps_sum")) {
        static const int64_t offsets[] = { 0, 1, 2, 100, 101, 102 };
        pith__taps a = { .x = x,
                         .y = out,
                         .offsets = offsets,
                         .weights = y,
                         .taps = 6,
                         .rows = 3,
                         .columns = c->n / 4,
                         .step = 50 };
        ((pith__taps_fn *)c->fn)(&a);
    } else {
        return 0;
    }
    return 1;
}

/* Scores of rows for queries; 0 if it is none of them. The bytes of x are rows of any type. */
static int run_scores(const call *c) {
    enum { ROWS = 9, QUERIES = 6 };
    static int32_t sums[ROWS * QUERIES];
    static int16_t queries[QUERIES * 32 * 8];
    const size_t dim = (size_t)(c->round + 1), wide = dim % 8 * 32;
    if (strncmp(c->row->family, "scores_", 7) != 0) return 0;
    if (is(c, "scores_int8") || is(c, "scores_int8_vnni") || is(c, "scores_hamming")) {
        const int bits = is(c, "scores_hamming");
        for (size_t i = 0; i < COUNT(queries); i++) queries[i] = (int16_t)(z[i] * 127.0f);
        pith__int_scores a = { .rows = x,
                               .queries = queries,
                               .row_bytes = 264,
                               .row_count = ROWS,
                               .width = bits ? dim * 7 : wide,
                               .query_count = QUERIES,
                               .scores = sums,
                               .stride = ROWS };
        ((pith__int_scores_fn *)c->fn)(&a);
        put_bytes(0, sums, sizeof sums);
        return 1;
    }
    pith__scores a = { .rows = x,
                       .row_bytes = 4 * dim,
                       .row_count = ROWS,
                       .dim = dim,
                       .queries = y,
                       .query_count = QUERIES,
                       .scores = out,
                       .stride = ROWS };
    ((pith__scores_fn *)c->fn)(&a);
    return 1;
}

/* Every fourth round has wide rows, one by one. */
static void run_gemm(const call *c) {
    enum { WIDE = 150 };
    const int by_row = c->round % 4 == 1;
    const int64_t n = by_row ? WIDE : M;
    pith__gemm g = { .a = y,
                     .b = packed,
                     .c = out,
                     .bias = z,
                     .m = 1 + c->round,
                     .n = n,
                     .k = D - c->round % 4,
                     .lda = D,
                     .ldc = n,
                     .activation = (pith__gemm_activation)(c->round % 8) };
    need_room(g.m * n);
    PITH_KERNEL_FIND(pith__gemm_pack_f32_fn, "gemm_pack", PITH_F32, c->isa)
    (packed, z, n, 1, g.k, n, 0, n);
    if (!by_row) ((pith__gemm_f32_fn *)c->fn)(&g, 0, g.m, 0, n);
    for (int64_t i = 0; by_row && i < g.m; i++) ((pith__gemm_f32_fn *)c->fn)(&g, i, i + 1, 0, n);
}

/* Products of f64, whose second factor's rows are contiguous or lie in columns. */
static void run_matmul(const call *c) {
    enum { ROWS = 7, DEPTH = 13, COLUMNS = 70 };
    static double a[ROWS * DEPTH], b[DEPTH * COLUMNS], sums[ROWS * COLUMNS];
    const int64_t m = 1 + c->round % ROWS, n = 1 + c->round * 11 % COLUMNS,
                  turned = c->round % 4 == 3;
    for (size_t i = 0; i < COUNT(a); i++) a[i] = (double)y[i] * (double)z[i];
    for (size_t i = 0; i < COUNT(b); i++) b[i] = (double)y[N + i] * (double)z[N + i];
    memset(sums, 0, sizeof sums);
    pith__matmul p = { .a = a, .b = b, .c = sums, .n = n, .k = 1 + c->round * 5 % DEPTH };
    p.a_row = c->round % 3 ? p.k : 1, p.a_column = c->round % 3 ? 1 : m;
    p.b_row = turned ? 1 : n, p.b_column = turned ? p.k : 1;
    ((pith__matmul_fn *)c->fn)(&p, 0, m / 2);
    ((pith__matmul_fn *)c->fn)(&p, m / 2, m);
    put_bytes(0, sums, sizeof sums);
}

/* Every fourth round has nothing that hides a key, which is computed in a way of its own, and in
 * every eighth sizes that fixed point takes. */
static void run_attention(const call *c) {
    static uint8_t mask[M + ROUNDS];
    const int64_t keys = M + c->round;
    const int open = c->round % 4 == 0;
    float *scratch = malloc((size_t)pith__attention_f32_scratch(keys, D, D) * sizeof *scratch);
    for (int64_t j = 0; j < keys; j++) mask[j] = (uint8_t)(y[j] > -4.0f);
    pith__attention a = { .q = y,
                          .k = y + 7,
                          .v = z,
                          .o = out,
                          .q_stride = D,
                          .k_stride = D,
                          .v_stride = D,
                          .o_stride = D,
                          .queries = 17,
                          .keys = keys,
                          .d = c->round % 8 ? D : 32,
                          .dv = c->round % 8 ? D - c->round % 20 : 16,
                          .scale = 0.1f,
                          .bias = c->round % 3 == 1 && !open ? z : NULL,
                          .bias_stride = keys,
                          .key_mask = open ? NULL : mask,
                          .causal_offset = c->round % 2 ? 6 : INT64_MAX,
                          .window_left = c->round % 5 == 3 && !open ? 4 : -1,
                          .window_right = c->round % 7 == 6 && !open ? 2 : -1,
                          .none_left = (pith__none_left)(c->round % 3) };
    if (!scratch) exit(1);
    ((pith__attention_f32_fn *)c->fn)(&a, scratch);
    free(scratch);
}

/* 0 for a family whose signature is not known here. */
static int run(const call *c) {
    const char *family = c->row->family;
    const int round = c->round;
    const int64_t n = c->n;
    if (run_scores(c) || run_small(c) || run_int8(c) || run_blocks(c) || run_half(c) ||
        run_windows(c) || run_train(c))
        return 1;
    if (is(c, "attention") || is(c, "attention_vnni")) {
        run_attention(c);
        return 1;
    }
    if (is(c, "matmul")) {
        run_matmul(c);
        return 1;
    }
    if (c->row->dtype != PITH_F32) return 0;
    if (LISTED(unary_families, family)) {
        ((pith__unary_f32_fn *)c->fn)(x, out, (size_t)n);
    } else if (LISTED(binary_families, family)) {
        ((pith__binary_fn *)c->fn)(out, x, y, n, round % 2, round / 2 % 2);
    } else if (LISTED(rows_families, family)) {
        ((pith__reduce_rows_fn *)c->fn)(x, out, 2, n);
    } else if (LISTED(columns_families, family)) {
        ((pith__reduce_columns_fn *)c->fn)(x, out, 3, n / 3, n / 3);
    } else if (LISTED(row_to_row_families, family)) {
        ((pith__row_f32_fn *)c->fn)(x, out, 2, n);
    } else if (LISTED(norms_families, family)) {
        pith__layer_norm a = { .x = x,
                               .residual = round % 2 ? y : NULL,
                               .bias = round / 2 % 2 ? z : NULL,
                               .gamma = round % 3 ? z : NULL,
                               .beta = round % 5 ? y : NULL,
                               .y = out,
                               .rows = 1 + round % 6,
                               .n = n / 3,
                               .epsilon = 1e-5f };
        ((pith__layer_norm_f32_fn *)c->fn)(&a);
    } else if (LISTED(rotary_families, family)) {
        pith__rotary a = {
            .x = x, .cosine = y, .sine = z, .y = out, .heads = 3, .size = n / 6 * 2
        };
        a.x_pitch = a.y_pitch = a.size;
        a.interleaved = round & 1, a.per_pair = round >> 1 & 1;
        ((pith__rotary_f32_fn *)c->fn)(&a);
    } else if (LISTED(maps_families, family)) {
        ((pith__map_fn *)c->fn)(out, x, n, (const double[2]){ 0.7, 0.3 });
    } else if (LISTED(compare_families, family)) {
        static float near[DIGEST_ROOM]; /* some places have the same number in both */
        for (int64_t i = 0; i < n; i++) near[i] = i % 3 ? y[i] : x[i];
        ((pith__map2_fn *)c->fn)(out, x, near, n, round % 2, round / 2 % 2);
    } else if (LISTED(affine_families, family)) {
        ((pith__affine_fn *)c->fn)(out, x, y, z, n, round % 2);
    } else if (LISTED(moments_families, family)) {
        double moments[2];
        if (n > 0) ((pith__moments_fn *)c->fn)(y, n, moments, moments + 1);
        if (n > 0) put_bytes(0, moments, sizeof moments);
    } else if (is(c, "lstm_cell")) {
        ((pith__lstm_cell_fn *)c->fn)(out, out + n, x, z, n / 4);
    } else if (is(c, "gru_cell")) {
        ((pith__gru_cell_fn *)c->fn)(out, x, z, round % 2 ? y : NULL, n / 4);
    } else if (is(c, "gru_gates")) {
        ((pith__gru_gates_fn *)c->fn)(out, out + n, y, x, z, n / 4);
    } else if (is(c, "mix_rows")) {
        ((pith__mix_rows_fn *)c->fn)(out, y, (const int64_t[]){ 0, 5 }, z, 2, n);
    } else if (is(c, "mix_columns")) {
        enum { TAPS = 2, COLUMNS = 70 };
        int32_t index[TAPS * COLUMNS];
        for (int i = 0; i < TAPS * COLUMNS; i++) index[i] = i * 37 % 101;
        ((pith__mix_columns_fn *)c->fn)(out, y, index, z, TAPS, n < COLUMNS ? n : COLUMNS);
    } else if (is(c, "gru_finish")) {
        ((pith__gru_finish_fn *)c->fn)(out, y, x, z, n / 4);
    } else if (is(c, "gemm_pack")) {
        ((pith__gemm_pack_f32_fn *)c->fn)(out, x, round % 2 ? 1 : M, round % 2 ? D : 1, D, M, 0, M);
    } else if (is(c, "gemm")) {
        run_gemm(c);
    } else {
        return 0;
    }
    return 1;
}

/* Is the level's kernel for this processor, and has it the bits of scalar? AMX and AVX512_BF16 have
 * their own for bf16; below them these families are the f32 kernels. */
static int comparable(const pith__kernel_row *row, int level) {
    const pith__cpu *cpu = pith__cpu_get();
    const int avx512 = level == PITH_ISA_avx512, amx = strcmp(row->family, "gemm_amx") == 0;
    if (!(cpu->supported >> level & 1)) return 0;
    if (strstr(row->family, "_vnni") && (avx512 || level == PITH_ISA_avx2))
        return (cpu->features & (avx512 ? PITH_CPU_AVX512_VNNI : PITH_CPU_AVX_VNNI)) != 0;
    if (avx512 && amx && row->dtype == PITH_I8) return (cpu->features & PITH_CPU_AMX_INT8) != 0;
    const int pairs = row->dtype == PITH_BF16 && strcmp(row->family, "gemm_dp") == 0;
    return !(avx512 && (amx || pairs));
}

/* The digests of a kernel at each level that is comparable; *filled is set if any result was not
 * zero. 0: no function here runs its family. */
static int digest_levels(uint64_t *sums, int *filled, const pith__kernel_row *row) {
    static const float zeros[DIGEST_ROOM];
    for (int round = 0; round < ROUNDS; round++) {
        fill_floats(x, COUNT(x));
        for (size_t j = 0; j < COUNT(y); j++) y[j] = random_float() * 8.0f, z[j] = random_float();
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            call c = { row, row->fn[level], (pith__isa)level, round,
                       round < ROUNDS / 2 ? round : N - round };
            if (!comparable(row, level)) continue;
            memset(out, 0, sizeof out);
            if (!run(&c)) return 0;
            *filled |= memcmp(out, zeros, sizeof out) != 0;
            sums[level] = sums[level] * 31 + digest(0xCBF29CE484222325u, out, COUNT(out));
        }
    }
    return 1;
}

/* Plain C has no levels. */
static int has_levels(const pith__kernel_row *row) {
    for (int level = PITH_ISA_scalar + 1; level < PITH_ISA_COUNT; level++)
        if (row->fn[level]) return 1;
    return 0;
}

/* Prints a kernel's digests; returns its failures. */
static int check_kernel(const pith__kernel_row *row) {
    const char *family = row->family, *suffix = pith__dtype_short_name(row->dtype);
    uint64_t sums[PITH_ISA_COUNT] = { 0 };
    int filled = 0, failures = 0;
    if (!digest_levels(sums, &filled, row)) {
        fprintf(stderr,
                "%s %s: no digest is made of this kernel; call it in tests/neon/kernel_digest.c, "
                "run()\n",
                family, suffix);
        return 1;
    }
    if (!filled) {
        failures++;
        fprintf(stderr, "%s %s: all results are zero, so its digest tells nothing\n", family,
                suffix);
    }
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        const char *name = pith__isa_name((pith__isa)level);
        if (!comparable(row, level)) continue;
        printf("%s %s %s %016llx\n", family, suffix, name, (unsigned long long)sums[level]);
        if (sums[level] == sums[PITH_ISA_scalar]) continue;
        failures++;
        fprintf(stderr, "%s %s: %s has not the bits of scalar\n", family, suffix, name);
    }
    return failures;
}

int main(void) {
    int failures = 0;
    for (size_t i = 0; i < pith__kernel_table_count; i++)
        if (has_levels(&pith__kernel_table[i])) failures += check_kernel(&pith__kernel_table[i]);
    return failures != 0;
}
