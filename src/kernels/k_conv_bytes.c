/* k_conv_bytes.c - see conv_bytes.h. Blocks of 16 by 16 are turned in registers. */
#include "kernels/conv_bytes.h"

#include <stdbool.h>

#include "kernels/vec.h"

void PITH_K(turn_bytes_u8)(uint8_t *to, int64_t to_row, const uint8_t *from, int64_t from_row, int64_t n, int64_t m,
                           uint8_t flip) {
    const vi flips = vi_set1(flip);
    int64_t whole_n = n / 16 * 16, whole_m = m / 16 * 16;
    for (int64_t i = 0; i < whole_n; i += 16) {
        for (int64_t j = 0; j < whole_m; j += 16) {
            vf block[16];
            PITH_UNROLL
            for (int k = 0; k < 16; k++) block[k] = vf_bits(vi_load_u8(from + (j + k) * from_row + i));
            vf_transpose(block);
            PITH_UNROLL
            for (int k = 0; k < 16; k++) vi_store_8(to + (i + k) * to_row + j, vi_xor(vi_bits(block[k]), flips));
        }
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i < whole_n ? whole_m : 0; j < m; j++)
            to[i * to_row + j] = (uint8_t)(from[j * from_row + i] ^ flip);
    }
}

enum { VECTORS = 4 };

/* 16 * vectors channels from c on. */
PITH_INLINE void taps_bytes_block(int32_t *sums, const uint8_t *x, const int64_t *offsets, const int32_t *weights,
                                  int64_t taps, int64_t n, int64_t c, const int vectors) {
    vi sum[VECTORS];
    PITH_UNROLL
    for (int k = 0; k < vectors; k++) sum[k] = vi_set1(0);
    for (int64_t t = 0; t < taps; t += 2, weights += n) {
        const bool both = t + 1 < taps;
        const uint8_t *first = x + offsets[t] + c, *second = both ? x + offsets[t + 1] + c : first;
        PITH_UNROLL
        for (int k = 0; k < vectors; k++) {
            const vi pair = vi_or(vi_load_u8(first + 16 * k), vi_shl(vi_load_u8(second + 16 * k), 16));
            sum[k] = vi_add(sum[k], vi_dot_pairs(pair, vi_load(weights + c + 16 * k)));
        }
    }
    PITH_UNROLL
    for (int k = 0; k < vectors; k++) vi_store(sums + c + 16 * k, sum[k]);
}

void PITH_K(taps_bytes_u8)(int32_t *sums, const uint8_t *x, const int64_t *offsets, const int32_t *weights,
                           int64_t taps, int64_t n) {
    int64_t c = 0;
    for (; n - c >= 16 * VECTORS; c += 16 * VECTORS) taps_bytes_block(sums, x, offsets, weights, taps, n, c, VECTORS);
    for (; n - c >= 16; c += 16) taps_bytes_block(sums, x, offsets, weights, taps, n, c, 1);
    for (; c < n; c++) {
        uint32_t sum = 0;
        for (int64_t t = 0; t < taps; t++) {
            const uint32_t pair = (uint32_t)weights[t / 2 * n + c];
            sum += (uint32_t)(x[offsets[t] + c] * (int16_t)(t % 2 ? pair >> 16 : pair & 0xFFFF));
        }
        sums[c] = (int32_t)sum;
    }
}

/* What all numbers share, in registers: bytes that are stored may lie anywhere, as far as compilers know. */
typedef struct limits {
    vf low, high;
    vi zero;
} limits;

PITH_INLINE limits requantize_limits(const pith_requantize *a) {
    return (limits){ vf_set1(a->low), vf_set1(a->high), vi_set1(a->zero) };
}

PITH_INLINE vi requantize_bytes(const limits *l, vi v, vf scale) {
    const vf scaled = vf_round(vf_mul(vf_of_vi(v), scale));
    return vi_add(vi_of_vf(vf_min(vf_max(scaled, l->low), l->high)), l->zero);
}

PITH_INLINE void requantize_store(uint8_t *y, vi bytes, size_t n) {
    if (n == 16)
        vi_store_8(y, bytes);
    else
        vi_store_8_n(y, bytes, n);
}

/* Sixteen numbers of one map, the first n of which are wanted. */
PITH_INLINE void requantize_put(const pith_requantize *a, const limits *l, int64_t map, int64_t window, vi v,
                                size_t n) {
    const int64_t at = map * a->plane + window;
    if (a->scale)
        requantize_store(a->y + at, requantize_bytes(l, v, vf_set1(a->scale[map])), n);
    else
        vf_store_n((float *)(void *)(a->wide + at), vf_bits(v), n);
}

/* The first n (1 to 16) of integers. */
PITH_INLINE vi requantize_take(const int32_t *p, size_t n) {
    return n == 16 ? vi_load(p) : vi_bits(vf_load_n((const float *)(const void *)p, n));
}

/* n (1 to 16) maps of a window, side by side. */
PITH_INLINE void requantize_beside(const pith_requantize *a, const limits *l, const int32_t *sums, uint8_t *y,
                                   int64_t j, vi row_sum, size_t n) {
    vi v = vi_add(requantize_take(sums + j, n), requantize_take(a->add + j, n));
    if (a->zeros) v = vi_sub(v, vi_mul(requantize_take(a->zeros + j, n), row_sum));
    requantize_store(y + j, requantize_bytes(l, v, n == 16 ? vf_load(a->scale + j) : vf_load_n(a->scale + j, n)), n);
}

static void requantize_rows(const pith_requantize *given) {
    const pith_requantize a = *given;
    const limits l = requantize_limits(given);
    for (int64_t i = 0; i < a.windows; i++) {
        const int32_t *sums = a.sums + i * a.row;
        uint8_t *y = a.y + i * a.step;
        const vi row_sum = vi_set1(a.zeros ? a.row_sums[i] : 0);
        int64_t j = 0;
        for (; a.maps - j >= 16; j += 16) requantize_beside(&a, &l, sums, y, j, row_sum, 16);
        if (j < a.maps) requantize_beside(&a, &l, sums, y, j, row_sum, (size_t)(a.maps - j));
    }
}

void PITH_K(requantize_i32)(const pith_requantize *a) {
    const limits l = requantize_limits(a);
    if (a->step != 1) {
        requantize_rows(a);
        return;
    }
    for (int64_t i = 0; i < a->windows; i += 16) {
        size_t rows = a->windows - i < 16 ? (size_t)(a->windows - i) : 16;
        for (int64_t j = 0; j < a->maps; j += 16) {
            size_t columns = a->maps - j < 16 ? (size_t)(a->maps - j) : 16;
            vi add = requantize_take(a->add + j, columns);
            vi zeros = a->zeros ? requantize_take(a->zeros + j, columns) : vi_set1(0);
            vf block[16];
            for (size_t k = 0; k < 16; k++) {
                vi v = k < rows ? requantize_take(a->sums + (i + (int64_t)k) * a->row + j, columns) : vi_set1(0);
                v = vi_add(v, add);
                if (a->zeros && k < rows) v = vi_sub(v, vi_mul(zeros, vi_set1(a->row_sums[i + (int64_t)k])));
                block[k] = vf_bits(v);
            }
            vf_transpose(block);
            for (size_t k = 0; k < columns; k++) requantize_put(a, &l, j + (int64_t)k, i, vi_bits(block[k]), rows);
        }
    }
}
