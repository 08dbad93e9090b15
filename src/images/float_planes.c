/* float_planes.c - see float_planes.h. Eight pixels at a time with AVX2; conversions are exact, so
 * any way gives the same numbers. */
#include "images/float_planes.h"

#include <stdbool.h>

#include "base/os/cpu.h"

static void planes_from(size_t begin, float *const planes[3], const uint8_t *pixels, int channels,
                        const int order[3], size_t count) {
    for (int p = 0; p < 3; p++) {
        const uint8_t *from = pixels + (channels == 1 ? 0 : order[p]);
        for (size_t x = begin; x < count; x++) planes[p][x] = (float)from[x * (size_t)channels];
    }
}

#ifdef __x86_64__

#include <immintrin.h>

/* Returns how many pixels are done. It reads 16 bytes from every fourth pixel on, so it ends before
 * these pass the row's end. channels is a constant at every call. */
static inline __attribute__((target("avx2"))) size_t planes_avx2(float *const planes[3],
                                                                 const uint8_t *pixels,
                                                                 int channels, const int order[3],
                                                                 size_t count) {
    __m256i pick[3];
    for (int p = 0; p < 3; p++) { /* one byte of each pixel becomes 32 bits */
        const __m256i pixel = _mm256_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3);
        const __m256i byte = _mm256_add_epi32(
            _mm256_mullo_epi32(pixel, _mm256_set1_epi32(channels)), _mm256_set1_epi32(order[p]));
        pick[p] = _mm256_or_si256(byte, _mm256_set1_epi32((int)0xFFFFFF00u));
    }
    size_t x = 0;
    for (; (x + 4) * (size_t)channels + 16 <= count * (size_t)channels; x += 8) {
        const uint8_t *at = pixels + x * (size_t)channels;
        const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)at);
        const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(at + 4 * channels));
        const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
        for (int p = 0; p < 3; p++)
            _mm256_storeu_ps(planes[p] + x, _mm256_cvtepi32_ps(_mm256_shuffle_epi8(both, pick[p])));
    }
    return x;
}

static __attribute__((target("avx2"))) size_t planes_begin(float *const planes[3],
                                                           const uint8_t *pixels, int channels,
                                                           const int order[3], size_t count) {
    if (channels == 3) return planes_avx2(planes, pixels, 3, order, count);
    return channels == 4 ? planes_avx2(planes, pixels, 4, order, count) : 0;
}

void pith__planes_of_row(float *const planes[3], const uint8_t *pixels, int channels,
                         const int order[3], size_t count) {
    planes_from(pith__cpu_runs(PITH_ISA_avx2) ? planes_begin(planes, pixels, channels, order, count)
                                              : 0,
                planes, pixels, channels, order, count);
}

#else

void pith__planes_of_row(float *const planes[3], const uint8_t *pixels, int channels,
                         const int order[3], size_t count) {
    planes_from(0, planes, pixels, channels, order, count);
}

#endif
