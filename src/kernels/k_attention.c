/* k_attention.c - softmax(scale q k^T + bias) v by the register tile of the matrix product.
 *
 * Keys are transposed once into panels of 16. A tile of queries gets its strip of scores against all keys, each
 * row of the strip is made into unnormalised probabilities, and the strip times v is divided by the row sums.
 * Positions count from the first key kept by the mask, so padding on either side changes nothing; masked keys in
 * between take part in no sum. Where the rows of a tile see different ranges (causal, window), the common part
 * runs as a tile, the rest row by row in ascending order. */
#include "kernels/attention.h"

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

/* Scores to unnormalised probabilities; 0 outside the range and in holes. Returns their sum, or -1 if no key is
 * left. */
static float exponentials(const call *c, int64_t i, float *s, range r) {
    const pith_attention *a = c->a;
    const float *bias = a->bias ? a->bias + i * a->bias_stride + c->first : NULL;
    int64_t begin = r.from / 16 * 16;
    vf scale = vf_set1(a->scale), infinity = vf_set1(-INFINITY), top = infinity, sum = vf_zero(), iota = vf_iota();
    vm any = vm_first(0);
    for (int64_t j = begin; j < r.to; j += 16) {
        int64_t left = r.to - j;
        vf v = vf_mul(vf_load(s + j), scale);
        if (bias) v = vf_add(v, left >= 16 ? vf_load(bias + j) : vf_load_n(bias + j, (size_t)left));
        if (left < 16 || j < r.from || c->mask) {
            vm keep = vm_and(vf_lt(iota, vf_set1((float)left)), vf_ge(iota, vf_set1((float)(r.from - j))));
            if (c->mask) {
                float kept[16] = { 0 };
                for (int64_t l = 0; l < 16 && l < left; l++) kept[l] = c->mask[j + l];
                keep = vm_and(keep, vf_gt(vf_load(kept), vf_zero()));
            }
            any = vm_or(any, keep);
            v = vf_select(keep, v, infinity);
        } else {
            any = vm_first(16);
        }
        top = vf_max(top, v);
        vf_store(s + j, v);
    }
    if (!vm_any(any)) return -1.0f;
    top = vf_set1(vf_hmax(top));
    for (int64_t j = begin; j < r.to; j += 16) {
        vf e = vf_exp(vf_sub(vf_load(s + j), top));
        sum = vf_add(sum, e);
        vf_store(s + j, e);
    }
    return vf_sum(sum);
}

/* t (+)= probabilities of keys [from, to) times v, for rows of the strip and panels of v from column on. */
static void add_values(const call *c, int rows, int panels, const float *strip, int64_t column, range r, float *t) {
    const int64_t t_row = 16 * panels;
    for (int64_t j = r.from; j < r.to;) {
        int64_t end = r.to;
        if (c->mask) {
            while (j < r.to && !c->mask[j]) j++;
            for (end = j; end < r.to && c->mask[end]; end++) continue;
            if (j == end) return;
        }
        const float *v = c->v + j * c->v_row + column;
        PITH_K(gemm_tile_f32)
        (rows, panels, strip + j, c->strip_row, v, c->v_row, 16, end - j, t, t_row, 1, (uintptr_t)v, 0);
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
        vf_store_n(o + column, a->masked_is_finite ? sum : vf_set1(NAN), width);
    }
}

static void query_tile(const call *c, int64_t i, int rows) {
    const pith_attention *a = c->a;
    range seen[PITH_TILE_ROWS], common = { 0, c->keys }, all = { c->keys, 0 };
    float sums[PITH_TILE_ROWS];
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
        PITH_K(gemm_tile_f32)
        (rows, panels, a->q + i * a->q_stride, a->q_stride, c->kt + j * a->d, 16, 16 * a->d, a->d, c->strip + j,
         c->strip_row, 0, (uintptr_t)c->kt, 0);
    }
    for (int r = 0; r < rows; r++) sums[r] = exponentials(c, i + r, c->strip + r * c->strip_row, seen[r]);

    for (int64_t column = 0; column < a->dv; column += 16 * PITH_TILE_PANELS) {
        int panels = a->dv - column > 16 ? PITH_TILE_PANELS : 1;
        const int64_t t_row = 16 * panels;
        memset(t, 0, sizeof t);
        if (common.from < common.to) {
            for (int r = 0; r < rows; r++) {
                add_values(c, 1, panels, c->strip + r * c->strip_row, column, (range){ seen[r].from, common.from },
                           t + r * t_row);
            }
            add_values(c, rows, panels, c->strip, column, common, t);
        }
        for (int r = 0; r < rows; r++) {
            range rest = { common.from < common.to ? common.to : seen[r].from, seen[r].to };
            add_values(c, 1, panels, c->strip + r * c->strip_row, column, rest, t + r * t_row);
            vf divisor = vf_set1(sums[r]);
            float *o = a->o + (i + r) * a->o_stride + column;
            for (int64_t p = 0; p < t_row && column + p < a->dv; p += 16) {
                size_t width = a->dv - column - p < 16 ? (size_t)(a->dv - column - p) : 16;
                vf_store_n(o + p, vf_div(vf_load(t + r * t_row + p), divisor), width);
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        if (sums[r] < 0.0f) no_keys(a, a->o + (i + r) * a->o_stride);
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
