/* k_int_sums.c - see int_sums.h. */
#include "engine/kernels/int_sums.h"

#include "engine/kernels/vec.h"

/* The sum of k bytes, with sign if flip is 0x80: flipping the upper bit adds 128 to each, which is
 * taken off at the end, so that both kinds are summed as bytes without sign. */
static int32_t sums_of_bytes(const uint8_t *a, int64_t k, int32_t flip) {
    const vi all = vi_set1(flip);
    vi sum = vi_set1(0);
    uint8_t rest[16];
    int64_t i = 0;
    for (; k - i >= 16; i += 16) sum = vi_add(sum, vi_xor(vi_load_u8(a + i), all));
    if (i < k) {
        memset(rest, flip, sizeof rest); /* zeros once flipped */
        memcpy(rest, a + i, (size_t)(k - i));
        sum = vi_add(sum, vi_xor(vi_load_u8(rest), all));
    }
    /* A byte with a sign is 128 less than its flipped bits. */
    return (int32_t)((uint32_t)vi_hsum(sum) - (uint32_t)k * (uint32_t)flip);
}

PITH_INLINE vi sums_shifted(const pith__sums_shift *s, vi c, const int32_t *sums,
                            const int32_t *zeros, vi p, vi q) {
    c = vi_sub(c, vi_mul(p, vi_load(sums)));
    return s->column_zeros ? vi_sub(c, vi_mul(q, vi_load(zeros))) : c;
}

/* The three terms of a row as two products per element: p times the column's sum, and q times (the
 * row's sum - k * p). */
static void sums_shift_row(const pith__sums_shift *s, int64_t i) {
    const uint32_t zero = (uint32_t)s->row_zeros[i];
    int32_t sum = 0, *c = s->c + i * s->row, rest[3][16] = { { 0 } };
    if (s->column_zeros) sum = sums_of_bytes(s->a + i * s->k, s->k, s->a_signed ? 0x80 : 0);
    const vi p = vi_set1((int32_t)zero),
             q = vi_set1((int32_t)((uint32_t)sum - (uint32_t)s->k * zero));
    int64_t j = 0;
    for (; s->n - j >= 16; j += 16)
        vi_store(c + j, sums_shifted(s, vi_load(c + j), s->column_sums + j,
                                     s->column_zeros ? s->column_zeros + j : NULL, p, q));
    if (j == s->n) return;
    const size_t bytes = (size_t)(s->n - j) * sizeof *c;
    memcpy(rest[0], c + j, bytes);
    memcpy(rest[1], s->column_sums + j, bytes);
    if (s->column_zeros) memcpy(rest[2], s->column_zeros + j, bytes);
    vi_store(rest[0], sums_shifted(s, vi_load(rest[0]), rest[1], rest[2], p, q));
    memcpy(c + j, rest[0], bytes);
}

void PITH_K(sums_shift_i32)(const pith__sums_shift *s) {
    for (int64_t i = 0; i < s->rows; i++)
        if (s->row_zeros[i] || s->column_zeros) sums_shift_row(s, i);
}

void PITH_K(sums_scale_i32)(float *y, const int32_t *sums, int64_t n, float scale,
                            const float *scales, const float *bias) {
    const vf all = vf_set1(scale);
    int64_t j = 0;
    for (; n - j >= 16; j += 16) {
        const vf v = vf_mul(vf_of_vi(vi_load(sums + j)), vf_mul(all, vf_load(scales + j)));
        vf_store(y + j, bias ? vf_add(v, vf_load(bias + j)) : v);
    }
    for (; j < n; j++) {
        const float v = (float)sums[j] * (scale * scales[j]);
        y[j] = bias ? v + bias[j] : v;
    }
}
