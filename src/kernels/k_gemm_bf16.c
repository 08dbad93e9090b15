/* k_gemm_bf16.c - products with bf16 weights by register tiles: widened and multiplied in f32, or by the processor's
 * own pairwise products (AVX512_BF16). A tile keeps its sums over the whole of k; each step takes 2 k. */
#include "kernels/gemm_bf16.h"

#include "base/cpu.h"
#include "kernels/gemm_tile.h"
#include "kernels/vec.h"

#if defined(PITH_LEVEL_avx512)
enum { ROWS = 12, PANELS = 2 };
#elif defined(PITH_LEVEL_avx2)
enum { ROWS = 5, PANELS = 1 };
#else
enum { ROWS = 4, PANELS = 1 };
#endif

typedef void tile_fn(const char *a, int64_t a_row, const char *b, int64_t b_panel, int64_t k, float *t);

PITH_INLINE vi group_of(const char *b) { return vi_load((const int32_t *)(const void *)b); }
PITH_INLINE vf even_of(vi group) { return vf_bits(vi_shl(group, 16)); }
PITH_INLINE vf odd_of(vi group) { return vf_bits(vi_and(group, vi_set1((int32_t)0xFFFF0000u))); }

PITH_INLINE void wide_tile(const int rows, const char *a, int64_t a_row, const char *b, int64_t b_panel, int64_t k,
                           float *t) {
    vf s[ROWS][PANELS];
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        PITH_UNROLL
        for (int p = 0; p < PANELS; p++) s[r][p] = vf_zero();
    }
    for (; k > 0; k -= 2, a += 2 * sizeof(float), b += 64) {
        vi group[PANELS];
        PITH_UNROLL
        for (int p = 0; p < PANELS; p++) {
            group[p] = group_of(b + p * b_panel);
            __builtin_prefetch((const void *)((uintptr_t)(b + p * b_panel) + 2048));
        }
        PITH_UNROLL
        for (int r = 0; r < rows; r++) {
            vf x = vf_set1(((const float *)(const void *)(a + r * a_row))[0]);
            PITH_UNROLL
            for (int p = 0; p < PANELS; p++) s[r][p] = vf_fma(x, even_of(group[p]), s[r][p]);
        }
        if (k == 1) break;
        PITH_UNROLL
        for (int r = 0; r < rows; r++) {
            vf x = vf_set1(((const float *)(const void *)(a + r * a_row))[1]);
            PITH_UNROLL
            for (int p = 0; p < PANELS; p++) s[r][p] = vf_fma(x, odd_of(group[p]), s[r][p]);
        }
    }
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        PITH_UNROLL
        for (int p = 0; p < PANELS; p++) vf_store(t + 16 * (r * PANELS + p), s[r][p]);
    }
}

#define WIDE(rows)                                                                                                     \
    static void wide_##rows(const char *a, int64_t a_row, const char *b, int64_t b_panel, int64_t k, float *t) {       \
        wide_tile(rows, a, a_row, b, b_panel, k, t);                                                                   \
    }
#define ENTRY_WIDE(rows) [rows - 1] = wide_##rows,
#define EACH_4(X) X(1) X(2) X(3) X(4)
#if defined(PITH_LEVEL_avx512)
#define EACH_ROWS(X) EACH_4(X) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#elif defined(PITH_LEVEL_avx2)
#define EACH_ROWS(X) EACH_4(X) X(5)
#else
#define EACH_ROWS(X) EACH_4(X)
#endif
EACH_ROWS(WIDE)
static tile_fn *const wide_tiles[ROWS] = { EACH_ROWS(ENTRY_WIDE) };

void PITH_K(gemm_bf16_finish)(const pith_gemm_bf16 *g, const float *t, int64_t stride, int64_t i, int64_t rows,
                              int64_t j, int64_t width) {
    float f[PITH_BF16_SUMS];
    for (int64_t p = 0; p < width; p += 16) {
        const size_t n = width - p < 16 ? (size_t)(width - p) : 16;
        vf bias = g->bias ? vf_load_n(g->bias + j + p, n) : vf_zero();
        for (int64_t r = 0; r < rows; r++) {
            vf v = vf_load(t + r * stride + p);
            vf_store(f + r * stride + p, g->bias ? vf_add(v, bias) : v);
        }
    }
    PITH_K(gemm_activation)(g->activation, f, (size_t)(rows * stride));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t p = 0; p < width; p += 16) {
            vf_store_n(g->c + (i + r) * g->ldc + j + p, vf_load(f + r * stride + p),
                       width - p < 16 ? (size_t)(width - p) : 16);
        }
    }
}

static void run(const pith_gemm_bf16 *g, tile_fn *const *tiles, int64_t element, int64_t m0, int64_t m1, int64_t n0,
                int64_t n1) {
    _Alignas(64) float t[ROWS * PANELS * 16];
    const int64_t stride = 16 * PANELS, b_panel = (g->k + 1) / 2 * 64, a_row = g->lda * element;
    /* Columns whose b takes 3/8 of the second level cache, met by all rows. */
    int64_t columns = (int64_t)(pith_cpu_get()->l2 / 8 * 3) / (b_panel + 1) / PANELS * stride;
    if (m1 - m0 <= ROWS) columns = n1 - n0;
    if (columns < stride) columns = stride;
    for (int64_t j0 = n0; j0 < n1; j0 += columns) {
        int64_t j1 = n1 - j0 < columns ? n1 : j0 + columns;
        for (int64_t i = m0; i < m1;) {
            int64_t left = (m1 - i + ROWS - 1) / ROWS, rows = (m1 - i + left - 1) / left;
            for (int64_t j = j0; j < j1; j += stride) {
                int64_t width = j1 - j < stride ? j1 - j : stride;
                /* Where the second panel is missing, the first is taken twice. */
                tiles[rows - 1]((const char *)g->a + i * a_row, a_row, (const char *)g->b + j / 16 * b_panel,
                                width > 16 ? b_panel : 0, g->k, t);
                PITH_K(gemm_bf16_finish)(g, t, stride, i, rows, j, width);
            }
            i += rows;
        }
    }
}

void PITH_K(gemm_bf16)(const pith_gemm_bf16 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    run(g, wide_tiles, sizeof(float), m0, m1, n0, n1);
}

#if defined(PITH_LEVEL_avx512)
#define DP __attribute__((target("avx512bf16")))

/* The last of an odd k stands alone: only its two bytes of a are read. */
PITH_INLINE int32_t pair_of(const char *a, int64_t k) {
    int32_t pair = 0;
    if (k > 1)
        memcpy(&pair, a, 4);
    else
        memcpy(&pair, a, 2);
    return pair;
}

#define PAIRS(rows)                                                                                                    \
    DP static void pairs_##rows(const char *a, int64_t a_row, const char *b, int64_t b_panel, int64_t k, float *t) {   \
        __m512 s[rows][PANELS];                                                                                        \
        PITH_UNROLL                                                                                                    \
        for (int r = 0; r < rows; r++) s[r][0] = s[r][1] = _mm512_setzero_ps();                                        \
        for (; k > 0; k -= 2, a += 4, b += 64) {                                                                       \
            __m512bh b0 = (__m512bh)_mm512_loadu_si512(b), b1 = (__m512bh)_mm512_loadu_si512(b + b_panel);             \
            PITH_UNROLL                                                                                                \
            for (int r = 0; r < rows; r++) {                                                                           \
                __m512bh x = (__m512bh)_mm512_set1_epi32(pair_of(a + r * a_row, k));                                   \
                s[r][0] = _mm512_dpbf16_ps(s[r][0], x, b0);                                                            \
                s[r][1] = _mm512_dpbf16_ps(s[r][1], x, b1);                                                            \
            }                                                                                                          \
        }                                                                                                              \
        PITH_UNROLL                                                                                                    \
        for (int r = 0; r < rows; r++) {                                                                               \
            _mm512_storeu_ps(t + 32 * r, s[r][0]);                                                                     \
            _mm512_storeu_ps(t + 32 * r + 16, s[r][1]);                                                                \
        }                                                                                                              \
    }
#define ENTRY_PAIRS(rows) [rows - 1] = pairs_##rows,
EACH_ROWS(PAIRS)
static tile_fn *const pairs_tiles[ROWS] = { EACH_ROWS(ENTRY_PAIRS) };

void PITH_K(gemm_dp_bf16)(const pith_gemm_bf16 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    run(g, pairs_tiles, sizeof(uint16_t), m0, m1, n0, n1);
}
#else
void PITH_K(gemm_dp_bf16)(const pith_gemm_bf16 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    PITH_K(gemm_bf16)(g, m0, m1, n0, n1);
}
#endif

/* The bits of the bf16 nearest to x, in the upper half; NaN stays one. */
PITH_INLINE vi nearest(vf x) {
    vi bits = vi_bits(x), odd = vi_and(vi_shr(bits, 16), vi_set1(1));
    vi up = vi_add(bits, vi_add(odd, vi_set1(0x7FFF)));
    return vi_and(vi_select(vf_isnan(x), vi_or(bits, vi_set1(0x400000)), up), vi_set1((int32_t)0xFFFF0000u));
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
            vi_store_16_n(to + i, vi_shr(nearest(vf_load_n(x + i, (size_t)(n - i))), 16), (size_t)(n - i));
    }
}

void PITH_K(to_bf16_f32)(const float *x, void *y, int64_t n) {
    float *to = y;
    for (int64_t i = 0; i < n; i += 16) {
        size_t width = n - i < 16 ? (size_t)(n - i) : 16;
        vf_store_n(to + i, vf_bits(nearest(vf_load_n(x + i, width))), width);
    }
}
