/* k_attention_i16.c - attention of open calls in fixed point, for 8-bit models; attention.h has the definition.
 *
 * Numbers of 16 bits lie in pairs where floats would: two of d in queries and keys, two keys in probabilities and
 * values. A pair times a pair is one step, exact in 32 bits: with VNNI twice the work of a multiply-add of floats in
 * its time, and as much work without. Otherwise the steps are those of k_attention.c. */
#include <stdbool.h>

#include "kernels/attention.h"
#include "kernels/gemm.h"
#include "kernels/vmath.h"

/* Sums of a tile: rows by panels of 16 columns. There are tiles for every even number of rows. */
#if defined(PITH_LEVEL_avx512)
enum { ROWS = 14, PANELS = 2 };
#elif defined(PITH_LEVEL_avx2)
enum { ROWS = 6, PANELS = 1 };
#else
enum { ROWS = 4, PANELS = 1 };
#endif
_Static_assert((int)ROWS <= (int)PITH_ATTENTION_ROWS, "the scratch holds a strip for each row of a tile");

/* Keys whose products with values are added in integers: 512 * 32767 * 127 < 2^31. */
enum { BLOCK = 512, PROBABILITY_MOST = 32767, VALUE_MOST = 127 };

/* Ranges below this have reciprocals beyond f32: they count as nothing. */
#define RANGE_MIN 0x1p-100f

typedef enum way { PLAIN, VNNI } way;

#if defined(PITH_LEVEL_avx512) || defined(PITH_LEVEL_avx2)
PITH_INLINE vi add_products(const way w, vi pairs, vi x, vi sum) {
    return w == VNNI ? vi_vnni_pairs(pairs, x, sum) : vi_add(sum, vi_dot_pairs(pairs, x));
}
#else
PITH_INLINE vi add_products(const way w, vi pairs, vi x, vi sum) {
    return (void)w, vi_add(sum, vi_dot_pairs(pairs, x));
}
#endif

/* t = a b for rows of a and `groups` times a tile's panels of b; depth and strides in pairs. */
typedef struct product {
    const int32_t *a, *b;
    int32_t *t;
    int64_t a_row, b_panel, t_row, depth, groups;
} product;

/* Where a tile is in its depth: at every third row of a, as in k_gemm_tile.c, and at the panels of b. */
typedef struct place {
    const int32_t *a[(ROWS + 2) / 3], *b[PANELS];
} place;

/* `steps` steps of depth. */
PITH_INLINE void advance(const way w, const int rows, const int panels, const int steps, int64_t a_row, place *at,
                         vi sum[ROWS][PANELS]) {
    int64_t two_rows = 2 * a_row;
    PITH_FORGET(a_row); /* or offsets like a_row + 1, which are free in an address, would each take a register */
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
            for (int p = 0; p < panels; p++) sum[i][p] = add_products(w, pair, column[p], sum[i][p]);
        }
    }
    PITH_UNROLL
    for (int i = 0; i < rows; i += 3) at->a[i / 3] += steps;
    PITH_UNROLL
    for (int p = 0; p < panels; p++) at->b[p] += 16 * steps;
}

PITH_INLINE void tile(const way w, const int rows, const int panels, const int turn, const product *g) {
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
        for (; left >= turn; left -= turn) advance(w, rows, panels, turn, g->a_row, &at, sum);
        for (; turn > 1 && left > 0; left--) advance(w, rows, panels, 1, g->a_row, &at, sum);
        PITH_UNROLL
        for (int i = 0; i < rows; i++, to += g->t_row) {
            PITH_UNROLL
            for (int p = 0; p < panels; p++) vi_store(to + 16 * p, sum[i][p]);
        }
    }
}

typedef void tile_fn(const product *g);
typedef tile_fn *const tile_table[PANELS][ROWS / 2];
#define TILE(rows, panels)                                                                                             \
    static void plain_##rows##x##panels(const product *g) { tile(PLAIN, rows, panels, 1, g); }
#define TILE_VNNI(rows, panels)                                                                                        \
    static void vnni_##rows##x##panels(const product *g) { tile(VNNI, rows, panels, panels == 2 ? 4 : 1, g); }
#define ENTRY(rows, panels) [panels - 1][rows / 2 - 1] = plain_##rows##x##panels,
#define ENTRY_VNNI(rows, panels) [panels - 1][rows / 2 - 1] = vnni_##rows##x##panels,
#if defined(PITH_LEVEL_avx512)
#define TILES_7(X, panels) X(2, panels) X(4, panels) X(6, panels) X(8, panels) X(10, panels) X(12, panels) X(14, panels)
#define TILES(X) TILES_7(X, 1) TILES_7(X, 2)
#elif defined(PITH_LEVEL_avx2)
#define TILES(X) X(2, 1) X(4, 1) X(6, 1)
#else
#define TILES(X) X(2, 1) X(4, 1)
#endif
TILES(TILE)
static tile_table plain_tiles = { TILES(ENTRY) };
#if defined(PITH_LEVEL_avx512) || defined(PITH_LEVEL_avx2)
TILES(TILE_VNNI)
static tile_table vnni_tiles = { TILES(ENTRY_VNNI) };
#else
#define vnni_tiles plain_tiles
#endif

typedef struct call {
    const pith_attention *a;
    tile_fn *const (*tiles)[ROWS / 2];
    int64_t keys, depth, rows; /* pairs: of d, and of keys, rounded up */
    const int32_t *kt, *v;     /* packed: [padded keys / 16][depth][16], [dv / 16][rows][16] */
    int32_t *q;                /* of a tile's queries, [ROWS][depth] */
    int32_t *strip;            /* [ROWS][strip_row]: scores, then probabilities from each row's begin on */
    int64_t strip_row;
    float *value_unit, *value_middle; /* [dv] */
    float steps, log2e_unit; /* the largest number of q and k; what q's unit makes exponents of 2 out of scores */
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
    if (!(most >= RANGE_MIN)) return (measure){ 0.0f, 0.0f };
    return (measure){ most / steps, steps / most };
}

/* The integer nearest to x times inverse, in the low 16 bits. */
PITH_INLINE vi rounded(vf x, vf inverse) { return vi_bits(vf_fma(x, inverse, vf_set1(PITH_ROUND_MAGIC))); }

/* n numbers, a multiple of 16, to half as many pairs. */
PITH_INLINE void to_pairs(int32_t *pairs, const float *x, int64_t n, float inverse) {
    const vf times = vf_set1(inverse);
    for (int64_t j = 0; j < n; j += 16) vi_store_16(pairs + j / 2, rounded(vf_load(x + j), times));
}

/* Keys in rows of pairs, which are transposed as floats are. Returns their unit. */
static float pack_keys(float *kt, int32_t *pairs, const call *c, const float *k) {
    const pith_attention *a = c->a;
    vf most = vf_zero();
    for (int64_t j = 0; j < c->keys; j++) most = magnitudes(most, k + j * a->k_stride, a->d);
    const measure m = measure_of(vf_hmax(most), c->steps);
    for (int64_t j = 0; j < c->keys; j++) to_pairs(pairs + j * c->depth, k + j * a->k_stride, a->d, m.inverse);
    PITH_K(gemm_pack_f32)(kt, (const float *)pairs, 1, c->depth, c->depth, c->keys, 0, c->keys);
    return m.unit;
}

/* Values in panels of 16 columns, two rows of them in the place of one. */
static void pack_values(int32_t *packed, const call *c, const float *v) {
    const pith_attention *a = c->a;
    const vi lower = vi_set1(0xFFFF);
    for (int64_t column = 0; column < a->dv; column += 16, v += 16) {
        const float *row = v;
        vf low = vf_load(v), high = low;
        for (int64_t j = 1; j < c->keys; j++) {
            vf x = vf_load(v + j * a->v_stride);
            low = vf_min(x, low);
            high = vf_max(x, high);
        }
        const vf middle = vf_mul(vf_add(high, low), vf_set1(0.5f)), half = vf_mul(vf_sub(high, low), vf_set1(0.5f));
        const vm wide = vf_ge(half, vf_set1(RANGE_MIN));
        const vf most = vf_set1((float)VALUE_MOST), inverse = vf_keep(wide, vf_div(most, half));
        vf_store(c->value_unit + column, vf_keep(wide, vf_div(half, most)));
        vf_store(c->value_middle + column, middle);
        for (int64_t j = 0; j < c->keys; j += 2, packed += 16, row += 2 * a->v_stride) {
            vi even = rounded(vf_sub(vf_load(row), middle), inverse), odd = vi_set1(0);
            if (j + 1 < c->keys) odd = rounded(vf_sub(vf_load(row + a->v_stride), middle), inverse);
            vi_store(packed, vi_or(vi_and(even, lower), vi_shl(odd, 16)));
        }
    }
}

/* The scores of queries i to i + rows - 1. Returns in units what their exponents of 2 are counted in. A tile may have a
 * row more: the last one again. */
static void scores(const call *c, int64_t i, int rows, int tile_rows, float *units) {
    const pith_attention *a = c->a;
    product g = { .a = c->q,
                  .b = c->kt,
                  .t = c->strip,
                  .a_row = c->depth,
                  .b_panel = 16 * c->depth,
                  .t_row = c->strip_row,
                  .depth = c->depth };
    int64_t panels = (c->keys + 15) / 16;
    vf most[ROWS];
    for (int r = 0; r < rows; r++) most[r] = magnitudes(vf_zero(), a->q + (i + r) * a->q_stride, a->d);
    for (int r = 0; r < tile_rows; r++) {
        const int from = r < rows ? r : rows - 1;
        const measure m = measure_of(vf_hmax(most[from]), c->steps);
        to_pairs(c->q + r * c->depth, a->q + (i + from) * a->q_stride, a->d, m.inverse);
        units[from] = c->log2e_unit * m.unit;
    }
    for (int wide = PANELS; wide > 0; wide--, panels -= g.groups * (wide + 1)) {
        g.groups = panels / wide;
        if (g.groups) c->tiles[wide - 1][tile_rows / 2 - 1](&g);
        g.b += g.groups * wide * g.b_panel;
        g.t += g.groups * wide * 16;
    }
}

/* Rows whose largest scores are looked for side by side: one row's are a chain of operations. */
enum { CHAINS = 4 };

/* The largest scores by lane of the strip's rows from `row` on: the first CHAINS, or as many as are left. */
static void largest(const call *c, vi *lanes, int row, int left) {
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
        if (whole < c->keys) lanes[r] = vi_max(most[r], vi_select(tail, vi_load(s[r] + whole), vi_set1(INT32_MIN)));
    }
}

/* PROBABILITY_MOST e^(score - the row's largest), rounded, above the bits of PITH_ROUND_MAGIC, for each of the chains.
 * 2^f by a polynomial of which p would not see the error, 3e-6. */
PITH_VMATH void probabilities_of(vi *p, const int32_t *s, vi top, vf unit, const int chains) {
    const vf most = vf_set1(0x1.dfffa4p3f) /* log2 PROBABILITY_MOST */, magic = vf_set1(PITH_ROUND_MAGIC);
    vf x[PITH_CHAINS_MAX], n[PITH_CHAINS_MAX], y[PITH_CHAINS_MAX];
    PITH_UNROLL
    for (int i = 0; i < chains; i++) x[i] = vf_fma(vf_of_vi(vi_sub(vi_load(s + 16 * i), top)), unit, most);
    PITH_UNROLL
    for (int i = 0; i < chains; i++) x[i] = vf_max(x[i], vf_set1(-60.0f));
    PITH_UNROLL
    for (int i = 0; i < chains; i++) n[i] = vf_add(x[i], magic);
    PITH_UNROLL
    for (int i = 0; i < chains; i++) x[i] = vf_sub(x[i], vf_sub(n[i], magic));
    PITH_POLY_EACH(y, x, chains, 0x1.3997d8p-7f, 0x1.ca1440p-5f, 0x1.ec06dap-3f, 0x1.62e0dcp-1f, 0x1.ffffe8p-1f);
    PITH_UNROLL
    for (int i = 0; i < chains; i++)
        p[i] = vi_bits(vf_add(vf_bits(vi_add(vi_bits(y[i]), vi_shl(vi_bits(n[i]), 23))), magic));
}

/* Vectors of scores whose exponentials are taken side by side. */
#if defined(PITH_LEVEL_avx512) || defined(PITH_LEVEL_avx2)
enum { EXPONENTIALS = 2 };
#else
enum { EXPONENTIALS = 1 };
#endif

/* A row of scores to its probabilities, in place. Returns the reciprocal of their sum. */
static float probabilities(const call *c, int32_t *s, int32_t top, float unit) {
    const int64_t whole = c->keys / 16 * 16;
    const vi most = vi_set1(top), magic = vi_bits(vf_set1(PITH_ROUND_MAGIC));
    const vf size = vf_set1(unit);
    vi sum = vi_set1(0), p[EXPONENTIALS];
    int64_t j = 0;
    for (; whole - j >= 16 * EXPONENTIALS; j += 16 * EXPONENTIALS) {
        probabilities_of(p, s + j, most, size, EXPONENTIALS);
        PITH_UNROLL
        for (int i = 0; i < EXPONENTIALS; i++) {
            sum = vi_add(sum, p[i]);
            vi_store_16(s + j / 2 + 8 * i, p[i]);
        }
    }
    for (; EXPONENTIALS > 1 && j < whole; j += 16) {
        probabilities_of(p, s + j, most, size, 1);
        sum = vi_add(sum, p[0]);
        vi_store_16(s + j / 2, p[0]);
    }
    sum = vi_sub(sum, vi_mul(magic, vi_set1((int32_t)(whole / 16))));
    if (whole < c->keys) {
        probabilities_of(p, s + whole, most, size, 1);
        p[0] = vi_select(vm_first((size_t)(c->keys - whole)), vi_sub(p[0], magic), vi_set1(0));
        sum = vi_add(sum, p[0]);
        vi_store_16(s + whole / 2, p[0]);
    }
    return 1.0f / vf_sum(vf_of_vi(sum));
}

/* Probabilities times some panels of values to the result. */
static void put_values(const call *c, int64_t i, int rows, int tile_rows, int64_t column, int panels,
                       const float *shares) {
    const pith_attention *a = c->a;
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
        const vf unit = vf_load(c->value_unit + column + p), middle = vf_load(c->value_middle + column + p);
        float *o = a->o + i * a->o_stride + column + p;
        for (int64_t at = p, r = 0; r < rows; r++, at += width, o += a->o_stride) {
            vf sum = c->rows <= BLOCK / 2 ? vf_of_vi(vi_load(t + at)) : vf_load(sums + at);
            vf_store(o, vf_fma(sum, vf_mul(vf_set1(shares[r]), unit), middle));
        }
    }
}

static void query_tile(const call *c, int64_t i, int rows) {
    const int tile_rows = rows + rows % 2;
    float units[ROWS], shares[ROWS];
    int32_t tops[ROWS];
    vi lanes[ROWS];
    scores(c, i, rows, tile_rows, units);
    for (int r = 0; r < rows; r += CHAINS) largest(c, lanes + r, r, rows - r);
    for (int r = 0; r < rows; r++) tops[r] = vi_hmax(lanes[r]);
    for (int r = 0; r < rows; r++) shares[r] = probabilities(c, c->strip + r * c->strip_row, tops[r], units[r]);
    for (int64_t column = 0; column < c->a->dv; column += 16 * PANELS)
        put_values(c, i, rows, tile_rows, column, c->a->dv - column > 16 ? PANELS : 1, shares);
}

static void run(const pith_attention *a, float *scratch, tile_fn *const (*tiles)[ROWS / 2]) {
    const pith_attention_keys kept = pith_attention_look(a);
    if (!kept.open || a->d % 16 || a->dv % 16 || kept.count > PITH_ATTENTION_I16_KEYS) {
        PITH_K(attention_f32)(a, scratch);
        return;
    }
    const int64_t padded = (kept.count + 15) / 16 * 16;
    call c = { .a = a, .tiles = tiles, .keys = kept.count, .depth = a->d / 2, .rows = (kept.count + 1) / 2 };
    c.steps = floorf(sqrtf(0x1p30f / (float)a->d));
    /* 16 more than needed: rows of a power of two would all fall into one set of the cache. */
    c.strip_row = padded + 16;
    c.strip = (int32_t *)scratch;
    float *kt = scratch + PITH_ATTENTION_ROWS * c.strip_row, *pairs = kt + padded * c.depth, *v = kt + padded * a->d;
    c.value_unit = v + padded / 2 * a->dv;
    c.value_middle = c.value_unit + a->dv;
    c.q = (int32_t *)(c.value_middle + a->dv);
    c.kt = (const int32_t *)kt;
    c.v = (const int32_t *)v;
    const float key_unit = pack_keys(kt, (int32_t *)pairs, &c, a->k + kept.first * a->k_stride);
    c.log2e_unit = 0x1.715476p0f * a->scale * key_unit;
    pack_values((int32_t *)v, &c, a->v + kept.first * a->v_stride);
    for (int64_t i = 0; i < a->queries;) {
        int64_t left = a->queries - i, count = (left + ROWS - 1) / ROWS, rows = (left + count - 1) / count;
        for (int64_t r = i; r < i + rows; r++) /* else stores hold up the next tile, as gemm_tile.h says */
            for (int64_t j = 0; j < a->dv; j += 16) __builtin_prefetch(a->o + r * a->o_stride + j, 1);
        query_tile(&c, i, (int)rows);
        i += rows;
    }
}

void PITH_K(attention_i16)(const pith_attention *a, float *scratch) { run(a, scratch, plain_tiles); }
void PITH_K(attention_vnni_i16)(const pith_attention *a, float *scratch) { run(a, scratch, vnni_tiles); }
