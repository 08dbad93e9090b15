/* k_conv_few.c - see conv.h: convolutions of a few positions. Lanes are maps there, since sixteen positions would leave
 * most of them idle and read the weights once for nothing. Sixteen rows of weights are turned, sixteen steps at a time.
 */
#include "kernels/conv.h"

#include "kernels/vec.h"

/* turned[j] = element j of `rows` rows, which are `step` apart; n of each row. Others are 0. */
static void conv_few_turn(float turned[16][16], const float *weights, int64_t step, int64_t rows, size_t n) {
    vf r[16];
    PITH_UNROLL
    for (int i = 0; i < 16; i++)
        r[i] = i >= rows ? vf_zero() : n == 16 ? vf_load(weights + i * step) : vf_load_n(weights + i * step, n);
    vf_transpose(r);
    PITH_UNROLL
    for (int i = 0; i < 16; i++) vf_store(turned[i], r[i]);
}

static void conv_few_put(const pith_conv *c, int64_t m, int64_t rows, int64_t n0, int count, float (*lanes)[16]) {
    for (int n = 0; n < count; n++) {
        const int64_t column = (n0 + n) % c->step, place = (n0 + n) / c->step * c->columns + column;
        for (int64_t i = 0; column < c->columns && i < rows; i++) c->y[(m + i) * c->y_map + place] = lanes[n][i];
    }
}

/* Maps [m, m + rows), at most 16, at `count` positions from n0 on. */
PITH_INLINE void conv_few_block(const pith_conv *c, int64_t m, int64_t rows, int64_t n0, const int count) {
    vf sums[PITH_CONV_FEW];
    float turned[16][16];
    PITH_UNROLL
    for (int n = 0; n < count; n++) sums[n] = vf_zero();
    for (int64_t k = 0; k < c->k; k += 16) {
        const int64_t steps = c->k - k < 16 ? c->k - k : 16;
        conv_few_turn(turned, c->weights + m * c->k + k, c->k, rows, (size_t)steps);
        for (int64_t j = 0; j < steps; j++) {
            const float *x = c->x + c->offsets[k + j] + n0;
            const vf w = vf_load(turned[j]);
            PITH_UNROLL
            for (int n = 0; n < count; n++) sums[n] = vf_fma_at(x + n, w, sums[n]);
        }
    }
    const vf bias = c->bias ? vf_load_n(c->bias + m, (size_t)rows) : vf_zero();
    float lanes[PITH_CONV_FEW][16];
    PITH_UNROLL
    for (int n = 0; n < count; n++) vf_store(lanes[n], c->bias ? vf_add(sums[n], bias) : sums[n]);
    conv_few_put(c, m, rows, n0, count, lanes);
}

void PITH_K(conv_few_f32)(const pith_conv *c, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    for (int64_t m = m0; m < m1; m += 16) {
        const int64_t rows = m1 - m < 16 ? m1 - m : 16;
        for (int64_t n = n0, count; n < n1; n += count) {
            count = n1 - n < PITH_CONV_FEW ? n1 - n : PITH_CONV_FEW;
            switch (count) {
#define CONV_FEW(count)                                                                                                \
    case count: conv_few_block(c, m, rows, n, count); break;
                CONV_FEW(1)
                CONV_FEW(2)
                CONV_FEW(3)
                CONV_FEW(4)
                CONV_FEW(5)
                CONV_FEW(6)
                CONV_FEW(7)
                CONV_FEW(8)
            }
        }
    }
}
