/* k_conv_bytes.c - see conv_bytes.h. Blocks of 16 by 16 are turned in registers. */
#include "kernels/conv_bytes.h"

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

void PITH_K(taps_bytes_u8)(int32_t *sums, const uint8_t *x, const int64_t *offsets, const int32_t *weights,
                           int64_t taps, int64_t n) {
    const vi low = vi_set1(0xFFFF);
    int64_t c = 0;
    for (; n - c >= 16 * VECTORS; c += 16 * VECTORS) {
        vi sum[VECTORS];
        PITH_UNROLL
        for (int k = 0; k < VECTORS; k++) sum[k] = vi_set1(0);
        for (int64_t t = 0; t < taps; t++) {
            PITH_UNROLL
            for (int k = 0; k < VECTORS; k++) {
                vi weight = vi_and(vi_load(weights + t * n + c + 16 * k), low);
                sum[k] = vi_add(sum[k], vi_dot_pairs(vi_load_u8(x + offsets[t] + c + 16 * k), weight));
            }
        }
        PITH_UNROLL
        for (int k = 0; k < VECTORS; k++) vi_store(sums + c + 16 * k, sum[k]);
    }
    for (; n - c >= 16; c += 16) {
        vi sum = vi_set1(0);
        for (int64_t t = 0; t < taps; t++) {
            vi weight = vi_and(vi_load(weights + t * n + c), low);
            sum = vi_add(sum, vi_dot_pairs(vi_load_u8(x + offsets[t] + c), weight));
        }
        vi_store(sums + c, sum);
    }
    for (; c < n; c++) {
        uint32_t sum = 0;
        for (int64_t t = 0; t < taps; t++) sum += (uint32_t)((int32_t)x[offsets[t] + c] * weights[t * n + c]);
        sums[c] = (int32_t)sum;
    }
}

PITH_INLINE vi requantize_bytes(const pith_requantize *a, vi v, vf scale) {
    vf scaled = vf_round(vf_mul(vf_of_vi(v), scale));
    scaled = vf_min(vf_max(scaled, vf_set1(a->low)), vf_set1(a->high));
    return vi_add(vi_of_vf(scaled), vi_set1(a->zero));
}

PITH_INLINE void requantize_store(uint8_t *y, vi bytes, size_t n) {
    if (n == 16)
        vi_store_8(y, bytes);
    else
        vi_store_8_n(y, bytes, n);
}

/* Sixteen numbers of one map, the first n of which are wanted. */
PITH_INLINE void requantize_put(const pith_requantize *a, int64_t map, int64_t window, vi v, size_t n) {
    const int64_t at = map * a->plane + window;
    if (a->scale)
        requantize_store(a->y + at, requantize_bytes(a, v, vf_set1(a->scale[map])), n);
    else
        vf_store_n((float *)(void *)(a->wide + at), vf_bits(v), n);
}

/* The first n (1 to 16) of integers. */
PITH_INLINE vi requantize_take(const int32_t *p, size_t n) {
    return n == 16 ? vi_load(p) : vi_bits(vf_load_n((const float *)(const void *)p, n));
}

/* Sixteen maps of every window, or n of them, side by side. */
PITH_INLINE void requantize_beside(const pith_requantize *a, int64_t j, size_t n) {
    const vi add = requantize_take(a->add + j, n), zeros = a->zeros ? requantize_take(a->zeros + j, n) : vi_set1(0);
    const vf scale = n == 16 ? vf_load(a->scale + j) : vf_load_n(a->scale + j, n);
    for (int64_t i = 0; i < a->windows; i++) {
        vi v = vi_add(requantize_take(a->sums + i * a->row + j, n), add);
        if (a->zeros) v = vi_sub(v, vi_mul(zeros, vi_set1(a->row_sums[i])));
        requantize_store(a->y + j + i * a->step, requantize_bytes(a, v, scale), n);
    }
}

void PITH_K(requantize_i32)(const pith_requantize *a) {
    if (a->step != 1) {
        int64_t j = 0;
        for (; a->maps - j >= 16; j += 16) requantize_beside(a, j, 16);
        if (j < a->maps) requantize_beside(a, j, (size_t)(a->maps - j));
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
            for (size_t k = 0; k < columns; k++) requantize_put(a, j + (int64_t)k, i, vi_bits(block[k]), rows);
        }
    }
}
