/* k_conv_bytes.c - see conv_bytes.h. Blocks of 16 by 16 are turned in registers. */
#include "engine/kernels/conv_bytes.h"

#include <stdbool.h>

#include "engine/kernels/vec.h"

/* Up to four rows, as the bytes of words that are stored over each other. Returns how many columns
 * are done: the last ones would be stored beyond the end. */
static int64_t turn_few(uint8_t *to, int64_t to_row, const uint8_t *from, int64_t from_row,
                        int64_t n, int64_t m, uint8_t flip) {
    const vi flips = vi_set1((int32_t)(flip * 0x01010101u));
    int64_t i = 0;
    for (; n - i >= 16 + 4; i += 16) {
        int32_t words[16];
        vi v = vi_load_u8(from + i);
        if (m > 1) v = vi_or(v, vi_shl(vi_load_u8(from + from_row + i), 8));
        if (m > 2) v = vi_or(v, vi_shl(vi_load_u8(from + 2 * from_row + i), 16));
        if (m > 3) v = vi_or(v, vi_shl(vi_load_u8(from + 3 * from_row + i), 24));
        vi_store(words, vi_xor(v, flips));
        for (int64_t k = 0; k < 16; k++) memcpy(to + (i + k) * to_row, &words[k], sizeof *words);
    }
    return i;
}

/* Transposes blocks of 16 x 16 in registers. Bytes are widened to 32 bits for that, since vec.h can
 * transpose these; the rest goes one by one, or, with up to four rows, by turn_few. flip: the bits
 * that change, 0x80 for a change of sign. */
void PITH_K(turn_bytes_u8)(uint8_t *to, int64_t to_row, const uint8_t *from, int64_t from_row,
                           int64_t n, int64_t m, uint8_t flip) {
    const vi flips = vi_set1(flip);
    int64_t whole_n = n / 16 * 16, whole_m = m / 16 * 16;
    for (int64_t i = 0; i < whole_n; i += 16) {
        for (int64_t j = 0; j < whole_m; j += 16) {
            vf block[16];
            PITH_UNROLL
            for (int k = 0; k < 16; k++)
                block[k] = vf_bits(vi_load_u8(from + (j + k) * from_row + i));
            vf_transpose(block);
            PITH_UNROLL
            for (int k = 0; k < 16; k++)
                vi_store_8(to + (i + k) * to_row + j, vi_xor(vi_bits(block[k]), flips));
        }
    }
    const int64_t few =
        m <= 4 && m == to_row ? turn_few(to, to_row, from, from_row, n, m, flip) : 0;
    for (int64_t i = few; i < n; i++) {
        for (int64_t j = i < whole_n ? whole_m : 0; j < m; j++)
            to[i * to_row + j] = (uint8_t)(from[j * from_row + i] ^ flip);
    }
}

/* What all numbers share, in registers: bytes that are stored may lie anywhere, as far as compilers
 * know. */
typedef struct limits {
    vf low, high;
    vi zero;
} limits;

PITH_INLINE limits requantize_limits(const pith__requantize *a) {
    return (limits){ vf_set1(a->low), vf_set1(a->high), vi_set1(a->zero) };
}

PITH_INLINE vi requantize_bytes(const limits *l, vi v, vf scale) {
    const vf scaled = vf_mul(vf_of_vi(v), scale); /* bounds are integers: rounding may come last */
    return vi_add(vi_nearest(vf_min(vf_max(scaled, l->low), l->high)), l->zero);
}

/* The first n (0 to 16) of integers. */
PITH_INLINE vi requantize_take(const int32_t *p, size_t n) {
    return n == 16 ? vi_load(p) : vi_bits(vf_load_n((const float *)(const void *)p, n));
}

/* n (1 to 16) maps of a window, side by side. */
PITH_INLINE void requantize_beside(const pith__requantize *a, const limits *l, const int32_t *sums,
                                   uint8_t *y, int64_t j, vi row_sum, size_t n) {
    vi v = vi_add(requantize_take(sums, n), requantize_take(a->add + j, n));
    if (a->zeros) v = vi_sub(v, vi_mul(requantize_take(a->zeros + j, n), row_sum));
    v = requantize_bytes(l, v, n == 16 ? vf_load(a->scale + j) : vf_load_n(a->scale + j, n));
    if (n == 16)
        vi_store_8(y + j, v);
    else
        vi_store_8_n(y + j, v, n);
}

static void requantize_rows(const pith__requantize *given, const int32_t *sums, int64_t row,
                            int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    const pith__requantize a = *given;
    const limits l = requantize_limits(given);
    for (int64_t i = i0; i < i1; i++, sums += row) {
        uint8_t *y = a.y + i * a.step;
        const vi row_sum = vi_set1(a.zeros ? a.row_sums[i] : 0);
        int64_t j = j0;
        for (; j1 - j >= 16; j += 16) requantize_beside(&a, &l, sums + (j - j0), y, j, row_sum, 16);
        if (j < j1) requantize_beside(&a, &l, sums + (j - j0), y, j, row_sum, (size_t)(j1 - j));
    }
}

/* At most 16 windows and n maps, turned. */
PITH_INLINE void requantize_turned(const pith__requantize *a, const int32_t *sums, int64_t row,
                                   int64_t i, size_t windows, int64_t j, size_t maps) {
    const vi add = requantize_take(a->add + j, maps);
    const vi zeros = a->zeros ? requantize_take(a->zeros + j, maps) : vi_set1(0);
    vf block[16];
    for (size_t k = 0; k < 16; k++) {
        vi v = k < windows ? requantize_take(sums + (int64_t)k * row, maps) : vi_set1(0);
        v = vi_add(v, add);
        if (a->zeros && k < windows)
            v = vi_sub(v, vi_mul(zeros, vi_set1(a->row_sums[i + (int64_t)k])));
        block[k] = vf_bits(v);
    }
    vf_transpose(block);
    for (size_t k = 0; k < maps; k++)
        vf_store_n((float *)(void *)(a->wide + (j + (int64_t)k) * a->plane + i), block[k], windows);
}

void PITH_K(requantize_i32)(const pith__requantize *a, const int32_t *sums, int64_t row, int64_t i0,
                            int64_t i1, int64_t j0, int64_t j1) {
    if (a->scale) {
        requantize_rows(a, sums, row, i0, i1, j0, j1);
        return;
    }
    for (int64_t i = i0; i < i1; i += 16) {
        const size_t windows = i1 - i < 16 ? (size_t)(i1 - i) : 16;
        for (int64_t j = j0; j < j1; j += 16)
            requantize_turned(a, sums + (i - i0) * row + (j - j0), row, i, windows, j,
                              j1 - j < 16 ? (size_t)(j1 - j) : 16);
    }
}

#if defined(PITH_LEVEL_scalar)
/* Channels [c, c + n) of a window. */
static void depthwise_plain(const pith__depthwise_bytes *a, const uint8_t *x, int64_t window,
                            int64_t c, int64_t n) {
    int32_t sums[PITH_DEPTHWISE_BLOCK];
    for (int64_t i = 0; i < n; i++) {
        sums[i] = 0;
        for (int64_t t = 0; t < a->taps; t++) {
            const int64_t place = pith__depthwise_place(t, c + i, a->taps) * 4 + t % 4;
            sums[i] += x[a->offsets[t] + c + i] * ((const int8_t *)a->weights)[place];
        }
    }
    if (a->out->scale)
        PITH_K(requantize_i32)(a->out, sums, n, window, window + 1, c, c + n);
    else
        memcpy(a->sums + window * a->channels + c, sums, (size_t)n * sizeof *sums);
}

void PITH_K(depthwise_u8)(const pith__depthwise_bytes *a) {
    for (int64_t window = 0; window < a->rows * a->columns; window++) {
        const uint8_t *x = a->x + window / a->columns * a->row_step + window % a->columns * a->step;
        for (int64_t c = 0; c < a->channels; c += PITH_DEPTHWISE_BLOCK)
            depthwise_plain(a, x, window, c,
                            a->channels - c < PITH_DEPTHWISE_BLOCK ? a->channels - c
                                                                   : PITH_DEPTHWISE_BLOCK);
    }
}
#else
/* Taps of a group of weights; taps of the windows that keep their weights in registers. */
enum { QUAD = 4, USUAL_TAPS = 9 };

PITH_INLINE size_t depthwise_least(size_t n) { return n < 16 ? n : 16; }

/* Elements q * 16, … q * 16 + 15 of n: how many there are. */
PITH_INLINE size_t depthwise_part(size_t n, size_t q) {
    return n < 16 * q ? 0 : depthwise_least(n - 16 * q);
}

/* What taps [t, t + QUAD) add to the sums of n channels of one window. The bytes of four taps are
 * interleaved, so that four neighbouring bytes are the taps of one channel and one instruction adds
 * their four products. Interleaving works within 16 bytes, which leaves the channels in another
 * order; the weights are packed in that order (pith__depthwise_place), and sums keep it until they
 * are stored. */
PITH_INLINE void depthwise_quad(vi sum[4], const pith__depthwise_bytes *a, const uint8_t *x,
                                const int32_t *weights, int64_t t, const int64_t taps,
                                const size_t n, const bool vnni) {
    vi at[QUAD];
    PITH_UNROLL
    for (int64_t k = 0; k < QUAD; k++) { /* weights of taps beyond the last are 0 */
        const uint8_t *from = x + a->offsets[t + k < taps ? t + k : t];
        at[k] = n == PITH_DEPTHWISE_BLOCK ? vi_load_bytes(from) : vi_load_bytes_n(from, n);
    }
    const vi a0 = vi_low_8(at[0], at[1]), a1 = vi_high_8(at[0], at[1]);
    const vi b0 = vi_low_8(at[2], at[3]), b1 = vi_high_8(at[2], at[3]);
    sum[0] = vi_add_bytes(sum[0], vi_low_16(a0, b0), vi_load(weights), vnni);
    sum[1] = vi_add_bytes(sum[1], vi_high_16(a0, b0), vi_load(weights + 16), vnni);
    sum[2] = vi_add_bytes(sum[2], vi_low_16(a1, b1), vi_load(weights + 32), vnni);
    sum[3] = vi_add_bytes(sum[3], vi_high_16(a1, b1), vi_load(weights + 48), vnni);
}

/* All taps; usual: there are USUAL_TAPS. */
PITH_INLINE void depthwise_sums(vi sum[4], const pith__depthwise_bytes *a, const uint8_t *x,
                                const int32_t *weights, const bool usual, const size_t n,
                                const bool vnni) {
    PITH_UNROLL
    for (int q = 0; q < 4; q++) sum[q] = vi_set1(0);
    if (usual) {
        PITH_UNROLL
        for (int64_t t = 0; t < USUAL_TAPS; t += QUAD)
            depthwise_quad(sum, a, x, weights + 16 * t, t, USUAL_TAPS, n, vnni);
        return;
    }
    for (int64_t t = 0; t < a->taps; t += QUAD)
        depthwise_quad(sum, a, x, weights + 16 * t, t, a->taps, n, vnni);
}

/* Channels [c, c + n) of all windows. The terms and scales of the epilogue are turned once into the
 * order of the sums, so that sums need no turning on their way to bytes, whose narrowing restores
 * the order. */
PITH_INLINE void depthwise_block(const pith__depthwise_bytes *given, int64_t c, const bool usual,
                                 const size_t n, const bool vnni) {
    const pith__depthwise_bytes a = *given;
    const pith__requantize out = *a.out;
    const limits l = requantize_limits(&out);
    const int32_t *weights = a.weights + c / PITH_DEPTHWISE_BLOCK * ((a.taps + 3) / 4 * 64);
    vi add[4], scale[4], sum[4];
    PITH_UNROLL
    for (size_t q = 0; q < 4; q++) {
        const int64_t at = c + 16 * (int64_t)q;
        const size_t m = depthwise_part(n, q);
        add[q] = m ? requantize_take(out.add + at, m) : vi_set1(0);
        scale[q] = out.scale && m
                       ? requantize_take((const int32_t *)(const void *)(out.scale + at), m)
                       : vi_set1(0);
    }
    vi_turn_groups(add);
    vi_turn_groups(scale);
    for (int64_t i = 0; i < a.rows; i++) {
        const uint8_t *x = a.x + i * a.row_step + c;
        for (int64_t window = i * a.columns, j = 0; j < a.columns; j++, window++, x += a.step) {
            depthwise_sums(sum, &a, x, weights, usual, n, vnni);
            if (!out.scale) {
                vi_turn_groups(sum);
                PITH_UNROLL
                for (size_t q = 0; q < 4; q++) {
                    const size_t m = depthwise_part(n, q);
                    if (m)
                        vf_store_n(
                            (float *)(void *)(a.sums + window * a.channels + c + 16 * (int64_t)q),
                            vf_bits(sum[q]), m);
                }
                continue;
            }
            PITH_UNROLL
            for (int q = 0; q < 4; q++)
                sum[q] = requantize_bytes(&l, vi_add(sum[q], add[q]), vf_bits(scale[q]));
            if (n == PITH_DEPTHWISE_BLOCK)
                vi_store_bytes(out.y + window * out.step + c, vi_narrow_8(sum));
            else
                vi_store_bytes_n(out.y + window * out.step + c, vi_narrow_8(sum), n);
        }
    }
}

PITH_INLINE void depthwise_all(const pith__depthwise_bytes *a, const bool vnni) {
    int64_t c = 0;
    while (a->taps == USUAL_TAPS && a->channels - c >= PITH_DEPTHWISE_BLOCK) {
        depthwise_block(a, c, true, PITH_DEPTHWISE_BLOCK, vnni);
        c += PITH_DEPTHWISE_BLOCK;
    }
    for (; a->channels - c >= PITH_DEPTHWISE_BLOCK; c += PITH_DEPTHWISE_BLOCK)
        depthwise_block(a, c, false, PITH_DEPTHWISE_BLOCK, vnni);
    if (c < a->channels) depthwise_block(a, c, false, (size_t)(a->channels - c), vnni);
}

void PITH_K(depthwise_u8)(const pith__depthwise_bytes *a) { depthwise_all(a, false); }
#endif

#if defined(PITH_LEVEL_avx512) || defined(PITH_LEVEL_avx2)
void PITH_K(depthwise_vnni_u8)(const pith__depthwise_bytes *a) { depthwise_all(a, true); }
#else
void PITH_K(depthwise_vnni_u8)(const pith__depthwise_bytes *a) { PITH_K(depthwise_u8)(a); }
#endif
