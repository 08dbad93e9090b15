/* k_attention_i16.c - attention in fixed point, for calls without causal mask, window or bias;
 * attention.h defines it.
 *
 * Two numbers of 16 bits lie where one float would: two elements of d in queries and keys, two keys
 * in probabilities and values. One instruction multiplies pairs by pairs and adds, exact in 32
 * bits. With VNNI that is twice the work of a float multiply-add in the same time; without VNNI it
 * is as much work. The steps are those of k_attention.c. */
#include <stdbool.h>

#include "engine/kernels/attention.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/gemm_tile.h"
#include "engine/kernels/vmath.h"

/* Sums of a tile: rows by panels of 16 columns, as many as of floats fit the registers. There are
 * tiles for every even number of rows. They are tiles of their own: with those of k_gemm_tile.c,
 * for every number of rows and with all that they fetch meanwhile, each way would take 58 kB on
 * AVX-512 instead of 8 and 13. */
enum { ROWS = PITH_TILE_ROWS / 2 * 2, PANELS = PITH_TILE_PANELS };
_Static_assert((int)ROWS <= (int)PITH_ATTENTION_ROWS,
               "the scratch holds a strip for each row of a tile");

/* Keys whose probabilities times values are added in 32-bit integers before the sum moves to f32.
 * More could overflow: 256 * 32763 * 255 < 2^31. */
enum { BLOCK = 256, VALUE_MOST = 255 };

typedef enum way { PLAIN, VNNI } way;

/* t = a b for rows of a and `groups` times a tile's panels of b; depth and strides in pairs. */
typedef struct product {
    const int32_t *a, *b;
    int32_t *t;
    int64_t a_row, b_panel, t_row, depth, groups;
} product;

/* Where a tile is in its depth: at every third row of a, as in k_gemm_tile.c, and at the panels of
 * b. */
typedef struct place {
    const int32_t *a[(ROWS + 2) / 3], *b[PANELS];
} place;

/* `steps` steps of depth. */
PITH_INLINE void attention_i16_advance(const way w, const int rows, const int panels,
                                       const int steps, int64_t a_row, place *at,
                                       vi sum[ROWS][PANELS]) {
    int64_t two_rows = 2 * a_row;
    PITH_FORGET(a_row); /* or offsets like a_row + 1, which are free in an address, would each take
                           a register */
    PITH_FORGET(two_rows);
    PITH_UNROLL
    for (int s = 0; s < steps; s++) {
        vi column[PANELS];
        PITH_UNROLL
        for (int p = 0; p < panels; p++) column[p] = vi_load(at->b[p] + 16 * s);
        PITH_UNROLL
        for (int i = 0; i < rows; i++) {
            const vi pair = vi_set1(at->a[i / 3][(i % 3 == 2 ? two_rows : i % 3 * a_row) + s]);
            PITH_UNROLL
            for (int p = 0; p < panels; p++)
                sum[i][p] = vi_add_pairs(sum[i][p], pair, column[p], w == VNNI);
        }
    }
    PITH_UNROLL
    for (int i = 0; i < rows; i += 3) at->a[i / 3] += steps;
    PITH_UNROLL
    for (int p = 0; p < panels; p++) at->b[p] += 16 * steps;
}

PITH_INLINE void attention_i16_tile(const way w, const int rows, const int panels, const int turn,
                                    const product *g) {
    const int32_t *b = g->b;
    int32_t *t = g->t;
    for (int64_t group = 0; group < g->groups; group++, t += 16 * panels) {
        int32_t *to = t;
        vi sum[ROWS][PANELS];
        place at;
        PITH_UNROLL
        for (int i = 0; i < rows; i++) {
            PITH_UNROLL
            for (int p = 0; p < panels; p++) sum[i][p] = vi_bits(vf_clear());
        }
        PITH_UNROLL
        for (int i = 0; i < rows; i += 3) at.a[i / 3] = g->a + i * g->a_row;
        PITH_UNROLL
        for (int p = 0; p < panels; p++, b += g->b_panel) at.b[p] = b;
        int64_t left = g->depth;
        for (; left >= turn; left -= turn)
            attention_i16_advance(w, rows, panels, turn, g->a_row, &at, sum);
        if (turn > 1)
            for (; left > 0; left--) attention_i16_advance(w, rows, panels, 1, g->a_row, &at, sum);
        PITH_UNROLL
        for (int i = 0; i < rows; i++, to += g->t_row) {
            PITH_UNROLL
            for (int p = 0; p < panels; p++) vi_store(to + 16 * p, sum[i][p]);
        }
    }
}

typedef void tile_fn(const product *g);
typedef tile_fn *const tile_row[ROWS / 2]; /* by number of rows */
#define TILE(rows, panels)                                                                         \
    static void plain_##rows##x##panels(const product *g) {                                        \
        attention_i16_tile(PLAIN, rows, panels, 1, g);                                             \
    }
#define TILE_VNNI(rows, panels)                                                                    \
    static void vnni_##rows##x##panels(const product *g) {                                         \
        attention_i16_tile(VNNI, rows, panels, panels == 2 ? 4 : 1, g);                            \
    }
#define ENTRY(rows, panels) [panels - 1][rows / 2 - 1] = plain_##rows##x##panels,
#define ENTRY_VNNI(rows, panels) [panels - 1][rows / 2 - 1] = vnni_##rows##x##panels,
#if defined(PITH_LEVEL_avx512)
#define TILES_7(X, panels)                                                                         \
    X(2, panels) X(4, panels) X(6, panels) X(8, panels) X(10, panels) X(12, panels) X(14, panels)
#define TILES(X) TILES_7(X, 1) TILES_7(X, 2)
#elif defined(PITH_LEVEL_avx2)
#define TILES(X) X(2, 1) X(4, 1) X(6, 1)
#else
#define TILES(X) X(2, 1) X(4, 1)
#endif
TILES(TILE)
static tile_row plain_tiles[PANELS] = { TILES(ENTRY) };
#if defined(PITH_LEVEL_avx512) || defined(PITH_LEVEL_avx2)
TILES(TILE_VNNI)
static tile_row vnni_tiles[PANELS] = { TILES(ENTRY_VNNI) };
#else
#define vnni_tiles plain_tiles
#endif

typedef struct call {
    const pith__attention *a;
    tile_row *tiles;           /* by number of panels */
    int64_t keys, depth, rows; /* pairs: of d, and of keys, rounded up */
    const int32_t *kt, *v;     /* packed: [padded keys / 16][depth][16], [dv / 16][rows][16] */
    int32_t *q;                /* of a tile's queries, [ROWS][depth] */
    int32_t *strip;            /* [ROWS][strip_row]: scores, then probabilities from each row's
                                  begin on */
    int64_t strip_row;
    float *value_unit, *value_middle; /* [dv] */
    float steps, log2e_unit; /* the largest number of q and k; what q's unit makes exponents of 2
                                out of scores */
} call;

/* The largest magnitude by lane, also among those of before. */
PITH_INLINE vf magnitudes(vf most, const float *x, int64_t n) {
    for (int64_t j = 0; j < n; j += 16) most = vf_max(vf_abs(vf_load(x + j)), most);
    return most;
}

/* What numbers up to `most` are divided by, and times. */
typedef struct measure {
    float unit, inverse;
} measure;
PITH_INLINE measure measure_of(float most, float steps) {
    if (!(most >= PITH_RANGE_MIN)) return (measure){ 0.0f, 0.0f };
    return (measure){ most / steps, steps / most };
}

/* The integer nearest to x times inverse, in the low 16 bits. */
PITH_INLINE vi attention_i16_rounded(vf x, vf inverse) {
    return vi_bits(vf_fma(x, inverse, vf_set1(PITH_ROUND_MAGIC)));
}

/* n numbers, a multiple of 16, to half as many pairs. */
PITH_INLINE void to_pairs(int32_t *pairs, const float *x, int64_t n, float inverse) {
    const vf times = vf_set1(inverse);
    for (int64_t j = 0; j < n; j += 16)
        vi_store_16(pairs + j / 2, attention_i16_rounded(vf_load(x + j), times));
}

/* Rounds the keys to 16 bits, in rows of pairs, and transposes the pairs as floats are. All keys
 * share one unit, because their scores are compared with each other as integers. Returns it. */
static float pack_keys(float *kt, int32_t *pairs, const call *c, const float *k) {
    const pith__attention *a = c->a;
    vf most = vf_zero();
    for (int64_t j = 0; j < c->keys; j++) most = magnitudes(most, k + j * a->k_stride, a->d);
    const measure m = measure_of(vf_hmax(most), c->steps);
    for (int64_t j = 0; j < c->keys; j++)
        to_pairs(pairs + j * c->depth, k + j * a->k_stride, a->d, m.inverse);
    PITH_K(gemm_pack_f32)(kt, (const float *)pairs, 1, c->depth, c->depth, c->keys, 0, c->keys);
    return m.unit;
}

/* Rounds the values to 16 bits, in panels of 16 columns, two rows of them in the place of one. A
 * column is measured from the middle of its range: probabilities sum to 1, so the middle can be
 * added at the end, and the steps are finer than for numbers measured from 0. Within VALUE_MOST
 * steps on either side, the sums of a block of keys fit 32 bits. */
static void pack_values(int32_t *packed, const call *c, const float *v) {
    const pith__attention *a = c->a;
    const vi lower = vi_set1(0xFFFF);
    for (int64_t column = 0; column < a->dv; column += 16, v += 16) {
        const float *row = v;
        vf low = vf_load(v), high = low;
        for (int64_t j = 1; j < c->keys; j++) {
            vf x = vf_load(v + j * a->v_stride);
            low = vf_min(x, low);
            high = vf_max(x, high);
        }
        const vf middle = vf_mul(vf_add(high, low), vf_set1(0.5f)),
                 half = vf_mul(vf_sub(high, low), vf_set1(0.5f));
        const vm wide = vf_ge(half, vf_set1(PITH_RANGE_MIN));
        const vf most = vf_set1((float)VALUE_MOST), inverse = vf_keep(wide, vf_div(most, half));
        vf_store(c->value_unit + column, vf_keep(wide, vf_div(half, most)));
        vf_store(c->value_middle + column, middle);
        for (int64_t j = 0; j < c->keys; j += 2, packed += 16, row += 2 * a->v_stride) {
            vi even = attention_i16_rounded(vf_sub(vf_load(row), middle), inverse),
               odd = vi_set1(0);
            if (j + 1 < c->keys)
                odd = attention_i16_rounded(vf_sub(vf_load(row + a->v_stride), middle), inverse);
            vi_store(packed, vi_or(vi_and(even, lower), vi_shl(odd, 16)));
        }
    }
}

/* The scores of queries i to i + rows - 1. Returns in units what their exponents of 2 are counted
 * in. A tile may have a row more: the last one again. */
static void attention_i16_scores(const call *c, int64_t i, int rows, int tile_rows, float *units) {
    const pith__attention *a = c->a;
    product g = { .a = c->q,
                  .b = c->kt,
                  .t = c->strip,
                  .a_row = c->depth,
                  .b_panel = 16 * c->depth,
                  .t_row = c->strip_row,
                  .depth = c->depth };
    int64_t panels = (c->keys + 15) / 16;
    vf most[ROWS];
    for (int r = 0; r < rows; r++)
        most[r] = magnitudes(vf_zero(), a->q + (i + r) * a->q_stride, a->d);
    for (int r = 0; r < tile_rows; r++) {
        const int from = r < rows ? r : rows - 1;
        const measure m = measure_of(vf_hmax(most[from]), c->steps);
        to_pairs(c->q + r * c->depth, a->q + (i + from) * a->q_stride, a->d, m.inverse);
        units[from] = c->log2e_unit * m.unit;
    }
    for (int wide = PANELS; wide > 0; wide--) {
        g.groups = panels / wide;
        if (g.groups) c->tiles[wide - 1][tile_rows / 2 - 1](&g);
        panels -= g.groups * wide;
        g.b += g.groups * wide * g.b_panel;
        g.t += g.groups * wide * 16;
    }
}

/* Rows whose maxima are computed side by side: the maximum of one row is a chain of dependent
 * operations. */
enum { CHAINS = 4 };

/* The largest scores by lane of the strip's rows from `row` on: the first CHAINS, or as many as are
 * left. */
static void attention_i16_largest(const call *c, vi *lanes, int row, int left) {
    const int64_t whole = c->keys / 16 * 16;
    const vm tail = vm_first((size_t)(c->keys - whole));
    const int32_t *s[CHAINS];
    vi most[CHAINS];
    PITH_UNROLL
    for (int r = 0; r < CHAINS; r++) {
        s[r] = c->strip + (row + (r < left ? r : 0)) * c->strip_row;
        most[r] = vi_set1(INT32_MIN);
    }
    for (int64_t j = 0; j < whole; j += 16) {
        PITH_UNROLL
        for (int r = 0; r < CHAINS; r++) most[r] = vi_max(most[r], vi_load(s[r] + j));
    }
    PITH_UNROLL
    for (int r = 0; r < CHAINS && r < left; r++) {
        lanes[r] = most[r];
        if (whole < c->keys)
            lanes[r] = vi_max(most[r], vi_select(tail, vi_load(s[r] + whole), vi_set1(INT32_MIN)));
    }
}

/* How a row's scores become the exponents of 2 of its probabilities, negated and 11 bits after the
 * point: u = (min((top - score) >> shift, 65535) * factor) >> 16. */
typedef struct exponent {
    int32_t top, shift, factor;
} exponent;

/* The multiplication of a score difference by unit * 2^11, as a shift and a 16-bit factor: unit *
 * 2^27 = factor * 2^-shift, the factor being the mantissa of the unit, cut to 16 bits. A unit so
 * large that the shift would be to the left is taken as the largest that needs none, and one that
 * is 0 makes all exponents 0. */
static exponent exponent_of(int32_t top, float unit) {
    uint32_t bits;
    memcpy(&bits, &unit, sizeof bits);
    const int32_t shift = 115 - (int32_t)(bits >> 23);
    if (shift < 0) return (exponent){ top, 0, 65535 };
    return (exponent){ top, shift < 31 ? shift : 31, (int32_t)(0x8000 | (bits >> 8 & 0x7FFF)) };
}

/* Probabilities of GROUP keys, one register of 16-bit numbers: 2^15 * 2^-f >> n, where n is the
 * integer part of u and f the fraction, in 2^-16. 2^15 * 2^-f is C0 - f (C1 - f (C2 - f C3)), each
 * multiplication rounded down, with an error of 1.3e-4. */
enum { C0 = 32763, C1 = 22624, C2 = 7494, C3 = 1251 };
#if defined(PITH_LEVEL_avx512)
enum { GROUP = 32 };
typedef __m512i weights;

PITH_INLINE weights weigh(const int32_t *s, const exponent *e) {
    const __m512i top = _mm512_set1_epi32(e->top), order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
    const __m128i shift = _mm_cvtsi32_si128(e->shift);
    __m512i low = _mm512_srl_epi32(_mm512_sub_epi32(top, _mm512_loadu_si512(s)), shift);
    __m512i high = _mm512_srl_epi32(_mm512_sub_epi32(top, _mm512_loadu_si512(s + 16)), shift);
    __m512i u =
        _mm512_mulhi_epu16(_mm512_packus_epi32(low, high), _mm512_set1_epi16((int16_t)e->factor));
    __m512i f = _mm512_slli_epi16(u, 5), y = _mm512_mulhi_epu16(f, _mm512_set1_epi16(C3));
    y = _mm512_mulhi_epu16(f, _mm512_sub_epi16(_mm512_set1_epi16(C2), y));
    y = _mm512_mulhi_epu16(f, _mm512_sub_epi16(_mm512_set1_epi16(C1), y));
    y = _mm512_srlv_epi16(_mm512_sub_epi16(_mm512_set1_epi16(C0), y), _mm512_srli_epi16(u, 11));
    return _mm512_permutexvar_epi64(order, y); /* packing works within 128 bits */
}
PITH_INLINE weights first_weights(weights w, size_t n) {
    return _mm512_maskz_mov_epi16((__mmask32)((1ull << n) - 1), w);
}
PITH_INLINE vi attention_i16_add_weights(vi sum, weights w) {
    return vi_add(sum, vi_dot_pairs(w, _mm512_set1_epi16(1)));
}
PITH_INLINE void put_weights(void *p, weights w) { _mm512_storeu_si512(p, w); }

#elif defined(PITH_LEVEL_avx2)
enum { GROUP = 16 };
typedef __m256i weights;

PITH_INLINE weights weigh(const int32_t *s, const exponent *e) {
    /* 2^(15 - n) for n up to 15: its upper byte where n < 8, the lower elsewhere, for bytes n - 8
     * and n + 0x78 */
    const __m256i powers = _mm256_broadcastsi128_si256(
        _mm_set_epi8(1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128));
    const __m256i top = _mm256_set1_epi32(e->top);
    const __m128i shift = _mm_cvtsi32_si128(e->shift);
    __m256i low =
        _mm256_srl_epi32(_mm256_sub_epi32(top, _mm256_loadu_si256((const __m256i *)s)), shift);
    __m256i high =
        _mm256_srl_epi32(_mm256_sub_epi32(top, _mm256_loadu_si256((const __m256i *)s + 1)), shift);
    __m256i u =
        _mm256_mulhi_epu16(_mm256_packus_epi32(low, high), _mm256_set1_epi16((int16_t)e->factor));
    __m256i f = _mm256_slli_epi16(u, 5), y = _mm256_mulhi_epu16(f, _mm256_set1_epi16(C3));
    y = _mm256_mulhi_epu16(f, _mm256_sub_epi16(_mm256_set1_epi16(C2), y));
    y = _mm256_mulhi_epu16(f, _mm256_sub_epi16(_mm256_set1_epi16(C1), y));
    y = _mm256_sub_epi16(_mm256_set1_epi16(C0), y);
    __m256i n = _mm256_min_epu16(_mm256_srli_epi16(u, 11), _mm256_set1_epi16(15));
    n = _mm256_add_epi8(_mm256_mullo_epi16(n, _mm256_set1_epi16(0x0101)),
                        _mm256_set1_epi16(0x78F8));
    y = _mm256_mulhi_epu16(_mm256_add_epi16(y, y), _mm256_shuffle_epi8(powers, n));
    return _mm256_permute4x64_epi64(y, 0xD8); /* packing works within 128 bits */
}
PITH_INLINE weights first_weights(weights w, size_t n) {
    static const int16_t ones[32] = {
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1
    };
    return _mm256_and_si256(w, _mm256_loadu_si256((const __m256i *)(const void *)(ones + 16 - n)));
}
PITH_INLINE vi attention_i16_add_weights(vi sum, weights w) {
    sum.lo = _mm256_add_epi32(sum.lo, _mm256_madd_epi16(w, _mm256_set1_epi16(1)));
    return sum;
}
PITH_INLINE void put_weights(void *p, weights w) { _mm256_storeu_si256(p, w); }

#else
enum { GROUP = 16 };
typedef vi weights; /* one in each place */

static inline vi less(int32_t y, vi part) { return vi_sub(vi_set1(y), vi_shr(part, 16)); }
static inline weights weigh(const int32_t *s, const exponent *e) {
    const vi most = vi_set1(65535);
    vi difference = vi_sub(vi_set1(e->top), vi_load(s));
    difference = vi_shr(difference, e->shift);
    vi u = vi_shr(vi_mul(vi_select(vi_gt(difference, most), most, difference), vi_set1(e->factor)),
                  16);
    vi f = vi_and(vi_shl(u, 5), most), n = vi_shr(u, 11);
    vi y = less(C0, vi_mul(f, less(C1, vi_mul(f, less(C2, vi_mul(f, vi_set1(C3)))))));
    /* 2^(15 - n) by the bits of a float */
    vi power = vi_of_vf(vf_bits(
        vi_shl(vi_sub(vi_set1(142), vi_select(vi_gt(n, vi_set1(15)), vi_set1(15), n)), 23)));
    return vi_shr(vi_mul(vi_add(y, y), power), 16);
}
PITH_INLINE weights first_weights(weights w, size_t n) {
    return vi_select(vm_first(n), w, vi_set1(0));
}
PITH_INLINE vi attention_i16_add_weights(vi sum, weights w) { return vi_add(sum, w); }
PITH_INLINE void put_weights(void *p, weights w) { vi_store_16(p, w); }
#endif

/* A row of scores to its probabilities, in place: 32 bits become 16, so that writing never catches
 * up with reading. Returns the reciprocal of their sum, which is exact in integers. */
static float probabilities(const call *c, int32_t *s, const exponent *e) {
    vi sum = vi_set1(0);
    int64_t j = 0;
    for (; c->keys - j >= GROUP; j += GROUP) {
        weights w = weigh(s + j, e);
        sum = attention_i16_add_weights(sum, w);
        put_weights(s + j / 2, w);
    }
    if (j < c->keys) { /* a row of the strip is long enough to read whole groups */
        weights w = first_weights(weigh(s + j, e), (size_t)(c->keys - j));
        sum = attention_i16_add_weights(sum, w);
        put_weights(s + j / 2, w);
    }
    return 1.0f / (float)vi_hsum(sum);
}

/* Probabilities times some panels of values to the result. Values are codes, of which a column has
 * a unit and a middle: with shares as the reciprocals of the sums of probabilities, the result is
 * sum * share * unit + middle, since the probabilities add up to 1 then. The sum over up to BLOCK
 * keys stays in integers; the sums of further blocks are added in f32. */
static void put_values(const call *c, int64_t i, int rows, int tile_rows, int64_t column,
                       int panels, const float *shares) {
    const pith__attention *a = c->a;
    const int64_t width = 16 * panels;
    _Alignas(64) int32_t t[ROWS * PANELS * 16];
    float sums[ROWS * PANELS * 16];
    product g = { .a = c->strip,
                  .b = c->v + column * c->rows,
                  .t = t,
                  .a_row = c->strip_row,
                  .b_panel = 16 * c->rows,
                  .t_row = width,
                  .groups = 1 };
    for (int64_t j = 0; j < c->rows; j += BLOCK / 2) {
        g.depth = c->rows - j < BLOCK / 2 ? c->rows - j : BLOCK / 2;
        c->tiles[panels - 1][tile_rows / 2 - 1](&g);
        g.a += g.depth;
        g.b += 16 * g.depth;
        if (c->rows <= BLOCK / 2) break;
        for (int64_t at = 0; at < width * rows; at += 16) {
            vf sum = vf_of_vi(vi_load(t + at));
            vf_store(sums + at, j ? vf_add(vf_load(sums + at), sum) : sum);
        }
    }
    for (int64_t p = 0; p < width; p += 16) {
        const vf unit = vf_load(c->value_unit + column + p),
                 middle = vf_load(c->value_middle + column + p);
        float *o = a->o + i * a->o_stride + column + p;
        for (int64_t at = p, r = 0; r < rows; r++, at += width, o += a->o_stride) {
            vf sum = c->rows <= BLOCK / 2 ? vf_of_vi(vi_load(t + at)) : vf_load(sums + at);
            vf_store(o, vf_fma(sum, vf_mul(vf_set1(shares[r]), unit), middle));
        }
    }
}

static void attention_i16_query_tile(const call *c, int64_t i, int rows) {
    const int tile_rows = rows + rows % 2;
    float units[ROWS], shares[ROWS];
    exponent exponents[ROWS];
    vi lanes[ROWS];
    attention_i16_scores(c, i, rows, tile_rows, units);
    for (int r = 0; r < rows; r += CHAINS) attention_i16_largest(c, lanes + r, r, rows - r);
    for (int r = 0; r < rows; r++) exponents[r] = exponent_of(vi_hmax(lanes[r]), units[r]);
    for (int r = 0; r < rows; r++)
        shares[r] = probabilities(c, c->strip + r * c->strip_row, &exponents[r]);
    for (int64_t column = 0; column < c->a->dv; column += 16 * PANELS)
        put_values(c, i, rows, tile_rows, column, c->a->dv - column > 16 ? PANELS : 1, shares);
}

static void attention_i16_run(const pith__attention *a, float *scratch, tile_row *tiles) {
    const pith__attention_keys kept = pith__attention_look(a);
    if (!kept.open || a->d % 16 || a->dv % 16 || kept.count > PITH_ATTENTION_I16_KEYS) {
        PITH_K(attention_f32)(a, scratch);
        return;
    }
    const int64_t padded = (kept.count + 15) / 16 * 16;
    call c = {
        .a = a, .tiles = tiles, .keys = kept.count, .depth = a->d / 2, .rows = (kept.count + 1) / 2
    };
    c.steps = floorf(sqrtf(0x1.fffffep29f / (float)a->d));
    /* 16 more than needed: rows of a power of two would all fall into one set of the cache. */
    c.strip_row = padded + 16;
    c.strip = (int32_t *)scratch;
    float *kt = scratch + PITH_ATTENTION_ROWS * c.strip_row, *pairs = kt + padded * c.depth,
          *v = kt + padded * a->d;
    c.value_unit = v + padded / 2 * a->dv;
    c.value_middle = c.value_unit + a->dv;
    c.q = (int32_t *)(c.value_middle + a->dv);
    c.kt = (const int32_t *)kt;
    c.v = (const int32_t *)v;
    const float key_unit = pack_keys(kt, (int32_t *)pairs, &c, a->k + kept.first * a->k_stride);
    c.log2e_unit = 0x1.715476p0f * a->scale * key_unit;
    pack_values((int32_t *)v, &c, a->v + kept.first * a->v_stride);
    for (int64_t i = 0, rows; i < a->queries; i += rows) {
        rows = pith__attention_tile(a, i, ROWS);
        attention_i16_query_tile(&c, i, (int)rows);
    }
}

void PITH_K(attention_i16)(const pith__attention *a, float *scratch) {
    attention_i16_run(a, scratch, plain_tiles);
}
void PITH_K(attention_vnni_i16)(const pith__attention *a, float *scratch) {
    attention_i16_run(a, scratch, vnni_tiles);
}
