/* k_gemm_int8.c - exact 8-bit matmuls. A tile keeps its sums in registers over all of k. Each step
 * takes 4 k: 64 bytes of a panel of b against 4 bytes of each row of a, which are repeated over the
 * register.
 *
 * Besides the tiles of k_gemm_amx.c there are three ways, chosen by CPU and weights:
 *
 *   VNNI    multiplies u8 by i8 and adds four results in one instruction.
 *   narrow  without VNNI, for weights of which certain four stay within PITH_NARROW_FOUR:
 *           vpmaddubsw against a within PITH_NARROW_A. Two of its 16-bit pair sums are added and
 *           cannot overflow (150 * 218 < 2^15).
 *   wide    all other weights are widened to 16 bits first.
 *
 * Signed a is stored as a + 128 unsigned, which the column sums correct. */
#include "engine/kernels/gemm_int8.h"

#include <stdbool.h>

#include "base/os/cpu.h"
#include "engine/kernels/gemm_tile.h"
#include "engine/kernels/unary.h"
#include "engine/kernels/vec.h"

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
static inline VNNI_TARGET __attribute__((always_inline)) acc step_vnni(acc s, uint32_t a,
                                                                       const int8_t *b) {
    return (acc){ _mm512_dpbusd_epi32(s.v, _mm512_set1_epi32((int32_t)a), _mm512_loadu_si512(b)) };
}
PITH_INLINE __m512i pairs_of(uint32_t a, const int8_t *b) {
    return _mm512_maddubs_epi16(_mm512_set1_epi32((int32_t)a), _mm512_loadu_si512(b));
}
PITH_INLINE acc add_pairs(acc s, __m512i pairs) {
    return (acc){ _mm512_add_epi32(s.v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1))) };
}
PITH_INLINE acc step_narrow(acc s, uint32_t a, const int8_t *b) {
    return add_pairs(s, pairs_of(a, b));
}
PITH_INLINE acc steps_narrow(acc s, uint32_t a, uint32_t next, const int8_t *b) {
    return add_pairs(s, _mm512_add_epi16(pairs_of(a, b), pairs_of(next, b + 64)));
}
PITH_INLINE wide wide_zero(void) {
    return (wide){ _mm512_setzero_si512(), _mm512_setzero_si512() };
}
PITH_INLINE wide step_wide(wide s, uint32_t a, const int8_t *b) {
    __m512i x = _mm512_broadcastq_epi64(_mm_cvtepu8_epi16(_mm_cvtsi32_si128((int32_t)a)));
    __m512i lo = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)b));
    __m512i hi = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)b + 1));
    return (wide){ _mm512_add_epi32(s.lo, _mm512_madd_epi16(x, lo)),
                   _mm512_add_epi32(s.hi, _mm512_madd_epi16(x, hi)) };
}
PITH_INLINE vi wide_sums(wide s) {
    const __m512i even =
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    return _mm512_add_epi32(_mm512_permutex2var_epi32(s.lo, even, s.hi),
                            _mm512_permutex2var_epi32(s.lo, odd, s.hi));
}
/* Rows of a tile for VNNI, for the narrow and for the wide way, and panels of 16 columns. ROWS *
 * PANELS sums, the panels and a broadcast fill the 32 registers: one more row would spill, fewer
 * rows load b more often. The other two ways hold values between their instructions, the wide one
 * two registers of sums for each row. */
enum { ROWS = 14, NARROW_ROWS = 10, PANELS = 2, WIDE_ROWS = 5 };

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
static inline VNNI_TARGET __attribute__((always_inline)) acc step_vnni(acc s, uint32_t a,
                                                                       const int8_t *b) {
    __m256i x = _mm256_set1_epi32((int32_t)a);
    return (acc){ _mm256_dpbusd_avx_epi32(s.lo, x, _mm256_loadu_si256((const __m256i *)b)),
                  _mm256_dpbusd_avx_epi32(s.hi, x, _mm256_loadu_si256((const __m256i *)b + 1)) };
}
PITH_INLINE __m256i pairs_of(uint32_t a, const int8_t *b) {
    return _mm256_maddubs_epi16(_mm256_set1_epi32((int32_t)a),
                                _mm256_loadu_si256((const __m256i *)b));
}
PITH_INLINE acc add_pairs(acc s, __m256i lo, __m256i hi) {
    const __m256i one = _mm256_set1_epi16(1);
    return (acc){ _mm256_add_epi32(s.lo, _mm256_madd_epi16(lo, one)),
                  _mm256_add_epi32(s.hi, _mm256_madd_epi16(hi, one)) };
}
PITH_INLINE acc step_narrow(acc s, uint32_t a, const int8_t *b) {
    return add_pairs(s, pairs_of(a, b), pairs_of(a, b + 32));
}
PITH_INLINE acc steps_narrow(acc s, uint32_t a, uint32_t next, const int8_t *b) {
    return add_pairs(s, _mm256_add_epi16(pairs_of(a, b), pairs_of(next, b + 64)),
                     _mm256_add_epi16(pairs_of(a, b + 32), pairs_of(next, b + 96)));
}
PITH_INLINE wide wide_zero(void) {
    return (wide){ _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                   _mm256_setzero_si256() };
}
PITH_INLINE __m256i widen_4(const int8_t *b) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)b));
}
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
/* NARROW_ROWS is less than ROWS because the sums of more rows, and the values that a narrow step
 * holds, would not fit the registers. */
enum { ROWS = 6, NARROW_ROWS = 4, PANELS = 1, WIDE_ROWS = 3 };

#else
typedef struct wide {
    int32_t v[16];
} wide;

PITH_INLINE wide wide_zero(void) { return (wide){ { 0 } }; }
PITH_INLINE vi wide_sums(wide s) { return vi_load(s.v); }
PITH_INLINE wide step_wide(wide s, uint32_t a, const int8_t *b) {
    const int32_t a0 = a & 255, a1 = a >> 8 & 255, a2 = a >> 16 & 255, a3 = (int32_t)(a >> 24);
    for (int j = 0; j < 16; j++) {
        int32_t products =
            a0 * b[4 * j] + a1 * b[4 * j + 1] + a2 * b[4 * j + 2] + a3 * b[4 * j + 3];
        s.v[j] = (int32_t)((uint32_t)s.v[j] + (uint32_t)products);
    }
    return s;
}
enum { ROWS = 4, NARROW_ROWS = 4, PANELS = 1, WIDE_ROWS = 4 };
#endif

/* If a strip of b is too large for the L1 cache, the rows of a tile go through GROUP strips while
 * they stay there. A larger group reads a less often and needs more of L2 for b. */
enum { GROUP = 3 };

/* What a tile fetches meanwhile; nothing need be there. Rows of b, which will be read next, from
 * `ahead` on, which moves ahead_step bytes with each 8 k. And rows of the result, row_step bytes
 * apart, one with each 8 k, as gemm_tile.h says: the last of them LEAD such turns before the end,
 * for what comes earlier is gone again, as b goes through the first level cache. */
enum { LEAD = 8 };
typedef struct fetches {
    uintptr_t ahead, row;
    int64_t ahead_step, row_step;
} fetches;

/* The sums of a's rows against the tile's panels of b into t[rows][16 * panels]. */
typedef void tile_fn(const uint8_t *a, int64_t lda, const int8_t *b, int64_t b_panel, int64_t k,
                     bool is_signed, int32_t *t, const fetches *f);

PITH_INLINE uint32_t four(const uint8_t *a) {
    uint32_t x;
    memcpy(&x, a, sizeof x);
    return x;
}

/* Steps of 4 k. Row addresses are formed from a pointer for every third row, as in k_gemm_tile.c.
 */
#define ROW_FOUR(r, i) (four(group[r / 3] + r % 3 * lda + 4 * (i)) ^ flip)
#define FETCH_AHEAD(panels)                                                                        \
    PITH_UNROLL                                                                                    \
    for (int p = 0; p < panels; p++)                                                               \
        __builtin_prefetch((const void *)(ahead + (uintptr_t)(p * b_panel)), 0, 2);                \
    ahead += (uintptr_t)f->ahead_step;
#define FETCH_ROW(panels)                                                                          \
    if ((uint64_t)--turn < (uint64_t)rows) {                                                       \
        PITH_UNROLL                                                                                \
        for (int p = 0; p < panels; p++)                                                           \
            __builtin_prefetch((const void *)(row + 64 * (uintptr_t)p), 1);                        \
        row += (uintptr_t)f->row_step;                                                             \
    }
#define MOVE_ON(count)                                                                             \
    PITH_UNROLL                                                                                    \
    for (int r = 0; r < rows; r += 3) group[r / 3] += 4 * count;                                   \
    k -= 4 * count, b += 64 * count;
#define ONE_STEP(step, panels, i)                                                                  \
    PITH_UNROLL                                                                                    \
    for (int r = 0; r < rows; r++) {                                                               \
        const uint32_t x = ROW_FOUR(r, i);                                                         \
        PITH_UNROLL                                                                                \
        for (int p = 0; p < panels; p++) s[r][p] = step(s[r][p], x, b + p * b_panel + 64 * i);     \
    }
#define TWO_STEPS(step, panels) ONE_STEP(step, panels, 0) ONE_STEP(step, panels, 1)
#define ONE_DOUBLE_STEP(step, panels)                                                              \
    PITH_UNROLL                                                                                    \
    for (int r = 0; r < rows; r++) {                                                               \
        const uint32_t x = ROW_FOUR(r, 0), next = ROW_FOUR(r, 1);                                  \
        PITH_UNROLL                                                                                \
        for (int p = 0; p < panels; p++)                                                           \
            s[r][p] = steps_narrow(s[r][p], x, next, b + p * b_panel);                             \
    }

/* flip is a constant, 0 for unsigned a: what is not changed on its way is broadcast by the load
 * itself; signed a, which is rare, goes without the unrolled loop. The last k that are no four go
 * through a copy filled up with zeros. */
#define TILE(way, target, acc_t, zero, step, eight, sums, panels)                                  \
    static inline target __attribute__((always_inline)) void tile_##way(                           \
        const int rows, const uint8_t *a, int64_t lda, const int8_t *b, int64_t b_panel,           \
        int64_t k, const uint32_t flip, int32_t *t, const fetches *f) {                            \
        acc_t s[ROWS][panels];                                                                     \
        uintptr_t ahead = f->ahead, row = f->row;                                                  \
        int64_t turn = k / 8 - LEAD > rows ? k / 8 - LEAD : rows;                                  \
        const uint8_t *group[(ROWS + 2) / 3];                                                      \
        uint8_t rest[4 * ROWS];                                                                    \
        PITH_UNROLL                                                                                \
        for (int r = 0; r < rows; r++) {                                                           \
            PITH_UNROLL                                                                            \
            for (int p = 0; p < panels; p++) s[r][p] = zero();                                     \
        }                                                                                          \
        PITH_UNROLL                                                                                \
        for (int r = 0; r < rows; r += 3) group[r / 3] = a + r * lda;                              \
        while (!flip && k >= 8) {                                                                  \
            FETCH_AHEAD(panels) FETCH_ROW(panels) eight(step, panels) MOVE_ON(2)                   \
        }                                                                                          \
        while (k > 0) {                                                                            \
            if (k < 4) {                                                                           \
                memset(rest, 0, sizeof rest);                                                      \
                for (int r = 0; r < rows; r++)                                                     \
                    memcpy(rest + 4 * r, group[r / 3] + r % 3 * lda, (size_t)k);                   \
                PITH_UNROLL                                                                        \
                for (int r = 0; r < rows; r += 3) group[r / 3] = rest + 4 * r;                     \
                lda = 4;                                                                           \
            }                                                                                      \
            FETCH_AHEAD(panels) ONE_STEP(step, panels, 0) MOVE_ON(1)                               \
        }                                                                                          \
        PITH_UNROLL                                                                                \
        for (int r = 0; r < rows; r++) {                                                           \
            PITH_UNROLL                                                                            \
            for (int p = 0; p < panels; p++) vi_store(t + 16 * (r * (panels) + p), sums(s[r][p])); \
        }                                                                                          \
    }
#define TILE_ROWS(way, target, rows)                                                               \
    target static void tile_##way##_##rows(const uint8_t *a, int64_t lda, const int8_t *b,         \
                                           int64_t b_panel, int64_t k, bool is_signed, int32_t *t, \
                                           const fetches *f) {                                     \
        if (is_signed)                                                                             \
            tile_##way(rows, a, lda, b, b_panel, k, 0x80808080u, t, f);                            \
        else                                                                                       \
            tile_##way(rows, a, lda, b, b_panel, k, 0, t, f);                                      \
    }
#define UNSIGNED_ROWS(way, target, rows)                                                           \
    target static void tile_##way##_##rows(const uint8_t *a, int64_t lda, const int8_t *b,         \
                                           int64_t b_panel, int64_t k, bool is_signed, int32_t *t, \
                                           const fetches *f) {                                     \
        (void)is_signed;                                                                           \
        tile_##way(rows, a, lda, b, b_panel, k, 0, t, f);                                          \
    }
#define VNNI(rows) TILE_ROWS(vnni, VNNI_TARGET, rows)
#define VNNI_4(rows) UNSIGNED_ROWS(vnni4, VNNI_TARGET, rows)
#define NARROW(rows) UNSIGNED_ROWS(narrow, , rows)
#define WIDE(rows) TILE_ROWS(wide, , rows)
#define ENTRY_VNNI(rows) [rows - 1] = tile_vnni_##rows,
#define ENTRY_VNNI_4(rows) [rows - 1] = tile_vnni4_##rows,
#define ENTRY_NARROW(rows) [rows - 1] = tile_narrow_##rows,
#define ENTRY_WIDE(rows) [rows - 1] = tile_wide_##rows,

#define EACH_4(X) X(1) X(2) X(3) X(4)
#if defined(PITH_LEVEL_avx512)
#define EACH_WIDE(X) EACH_4(X) X(5)
#define EACH_NARROW(X) EACH_WIDE(X) X(6) X(7) X(8) X(9) X(10)
#define EACH_VNNI(X) EACH_NARROW(X) X(11) X(12) X(13) X(14)
#define EACH_VNNI_4(X) EACH_WIDE(X) X(6)
#elif defined(PITH_LEVEL_avx2)
#define EACH_WIDE(X) X(1) X(2) X(3)
#define EACH_NARROW(X) EACH_4(X)
#define EACH_VNNI(X) EACH_NARROW(X) X(5) X(6)
#else
#define EACH_WIDE(X) EACH_4(X)
#endif

TILE(wide, , wide, wide_zero, step_wide, TWO_STEPS, wide_sums, PANELS)
EACH_WIDE(WIDE)
static tile_fn *const wide_tiles[WIDE_ROWS] = { EACH_WIDE(ENTRY_WIDE) };
#if defined(EACH_VNNI)
TILE(narrow, , acc, acc_zero, step_narrow, ONE_DOUBLE_STEP, acc_sums, PANELS)
TILE(vnni, VNNI_TARGET, acc, acc_zero, step_vnni, TWO_STEPS, acc_sums, PANELS)
EACH_NARROW(NARROW)
EACH_VNNI(VNNI)
static tile_fn *const narrow_tiles[NARROW_ROWS] = { EACH_NARROW(ENTRY_NARROW) };
static tile_fn *const vnni_tiles[ROWS] = { EACH_VNNI(ENTRY_VNNI) };
#if defined(EACH_VNNI_4)
/* A tile of four panels needs fewer broadcasts for as many sums, and reads four streams of b. */
enum { ROWS_4 = 6, PANELS_4 = 4 };
TILE(vnni4, VNNI_TARGET, acc, acc_zero, step_vnni, TWO_STEPS, acc_sums, PANELS_4)
EACH_VNNI_4(VNNI_4)
static tile_fn *const vnni4_tiles[ROWS_4] = { EACH_VNNI_4(ENTRY_VNNI_4) };
#endif
#else /* one way does for all */
#define narrow_tiles wide_tiles
#define vnni_tiles wide_tiles
#endif

PITH_INLINE bool fit_16_bits(vi v) { return !vm_any(vm_not(vi_eq(vi_sar(vi_shl(v, 16), 16), v))); }

PITH_INLINE vi gemm_int8_columns_of(const int8_t *panel, int64_t b_panel) {
    return vi_load((const int32_t *)(const void *)(panel + b_panel - 64));
}

static void finish_sums(const pith__gemm_int8 *g, const int32_t *t, int64_t stride, int32_t shift,
                        int64_t i, int64_t rows, int64_t j, int64_t width) {
    const int64_t b_panel = pith__gemm_int8_panel_bytes(g->k);
    for (int64_t p = 0; p < width; p += 16) {
        const vi columns =
            gemm_int8_columns_of((const int8_t *)g->b + (j + p) / 16 * b_panel, b_panel);
        const vi less = vi_mul(columns, vi_set1(shift));
        for (int64_t r = 0; r < rows; r++) {
            const vi sum = vi_sub(vi_load(t + r * stride + p), less);
            int32_t lanes[16], *c = g->c + (i + r) * g->ldc + j + p;
            vi_store(width - p < 16 ? lanes : c, sum);
            if (width - p < 16) memcpy(c, lanes, (size_t)(width - p) * sizeof *lanes);
        }
    }
}

/* Rows of sums, where they go and what is theirs. */
typedef struct block {
    const int32_t *t, *zeros;
    float *out;
    int64_t stride, out_row, rows;
    const float *scale;
    const pith__i8_extra *extra; /* or NULL */
} block;

/* The columns of `panels` panels of a block, j being the first. To the sums come zero points by
 * column sums and extras by their rows of b: the product of bytes leaves the one wanted in its half
 * of a pair, and 0 in the other. n: columns of the last panel. small: column sums fit 16 bits. */
PITH_INLINE void finish_rows(const pith__gemm_int8 *g, block s, int64_t j, const int panels,
                             const size_t n, const bool extras, const bool small, const bool vnni) {
    enum { MOST = 4 };
    const int64_t b_panel = pith__gemm_int8_panel_bytes(g->k);
    const int8_t *b[MOST];
    vi columns[MOST];
    vf scale[MOST], bias[MOST];
    PITH_UNROLL
    for (int p = 0; p < panels; p++) {
        b[p] = (const int8_t *)g->b + (j / 16 + p) * b_panel;
        columns[p] = vi_sub(vi_set1(0), gemm_int8_columns_of(b[p], b_panel));
        if (small) columns[p] = vi_and(columns[p], vi_set1(0xFFFF));
        scale[p] = vf_load_n(g->b_scale + j + 16 * p, n);
        bias[p] = g->bias ? vf_load_n(g->bias + j + 16 * p, n) : vf_set1(-0.0f); /* x + -0.0 is x */
    }
    for (int64_t r = 0; r < s.rows; r++, s.t += s.stride, s.out += s.out_row) {
        const vi zero = vi_set1(s.zeros[r]);
        vi sum[MOST];
        PITH_UNROLL
        for (int p = 0; p < panels; p++) {
            sum[p] = vi_load(s.t + 16 * p);
            sum[p] = small ? vi_add_pairs(sum[p], columns[p], zero, vnni)
                           : vi_add(sum[p], vi_mul(columns[p], zero));
        }
        PITH_UNROLL
        for (int e = 0; e < PITH_I8_EXTRAS; e++, s.extra++) {
            if (!extras) break;
            const vi one = vi_set1(s.extra->one), pair = vi_set1(s.extra->pair);
            PITH_UNROLL
            for (int p = 0; p < panels; p++)
                sum[p] = vi_add_pairs(
                    sum[p], vi_dot_bytes(one, vi_load_bytes(b[p] + s.extra->group)), pair, vnni);
        }
        const vf a_scale = vf_set1(s.scale[r]);
        PITH_UNROLL
        for (int p = 0; p < panels; p++)
            vf_store_n(s.out + 16 * p, vf_fma(vf_mul(vf_of_vi(sum[p]), a_scale), scale[p], bias[p]),
                       n);
    }
}

/* Panels that share the numbers of a row in the epilogue: in a strip of four panels, and in any
 * other strip. 0: there is only one form of the epilogue. */
#if defined(PITH_LEVEL_avx512)
enum { FOUR = 4, TOGETHER = 2 };
#elif defined(PITH_LEVEL_avx2)
enum { FOUR = 1, TOGETHER = 1 };
#else
enum { FOUR = 0, TOGETHER = 0 };
#endif

/* True if all column sums of these columns fit 16 bits. Zero points do too, so their products take
 * one instruction that multiplies pairs of 16 bits and adds. */
static bool all_small(const pith__gemm_int8 *g, int64_t j, int64_t width) {
    const int64_t b_panel = pith__gemm_int8_panel_bytes(g->k);
    bool small = true;
    for (int64_t p = j / 16; p < (j + width + 15) / 16; p++)
        small =
            small && fit_16_bits(gemm_int8_columns_of((const int8_t *)g->b + p * b_panel, b_panel));
    return small;
}

/* Sums of a tile become results: zero points and extras are added in integers, then come the scales
 * and the bias, then the activation. Without an activation the results go to where they belong;
 * with one they wait in f, which stays in the L1 cache. The forms for several panels need column
 * sums of 16 bits and extras, the usual case; all others take a panel at a time. */
PITH_INLINE void gemm_int8_finish(const pith__gemm_int8 *g, const int32_t *t, int64_t stride,
                                  int32_t shift, int64_t i, int64_t rows, int64_t j, int64_t width,
                                  const bool vnni) {
    const bool direct = g->activation == PITH_ACT_NONE, small = all_small(g, j, width);
    float f[PITH_I8_SUMS], *const out = g->out + i * g->ldc + j;
    int32_t zeros[PITH_I8_SUMS / 16];
    block s = { .t = t,
                .zeros = zeros,
                .out = direct ? out : f,
                .stride = stride,
                .out_row = direct ? g->ldc : stride,
                .rows = rows,
                .scale = g->a_scale + i,
                .extra = g->a_extra ? g->a_extra + i * PITH_I8_EXTRAS : NULL };
    for (int64_t r = 0; r < rows; r++) zeros[r] = (g->a_zero ? g->a_zero[i + r] : 0) + shift;
    const bool usual = TOGETHER > 0 && small && s.extra;
    for (int64_t left = width, step; left > 0;
         left -= step, s.t += step, s.out += step, j += step) {
        if (usual && vnni && left >= 16 * FOUR) {
            step = 16 * FOUR;
            finish_rows(g, s, j, FOUR, 16, true, true, vnni);
        } else if (usual && left >= 16 * TOGETHER) {
            step = 16 * TOGETHER;
            finish_rows(g, s, j, TOGETHER, 16, true, true, vnni);
        } else {
            step = 16;
            finish_rows(g, s, j, 1, left < 16 ? (size_t)left : 16, s.extra != NULL, small, false);
        }
    }
    if (g->activation == PITH_ACT_GELU_ERF) {
        for (int64_t r = 0; r < rows; r++)
            PITH_K(gelu_coarse_f32)(f + r * stride, out + r * g->ldc, (size_t)width);
    } else if (!direct) {
        PITH_K(gemm_activate)(g->activation, out, g->ldc, f, stride, rows, width);
    }
}

void PITH_K(gemm_i8_finish)(const pith__gemm_int8 *g, const int32_t *t, int64_t stride,
                            int32_t shift, int64_t i, int64_t rows, int64_t j, int64_t width,
                            bool vnni) {
    if (g->c)
        finish_sums(g, t, stride, shift, i, rows, j, width);
    else if (g->bytes)
        g->requantize(g->bytes, t, stride, i, i + rows, j, j + width);
    else if (TOGETHER > 0 && vnni)
        gemm_int8_finish(g, t, stride, shift, i, rows, j, width, true);
    else
        gemm_int8_finish(g, t, stride, shift, i, rows, j, width, false);
}

/* Tiles of up to `most` rows and of `panels` panels: rows [i, i + rows) meet the columns [j, j +
 * width) of one strip of b; meanwhile the next strip is fetched, a share by each tile. With more
 * than two panels all strips must be whole. */
static void gemm_int8_run(const pith__gemm_int8 *g, tile_fn *const *tiles, int64_t most,
                          int64_t panels, bool vnni, int64_t m0, int64_t m1, int64_t n0,
                          int64_t n1) {
    _Alignas(64) int32_t t[PITH_I8_SUMS];
    const int64_t strip = 16 * panels;
    const int64_t b_panel = pith__gemm_int8_panel_bytes(g->k), steps = (g->k + 3) / 4;
    const int64_t count = (m1 - m0 + most - 1) / most;
    const bool bytes = !g->c && g->bytes;
    const char *c = (const char *)g->out; /* where the results go */
    if (g->c) c = (const char *)g->c;
    if (bytes) c = (const char *)g->bytes->y;
    const int64_t c_size = bytes ? 1 : (int64_t)sizeof *g->out,
                  c_row = bytes ? g->bytes->step : g->ldc * c_size;
    const int64_t columns = count > 4 && b_panel * panels > (int64_t)(pith__cpu_get()->l1d / 4 * 3)
                                ? GROUP * strip
                                : strip;
    for (int64_t j0 = n0; j0 < n1; j0 += columns) {
        const int64_t j1 = n1 - j0 < columns ? n1 : j0 + columns;
        const char *next = j1 == n1 && g->next ? g->next : (const char *)g->b + j1 / 16 * b_panel;
        for (int64_t i = m0, tile = 0, rows; tile < count; tile++, i += rows) {
            rows = (m1 - i + count - tile - 1) / (count - tile);
            for (int64_t j = j0; j < j1; j += strip) {
                const int64_t width = j1 - j < strip ? j1 - j : strip;
                const fetches f = { .ahead =
                                        (uintptr_t)next + (uintptr_t)((j - j0) / 16 * b_panel +
                                                                      tile * steps / count * 64),
                                    .ahead_step = (128 + count - 1) / count,
                                    .row = (uintptr_t)(c + i * c_row + j * c_size),
                                    .row_step = c_row };
                /* Where the second panel is missing, the first is taken twice. */
                tiles[rows - 1]((const uint8_t *)g->a + i * g->lda, g->lda,
                                (const int8_t *)g->b + j / 16 * b_panel, width > 16 ? b_panel : 0,
                                g->k, g->a_signed != 0, t, &f);
                PITH_K(gemm_i8_finish)(g, t, strip, g->a_signed ? 128 : 0, i, rows, j, width, vnni);
            }
        }
    }
}

void PITH_K(gemm_i8)(const pith__gemm_int8 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    if (g->narrow)
        gemm_int8_run(g, narrow_tiles, NARROW_ROWS, PANELS, false, m0, m1, n0, n1);
    else
        gemm_int8_run(g, wide_tiles, WIDE_ROWS, PANELS, false, m0, m1, n0, n1);
}

void PITH_K(gemm_vnni_i8)(const pith__gemm_int8 *g, int64_t m0, int64_t m1, int64_t n0,
                          int64_t n1) {
#if defined(EACH_VNNI_4)
    const int64_t columns = g->a_signed ? 0 : (n1 - n0) / (16 * PANELS_4) * (16 * PANELS_4);
    gemm_int8_run(g, vnni4_tiles, ROWS_4, PANELS_4, true, m0, m1, n0, n0 + columns);
    n0 += columns;
#endif
    gemm_int8_run(g, vnni_tiles, ROWS, PANELS, true, m0, m1, n0, n1);
}

void PITH_K(gemm_pack_i8)(void *packed, const int8_t *b, int64_t row_stride, int64_t column_stride,
                          int64_t k, int64_t n, int64_t n0, int64_t n1) {
    const int64_t b_panel = pith__gemm_int8_panel_bytes(k);
    for (int64_t j0 = n0; j0 < n1; j0 += 16) {
        int8_t *panel = (int8_t *)packed + j0 / 16 * b_panel;
        int32_t sums[16] = { 0 };
        for (int64_t i = 0; i < (k + 3) / 4 * 4; i++) {
            for (int64_t j = 0; j < 16; j++) {
                int8_t value =
                    i < k && j0 + j < n ? b[i * row_stride + (j0 + j) * column_stride] : 0;
                panel[i / 4 * 64 + 4 * j + i % 4] = value;
                sums[j] += value;
            }
        }
        memcpy(panel + b_panel - 64, sums, sizeof sums);
    }
}
