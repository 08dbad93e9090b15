/* k_grid_sample.c - see grid_sample.h: sixteen places at a time. A channel is done for all places
 * before the next one, while its elements are in the cache. */
#include "engine/kernels/grid_sample.h"

#include <stdbool.h>

#include "engine/kernels/vec.h"

/* whole: all places are elements. */
PITH_INLINE vf grid_add(const pith__grid *g, const float *x, int64_t at, vf sum, const bool whole) {
    const vi i = vi_load(g->at + at);
    vf v = vf_gather(x, whole ? i : vi_max(i, vi_set1(0)));
    if (!whole) v = vf_keep(vi_gt(i, vi_set1(-1)), v);
    return vf_fma(vf_load(g->weights + at), v, sum);
}

PITH_INLINE vf grid_sum(const pith__grid *g, const float *x, int64_t i, const bool whole) {
    vf sum = vf_zero();
    if (g->taps == 4) {
        PITH_UNROLL
        for (int k = 0; k < 4; k++) sum = grid_add(g, x, k * g->stride + i, sum, whole);
        return sum;
    }
    for (int64_t k = 0; k < g->taps; k++) sum = grid_add(g, x, k * g->stride + i, sum, whole);
    return sum;
}

/* True if no place of these sixteen points is left out. Places below 0 have the sign bit, so the OR
 * of all of them has it if any has. It holds for all channels and is found once. */
static bool grid_whole(const pith__grid *g, int64_t i) {
    vi least = vi_set1(0);
    for (int64_t k = 0; k < g->taps; k++) least = vi_or(least, vi_load(g->at + k * g->stride + i));
    return !vm_any(vi_gt(vi_set1(0), least));
}

void PITH_K(grid_f32)(const pith__grid *g) {
    bool whole[PITH_GRID_POINTS / 16];
    for (int64_t i = 0; i < g->n; i += 16) whole[i / 16] = grid_whole(g, i);
    for (int64_t c = 0; c < g->channels; c++) {
        const float *x = g->x + c * g->x_step;
        float *y = g->y + c * g->y_step;
        for (int64_t i = 0; i < g->n; i += 16) {
            const vf sum = whole[i / 16] ? grid_sum(g, x, i, true) : grid_sum(g, x, i, false);
            if (g->n - i >= 16)
                vf_store(y + i, sum);
            else
                vf_store_n(y + i, sum, (size_t)(g->n - i));
        }
    }
}
