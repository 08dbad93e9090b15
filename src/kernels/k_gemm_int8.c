/* k_gemm_int8.c - exact 8-bit products. A tile keeps its sums in registers over all of k; each step takes 4 k: 64
 * bytes of a panel of b against 4 bytes of each row of a, repeated over the register.
 *
 * Three ways beside the tiles of k_gemm_amx.c, chosen by what the processor and the weights allow: VNNI multiplies u8
 * by i8 and adds four products in one instruction. Without it, weights whose pairs stay within 128 go through
 * vpmaddubsw, whose 16-bit pair sums then cannot saturate (255 * 128 < 2^15); others are widened to 16 bits first.
 * Signed a is a + 128 unsigned, made good by the column sums. */
#include "kernels/gemm_int8.h"

#include "base/cpu.h"
#include "kernels/gemm_tile.h"
#include "kernels/vec.h"

#if defined(PITH_LEVEL_avx512)
#define VNNI_TARGET __attribute__((target("avx512vnni")))
typedef struct acc {
    __m512i v;
} acc; /* one sum per column */
typedef struct wide {
    __m512i lo, hi;
} wide; /* two halves of each sum, side by side */

PITH_INLINE acc acc_zero(void) { return (acc){ _mm512_setzero_si512() }; }
PITH_INLINE vi acc_sums(acc s) { return s.v; }
static inline VNNI_TARGET __attribute__((always_inline)) acc step_vnni(acc s, uint32_t a, const int8_t *b) {
    return (acc){ _mm512_dpbusd_epi32(s.v, _mm512_set1_epi32((int32_t)a), _mm512_loadu_si512(b)) };
}
PITH_INLINE acc step_narrow(acc s, uint32_t a, const int8_t *b) {
    __m512i pairs = _mm512_maddubs_epi16(_mm512_set1_epi32((int32_t)a), _mm512_loadu_si512(b));
    return (acc){ _mm512_add_epi32(s.v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1))) };
}
PITH_INLINE wide wide_zero(void) { return (wide){ _mm512_setzero_si512(), _mm512_setzero_si512() }; }
PITH_INLINE wide step_wide(wide s, uint32_t a, const int8_t *b) {
    __m512i x = _mm512_broadcastq_epi64(_mm_cvtepu8_epi16(_mm_cvtsi32_si128((int32_t)a)));
    __m512i lo = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)b));
    __m512i hi = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)b + 1));
    return (wide){ _mm512_add_epi32(s.lo, _mm512_madd_epi16(x, lo)), _mm512_add_epi32(s.hi, _mm512_madd_epi16(x, hi)) };
}
PITH_INLINE vi wide_sums(wide s) {
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    return _mm512_add_epi32(_mm512_permutex2var_epi32(s.lo, even, s.hi), _mm512_permutex2var_epi32(s.lo, odd, s.hi));
}
enum { ROWS = 12, NARROW_ROWS = 12, PANELS = 2, WIDE_ROWS = 5 };

#elif defined(PITH_LEVEL_avx2)
#define VNNI_TARGET __attribute__((target("avxvnni")))
typedef struct acc {
    __m256i lo, hi;
} acc;
typedef struct wide {
    __m256i a, b, c, d;
} wide;

PITH_INLINE acc acc_zero(void) { return (acc){ _mm256_setzero_si256(), _mm256_setzero_si256() }; }
PITH_INLINE vi acc_sums(acc s) { return (vi){ s.lo, s.hi }; }
static inline VNNI_TARGET __attribute__((always_inline)) acc step_vnni(acc s, uint32_t a, const int8_t *b) {
    __m256i x = _mm256_set1_epi32((int32_t)a);
    return (acc){ _mm256_dpbusd_avx_epi32(s.lo, x, _mm256_loadu_si256((const __m256i *)b)),
                  _mm256_dpbusd_avx_epi32(s.hi, x, _mm256_loadu_si256((const __m256i *)b + 1)) };
}
PITH_INLINE acc step_narrow(acc s, uint32_t a, const int8_t *b) {
    const __m256i x = _mm256_set1_epi32((int32_t)a), one = _mm256_set1_epi16(1);
    __m256i lo = _mm256_maddubs_epi16(x, _mm256_loadu_si256((const __m256i *)b));
    __m256i hi = _mm256_maddubs_epi16(x, _mm256_loadu_si256((const __m256i *)b + 1));
    return (acc){ _mm256_add_epi32(s.lo, _mm256_madd_epi16(lo, one)),
                  _mm256_add_epi32(s.hi, _mm256_madd_epi16(hi, one)) };
}
PITH_INLINE wide wide_zero(void) {
    return (wide){ _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256() };
}
PITH_INLINE __m256i widen_4(const int8_t *b) { return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)b)); }
PITH_INLINE wide step_wide(wide s, uint32_t a, const int8_t *b) {
    __m256i x = _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(_mm_cvtsi32_si128((int32_t)a)));
    return (wide){ _mm256_add_epi32(s.a, _mm256_madd_epi16(x, widen_4(b))),
                   _mm256_add_epi32(s.b, _mm256_madd_epi16(x, widen_4(b + 16))),
                   _mm256_add_epi32(s.c, _mm256_madd_epi16(x, widen_4(b + 32))),
                   _mm256_add_epi32(s.d, _mm256_madd_epi16(x, widen_4(b + 48))) };
}
PITH_INLINE vi wide_sums(wide s) { /* hadd works within 128 bits: 0 1 4 5 | 2 3 6 7 */
    return (vi){ _mm256_permute4x64_epi64(_mm256_hadd_epi32(s.a, s.b), 0xD8),
                 _mm256_permute4x64_epi64(_mm256_hadd_epi32(s.c, s.d), 0xD8) };
}
/* Narrow: the sums of more rows would not stay in registers beside what a step holds. */
enum { ROWS = 6, NARROW_ROWS = 4, PANELS = 1, WIDE_ROWS = 3 };

#else
typedef struct acc {
    int32_t v[16];
} acc;
typedef acc wide;

PITH_INLINE acc acc_zero(void) { return (acc){ { 0 } }; }
PITH_INLINE vi acc_sums(acc s) { return vi_load(s.v); }
PITH_INLINE acc step_narrow(acc s, uint32_t a, const int8_t *b) {
    const int32_t a0 = a & 255, a1 = a >> 8 & 255, a2 = a >> 16 & 255, a3 = (int32_t)(a >> 24);
    for (int j = 0; j < 16; j++) {
        int32_t products = a0 * b[4 * j] + a1 * b[4 * j + 1] + a2 * b[4 * j + 2] + a3 * b[4 * j + 3];
        s.v[j] = (int32_t)((uint32_t)s.v[j] + (uint32_t)products);
    }
    return s;
}
#define VNNI_TARGET
#define step_vnni step_narrow
#define step_wide step_narrow
#define wide_zero acc_zero
#define wide_sums acc_sums
enum { ROWS = 4, NARROW_ROWS = 4, PANELS = 1, WIDE_ROWS = 4 };
#endif

/* Sums of up to `rows` rows of a against `panels` panels of b into t[rows][16 * panels]. flip: xor of 4 bytes of a. */
typedef void tile_fn(const uint8_t *a, int64_t lda, const int8_t *b, int64_t b_panel, int64_t k, uint32_t flip,
                     int32_t *t);

PITH_INLINE uint32_t four(const uint8_t *a, int64_t n) {
    uint32_t x = 0;
    for (int64_t i = 0; i < n; i++) x |= (uint32_t)a[i] << 8 * i;
    return x;
}
PITH_INLINE uint32_t all_four(const uint8_t *a) {
    uint32_t x;
    memcpy(&x, a, sizeof x);
    return x;
}

#define TILE(way, target, acc_t, zero, step, sums, rows, panels)                                                       \
    target static void tile_##way##_##rows(const uint8_t *a, int64_t lda, const int8_t *b, int64_t b_panel, int64_t k, \
                                           uint32_t flip, int32_t *t) {                                                \
        acc_t s[rows][panels];                                                                                         \
        PITH_UNROLL                                                                                                    \
        for (int r = 0; r < rows; r++) {                                                                               \
            PITH_UNROLL                                                                                                \
            for (int p = 0; p < panels; p++) s[r][p] = zero();                                                         \
        }                                                                                                              \
        int64_t i = 0;                                                                                                 \
        for (; k - i >= 4; i += 4, b += 64) {                                                                          \
            __builtin_prefetch((const void *)((uintptr_t)b + 2048));                                                   \
            PITH_UNROLL                                                                                                \
            for (int r = 0; r < rows; r++) {                                                                           \
                uint32_t x = all_four(a + r * lda + i) ^ flip;                                                         \
                PITH_UNROLL                                                                                            \
                for (int p = 0; p < panels; p++) s[r][p] = step(s[r][p], x, b + p * b_panel);                          \
            }                                                                                                          \
        }                                                                                                              \
        if (i < k) {                                                                                                   \
            PITH_UNROLL                                                                                                \
            for (int r = 0; r < rows; r++) {                                                                           \
                uint32_t x = four(a + r * lda + i, k - i) ^ flip;                                                      \
                PITH_UNROLL                                                                                            \
                for (int p = 0; p < panels; p++) s[r][p] = step(s[r][p], x, b + p * b_panel);                          \
            }                                                                                                          \
        }                                                                                                              \
        PITH_UNROLL                                                                                                    \
        for (int r = 0; r < rows; r++) {                                                                               \
            PITH_UNROLL                                                                                                \
            for (int p = 0; p < panels; p++) vi_store(t + 16 * (r * (panels) + p), sums(s[r][p]));                     \
        }                                                                                                              \
    }
#define VNNI(rows) TILE(vnni, VNNI_TARGET, acc, acc_zero, step_vnni, acc_sums, rows, PANELS)
#define NARROW(rows) TILE(narrow, , acc, acc_zero, step_narrow, acc_sums, rows, PANELS)
#define WIDE(rows) TILE(wide, , wide, wide_zero, step_wide, wide_sums, rows, PANELS)
#define ENTRY_VNNI(rows) [rows - 1] = tile_vnni_##rows,
#define ENTRY_NARROW(rows) [rows - 1] = tile_narrow_##rows,
#define ENTRY_WIDE(rows) [rows - 1] = tile_wide_##rows,

#if defined(PITH_LEVEL_avx512)
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#define EACH_WIDE_ROWS(X) X(1) X(2) X(3) X(4) X(5)
#elif defined(PITH_LEVEL_avx2)
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#define EACH_WIDE_ROWS(X) X(1) X(2) X(3)
#else
#define EACH_ROWS(X) X(1) X(2) X(3) X(4)
#endif

EACH_ROWS(NARROW)
static tile_fn *const narrow_tiles[ROWS] = { EACH_ROWS(ENTRY_NARROW) };
#if defined(EACH_WIDE_ROWS)
EACH_ROWS(VNNI)
EACH_WIDE_ROWS(WIDE)
static tile_fn *const vnni_tiles[ROWS] = { EACH_ROWS(ENTRY_VNNI) };
static tile_fn *const wide_tiles[WIDE_ROWS] = { EACH_WIDE_ROWS(ENTRY_WIDE) };
#else /* one way does for all */
#define vnni_tiles narrow_tiles
#define wide_tiles narrow_tiles
#endif

/* Row `at` of a panel of b. */
PITH_INLINE vi row_of_panel(const int8_t *panel, int32_t at) {
    vi four_rows = vi_load((const int32_t *)(const void *)(panel + at / 4 * 64));
    switch (at % 4) {
    case 0: return vi_sar(vi_shl(four_rows, 24), 24);
    case 1: return vi_sar(vi_shl(four_rows, 16), 24);
    case 2: return vi_sar(vi_shl(four_rows, 8), 24);
    default: return vi_sar(four_rows, 24);
    }
}

void PITH_K(gemm_i8_finish)(const pith_gemm_int8 *g, const int32_t *t, int64_t stride, int32_t shift, int64_t i,
                            int64_t rows, int64_t j, int64_t width) {
    const int64_t b_panel = (g->k + 3) / 4 * 64 + 64;
    float f[PITH_I8_SUMS];
    for (int64_t p = 0; p < width; p += 16) {
        const size_t n = width - p < 16 ? (size_t)(width - p) : 16;
        const int8_t *panel = (const int8_t *)g->b + (j + p) / 16 * b_panel;
        vi columns = vi_load((const int32_t *)(const void *)(panel + b_panel - 64)), weights = columns;
        int32_t at = -1; /* the row of b in weights */
        vf scale = g->c ? vf_zero() : vf_load_n(g->b_scale + j + p, n);
        vf bias = !g->c && g->bias ? vf_load_n(g->bias + j + p, n) : vf_zero();
        for (int64_t r = 0; r < rows; r++) {
            int32_t zero = shift + (!g->c && g->a_zero ? g->a_zero[i + r] : 0);
            vi sum = vi_load(t + r * stride + p);
            if (zero) sum = vi_sub(sum, vi_mul(columns, vi_set1(zero)));
            if (g->c) {
                int32_t lanes[16];
                vi_store(lanes, sum);
                memcpy(g->c + (i + r) * g->ldc + j + p, lanes, n * sizeof *lanes);
                continue;
            }
            if (g->a_extra && g->a_extra[i + r]) {
                if (g->a_at[i + r] != at) weights = row_of_panel(panel, at = g->a_at[i + r]);
                sum = vi_add(sum, vi_mul(weights, vi_set1(g->a_extra[i + r])));
            }
            vf v = vf_mul(vf_of_vi(sum), vf_mul(vf_set1(g->a_scale[i + r]), scale));
            if (g->bias) v = vf_add(v, bias);
            if (g->activation != PITH_ACT_NONE)
                vf_store(f + r * stride + p, v);
            else if (n == 16)
                vf_store(g->out + (i + r) * g->ldc + j + p, v);
            else
                vf_store_n(g->out + (i + r) * g->ldc + j + p, v, n);
        }
    }
    if (g->c || g->activation == PITH_ACT_NONE) return;
    PITH_K(gemm_activation)(g->activation, f, (size_t)(rows * stride));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t p = 0; p < width; p += 16) {
            vf_store_n(g->out + (i + r) * g->ldc + j + p, vf_load(f + r * stride + p),
                       width - p < 16 ? (size_t)(width - p) : 16);
        }
    }
}

static void run(const pith_gemm_int8 *g, tile_fn *const *tiles, int64_t most, int64_t m0, int64_t m1, int64_t n0,
                int64_t n1) {
    _Alignas(64) int32_t t[ROWS * PANELS * 16];
    const int64_t stride = 16 * PANELS, b_panel = (g->k + 3) / 4 * 64 + 64;
    const uint32_t flip = g->a_signed ? 0x80808080u : 0;
    /* Columns whose b takes 3/8 of the second level cache, met by all rows. */
    int64_t columns = (int64_t)(pith_cpu_get()->l2 / 8 * 3) / b_panel / PANELS * stride;
    if (columns < stride || m1 - m0 <= most) columns = m1 - m0 <= most && n1 > n0 ? n1 - n0 : stride;
    for (int64_t j0 = n0; j0 < n1; j0 += columns) {
        int64_t j1 = n1 - j0 < columns ? n1 : j0 + columns;
        for (int64_t i = m0; i < m1;) {
            int64_t left = (m1 - i + most - 1) / most, rows = (m1 - i + left - 1) / left;
            const uint8_t *a = (const uint8_t *)g->a + i * g->lda;
            for (int64_t j = j0; j < j1; j += stride) {
                const int8_t *b = (const int8_t *)g->b + j / 16 * b_panel;
                int64_t width = j1 - j < stride ? j1 - j : stride;
                /* Where the second panel is missing, the first is taken twice. */
                tiles[rows - 1](a, g->lda, b, width > 16 ? b_panel : 0, g->k, flip, t);
                PITH_K(gemm_i8_finish)(g, t, stride, g->a_signed ? 128 : 0, i, rows, j, width);
            }
            i += rows;
        }
    }
}

void PITH_K(gemm_i8)(const pith_gemm_int8 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    if (g->narrow)
        run(g, narrow_tiles, NARROW_ROWS, m0, m1, n0, n1);
    else
        run(g, wide_tiles, WIDE_ROWS, m0, m1, n0, n1);
}

void PITH_K(gemm_vnni_i8)(const pith_gemm_int8 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    run(g, vnni_tiles, ROWS, m0, m1, n0, n1);
}

void PITH_K(gemm_pack_i8)(void *packed, const int8_t *b, int64_t row_stride, int64_t column_stride, int64_t k,
                          int64_t n, int64_t n0, int64_t n1) {
    const int64_t b_panel = (k + 3) / 4 * 64 + 64;
    for (int64_t j0 = n0; j0 < n1; j0 += 16) {
        int8_t *panel = (int8_t *)packed + j0 / 16 * b_panel;
        int32_t sums[16] = { 0 };
        for (int64_t i = 0; i < (k + 3) / 4 * 4; i++) {
            for (int64_t j = 0; j < 16; j++) {
                int8_t value = i < k && j0 + j < n ? b[i * row_stride + (j0 + j) * column_stride] : 0;
                panel[i / 4 * 64 + 4 * j + i % 4] = value;
                sums[j] += value;
            }
        }
        memcpy(panel + b_panel - 64, sums, sizeof sums);
    }
}
