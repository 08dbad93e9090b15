/* k_gemm_half.c - matmuls with weights of 16 bits: widened and multiplied in f32, or by the CPU's
 * own pairwise bf16 instructions (AVX512_BF16).
 *
 * With few rows of a, reading b takes longest, so their tiles widen b on its way from memory. With
 * many rows, a strip is widened once and used by all of them, which costs little more than the f32
 * matmul. */
#include "engine/kernels/gemm_half.h"

#include <stdbool.h>

#include "base/os/cpu.h"
#include "engine/kernels/gemm_tile.h"
#include "engine/kernels/vec.h"

/* The largest tile: its sums, a row of widened weights and a broadcast fill the registers. One more
 * row would spill. */
#if defined(PITH_LEVEL_avx512)
enum { ROWS = 12, PANELS = 2 };
#elif defined(PITH_LEVEL_avx2)
enum { ROWS = 5, PANELS = 1 };
#else
enum { ROWS = 4, PANELS = 1 };
#endif

enum { STRIP = 16 * PANELS };

typedef void tile_fn(const char *a, int64_t a_row, const char *b, int64_t b_panel, int64_t k,
                     float *t);

/* Row `odd` of two of a panel of b. */
PITH_INLINE vf gemm_half_row_of(const bool f16, const int odd, const char *b) {
    if (f16) return vf_load_f16((const uint16_t *)(const void *)b + 16 * odd);
    vi group = vi_load((const int32_t *)(const void *)b);
    return vf_bits(odd ? vi_and(group, vi_set1((int32_t)0xFFFF0000u)) : vi_shl(group, 16));
}

/* A tile that widens b in registers, for few rows: two steps of k at a time, as b is packed. It
 * prefetches 2 kB ahead in each panel, since each line of b is read once and waiting for it takes
 * longest. */
PITH_INLINE void wide_tile(const int rows, const bool f16, const char *a, int64_t a_row,
                           const char *b, int64_t b_panel, int64_t k, float *t) {
    vf s[ROWS][PANELS];
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        PITH_UNROLL
        for (int p = 0; p < PANELS; p++) s[r][p] = vf_zero();
    }
    for (; k > 0; k -= 2, a += 2 * sizeof(float), b += 64) {
        PITH_UNROLL
        for (int p = 0; p < PANELS; p++)
            __builtin_prefetch((const void *)((uintptr_t)(b + p * b_panel) + 2048));
        PITH_UNROLL
        for (int odd = 0; odd < 2; odd++) {
            vf column[PANELS];
            if (odd == k) break;
            PITH_UNROLL
            for (int p = 0; p < PANELS; p++)
                column[p] = gemm_half_row_of(f16, odd, b + p * b_panel);
            PITH_UNROLL
            for (int r = 0; r < rows; r++) {
                vf x = vf_set1(((const float *)(const void *)(a + r * a_row))[odd]);
                PITH_UNROLL
                for (int p = 0; p < PANELS; p++) s[r][p] = vf_fma(x, column[p], s[r][p]);
            }
        }
    }
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        PITH_UNROLL
        for (int p = 0; p < PANELS; p++) vf_store(t + 16 * (r * PANELS + p), s[r][p]);
    }
}

#define WIDE(rows)                                                                                 \
    static void f16_##rows(const char *a, int64_t a_row, const char *b, int64_t b_panel,           \
                           int64_t k, float *t) {                                                  \
        wide_tile(rows, true, a, a_row, b, b_panel, k, t);                                         \
    }                                                                                              \
    static void bf16_##rows(const char *a, int64_t a_row, const char *b, int64_t b_panel,          \
                            int64_t k, float *t) {                                                 \
        wide_tile(rows, false, a, a_row, b, b_panel, k, t);                                        \
    }
#define ENTRY_F16(rows) [rows - 1] = f16_##rows,
#define ENTRY_BF16(rows) [rows - 1] = bf16_##rows,
#define EACH_4(X) X(1) X(2) X(3) X(4)
#if defined(PITH_LEVEL_avx512)
#define EACH_ROWS(X) EACH_4(X) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#elif defined(PITH_LEVEL_avx2)
#define EACH_ROWS(X) EACH_4(X) X(5)
#else
#define EACH_ROWS(X) EACH_4(X)
#endif
EACH_ROWS(WIDE)
static tile_fn *const f16_tiles[ROWS] = { EACH_ROWS(ENTRY_F16) };
static tile_fn *const bf16_tiles[ROWS] = { EACH_ROWS(ENTRY_BF16) };

void PITH_K(gemm_half_finish)(const pith__gemm_half *g, const float *t, int64_t stride, int64_t i,
                              int64_t rows, int64_t j, int64_t width) {
    _Alignas(64) float f[PITH_HALF_SUMS];
    const bool direct = g->activation == PITH_ACT_NONE;
    float *c = g->c + i * g->ldc + j, *out = direct ? c : f;
    const int64_t row = direct ? g->ldc : stride;
    for (int64_t p = 0; p < width; p += 16) {
        const size_t n = width - p < 16 ? (size_t)(width - p) : 16;
        /* x + -0.0 is x */
        const vf bias = g->bias ? vf_load_n(g->bias + j + p, n) : vf_set1(-0.0f);
        for (int64_t r = 0; r < rows; r++) {
            vf v = vf_add(vf_load(t + r * stride + p), bias);
            if (n == 16)
                vf_store(out + r * row + p, v);
            else
                vf_store_n(out + r * row + p, v, n);
        }
    }
    if (direct) return;
    PITH_K(gemm_activate)(g->activation, c, g->ldc, f, stride, rows, width);
}

/* Every tile reads b as it is packed. */
static void gemm_half_run(const pith__gemm_half *g, tile_fn *const *tiles, int64_t m0, int64_t m1,
                          int64_t n0, int64_t n1) {
    _Alignas(64) float t[ROWS * STRIP];
    const int64_t b_panel = (g->k + 1) / 2 * 64, a_row = g->lda * (int64_t)sizeof(float),
                  count = (m1 - m0 + ROWS - 1) / ROWS;
    for (int64_t j = n0; j < n1; j += STRIP) {
        int64_t width = n1 - j < STRIP ? n1 - j : STRIP;
        for (int64_t i = m0, tile = 0, rows; tile < count; tile++, i += rows) {
            rows = (m1 - i + count - tile - 1) / (count - tile);
            pith__gemm_expect(g->c + i * g->ldc + j, g->ldc, rows, width);
            /* Where the second panel is missing, the first is taken twice. */
            tiles[rows - 1]((const char *)g->a + i * a_row, a_row,
                            (const char *)g->b + j / 16 * b_panel, width > 16 ? b_panel : 0, g->k,
                            t);
            PITH_K(gemm_half_finish)(g, t, STRIP, i, rows, j, width);
        }
    }
}

/* ---- wide ---- */

/* DEPTH: rows of b that are widened at a time; even. The widened strip must stay in the L1 cache; a
 * shorter one loads and stores the sums more often. */
enum { DEPTH = 192, COLUMNS = PITH_TILE_PANELS * PITH_GEMM_PANEL };

PITH_INLINE void gemm_half_widen(const bool f16, float *to, const char *b, int64_t b_panel,
                                 int64_t panels, int64_t depth) {
    for (int64_t p = 0; p < panels; p++) {
        for (int64_t i = 0; i < depth; i += 2) {
            vf_store(to + 16 * (p * DEPTH + i), gemm_half_row_of(f16, 0, b + p * b_panel + 32 * i));
            vf_store(to + 16 * (p * DEPTH + i + 1),
                     gemm_half_row_of(f16, 1, b + p * b_panel + 32 * i));
        }
    }
}

/* All rows meet a strip of b that was widened once; meanwhile what comes after it is fetched, a
 * share by each tile. Sums of unfinished k wait in c. */
PITH_INLINE void run_wide(const pith__gemm_half *g, const bool f16, int64_t m0, int64_t m1,
                          int64_t n0, int64_t n1) {
    _Alignas(64) float b[DEPTH * COLUMNS], t[PITH_TILE_ROWS * COLUMNS] = { 0 };
    const int64_t b_panel = (g->k + 1) / 2 * 64,
                  count = (m1 - m0 + PITH_TILE_ROWS - 1) / PITH_TILE_ROWS;
    for (int64_t j = n0; j < n1; j += COLUMNS) {
        const int64_t width = n1 - j < COLUMNS ? n1 - j : COLUMNS, panels = (width + 15) / 16;
        /* whole tiles need no copy */
        const bool direct = g->activation == PITH_ACT_NONE && width == 16 * panels;
        for (int64_t k = 0, depth; k < g->k; k += depth) {
            const char *strip = (const char *)g->b + j / 16 * b_panel + 32 * k;
            const uintptr_t after =
                (uintptr_t)g->b + (uintptr_t)((j + COLUMNS) / 16 * b_panel + 32 * k);
            depth = g->k - k < DEPTH ? g->k - k : DEPTH;
            const bool last = k + depth == g->k;
            gemm_half_widen(f16, b, strip, b_panel, panels, depth);
            for (int64_t i = m0, tile = 0, rows; tile < count; tile++, i += rows) {
                rows = (m1 - i + count - tile - 1) / (count - tile);
                float *c = g->c + i * g->ldc + j;
                if (k > 0 && !direct) PITH_K(gemm_move)(t, COLUMNS, c, g->ldc, rows, width);
                const int64_t turns = depth / 8; /* half as many lines as of floats */
                pith__gemm_tile part = { .a = (const float *)g->a + i * g->lda + k,
                                         .b = b,
                                         .bias = last && direct && g->bias ? g->bias + j : NULL,
                                         .t = direct ? c : t,
                                         .a_row = g->lda,
                                         .b_panel = 16 * DEPTH,
                                         .t_row = direct ? g->ldc : COLUMNS,
                                         .k = depth,
                                         .groups = 1,
                                         .tiles = 1,
                                         .accumulate = k > 0,
                                         .ahead = after + (uintptr_t)(tile * turns / count) * 64,
                                         .ahead_stream = turns * 64,
                                         .ahead_panel = b_panel,
                                         .ahead_every = 2 * count,
                                         .target = c,
                                         .target_row = g->ldc,
                                         .target_width = width };
                PITH_K(gemm_tile_f32)((int)rows, (int)panels, &part);
                if (direct) continue;
                if (last)
                    PITH_K(gemm_half_finish)(g, t, COLUMNS, i, rows, j, width);
                else
                    PITH_K(gemm_move)(c, g->ldc, t, COLUMNS, rows, width);
            }
        }
    }
}

/* Rows that fill more than two tiles pay for widening a strip of b to memory once; fewer widen it
 * in registers, each tile for itself. */
void PITH_K(gemm_f16)(const pith__gemm_half *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    if (m1 - m0 > 2 * ROWS && g->k > 0)
        run_wide(g, true, m0, m1, n0, n1);
    else
        gemm_half_run(g, f16_tiles, m0, m1, n0, n1);
}

void PITH_K(gemm_bf16)(const pith__gemm_half *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    if (m1 - m0 > 2 * ROWS && g->k > 0)
        run_wide(g, false, m0, m1, n0, n1);
    else
        gemm_half_run(g, bf16_tiles, m0, m1, n0, n1);
}

#if defined(PITH_LEVEL_avx512)
/* Pairs of bf16 lie where floats would: the float matmul with another multiply-add. */
void PITH_K(gemm_dp_bf16)(const pith__gemm_half *g, int64_t m0, int64_t m1, int64_t n0,
                          int64_t n1) {
    const pith__gemm pairs = { .a = g->a,
                               .b = g->b,
                               .c = g->c,
                               .bias = g->bias,
                               .m = g->m,
                               .n = g->n,
                               .k = (g->k + 1) / 2,
                               .lda = g->lda / 2,
                               .ldc = g->ldc,
                               .activation = g->activation,
                               .next = g->next };
    PITH_K(gemm_by_tiles)(&pairs, PITH_K(gemm_tile_bf16), m0, m1, n0, n1);
}
#else
void PITH_K(gemm_dp_bf16)(const pith__gemm_half *g, int64_t m0, int64_t m1, int64_t n0,
                          int64_t n1) {
    PITH_K(gemm_bf16)(g, m0, m1, n0, n1);
}
#endif

/* The bits of the bf16 nearest to x, in the upper half: adding 0x7FFF and the last bit that stays
 * rounds to nearest with ties to even. A NaN would round to infinity or wrap; instead its quiet bit
 * is set, so that it stays one. */
PITH_INLINE vi nearest(vf x) {
    vi bits = vi_bits(x), odd = vi_and(vi_shr(bits, 16), vi_set1(1));
    vi up = vi_add(bits, vi_add(odd, vi_set1(0x7FFF)));
    return vi_and(vi_select(vf_isnan(x), vi_or(bits, vi_set1(0x400000)), up),
                  vi_set1((int32_t)0xFFFF0000u));
}

void PITH_K(gemm_pack_f16)(void *packed, const float *panel, int64_t k) {
    uint16_t *row = packed;
    for (int64_t i = 0; i < k; i++, row += 16) vf_store_f16(row, vf_load(panel + 16 * i));
    if (k % 2) vf_store_f16(row, vf_zero());
}

void PITH_K(gemm_pack_bf16)(void *packed, const float *panel, int64_t k) {
    int32_t *group = packed;
    for (int64_t i = 0; i < k; i += 2, group += 16) {
        vi odd = i + 1 < k ? nearest(vf_load(panel + 16 * (i + 1))) : vi_set1(0);
        vi_store(group, vi_or(vi_shr(nearest(vf_load(panel + 16 * i)), 16), odd));
    }
}

void PITH_K(to_bf16_bf16)(const float *x, void *y, int64_t n) {
    uint16_t *to = y;
    for (int64_t i = 0; i < n; i += 16) {
        if (n - i >= 16)
            vi_store_16(to + i, vi_shr(nearest(vf_load(x + i)), 16));
        else
            vi_store_16_n(to + i, vi_shr(nearest(vf_load_n(x + i, (size_t)(n - i))), 16),
                          (size_t)(n - i));
    }
}

void PITH_K(to_bf16_f32)(const float *x, void *y, int64_t n) {
    float *to = y;
    int64_t i = 0;
    for (; n - i >= 16; i += 16) vf_store(to + i, vf_bits(nearest(vf_load(x + i))));
    if (i < n)
        vf_store_n(to + i, vf_bits(nearest(vf_load_n(x + i, (size_t)(n - i)))), (size_t)(n - i));
}
