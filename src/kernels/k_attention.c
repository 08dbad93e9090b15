/* k_attention.c - softmax(scale q k^T + bias) v by the register tile of the matrix product.
 *
 * Keys are transposed once into panels of 16. A tile of queries gets its strip of scores against all keys, each
 * row of the strip is made into unnormalised probabilities, and the strip times v is divided by the row sums.
 * Positions count from the first key kept by the mask, so padding on either side changes nothing; masked keys in
 * between take part in no sum. Where the rows of a tile see different ranges (causal, window), the common part
 * runs as a tile, the rest row by row in ascending order. */
#include "kernels/attention.h"

#include <stdbool.h>

#include "kernels/gemm.h"
#include "kernels/gemm_tile.h"
#include "kernels/vmath.h"

/* From this many keys on, rows of v are copied side by side: they are read once per tile and their stride costs
 * misses. */
enum { COPY_V_KEYS = 512 };

typedef struct call {
    const pith_attention *a;
    int64_t first, keys; /* the kept range of keys */
    const uint8_t *mask; /* [keys] or NULL if there are no holes */
    const float *kt;     /* packed keys */
    const float *v;      /* [keys, dv], stride v_row */
    int64_t v_row, strip_row;
    float *strip;
} call;

_Static_assert((int)PITH_TILE_ROWS <= (int)PITH_ATTENTION_ROWS, "the scratch holds a strip for each row of a tile");

typedef struct range {
    int64_t from, to;
} range;

/* The keys query i may see, before holes; empty: from >= to. */
static range visible(const call *c, int64_t i) {
    const pith_attention *a = c->a;
    int64_t offset = a->causal_offset == INT64_MAX ? 0 : a->causal_offset, from = 0, to = a->keys;
    if (a->causal_offset != INT64_MAX && i + offset + 1 < to) to = i + offset + 1;
    if (a->window_right >= 0 && a->window_right < a->keys - i - offset && i + offset + a->window_right + 1 < to) {
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
static vm kept(const call *c, range r, int64_t j) {
    vf lane = vf_iota();
    vm keep = vm_and(vf_lt(lane, vf_set1((float)(r.to - j))), vf_ge(lane, vf_set1((float)(r.from - j))));
    if (!c->mask) return keep;
    float holes[16] = { 0 };
    for (int64_t l = 0; l < 16 && l < r.to - j; l++) holes[l] = c->mask[j + l];
    return vm_and(keep, vf_gt(vf_load(holes), vf_zero()));
}

/* Scales and biases a row of scores; unseen ones become -infinity. *top: their maximum by lane. Returns whether a key
 * is left. */
static bool finish_scores(const call *c, int64_t i, float *s, range r, vf *top) {
    const pith_attention *a = c->a;
    const float *bias = a->bias ? a->bias + i * a->bias_stride + c->first : NULL;
    const range whole = whole_groups(c, r);
    vf scale = vf_set1(a->scale), infinity = vf_set1(-INFINITY), most = infinity;
    bool any = false;
    for (int64_t j = r.from / 16 * 16; j < r.to; j += 16) {
        for (; j >= whole.from && j < whole.to; j += 16, any = true) {
            vf v = vf_mul(vf_load(s + j), scale);
            if (bias) v = vf_add(v, vf_load(bias + j));
            most = vf_max(most, v);
            vf_store(s + j, v);
        }
        if (j >= r.to) break;
        vm keep = kept(c, r, j);
        vf v = vf_mul(vf_load(s + j), scale);
        if (bias) v = vf_add(v, vf_load_n(bias + j, r.to - j < 16 ? (size_t)(r.to - j) : 16));
        v = vf_select(keep, v, infinity);
        any |= vm_any(keep);
        most = vf_max(most, v);
        vf_store(s + j, v);
    }
    *top = most;
    return any;
}

/* Finished scores to e^(score - top), 0 for unseen keys; their sum by lane. What is unseen does not go through exp,
 * which is slow where its result is below the normal range. */
static vf exponentials(const call *c, float *s, range r, float top) {
    const range whole = whole_groups(c, r);
    vf sum = vf_zero(), t = vf_set1(top);
    for (int64_t j = r.from / 16 * 16; j < r.to; j += 16) {
        for (; j >= whole.from && j < whole.to; j += 16) {
            vf e = vf_exp_falling(vf_sub(vf_load(s + j), t));
            sum = vf_add(sum, e);
            vf_store(s + j, e);
        }
        if (j >= r.to) break;
        vm keep = kept(c, r, j);
        vf e = vf_exp_falling(vf_select(keep, vf_sub(vf_load(s + j), t), vf_zero()));
        e = vf_select(keep, e, vf_zero());
        sum = vf_add(sum, e);
        vf_store(s + j, e);
    }
    return sum;
}

/* t += probabilities of keys [from, to) times v, for rows of the strip and panels of v from column on. */
static void add_values(const call *c, int rows, int panels, const float *strip, int64_t column, range r, float *t) {
    for (int64_t j = r.from; j < r.to;) {
        int64_t end = r.to;
        if (c->mask) {
            while (j < r.to && !c->mask[j]) j++;
            for (end = j; end < r.to && c->mask[end]; end++) continue;
            if (j == end) return;
        }
        const float *v = c->v + j * c->v_row + column;
        PITH_K(gemm_tile_f32)(rows, panels, strip + j, c->strip_row, v, c->v_row, 16, end - j, t, 16 * panels, 1,
                              (uintptr_t)v, 0);
        j = end;
    }
}

/* What a query without any key gets. */
static void no_keys(const pith_attention *a, float *o) {
    for (int64_t column = 0; column < a->dv; column += 16) {
        size_t width = a->dv - column < 16 ? (size_t)(a->dv - column) : 16;
        vf sum = vf_zero();
        for (int64_t j = 0; j < a->keys; j++) sum = vf_add(sum, vf_load_n(a->v + j * a->v_stride + column, width));
        sum = vf_div(sum, vf_set1((float)a->keys));
        if (a->none_left != PITH_NONE_LEFT_MEAN) sum = vf_set1(a->none_left == PITH_NONE_LEFT_ZERO ? 0.0f : NAN);
        vf_store_n(o + column, sum, width);
    }
}

static void query_tile(const call *c, int64_t i, int rows) {
    const pith_attention *a = c->a;
    range seen[PITH_TILE_ROWS], common = { 0, c->keys }, all = { c->keys, 0 };
    vf lanes[PITH_TILE_ROWS];
    float tops[PITH_TILE_ROWS], sums[PITH_TILE_ROWS];
    bool any[PITH_TILE_ROWS];
    _Alignas(64) float t[PITH_TILE_ROWS * PITH_TILE_PANELS * 16];
    for (int r = 0; r < rows; r++) {
        seen[r] = visible(c, i + r);
        if (seen[r].from > common.from) common.from = seen[r].from;
        if (seen[r].to < common.to) common.to = seen[r].to;
        if (seen[r].from < all.from) all.from = seen[r].from;
        if (seen[r].to > all.to) all.to = seen[r].to;
    }
    for (int64_t j = all.from / 16 * 16; j < all.to; j += 16 * PITH_TILE_PANELS) {
        int panels = all.to - j > 16 ? PITH_TILE_PANELS : 1;
        const float *kt = c->kt + j * a->d;
        PITH_K(gemm_tile_f32)(rows, panels, a->q + i * a->q_stride, a->q_stride, kt, 16, 16 * a->d, a->d, c->strip + j,
                              c->strip_row, 0, (uintptr_t)kt, 0);
    }
    /* Step by step for all rows, so that their chains of dependent operations overlap. */
    for (int r = 0; r < rows; r++)
        any[r] = finish_scores(c, i + r, c->strip + r * c->strip_row, seen[r], &lanes[r]);
    for (int r = 0; r < rows; r++) tops[r] = vf_hmax(lanes[r]);
    for (int r = 0; r < rows; r++)
        lanes[r] = any[r] ? exponentials(c, c->strip + r * c->strip_row, seen[r], tops[r]) : vf_zero();
    for (int r = 0; r < rows; r++) sums[r] = vf_sum(lanes[r]);

    const bool same = all.from == common.from && all.to == common.to;
    for (int64_t column = 0; column < a->dv; column += 16 * PITH_TILE_PANELS) {
        int panels = a->dv - column > 16 ? PITH_TILE_PANELS : 1;
        const int64_t t_row = 16 * panels;
        memset(t, 0, (size_t)(rows * t_row) * sizeof *t);
        if (common.from >= common.to) common.to = common.from = 0;
        for (int r = 0; r < rows && !same; r++) {
            range before = { seen[r].from, common.from };
            add_values(c, 1, panels, c->strip + r * c->strip_row, column, before, t + r * t_row);
        }
        add_values(c, rows, panels, c->strip, column, common, t);
        for (int r = 0; r < rows && !same; r++) {
            range rest = { common.to > seen[r].from ? common.to : seen[r].from, seen[r].to };
            add_values(c, 1, panels, c->strip + r * c->strip_row, column, rest, t + r * t_row);
        }
        for (int r = 0; r < rows; r++) {
            vf divisor = vf_set1(sums[r]);
            float *o = a->o + (i + r) * a->o_stride + column;
            for (int64_t p = 0; p < t_row && column + p < a->dv; p += 16) {
                vf v = vf_div(vf_load(t + r * t_row + p), divisor);
                if (a->dv - column - p >= 16) vf_store(o + p, v);
                else vf_store_n(o + p, v, (size_t)(a->dv - column - p));
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        if (!any[r]) no_keys(a, a->o + (i + r) * a->o_stride);
    }
}

void PITH_K(attention_f32)(const pith_attention *a, float *scratch) {
    call c = { .a = a, .keys = a->keys, .v_row = a->v_stride };
    if (a->key_mask) {
        while (c.keys > 0 && !a->key_mask[c.keys - 1]) c.keys--;
        while (c.first < c.keys && !a->key_mask[c.first]) c.first++;
        c.keys -= c.first;
        if (c.keys > 0 && memchr(a->key_mask + c.first, 0, (size_t)c.keys)) c.mask = a->key_mask + c.first;
    }
    const int64_t padded = (c.keys + 15) / 16 * 16;
    /* 16 more than needed: rows of a power of two would all fall into one set of the cache. */
    c.strip_row = padded + 16;
    c.strip = scratch;
    float *kt = scratch + PITH_TILE_ROWS * c.strip_row;
    PITH_K(gemm_pack_f32)(kt, a->k + c.first * a->k_stride, 1, a->k_stride, a->d, c.keys, 0, c.keys);
    c.kt = kt;
    c.v = a->v + c.first * a->v_stride;
    if (a->dv % 16 != 0 || c.keys >= COPY_V_KEYS) {
        float *v = kt + padded * a->d;
        const int64_t v_row = (a->dv + 15) / 16 * 16;
        for (int64_t j = 0; j < c.keys; j++) {
            for (int64_t column = 0; column < a->dv; column += 16) {
                size_t width = a->dv - column < 16 ? (size_t)(a->dv - column) : 16;
                vf_store(v + j * v_row + column, vf_load_n(c.v + j * a->v_stride + column, width));
            }
        }
        c.v = v;
        c.v_row = v_row;
    }
    for (int64_t i = 0; i < a->queries;) {
        int64_t left = a->queries - i, tiles = (left + PITH_TILE_ROWS - 1) / PITH_TILE_ROWS;
        int64_t rows = (left + tiles - 1) / tiles;
        query_tile(&c, i, (int)rows);
        i += rows;
    }
}
