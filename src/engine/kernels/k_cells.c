/* k_cells.c - see cells.h. */
#include "engine/kernels/cells.h"

#include "engine/kernels/vmath.h"

/* Sixteen elements from i on, or the rest. */
PITH_INLINE vf cells_take(const float *p, int64_t i, size_t n) {
    return n == 16 ? vf_load(p + i) : vf_load_n(p + i, n);
}
PITH_INLINE void cells_put(float *p, int64_t i, vf v, size_t n) {
    if (n == 16)
        vf_store(p + i, v);
    else
        vf_store_n(p + i, v, n);
}
PITH_INLINE vf cells_sum(const float *x, const float *g, int64_t i, size_t n) {
    return vf_add(cells_take(x, i, n), cells_take(g, i, n));
}

#define WIDTH(n) ((n)-i < 16 ? (size_t)((n)-i) : 16)

void PITH_K(lstm_cell_f32)(float *h, float *c, const float *x, const float *g, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        size_t w = WIDTH(n);
        vf in = vf_sigmoid(cells_sum(x, g, i, w)),
           forget = vf_sigmoid(cells_sum(x + 2 * n, g + 2 * n, i, w));
        vf now = vf_tanh(cells_sum(x + 3 * n, g + 3 * n, i, w));
        now = vf_fma(forget, cells_take(c, i, w), vf_mul(in, now));
        vf out = vf_sigmoid(cells_sum(x + n, g + n, i, w));
        cells_put(c, i, now, w);
        cells_put(h, i, vf_mul(out, vf_tanh(now)), w);
    }
}

PITH_INLINE void cells_blend(float *h, int64_t i, vf z, vf candidate, size_t w) {
    cells_put(h, i, vf_fma(z, vf_sub(cells_take(h, i, w), candidate), candidate), w);
}

void PITH_K(gru_cell_f32)(float *h, const float *x, const float *g, const float *bias, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        size_t w = WIDTH(n);
        vf z = vf_sigmoid(cells_sum(x, g, i, w)), r = vf_sigmoid(cells_sum(x + n, g + n, i, w));
        vf from_h = cells_take(g + 2 * n, i, w);
        if (bias) from_h = vf_add(from_h, cells_take(bias, i, w));
        cells_blend(h, i, z, vf_tanh(vf_fma(r, from_h, cells_take(x + 2 * n, i, w))), w);
    }
}

void PITH_K(gru_gates_f32)(float *z, float *reset, const float *h, const float *x, const float *g,
                           int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        size_t w = WIDTH(n);
        cells_put(z, i, vf_sigmoid(cells_sum(x, g, i, w)), w);
        cells_put(reset, i, vf_mul(vf_sigmoid(cells_sum(x + n, g + n, i, w)), cells_take(h, i, w)),
                  w);
    }
}

void PITH_K(gru_finish_f32)(float *h, const float *z, const float *x, const float *g, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        size_t w = WIDTH(n);
        cells_blend(h, i, cells_take(z, i, w), vf_tanh(cells_sum(x, g, i, w)), w);
    }
}
