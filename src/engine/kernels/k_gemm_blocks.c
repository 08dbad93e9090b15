/* k_gemm_blocks.c - matmuls with a scale for every block of k, and the quantisation of their rows.
 *
 * A tile keeps the integer sums of one block in registers and the sums over the blocks in memory,
 * which is touched once in a block. Weights are taken apart in registers, 8 k at a time, for all
 * rows of the tile.
 *
 *   VNNI    multiplies u8 by i8 and adds four results in one instruction.
 *   narrow  without VNNI: halves of bytes by i8, of which SPAN / 4 sums of two fit 16 bits (8 *
 *           2 * 15 * 127 < 2^15). Weights of 8 bits take two turns, for their lower and their
 *           upper halves. */
#include "engine/kernels/gemm_blocks.h"

#include "engine/kernels/vec.h"
#include "engine/kernels/vmath.h"

/* k whose products are added in 16 bits; a multiple of 8. A longer span could overflow them, as
 * said above; a shorter one widens sums to 32 bits more often. */
enum { SPAN = 32 };

/* ROWS and NARROW_ROWS: rows of a tile for each way, PANELS: its panels of 16 columns. Each row has
 * PANELS sums in registers, and the weights that are taken apart once serve all rows: more rows
 * take them apart less often, until the sums spill. Narrow tiles hold sums of 16 bits next to those
 * of 32, so fewer rows fit. */
#if defined(PITH_LEVEL_avx512)
enum { ROWS = 12, NARROW_ROWS = 4, PANELS = 2 };
typedef __m512i pairs; /* of 16-bit sums */

PITH_INLINE vi blocks_load(const uint8_t *p) { return _mm512_loadu_si512(p); }
#define HAS_VNNI
/* In the register of s: compilers would move sums from one to another. */
PITH_INLINE vi step_vnni(vi s, vi b, uint32_t a) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(s) : "v"(b), "v"(_mm512_set1_epi32((int32_t)a)));
    return s;
}
PITH_INLINE pairs pairs_zero(void) { return _mm512_setzero_si512(); }
PITH_INLINE pairs step_narrow(pairs s, vi b, uint32_t a) {
    return _mm512_add_epi16(s, _mm512_maddubs_epi16(b, _mm512_set1_epi32((int32_t)a)));
}
PITH_INLINE vi pairs_sums(pairs s) { return _mm512_madd_epi16(s, _mm512_set1_epi16(1)); }

#elif defined(PITH_LEVEL_avx2)
enum { ROWS = 4, NARROW_ROWS = 4, PANELS = 1 };
typedef vi pairs;

PITH_INLINE vi blocks_load(const uint8_t *p) { return vi_load((const int32_t *)(const void *)p); }
#define HAS_VNNI
PITH_INLINE vi step_vnni(vi s, vi b, uint32_t a) {
    const __m256i x = _mm256_set1_epi32((int32_t)a);
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(s.lo) : "x"(b.lo), "x"(x));
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(s.hi) : "x"(b.hi), "x"(x));
    return s;
}
PITH_INLINE pairs pairs_zero(void) { return vi_set1(0); }
PITH_INLINE pairs step_narrow(pairs s, vi b, uint32_t a) {
    const __m256i x = _mm256_set1_epi32((int32_t)a);
    return (pairs){ _mm256_add_epi16(s.lo, _mm256_maddubs_epi16(b.lo, x)),
                    _mm256_add_epi16(s.hi, _mm256_maddubs_epi16(b.hi, x)) };
}
PITH_INLINE vi pairs_sums(pairs s) { return vi_dot_pairs(s, vi_set1(0x00010001)); }

#elif defined(PITH_LEVEL_neon)
enum { NARROW_ROWS = 2, PANELS = 1 };
/* The sums of the products of each byte: 8 SPAN / 4 * 15 * 127 < 2^15. Two columns a register. */
typedef struct pairs {
    int16x8_t v[8];
} pairs;

PITH_INLINE vi blocks_load(const uint8_t *p) { return vi_load((const int32_t *)(const void *)p); }
PITH_INLINE pairs pairs_zero(void) {
    const int16x8_t zero = vdupq_n_s16(0);
    return (pairs){ { zero, zero, zero, zero, zero, zero, zero, zero } };
}
PITH_INLINE void step_columns(int16x8_t *s, int32x4_t b, int8x16_t a) {
    const int8x16_t w = vreinterpretq_s8_s32(b);
    s[0] = vmlal_s8(s[0], vget_low_s8(w), vget_low_s8(a));
    s[1] = vmlal_high_s8(s[1], w, a);
}
PITH_INLINE pairs step_narrow(pairs s, vi b, uint32_t a) {
    const int8x16_t x = vreinterpretq_s8_u32(vdupq_n_u32(a));
    step_columns(s.v, b.a, x), step_columns(s.v + 2, b.b, x);
    step_columns(s.v + 4, b.c, x), step_columns(s.v + 6, b.d, x);
    return s;
}
PITH_INLINE int32x4_t columns_sums(const int16x8_t *s) {
    return vpaddq_s32(vpaddlq_s16(s[0]), vpaddlq_s16(s[1]));
}
PITH_INLINE vi pairs_sums(pairs s) {
    return (vi){ columns_sums(s.v), columns_sums(s.v + 2), columns_sums(s.v + 4),
                 columns_sums(s.v + 6) };
}

#else
enum { NARROW_ROWS = 1, PANELS = 1 };
typedef vi pairs;

PITH_INLINE vi blocks_load(const uint8_t *p) {
    vi b;
    memcpy(&b, p, sizeof b);
    return b;
}
PITH_INLINE pairs pairs_zero(void) { return vi_set1(0); }
PITH_INLINE pairs step_narrow(pairs s, vi b, uint32_t a) {
    const int32_t a0 = (int8_t)a, a1 = (int8_t)(a >> 8), a2 = (int8_t)(a >> 16),
                  a3 = (int8_t)(a >> 24);
    for (int j = 0; j < 16; j++) {
        const uint32_t w = (uint32_t)b.v[j];
        s.v[j] += a0 * (int32_t)(w & 255) + a1 * (int32_t)(w >> 8 & 255) +
                  a2 * (int32_t)(w >> 16 & 255) + a3 * (int32_t)(w >> 24);
    }
    return s;
}
PITH_INLINE vi pairs_sums(pairs s) { return s; }
#endif

/* Where a tile is: every third of its rows of a, and its panels. Where a tile's second panel is
 * missing, w_panel is 0. */
typedef struct place {
    const uint8_t *a[(12 + 2) / 3], *w, *zeros;
    int64_t lda, w_panel;
} place;

#define BLOCKS_ROW(r) (at.a[(r) / 3] + (r) % 3 * at.lda)
#define BLOCKS_MOVE(bytes)                                                                         \
    PITH_UNROLL                                                                                    \
    for (int r = 0; r < rows; r += 3) at.a[r / 3] += bytes

PITH_INLINE uint32_t four(const uint8_t *a) {
    uint32_t x;
    memcpy(&x, a, sizeof x);
    return x;
}
PITH_INLINE float blocks_float(const uint8_t *a) {
    float x;
    memcpy(&x, a, sizeof x);
    return x;
}

/* What the sums of a block begin with: the part of the zero points. */
PITH_INLINE void blocks_start(const int rows, place at, const bool zeros, vi s[][PANELS]) {
    vi z[PANELS];
    PITH_UNROLL
    for (int p = 0; p < PANELS; p++) {
        if (!zeros) break;
        z[p] = vi_load_u8(at.zeros + p * at.w_panel);
    }
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        const vi start = vi_set1((int32_t)four(BLOCKS_ROW(r)));
        PITH_UNROLL
        for (int p = 0; p < PANELS; p++) s[r][p] = zeros ? vi_mul(start, z[p]) : start;
    }
}

/* The sums of a block, scaled, are added to t[rows][16 * PANELS]. at: behind the block's numbers.
 */
PITH_INLINE void blocks_finish(const int rows, place at, const vi s[][PANELS], float *t) {
    PITH_FORGET(t); /* or all of t would be copied to the stack and back */
    vf scale[PANELS];
    PITH_UNROLL
    for (int p = 0; p < PANELS; p++)
        scale[p] = vf_load((const float *)(const void *)(at.w + p * at.w_panel));
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        const vf a_scale = vf_set1(blocks_float(BLOCKS_ROW(r) + 4));
        PITH_UNROLL
        for (int p = 0; p < PANELS; p++) {
            float *sum = t + 16 * (r * PANELS + p);
            vf_store(sum, vf_fma(vf_mul(vf_of_vi(s[r][p]), a_scale), scale[p], vf_load(sum)));
        }
    }
}

/* The bytes of 8 k: of k 0 to 3 and of k 4 to 7. */
PITH_INLINE vi blocks_low(vi b) { return vi_and(b, vi_set1(0x0F0F0F0F)); }
PITH_INLINE vi blocks_high(vi b) { return blocks_low(vi_shr(b, 4)); }

/* The sums over all blocks of a tile into t, which is cleared before. */
#if defined(HAS_VNNI)
/* A step takes 8 k of each panel: with 4 bits the lower and the upper halves of one group of 64
 * bytes, with 8 bits two groups. The 16 scales of the block are behind its groups. */
PITH_INLINE void tile_vnni(const int rows, const pith__blocks_form *f, place at, float *t) {
    const bool halves = f->bits == 4;
    for (int64_t block = f->blocks; block > 0; block--) {
        const uint8_t *const end = at.w + pith__blocks_block_bytes(f) - 64;
        vi s[ROWS][PANELS];
        if (f->zeros)
            blocks_start(rows, at, true, s);
        else
            blocks_start(rows, at, false, s);
        while (at.w != end) {
            vi b[PANELS], next[PANELS];
            PITH_UNROLL
            for (int p = 0; p < PANELS; p++) {
                b[p] = blocks_load(at.w + p * at.w_panel);
                next[p] = halves ? blocks_high(b[p]) : blocks_load(at.w + p * at.w_panel + 64);
                if (halves) b[p] = blocks_low(b[p]);
            }
            PITH_UNROLL
            for (int r = 0; r < rows; r++) {
                PITH_UNROLL
                for (int p = 0; p < PANELS; p++)
                    s[r][p] = step_vnni(s[r][p], b[p], four(BLOCKS_ROW(r) + 4));
            }
            PITH_UNROLL
            for (int r = 0; r < rows; r++) {
                PITH_UNROLL
                for (int p = 0; p < PANELS; p++)
                    s[r][p] = step_vnni(s[r][p], next[p], four(BLOCKS_ROW(r) + 8));
            }
            at.w += halves ? 64 : 128;
            BLOCKS_MOVE(8);
        }
        blocks_finish(rows, at, s, t);
        at.w += 64;
        at.zeros += 16;
        BLOCKS_MOVE(8);
    }
}
#endif

/* The sums of `steps` times 8 k. turn: 0 and 4 take the halves of weights of 8 bits. */
PITH_INLINE void blocks_span(const int rows, place at, const bool halves, int turn, int steps,
                             vi s[][PANELS]) {
    pairs sums[NARROW_ROWS][PANELS];
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        PITH_UNROLL
        for (int p = 0; p < PANELS; p++) sums[r][p] = pairs_zero();
    }
    for (; steps > 0; steps--) {
        vi b[PANELS], next[PANELS];
        PITH_UNROLL
        for (int p = 0; p < PANELS; p++) {
            const vi first = blocks_load(at.w + p * at.w_panel);
            const vi second = halves ? first : blocks_load(at.w + p * at.w_panel + 64);
            b[p] = turn ? blocks_high(first) : blocks_low(first);
            next[p] = halves || turn ? blocks_high(second) : blocks_low(second);
        }
        PITH_UNROLL
        for (int r = 0; r < rows; r++) {
            PITH_UNROLL
            for (int p = 0; p < PANELS; p++)
                sums[r][p] = step_narrow(sums[r][p], b[p], four(BLOCKS_ROW(r) + 4));
            PITH_UNROLL
            for (int p = 0; p < PANELS; p++)
                sums[r][p] = step_narrow(sums[r][p], next[p], four(BLOCKS_ROW(r) + 8));
        }
        at.w += halves ? 64 : 128;
        BLOCKS_MOVE(8);
    }
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        PITH_UNROLL
        for (int p = 0; p < PANELS; p++) {
            const vi sum = pairs_sums(sums[r][p]);
            s[r][p] = vi_add(s[r][p], turn ? vi_shl(sum, 4) : sum);
        }
    }
}

/* Sums of 16 bits hold a span; then they are added to those of 32 bits. Weights of 8 bits go
 * through the span twice, first for their lower halves. */
PITH_INLINE void tile_narrow(const int rows, const pith__blocks_form *f, place at, float *t) {
    const bool halves = f->bits == 4;
    const int span = f->block < SPAN ? f->block : SPAN;
    for (int64_t block = f->blocks; block > 0; block--) {
        vi s[NARROW_ROWS][PANELS];
        blocks_start(rows, at, f->zeros != 0, s);
        for (int k = 0; k < f->block; k += span) {
            if (halves) {
                blocks_span(rows, at, true, 0, span / 8, s);
            } else {
                for (int turn = 0; turn < 8; turn += 4)
                    blocks_span(rows, at, false, turn, span / 8, s);
            }
            at.w += span * 2 * f->bits;
            BLOCKS_MOVE(span);
        }
        blocks_finish(rows, at, s, t);
        at.w += 64;
        at.zeros += 16;
        BLOCKS_MOVE(8);
    }
}

typedef void tile_fn(const pith__blocks_form *f, place at, float *t);
#define NARROW(rows)                                                                               \
    static void tile_narrow_##rows(const pith__blocks_form *f, place at, float *t) {               \
        tile_narrow(rows, f, at, t);                                                               \
    }
#define VNNI(rows)                                                                                 \
    static void tile_vnni_##rows(const pith__blocks_form *f, place at, float *t) {                 \
        tile_vnni(rows, f, at, t);                                                                 \
    }
#define ENTRY_NARROW(rows) [rows - 1] = tile_narrow_##rows,
#define ENTRY_VNNI(rows) [rows - 1] = tile_vnni_##rows,
#define EACH_2(X) X(1) X(2)
#define EACH_4(X) EACH_2(X) X(3) X(4)
#if defined(PITH_LEVEL_avx512)
#define EACH_NARROW(X) EACH_4(X)
#define EACH_VNNI(X) EACH_4(X) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#elif defined(PITH_LEVEL_avx2)
#define EACH_NARROW(X) EACH_4(X)
#define EACH_VNNI(X) EACH_4(X)
#elif defined(PITH_LEVEL_neon)
#define EACH_NARROW(X) EACH_2(X)
#else
#define EACH_NARROW(X) X(1)
#endif

EACH_NARROW(NARROW)
static tile_fn *const narrow_tiles[NARROW_ROWS] = { EACH_NARROW(ENTRY_NARROW) };
#if defined(EACH_VNNI)
EACH_VNNI(VNNI)
static tile_fn *const vnni_tiles[ROWS] = { EACH_VNNI(ENTRY_VNNI) };
#else /* one way does for all */
enum { ROWS = NARROW_ROWS };
#define vnni_tiles narrow_tiles
#endif

/* Sums t and the bias to rows [i, i + rows) and columns [j, j + width) of the result. */
static void blocks_store(const pith__gemm_blocks *g, const float *t, int64_t i, int64_t rows,
                         int64_t j, int64_t width) {
    for (int64_t p = 0; p < width; p += 16, t += 16) {
        const size_t n = width - p < 16 ? (size_t)(width - p) : 16;
        /* x + -0.0 is x */
        const vf bias = g->bias ? vf_load_n(g->bias + j + p, n) : vf_set1(-0.0f);
        for (int64_t r = 0; r < rows; r++)
            vf_store_n(g->c + (i + r) * g->ldc + j + p, vf_add(vf_load(t + 16 * PANELS * r), bias),
                       n);
    }
}

/* Tiles of up to `most` rows; all rows meet the columns of one strip of b while it is in the cache.
 */
static void blocks_run(const pith__gemm_blocks *g, tile_fn *const *tiles, int64_t most, int64_t m0,
                       int64_t m1, int64_t n0, int64_t n1) {
    _Alignas(64) float t[12 * 16 * PANELS];
    const int64_t lda = pith__blocks_row_bytes(g->form), panel = pith__blocks_panel_bytes(g->form);
    const int64_t count = (m1 - m0 + most - 1) / most;
    for (int64_t j = n0; j < n1; j += 16 * PANELS) {
        const int64_t width = n1 - j < 16 * PANELS ? n1 - j : 16 * PANELS;
        const uint8_t *w = (const uint8_t *)g->b + j / 16 * panel;
        for (int64_t i = m0, tile = 0, rows; tile < count; tile++, i += rows) {
            rows = (m1 - i + count - tile - 1) / (count - tile);
            place at = { .w = w,
                         .zeros = w + g->form->blocks * pith__blocks_block_bytes(g->form),
                         .lda = lda,
                         .w_panel = width > 16 ? panel : 0 };
            for (int64_t r = 0; r < rows; r += 3)
                at.a[r / 3] = (const uint8_t *)g->a + (i + r) * lda;
            memset(t, 0, (size_t)(rows * 16 * PANELS) * sizeof *t);
            tiles[rows - 1](g->form, at, t);
            blocks_store(g, t, i, rows, j, width);
        }
    }
}

void PITH_K(gemm_blocks_u8)(const pith__gemm_blocks *g, int64_t m0, int64_t m1, int64_t n0,
                            int64_t n1) {
    blocks_run(g, narrow_tiles, NARROW_ROWS, m0, m1, n0, n1);
}

void PITH_K(gemm_blocks_vnni_u8)(const pith__gemm_blocks *g, int64_t m0, int64_t m1, int64_t n0,
                                 int64_t n1) {
    blocks_run(g, vnni_tiles, ROWS, m0, m1, n0, n1);
}

PITH_INLINE vf blocks_take_few(const float *x, int64_t n) {
    return n > 0 ? vf_load_n(x, (size_t)n) : vf_zero();
}

/* Element n and those after it count as 0. */
PITH_INLINE vf blocks_take(const float *x, int64_t n) {
    return n >= 16 ? vf_load(x) : blocks_take_few(x, n);
}

/* n numbers of a block of a row, n at most block: gemm_blocks.h says how. The largest magnitude is
 * found on the bits without sign, whose order is that of the numbers, with infinity and NaN above
 * all of them; so one maximum also tells whether all are finite. */
static void quantize_block(uint8_t *to, const float *x, int64_t n, int64_t block, int32_t middle) {
    vi most = vi_set1(0), sum = vi_set1(0);
    for (int64_t i = 0; i < n; i += 16)
        most = vi_max(most, vi_and(vi_bits(blocks_take(x + i, n - i)), vi_set1(0x7FFFFFFF)));
    const int32_t bits = vi_hmax(most); /* of |x|, whose order is that of their bits; NaN is above
                                           infinity */
    float top, scale;
    memcpy(&top, &bits, sizeof top);
    scale = top / 127.0f;
    if (bits >= 0x7F800000 || top < PITH_RANGE_MIN) {
        scale = bits >= 0x7F800000 ? (float)NAN : 0.0f;
        memset(to + 4, 0, (size_t)block);
    } else {
        const vf inverse = vf_set1(127.0f / top), magic = vf_set1(PITH_ROUND_MAGIC);
        for (int64_t i = 0; i < block; i += 16) {
            const vi q = vi_bits(vf_add(vf_mul(blocks_take(x + i, n - i), inverse), magic));
            vi_store_8(to + 4 + i, q);
            sum = vi_add(sum, vi_sub(vi_bits(magic), q));
        }
    }
    const int32_t start = vi_hsum(sum) * middle;
    memcpy(to, &start, sizeof start);
    memcpy(to + 4 + block, &scale, sizeof scale);
}

void PITH_K(quantize_blocks_i8)(const pith__quantize_blocks *a) {
    const pith__blocks_form *f = a->form;
    const int32_t middle = f->zeros ? 1 : 1 << (f->bits - 1);
    uint8_t *to = a->q;
    for (int64_t row = 0; row < a->rows; row++) {
        const float *x = a->x + row * a->ldx;
        for (int64_t k = 0; k < f->k; k += f->block, to += f->block + 8)
            quantize_block(to, x + k, f->k - k < f->block ? f->k - k : f->block, f->block, middle);
    }
}
