/* resize_sums.c - see resize_sums.h. */
#include "images/resize_sums.h"

#include <string.h>

#include "base/os/cpu.h"

enum { SUMS_LOW = 11 }; /* binary places of the lower half */

void pith__resize_split(int16_t *halves, const int32_t *weights, int32_t count, int32_t taps) {
    memset(halves, 0, pith__resize_halves(taps) * sizeof *halves);
    for (int32_t k = 0; k < count; k++) {
        int16_t *block =
            halves + k / PITH_RESIZE_BLOCK * 2 * PITH_RESIZE_BLOCK + k % PITH_RESIZE_BLOCK;
        int32_t low = weights[k] & ((1 << SUMS_LOW) - 1);
        block[0] = (int16_t)low;
        block[PITH_RESIZE_BLOCK] = (int16_t)((weights[k] - low) / (1 << SUMS_LOW));
    }
}

#ifdef __x86_64__

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

bool pith__resize_sums_usable(void) { return pith__cpu_runs(PITH_ISA_avx2); }

/* Both halves as one sum, rounded; not cut to a byte yet. */
static inline AVX2 __m256i sums_join(__m256i low, __m256i high) {
    __m256i sum = _mm256_add_epi32(low, _mm256_slli_epi32(high, SUMS_LOW));
    return _mm256_add_epi32(sum, _mm256_set1_epi32(1 << (PITH_RESIZE_PLACES - 1)));
}

/* An output pixel of one channel after another in 32 bits, from the sums of its two halves of
 * pixels. */
static inline AVX2 int32_t sums_pixel(__m256i low, __m256i high) {
    const __m128i half = _mm_set1_epi32(1 << (PITH_RESIZE_PLACES - 1));
    __m256i sum = _mm256_add_epi32(low, _mm256_slli_epi32(high, SUMS_LOW));
    __m128i whole = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    whole = _mm_srai_epi32(_mm_add_epi32(whole, half), PITH_RESIZE_PLACES);
    whole = _mm_packs_epi32(whole, whole);
    return _mm_cvtsi128_si32(_mm_packus_epi16(whole, whole));
}

/* Asks for the same place two rows further down, which comes next; the processor follows no picture
 * from row to row. It may lie after the picture's end, where nothing happens. */
static inline AVX2 void sums_ask(const uint8_t *p, size_t step, int rows) {
    const uintptr_t next = (uintptr_t)p + 2 * step;
    _mm_prefetch((const void *)next, _MM_HINT_T0);
    if (rows == 2) _mm_prefetch((const void *)(next + step), _MM_HINT_T0);
}

/* Four input pixels are in a vector: the first two in the lower half, channel by channel, then the
 * other two. channels is 3 or 4 and rows is 1 or 2; both are constants at every call, so each pair
 * gets a loop of its own. */
static inline AVX2 void sums_rows(const pith__resize_lines *l, const pith__resize_row *row,
                                  int channels, int rows) {
    /* Each byte becomes 16 bits; -1 is a zero. */
    const __m256i order =
        /* the first two */
        channels == 3 ? _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,
                                         6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1)
                      /* the first two */
                      : _mm256_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1, 8,
                                         -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1);
    const __m256i lows = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1),
                  highs = _mm256_setr_epi32(2, 2, 2, 2, 3, 3, 3, 3);
    const size_t step = pith__resize_halves(row->taps), pixel = (size_t)channels;
    for (size_t i = 0; i < (size_t)row->width; i++) {
        const int16_t *halves = row->halves + i * step;
        const uint8_t *p = l->from + (size_t)row->first[i] * pixel;
        __m256i low[2] = { _mm256_setzero_si256(), _mm256_setzero_si256() },
                high[2] = { low[0], low[0] };
        sums_ask(p, l->from_step, rows);
        for (int32_t k = 0; k < row->counts[i]; k += PITH_RESIZE_BLOCK) {
            const __m256 both = _mm256_castsi256_ps(_mm256_broadcastsi128_si256(
                _mm_loadu_si128((const __m128i *)(const void *)halves)));
            const __m256i a = _mm256_castps_si256(_mm256_permutevar_ps(both, lows));
            const __m256i b = _mm256_castps_si256(_mm256_permutevar_ps(both, highs));
#pragma GCC unroll 2
            for (int j = 0; j < rows; j++) {
                const void *at = p + (j ? l->from_step : 0);
                const __m256i bytes =
                    _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)at));
                const __m256i pixels = _mm256_shuffle_epi8(bytes, order);
                low[j] = _mm256_add_epi32(low[j], _mm256_madd_epi16(pixels, a));
                high[j] = _mm256_add_epi32(high[j], _mm256_madd_epi16(pixels, b));
            }
            p += PITH_RESIZE_BLOCK * channels;
            halves += 2 * PITH_RESIZE_BLOCK;
        }
#pragma GCC unroll 2
        for (int j = 0; j < rows; j++) {
            uint8_t *to = l->to + (j ? l->to_step : 0) + i * pixel;
            const int32_t sum = sums_pixel(low[j], high[j]);
            if (i + 1 < (size_t)row->width)
                memcpy(to, &sum, sizeof sum); /* the next pixel overwrites what is too much */
            else
                memcpy(to, &sum, pixel);
        }
    }
}

AVX2 void pith__resize_sum_along(const pith__resize_lines *lines, const pith__resize_row *row,
                                 int channels) {
    if (channels == 3 && lines->count == 2)
        sums_rows(lines, row, 3, 2);
    else if (channels == 3)
        sums_rows(lines, row, 3, 1);
    else
        sums_rows(lines, row, 4, 1);
}

/* 32 bytes of the result. Two rows at a time: byte by byte of the one and of the other. */
static inline AVX2 void sums_columns(uint8_t *to, const uint8_t *rows, size_t bytes,
                                     const int16_t *halves, int32_t count) {
    const __m256i zero = _mm256_setzero_si256();
    __m256i low[4] = { zero, zero, zero, zero }, high[4] = { zero, zero, zero, zero };
    for (int32_t k = 0; k < count; k += 2, rows += 2 * bytes) {
        const int16_t *h =
            halves + k / PITH_RESIZE_BLOCK * 2 * PITH_RESIZE_BLOCK + k % PITH_RESIZE_BLOCK;
        int32_t lows, highs;
        memcpy(&lows, h, sizeof lows);
        memcpy(&highs, h + PITH_RESIZE_BLOCK, sizeof highs);
        const __m256i wl = _mm256_set1_epi32(lows), wh = _mm256_set1_epi32(highs);
        /* After the last of an odd number of rows there may be none; its weight is zero. */
        const uint8_t *second = k + 1 < count ? rows + bytes : rows;
        __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)rows);
        __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)second);
        __m256i ab = _mm256_unpacklo_epi8(a, b), cd = _mm256_unpackhi_epi8(a, b);
        const __m256i pairs[4] = { _mm256_unpacklo_epi8(ab, zero), _mm256_unpackhi_epi8(ab, zero),
                                   _mm256_unpacklo_epi8(cd, zero), _mm256_unpackhi_epi8(cd, zero) };
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            low[j] = _mm256_add_epi32(low[j], _mm256_madd_epi16(pairs[j], wl));
            high[j] = _mm256_add_epi32(high[j], _mm256_madd_epi16(pairs[j], wh));
        }
    }
    __m256i sum[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++)
        sum[j] = _mm256_srai_epi32(sums_join(low[j], high[j]), PITH_RESIZE_PLACES);
    __m256i result =
        _mm256_packus_epi16(_mm256_packs_epi32(sum[0], sum[1]), _mm256_packs_epi32(sum[2], sum[3]));
    _mm256_storeu_si256((__m256i *)(void *)to, result);
}

AVX2 void pith__resize_sum_down(uint8_t *to, const uint8_t *rows, size_t bytes,
                                const int16_t *halves, int32_t count) {
    size_t i = 0;
    for (; i + 32 <= bytes; i += 32) sums_columns(to + i, rows + i, bytes, halves, count);
    if (i < bytes) sums_columns(to + bytes - 32, rows + bytes - 32, bytes, halves, count);
}

#else

bool pith__resize_sums_usable(void) { return false; }

void pith__resize_sum_along(const pith__resize_lines *lines, const pith__resize_row *row,
                            int channels) {
    (void)lines, (void)row, (void)channels;
}

void pith__resize_sum_down(uint8_t *to, const uint8_t *rows, size_t bytes, const int16_t *halves,
                           int32_t count) {
    (void)to, (void)rows, (void)bytes, (void)halves, (void)count;
}

#endif
