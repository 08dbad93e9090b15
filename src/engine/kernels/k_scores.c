/* k_scores.c - the scores of scores.h in tiles of some rows by some queries.
 *
 * A tile has one vector of sums for each pair. One query takes one row after the other: the
 * processor's prefetching follows such a run of addresses, but hardly several at once, and rows
 * overlap in its pipeline anyway. With more queries a tile uses each load several times. Its rows
 * are then asked for in the order of their addresses, by prefetches, while the rows before them are
 * worked on. */
#include "engine/kernels/scores.h"

#include "engine/kernels/vec.h"

/* Rows and queries of a tile: their product is held in registers, with a vector for each query and
 * one for a row. More of them spill; fewer read more often. A level with registers of 16 floats has
 * 32 of them; others need 2 to 4 registers for a vector. The vectors of the scalar level are
 * arrays, and larger tiles of them would only take long to compile. */
#if defined(PITH_LEVEL_avx512)
enum { TILE_ROWS = 4, TILE_QUERIES = 4 };
#elif defined(PITH_LEVEL_scalar)
enum { TILE_ROWS = 1, TILE_QUERIES = 1 };
#else
enum { TILE_ROWS = 2, TILE_QUERIES = 2 };
#endif
/* Rows whose sums of squares are made side by side: four chains of additions hide their latency. */
enum { SUMSQ_ROWS = 4 };

PITH_INLINE vf load_u8(const uint8_t *p) { return vf_of_vi(vi_load_u8(p)); }
PITH_INLINE vf load_i8(const uint8_t *p) { return vf_of_vi(vi_load_i8(p)); }
PITH_INLINE vf load_u8_n(const uint8_t *p, size_t n) {
    uint8_t t[16] = { 0 };
    memcpy(t, p, n);
    return load_u8(t);
}
PITH_INLINE vf load_i8_n(const uint8_t *p, size_t n) {
    uint8_t t[16] = { 0 };
    memcpy(t, p, n);
    return load_i8(t);
}

PITH_INLINE vf step_dot(vf x, vf query, vf sum) { return vf_fma(x, query, sum); }
PITH_INLINE vf step_l2(vf x, vf query, vf sum) {
    vf d = vf_sub(x, query);
    return vf_fma(d, d, sum);
}

/* Prefetches a share of the tile's next rows: as many bytes as the tile reads of its own, from
 * `done` of each on. */
PITH_INLINE void tile_ahead(const char *next, size_t done, size_t bytes, const int rows) {
    PITH_UNROLL
    for (size_t b = 0; b < bytes * (size_t)rows; b += 64)
        __builtin_prefetch(next + done * (size_t)rows + b);
}

/* tile(a, row, query, rows, queries): both last ones are constants, of 1 to 4. */
#define SCORES(name, T, LOAD, LOAD_N, STEP)                                                        \
    PITH_INLINE void name##_tile(const pith__scores *a, size_t row, size_t query, const int rows,  \
                                 const int queries) {                                              \
        vf sum[4][4], y[4];                                                                        \
        const char *x = (const char *)a->rows + row * a->row_bytes;                                \
        const float *from = a->queries + query * a->dim;                                           \
        size_t i = 0;                                                                              \
        PITH_UNROLL                                                                                \
        for (int r = 0; r < rows; r++) {                                                           \
            PITH_UNROLL                                                                            \
            for (int q = 0; q < queries; q++) sum[r][q] = vf_zero();                               \
        }                                                                                          \
        for (; a->dim - i >= 16; i += 16) {                                                        \
            PITH_UNROLL                                                                            \
            for (int q = 0; q < queries; q++) y[q] = vf_load(from + (size_t)q * a->dim + i);       \
            if (rows > 1 && query == 0)                                                            \
                tile_ahead(x + (size_t)rows * a->row_bytes, i * sizeof(T), 16 * sizeof(T), rows);  \
            PITH_UNROLL                                                                            \
            for (int r = 0; r < rows; r++) {                                                       \
                const T *p = (const T *)(const void *)(x + (size_t)r * a->row_bytes) + i;          \
                vf v = LOAD(p);                                                                    \
                PITH_UNROLL                                                                        \
                for (int q = 0; q < queries; q++) sum[r][q] = STEP(v, y[q], sum[r][q]);            \
            }                                                                                      \
        }                                                                                          \
        if (i < a->dim) {                                                                          \
            PITH_UNROLL                                                                            \
            for (int q = 0; q < queries; q++)                                                      \
                y[q] = vf_load_n(from + (size_t)q * a->dim + i, a->dim - i);                       \
            PITH_UNROLL                                                                            \
            for (int r = 0; r < rows; r++) {                                                       \
                vf v = LOAD_N((const T *)(const void *)(x + (size_t)r * a->row_bytes) + i,         \
                              a->dim - i);                                                         \
                PITH_UNROLL                                                                        \
                for (int q = 0; q < queries; q++) sum[r][q] = STEP(v, y[q], sum[r][q]);            \
            }                                                                                      \
        }                                                                                          \
        PITH_UNROLL                                                                                \
        for (int q = 0; q < queries; q++) {                                                        \
            PITH_UNROLL                                                                            \
            for (int r = 0; r < rows; r++)                                                         \
                a->scores[(query + (size_t)q) * a->stride + row + (size_t)r] = vf_sum(sum[r][q]);  \
        }                                                                                          \
    }                                                                                              \
    BY_TILES(name, pith__scores)

/* The function of a family, from its tiles. */
#if defined(PITH_LEVEL_scalar)
#define BY_TILES(name, args)                                                                       \
    void PITH_K(name)(const args *a) {                                                             \
        for (size_t query = 0; query < a->query_count; query++) {                                  \
            for (size_t row = 0; row < a->row_count; row++)                                        \
                name##_tile(a, row, query, TILE_ROWS, TILE_QUERIES);                               \
        }                                                                                          \
    }
#else
#define BY_TILES(name, args)                                                                       \
    void PITH_K(name)(const args *a) {                                                             \
        size_t query = 0;                                                                          \
        for (; a->query_count - query >= TILE_QUERIES; query += TILE_QUERIES) {                    \
            size_t row = 0;                                                                        \
            for (; a->row_count - row >= TILE_ROWS; row += TILE_ROWS)                              \
                name##_tile(a, row, query, TILE_ROWS, TILE_QUERIES);                               \
            for (; row < a->row_count; row++) name##_tile(a, row, query, 1, TILE_QUERIES);         \
        }                                                                                          \
        for (; query < a->query_count; query++) {                                                  \
            for (size_t row = 0; row < a->row_count; row++) name##_tile(a, row, query, 1, 1);      \
        }                                                                                          \
    }
#endif

SCORES(scores_dot_f32, float, vf_load, vf_load_n, step_dot)
SCORES(scores_dot_u8, uint8_t, load_u8, load_u8_n, step_dot)
SCORES(scores_dot_i8, uint8_t, load_i8, load_i8_n, step_dot)
SCORES(scores_dot_f16, uint16_t, vf_load_f16, vf_load_f16_n, step_dot)
SCORES(scores_l2_f32, float, vf_load, vf_load_n, step_l2)
SCORES(scores_l2_u8, uint8_t, load_u8, load_u8_n, step_l2)
SCORES(scores_l2_i8, uint8_t, load_i8, load_i8_n, step_l2)
SCORES(scores_l2_f16, uint16_t, vf_load_f16, vf_load_f16_n, step_l2)

#define SUMSQ(name, T, LOAD, LOAD_N)                                                               \
    PITH_INLINE void name##_rows(const pith__scores *a, size_t row, const int rows) {              \
        vf sum[SUMSQ_ROWS];                                                                        \
        const char *x = (const char *)a->rows + row * a->row_bytes;                                \
        size_t i = 0;                                                                              \
        PITH_UNROLL                                                                                \
        for (int r = 0; r < rows; r++) sum[r] = vf_zero();                                         \
        for (; a->dim - i >= 16; i += 16) {                                                        \
            PITH_UNROLL                                                                            \
            for (int r = 0; r < rows; r++) {                                                       \
                vf v = LOAD((const T *)(const void *)(x + (size_t)r * a->row_bytes) + i);          \
                sum[r] = vf_fma(v, v, sum[r]);                                                     \
            }                                                                                      \
        }                                                                                          \
        PITH_UNROLL                                                                                \
        for (int r = 0; r < rows; r++) {                                                           \
            vf v =                                                                                 \
                LOAD_N((const T *)(const void *)(x + (size_t)r * a->row_bytes) + i, a->dim - i);   \
            a->scores[row + (size_t)r] = vf_sum(vf_fma(v, v, sum[r]));                             \
        }                                                                                          \
    }                                                                                              \
    void PITH_K(name)(const pith__scores *a) {                                                     \
        size_t row = 0;                                                                            \
        for (; a->row_count - row >= SUMSQ_ROWS; row += SUMSQ_ROWS)                                \
            name##_rows(a, row, SUMSQ_ROWS);                                                       \
        for (; row < a->row_count; row++) name##_rows(a, row, 1);                                  \
    }

SUMSQ(scores_sumsq_f32, float, vf_load, vf_load_n)
SUMSQ(scores_sumsq_u8, uint8_t, load_u8, load_u8_n)
SUMSQ(scores_sumsq_i8, uint8_t, load_i8, load_i8_n)
SUMSQ(scores_sumsq_f16, uint16_t, vf_load_f16, vf_load_f16_n)

PITH_INLINE void int8_tile(const pith__int_scores *a, size_t row, size_t query, const int rows,
                           const int queries, const int vnni) {
    vi sum[4][4], y[4];
    const int8_t *x = (const int8_t *)a->rows + row * a->row_bytes;
    const int16_t *from = (const int16_t *)a->queries + query * a->width;
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        PITH_UNROLL
        for (int q = 0; q < queries; q++) sum[r][q] = vi_set1(0);
    }
    for (size_t i = 0; i < a->width; i += 32) {
        PITH_UNROLL
        for (int q = 0; q < queries; q++)
            y[q] = vi_load((const int32_t *)(const void *)(from + (size_t)q * a->width + i));
        if (rows > 1 && query == 0)
            tile_ahead((const char *)x + (size_t)rows * a->row_bytes, i, 32, rows);
        PITH_UNROLL
        for (int r = 0; r < rows; r++) {
            vi v = vi_load_i8_pairs(x + (size_t)r * a->row_bytes + i);
            PITH_UNROLL
            for (int q = 0; q < queries; q++) sum[r][q] = vi_add_pairs(sum[r][q], v, y[q], vnni);
        }
    }
    PITH_UNROLL
    for (int q = 0; q < queries; q++) {
        PITH_UNROLL
        for (int r = 0; r < rows; r++)
            a->scores[(query + (size_t)q) * a->stride + row + (size_t)r] = vi_hsum(sum[r][q]);
    }
}

#define INT8(name, vnni)                                                                           \
    PITH_INLINE void name##_tile(const pith__int_scores *a, size_t row, size_t query,              \
                                 const int rows, const int queries) {                              \
        int8_tile(a, row, query, rows, queries, vnni);                                             \
    }                                                                                              \
    BY_TILES(name, pith__int_scores)
INT8(scores_int8_i8, 0)
INT8(scores_int8_vnni_i8, 1)

PITH_INLINE uint64_t word_at(const uint8_t *p, size_t bytes) {
    uint64_t word = 0;
    memcpy(&word, p, bytes);
    return word;
}

/* The levels differ in how bits are counted: their flags have an instruction for it. */
void PITH_K(scores_hamming_u8)(const pith__int_scores *a) {
    const size_t bytes = (a->width + 7) / 8, whole = bytes / 8 * 8, rest = bytes - whole;
    const uint8_t last = (uint8_t)(0xFF << (7 - (a->width + 7) % 8));
    uint8_t ends[8] = { 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF };
    ends[(bytes + 7) % 8] = last;
    const uint64_t mask = word_at(ends, 8);
    for (size_t q = 0; q < a->query_count; q++) {
        const uint8_t *y = (const uint8_t *)a->queries + q * bytes, *x = a->rows;
        for (size_t r = 0; r < a->row_count; r++, x += a->row_bytes) {
            uint64_t word = 0;
            int32_t sum = 0;
            size_t i = 0;
            for (; i < whole; i += 8) {
                word = word_at(x + i, 8) ^ word_at(y + i, 8);
                sum += __builtin_popcountll(word);
            }
            if (rest) {
                sum += __builtin_popcountll((word_at(x + i, rest) ^ word_at(y + i, rest)) & mask);
            } else if (bytes) {
                sum -= __builtin_popcountll(word & ~mask);
            }
            a->scores[q * a->stride + r] = sum;
        }
    }
}
