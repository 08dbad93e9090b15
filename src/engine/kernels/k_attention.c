/* k_attention.c - softmax(scale q k^T + bias) v with the register tile of the matmul.
 *
 * Keys and values are packed once into panels of 16 columns, keys transposed. For a tile of
 * queries, the strip of scores against all keys is computed, each row of the strip becomes
 * unnormalised probabilities, and the strip times v is multiplied by the reciprocals of the row
 * sums.
 *
 * Positions count from the first key that the mask keeps, so padding on either side changes
 * nothing. Masked keys in between take part in no sum. If the rows of a tile see different ranges
 * of keys (causal, window), the common range runs as a tile and the rest row by row, in ascending
 * order. */
#include "engine/kernels/attention.h"

#include <stdbool.h>

#include "engine/kernels/gemm.h"
#include "engine/kernels/gemm_tile.h"
#include "engine/kernels/vmath.h"

typedef struct call {
    const pith__attention *a;
    int64_t first, keys, padded; /* the kept range of keys; its length in whole groups of 16 */
    const uint8_t *mask;         /* [keys] or NULL if there are no holes */
    const float *kt, *v;         /* packed: [padded / 16][d][16], [dv / 16][keys][16] */
    int64_t strip_row;
    float *strip;
    bool raw;    /* the strip keeps q k^T as it is: the largest of the scaled scores is the scaled
                    largest one */
    bool open;   /* and every query sees every key */
    float log2e; /* e^(scale score) = 2^(log2e * what the strip keeps) */
} call;

_Static_assert((int)PITH_TILE_ROWS <= (int)PITH_ATTENTION_ROWS,
               "the scratch holds a strip for each row of a tile");

typedef struct range {
    int64_t from, to;
} range;

/* The keys query i may see, before holes; empty: from >= to. Sides of the window are compared
 * before they are added, since a caller's limit may be near the largest integer. */
static range visible(const call *c, int64_t i) {
    const pith__attention *a = c->a;
    int64_t offset = a->causal_offset == INT64_MAX ? 0 : a->causal_offset, from = 0, to = a->keys;
    if (a->causal_offset != INT64_MAX && i + offset + 1 < to) to = i + offset + 1;
    if (a->window_right >= 0 && a->window_right < a->keys - i - offset &&
        i + offset + a->window_right + 1 < to) {
        to = i + offset + a->window_right + 1;
    }
    if (a->window_left >= 0 && a->window_left < i + offset) from = i + offset - a->window_left;
    from = from > c->first ? from - c->first : 0;
    to = to > c->first ? to - c->first : 0;
    return (range){ from, to < c->keys ? to : c->keys };
}

/* The groups of sixteen keys from a multiple of sixteen on of which every key is seen. */
static range whole_groups(const call *c, range r) {
    range whole = { (r.from + 15) / 16 * 16, r.to / 16 * 16 };
    return c->mask || whole.from >= whole.to ? (range){ INT64_MAX, INT64_MAX } : whole;
}

/* Which of the keys j to j + 15 are seen. */
static vm attention_kept(const call *c, range r, int64_t j) {
    vm keep = vm_first(r.to - j < 16 ? (size_t)(r.to - j) : 16);
    if (j < r.from) keep = vm_and(keep, vm_not(vm_first((size_t)(r.from - j))));
    if (!c->mask) return keep;
    float holes[16] = { 0 };
    for (int64_t l = 0; l < 16 && l < r.to - j; l++) holes[l] = c->mask[j + l];
    return vm_and(keep, vf_gt(vf_load(holes), vf_zero()));
}

/* Scales and biases a row of scores, unless they stay raw. Returns the largest seen ones by lane,
 * *any: whether there is one. */
static vf finish_scores(const call *c, int64_t i, float *s, range r, bool *any) {
    const pith__attention *a = c->a;
    const float *bias = a->bias ? a->bias + i * a->bias_stride + c->first : NULL;
    const range whole = whole_groups(c, r);
    vf scale = vf_set1(a->scale), infinity = vf_set1(-INFINITY), most = infinity;
    *any = false;
    for (int64_t j = r.from / 16 * 16; j < r.to; j += 16) {
        while (c->raw && j >= whole.from && j < whole.to) {
            most = vf_max(most, vf_load(s + j));
            j += 16;
            *any = true;
        }
        if (j >= r.to) break;
        vf v = vf_load(s + j);
        if (!c->raw) {
            v = vf_mul(v, scale);
            if (bias) v = vf_add(v, vf_load_n(bias + j, r.to - j < 16 ? (size_t)(r.to - j) : 16));
            vf_store(s + j, v);
        }
        if (j < whole.from || j >= whole.to) {
            vm keep = attention_kept(c, r, j);
            *any |= vm_any(keep);
            v = vf_select(keep, v, infinity);
        } else {
            *any = true;
        }
        most = vf_max(most, v);
    }
    return most;
}

/* e^(score - the row's largest), where what the strip keeps is s and of the largest one top; floor
 * is -log2e * top. That number's rounding is the same for the whole row and cancels. */
PITH_INLINE vf exponential(vf s, vf log2e, vf floor) { return vf_exp2(vf_fma(s, log2e, floor)); }

/* Where log2e * top is so large that its rounding would leave the range of 2^x, or infinite, the
 * row's largest score is taken from the row first. Returns what is the largest then. Usual rows
 * skip this pass: there the subtraction is a part of the multiply-add in `exponential`. */
static float lowered(const call *c, float *s, range r, float top) {
    float product = c->log2e * top;
    if (product > -0x1p30f && product < 0x1p30f) return top;
    for (int64_t j = r.from; j < r.to; j++) s[j] -= top;
    return 0.0f;
}

/* Scores to their exponentials, 0 for unseen keys; their sum by lane. */
static vf exponentials(const call *c, float *s, range r, float top) {
    const range whole = whole_groups(c, r);
    top = lowered(c, s, r, top);
    vf sum = vf_zero(), floor = vf_set1(-c->log2e * top), log2e = vf_set1(c->log2e);
    for (int64_t j = r.from / 16 * 16; j < r.to; j += 16) {
        for (; j >= whole.from && j < whole.to; j += 16) {
            vf e = exponential(vf_load(s + j), log2e, floor);
            sum = vf_add(sum, e);
            vf_store(s + j, e);
        }
        if (j >= r.to) break;
        vf e = vf_keep(attention_kept(c, r, j), exponential(vf_load(s + j), log2e, floor));
        sum = vf_add(sum, e);
        vf_store(s + j, e);
    }
    return sum;
}

/* q k^T of the rows from query i on, with all keys of r, into the strip. */
static void attention_scores(const call *c, int64_t i, int rows, range r) {
    const pith__attention *a = c->a;
    int64_t j = r.from / 16 * 16, groups = (r.to - j + 15) / 16;
    pith__gemm_tile g = { .a = a->q + i * a->q_stride,
                          .a_row = a->q_stride,
                          .b_panel = 16 * a->d,
                          .t_row = c->strip_row,
                          .k = a->d,
                          .tiles = 1 };
    for (int panels = PITH_TILE_PANELS; panels > 0 && groups > 0; panels--) {
        g.groups = groups / panels;
        g.t = c->strip + j;
        g.b = c->kt + j * a->d;
        if (g.groups) PITH_K(gemm_tile_f32)(rows, panels, &g);
        j += 16 * panels * g.groups;
        groups -= panels * g.groups;
    }
}

/* t, of rows of panels, += probabilities of rows [from, to) of v times these, for rows of the strip
 * and columns of v from `column` on. `begins`: nothing is in t yet. Keys that the mask skips are
 * left out, not multiplied by 0, so that a NaN in their values cannot spread; each run of kept keys
 * is a matmul that goes on with the sums of the one before. */
static void add_values(const call *c, int rows, int panels, const float *strip, int64_t column,
                       range r, float *t, bool begins) {
    pith__gemm_tile g = { .a_row = c->strip_row,
                          .b_panel = 16 * c->keys,
                          .t = t,
                          .t_row = 16 * panels,
                          .groups = 1,
                          .tiles = 1,
                          .accumulate = !begins };
    for (int64_t j = r.from; j < r.to; j += g.k) {
        int64_t end = r.to;
        if (c->mask) {
            while (j < r.to && !c->mask[j]) j++;
            for (end = j; end < r.to && c->mask[end]; end++) continue;
        }
        g.a = strip + j;
        g.b = c->v + column * c->keys + 16 * j;
        g.k = end - j;
        if (g.k) PITH_K(gemm_tile_f32)(rows, panels, &g);
        g.accumulate = 1;
        if (!g.k) return;
    }
}

/* The result for a query without any key, as none_left says: the plain mean of all values, zeros,
 * or NaN. Masked keys count in the mean as well. */
static void no_keys(const pith__attention *a, float *o) {
    for (int64_t column = 0; column < a->dv; column += 16) {
        size_t width = a->dv - column < 16 ? (size_t)(a->dv - column) : 16;
        vf sum = vf_zero();
        for (int64_t j = 0; j < a->keys; j++)
            sum = vf_add(sum, vf_load_n(a->v + j * a->v_stride + column, width));
        sum = vf_div(sum, vf_set1((float)a->keys));
        if (a->none_left != PITH_NONE_LEFT_MEAN)
            sum = vf_set1(a->none_left == PITH_NONE_LEFT_ZERO ? 0.0f : NAN);
        vf_store_n(o + column, sum, width);
    }
}

/* t, of rows of panels, times the rows' shares to the result. */
static void put_rows(const pith__attention *a, int64_t i, int rows, int64_t column, int panels,
                     const float *t, const float *shares) {
    for (int r = 0; r < rows; r++, t += 16 * panels) {
        vf share = vf_set1(shares[r]);
        float *o = a->o + (i + r) * a->o_stride + column;
        for (int64_t p = 0; p < 16 * panels && column + p < a->dv; p += 16) {
            vf v = vf_mul(vf_load(t + p), share);
            if (a->dv - column - p >= 16)
                vf_store(o + p, v);
            else
                vf_store_n(o + p, v, (size_t)(a->dv - column - p));
        }
    }
}

/* Rows whose maxima are computed side by side. The maximum of one row is a chain of dependent
 * operations; four chains fill the gaps, and more gain nothing. */
enum { CHAINS = 4 };

/* The largest raw scores by lane of the strip's rows from `row` on: the first CHAINS, or as many as
 * are left. */
static void attention_largest(const call *c, vf *lanes, int row, int left) {
    const int64_t whole = c->keys / 16 * 16;
    const vm tail = vm_first((size_t)(c->keys - whole));
    const float *s[CHAINS];
    vf most[CHAINS];
    PITH_UNROLL
    for (int r = 0; r < CHAINS; r++) {
        s[r] = c->strip + (row + (r < left ? r : 0)) * c->strip_row;
        most[r] = vf_set1(-INFINITY);
    }
    for (int64_t j = 0; j < whole; j += 16) {
        PITH_UNROLL
        for (int r = 0; r < CHAINS; r++) most[r] = vf_max(most[r], vf_load(s[r] + j));
    }
    PITH_UNROLL
    for (int r = 0; r < CHAINS && r < left; r++) {
        lanes[r] = most[r];
        if (whole < c->keys)
            lanes[r] = vf_max(most[r], vf_select(tail, vf_load(s[r] + whole), vf_set1(-INFINITY)));
    }
}

/* Queries of which each sees every key. Step by step for all rows, here and below, so that their
 * chains of dependent operations overlap. */
static void open_tile(const call *c, int64_t i, int rows) {
    const pith__attention *a = c->a;
    const int64_t whole = c->keys / 16 * 16, keys = c->keys, row = c->strip_row;
    const vm tail = vm_first((size_t)(keys - whole));
    vf lanes[PITH_TILE_ROWS], log2e = vf_set1(c->log2e);
    float tops[PITH_TILE_ROWS], shares[PITH_TILE_ROWS];
    _Alignas(64) float t[PITH_TILE_ROWS * PITH_TILE_PANELS * 16];
    attention_scores(c, i, rows, (range){ 0, keys });
    for (int r = 0; r < rows; r += CHAINS) attention_largest(c, lanes + r, r, rows - r);
    for (int r = 0; r < rows; r++) tops[r] = vf_hmax(lanes[r]);
    for (int r = 0; r < rows; r++) {
        float *s = c->strip + r * row;
        vf sum = vf_zero(), floor = vf_set1(-c->log2e * lowered(c, s, (range){ 0, keys }, tops[r]));
        for (int64_t j = 0; j < whole; j += 16) {
            vf e = exponential(vf_load(s + j), log2e, floor);
            sum = vf_add(sum, e);
            vf_store(s + j, e);
        }
        if (whole < keys) {
            vf e = vf_keep(tail, exponential(vf_load(s + whole), log2e, floor));
            sum = vf_add(sum, e);
            vf_store(s + whole, e);
        }
        lanes[r] = sum;
    }
    for (int r = 0; r < rows; r++) shares[r] = 1.0f / vf_sum(lanes[r]);
    for (int64_t column = 0; column < a->dv; column += 16 * PITH_TILE_PANELS) {
        int panels = a->dv - column > 16 ? PITH_TILE_PANELS : 1;
        add_values(c, rows, panels, c->strip, column, (range){ 0, c->keys }, t, true);
        put_rows(a, i, rows, column, panels, t, shares);
    }
}

/* Queries that see different ranges of keys: causal, in a window, or with a bias or holes. `all` is
 * what any of them sees, and has its scores computed as one tile; `common` is what all of them see.
 * Values are added in three parts, so that each query takes its keys in ascending order: its own
 * keys before the common range row by row, the common range as a tile, and its keys behind it row
 * by row. With a causal mask the parts in rows are at most one tile high, whatever the length. */
static void attention_query_tile(const call *c, int64_t i, int rows) {
    const pith__attention *a = c->a;
    range seen[PITH_TILE_ROWS], common = { 0, c->keys }, all = { c->keys, 0 };
    vf lanes[PITH_TILE_ROWS];
    float tops[PITH_TILE_ROWS], shares[PITH_TILE_ROWS];
    bool any[PITH_TILE_ROWS];
    _Alignas(64) float t[PITH_TILE_ROWS * PITH_TILE_PANELS * 16];
    for (int r = 0; r < rows; r++) {
        seen[r] = visible(c, i + r);
        if (seen[r].from > common.from) common.from = seen[r].from;
        if (seen[r].to < common.to) common.to = seen[r].to;
        if (seen[r].from < all.from) all.from = seen[r].from;
        if (seen[r].to > all.to) all.to = seen[r].to;
    }
    attention_scores(c, i, rows, all);
    for (int r = 0; r < rows; r++)
        lanes[r] = finish_scores(c, i + r, c->strip + r * c->strip_row, seen[r], &any[r]);
    for (int r = 0; r < rows; r++) tops[r] = vf_hmax(lanes[r]);
    for (int r = 0; r < rows; r++)
        lanes[r] =
            any[r] ? exponentials(c, c->strip + r * c->strip_row, seen[r], tops[r]) : vf_zero();
    for (int r = 0; r < rows; r++) shares[r] = 1.0f / vf_sum(lanes[r]);

    if (common.from >= common.to) common.to = common.from = 0;
    for (int64_t column = 0; column < a->dv; column += 16 * PITH_TILE_PANELS) {
        int panels = a->dv - column > 16 ? PITH_TILE_PANELS : 1;
        const int64_t t_row = 16 * panels;
        memset(t, 0, (size_t)(rows * t_row) * sizeof *t);
        for (int r = 0; r < rows; r++) {
            range before = { seen[r].from, common.from };
            add_values(c, 1, panels, c->strip + r * c->strip_row, column, before, t + r * t_row,
                       false);
        }
        add_values(c, rows, panels, c->strip, column, common, t, false);
        for (int r = 0; r < rows; r++) {
            range rest = { common.to > seen[r].from ? common.to : seen[r].from, seen[r].to };
            add_values(c, 1, panels, c->strip + r * c->strip_row, column, rest, t + r * t_row,
                       false);
        }
        put_rows(a, i, rows, column, panels, t, shares);
    }
    for (int r = 0; r < rows; r++) {
        if (!any[r]) no_keys(a, a->o + (i + r) * a->o_stride);
    }
}

void PITH_K(attention_f32)(const pith__attention *a, float *scratch) {
    const pith__attention_keys kept = pith__attention_look(a);
    call c = { .a = a,
               .first = kept.first,
               .keys = kept.count,
               .open = kept.open,
               .raw = !a->bias && a->scale > 0 };
    if (kept.holes) c.mask = a->key_mask + c.first;
    c.log2e = 0x1.715476p0f * (c.raw ? a->scale : 1.0f);
    c.padded = (c.keys + 15) / 16 * 16;
    /* 16 more than needed: rows of a power of two would all fall into one set of the cache. */
    c.strip_row = c.padded + 16;
    c.strip = scratch;
    float *kt = scratch + PITH_TILE_ROWS * c.strip_row, *v = kt + c.padded * a->d;
    PITH_K(gemm_pack_f32)
    (kt, a->k + c.first * a->k_stride, 1, a->k_stride, a->d, c.keys, 0, c.keys);
    PITH_K(gemm_pack_f32)(v, a->v + c.first * a->v_stride, a->v_stride, 1, c.keys, a->dv, 0, a->dv);
    c.kt = kt;
    c.v = v;
    for (int64_t i = 0, rows; i < a->queries; i += rows) {
        rows = pith__attention_tile(a, i, PITH_TILE_ROWS);
        if (c.open)
            open_tile(&c, i, (int)rows);
        else
            attention_query_tile(&c, i, (int)rows);
    }
}
