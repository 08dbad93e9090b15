/* k_gemm_amx.c - 8-bit and bf16 matmuls with the matrix tiles of AMX: 32 rows by 32 columns of sums
 * in four tiles.
 *
 * A tile is 16 rows of 64 bytes. The packed forms of b (16 columns of 4 bytes of k) are tiles as
 * they lie in memory, and so are 16 rows of a. The tail of k goes through copies padded with zeros.
 * For fewer rows the tiles are configured smaller, and the instructions take fewer steps.
 *
 * A step of 64 bytes of k loads four tiles for four matrix multiplications, which is as much as the
 * loads can keep up with. The matrix unit works in parallel with the vector units: during each
 * step, some rows of the previous tile go through the epilogue, and the next data is prefetched.
 * The tiles are released at the end of a call. Source: Intel SDM volume 1, chapter 18. */
#include "engine/kernels/gemm_tile.h"

#if defined(PITH_LEVEL_avx512)
#include <immintrin.h>
#include <string.h>

#include "engine/kernels/vec.h"

#define AMX __attribute__((target("amx-tile,amx-int8,amx-bf16")))

/* ROWS, COLUMNS: sums of one step, as many as four tiles hold. DEPTH: bytes of a row of a tile.
 * ROW: bytes of a row of sums. GROUP_BYTES: bytes of b that all rows are multiplied by before the
 * next group. Larger groups read a less often but must share L2 with a and the result. */
enum {
    ROWS = 32,
    COLUMNS = 32,
    DEPTH = 64,
    TILE = 16 * DEPTH,
    ROW = 4 * COLUMNS,
    GROUP_BYTES = 96 << 10
};

/* Compilers do not know which memory the tile instructions read. */
#define WRITTEN() __asm__ volatile("" ::: "memory")

/* Tiles 0 to 3 are the sums, two by two; 4 and 5 rows of a; 6 and 7 panels of b. */
AMX static void configure(int64_t rows) {
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = { .palette = 1 };
    const uint8_t upper = (uint8_t)(rows < 16 ? rows : 16),
                  lower = (uint8_t)(rows > 16 ? rows - 16 : 1);
    const uint8_t tiles[] = { upper, upper, lower, lower, upper, lower, 16, 16 };
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = DEPTH;
        config.rows[i] = tiles[i];
    }
    WRITTEN();
    _tile_loadconfig(&config);
}

#define STEP(multiply, a, a_row, b, b_panel)                                                       \
    _tile_loadd(6, b, DEPTH);                                                                      \
    _tile_loadd(4, a, a_row);                                                                      \
    multiply(0, 4, 6);                                                                             \
    if (columns > 16) {                                                                            \
        _tile_loadd(7, (b) + (b_panel), DEPTH);                                                    \
        multiply(1, 4, 7);                                                                         \
    }                                                                                              \
    if (rows > 16) {                                                                               \
        _tile_loadd(5, (a) + 16 * (a_row), a_row);                                                 \
        multiply(2, 5, 6);                                                                         \
        if (columns > 16) multiply(3, 5, 7);                                                       \
    }

/* A matmul in bytes, and what becomes of rows of its sums. */
typedef struct product {
    void (*finish)(const void *g, const char *t, int64_t i, int64_t rows, int64_t j, int64_t width);
    const void *g;
    const char *a, *b, *next; /* next: as of pith__gemm */
    int64_t a_row, b_panel, depth;
} product;

/* Sums of rows [i, i + rows) and columns [j, j + width). */
typedef struct sums {
    const char *t;
    int64_t i, rows, j, width;
} sums;

/* What each step of a tile does besides multiplying: `rows` rows of the previous sums go through
 * the epilogue, and `lines` cache lines of each of STREAMS streams, `stream` bytes apart, are
 * prefetched into L2. Several streams, in pages of their own, arrive faster than one. */
enum { STREAMS = 4 };
typedef struct beside {
    const product *p;
    sums before;
    int64_t rows, lines, stream;
    uintptr_t ahead;
} beside;

static void finish_rows(beside *s, int64_t rows) {
    sums *b = &s->before;
    if (rows > b->rows) rows = b->rows;
    if (rows == 0) return;
    s->p->finish(s->p->g, b->t, b->i, rows, b->j, b->width);
    b->t += rows * ROW;
    b->i += rows;
    b->rows -= rows;
}

static void work_beside(beside *s) {
    for (int64_t line = 0; line < s->lines; line++, s->ahead += 64) {
        PITH_UNROLL
        for (int64_t n = 0; n < STREAMS; n++)
            __builtin_prefetch((const void *)(s->ahead + (uintptr_t)(n * s->stream)), 0, 2);
    }
    finish_rows(s, s->rows);
}

/* Two tiles of rows of a and two panels of b of which less than a step is left, filled up with
 * zeros. */
static void copy_rest(char *to, const product *p, const char *a, const char *b, int64_t rows,
                      int64_t columns, int64_t depth) {
    memset(to, 0, 4 * TILE);
    for (int64_t i = 0; i < rows; i++) memcpy(to + i * DEPTH, a + i * p->a_row, (size_t)depth);
    for (int64_t n = 0; n * 16 < columns; n++)
        memcpy(to + (2 + n) * TILE, b + n * p->b_panel, (size_t)((depth + 3) / 4 * 64));
}

/* t[rows][32] = a b for up to 32 rows and columns. */
typedef void tile_fn(const product *p, const char *a, const char *b, int64_t rows, int64_t columns,
                     char *t, beside *s);
#define TILE_FN(name, multiply)                                                                    \
    AMX static void name(const product *p, const char *a, const char *b, int64_t rows,             \
                         int64_t columns, char *t, beside *s) {                                    \
        _Alignas(64) char rest[4 * TILE];                                                          \
        int64_t a_row = p->a_row, b_panel = p->b_panel;                                            \
        _tile_zero(0);                                                                             \
        _tile_zero(1);                                                                             \
        _tile_zero(2);                                                                             \
        _tile_zero(3);                                                                             \
        for (int64_t depth = p->depth; depth > 0; depth -= DEPTH, a += DEPTH, b += TILE) {         \
            if (depth < DEPTH) {                                                                   \
                copy_rest(rest, p, a, b, rows, columns, depth);                                    \
                a = rest, a_row = DEPTH;                                                           \
                b = rest + 2 * TILE, b_panel = TILE;                                               \
                WRITTEN();                                                                         \
            }                                                                                      \
            STEP(multiply, a, a_row, b, b_panel)                                                   \
            work_beside(s);                                                                        \
        }                                                                                          \
        finish_rows(s, ROWS);                                                                      \
        _tile_stored(0, t, ROW);                                                                   \
        _tile_stored(1, t + DEPTH, ROW);                                                           \
        if (rows > 16) {                                                                           \
            _tile_stored(2, t + 16 * ROW, ROW);                                                    \
            _tile_stored(3, t + 16 * ROW + DEPTH, ROW);                                            \
        }                                                                                          \
    }
TILE_FN(tile_unsigned, _tile_dpbusd)
TILE_FN(tile_signed, _tile_dpbssd)
TILE_FN(tile_bf16, _tile_dpbf16ps)

/* A group of strips of b meets all rows, in blocks of equal height (the last one begins early, if
 * need be: its first rows come out the same once more), while the next group is fetched, a share in
 * each step. Sums of a single block are finished beside the next tile; with several blocks that
 * gained nothing. */
AMX static void run(const product *p, tile_fn *tile, int64_t m0, int64_t m1, int64_t n0,
                    int64_t n1) {
    _Alignas(64) char t[2][ROWS * ROW];
    if (m0 >= m1) return;
    const int64_t blocks = (m1 - m0 + ROWS - 1) / ROWS, rows = (m1 - m0 + blocks - 1) / blocks;
    const int64_t strip = 2 * p->b_panel,
                  steps = p->depth > DEPTH ? (p->depth + DEPTH - 1) / DEPTH : 1;
    const int64_t group = (strip < GROUP_BYTES ? GROUP_BYTES / strip : 1) * COLUMNS;
    beside s = { .p = p, .rows = blocks == 1 ? (rows + steps - 1) / steps : 0 };
    int current = 0;
    configure(rows);
    for (int64_t j0 = n0, j1; j0 < n1; j0 = j1) {
        j1 = n1 - j0 < group ? n1 : j0 + group;
        const int64_t bytes = (j1 - j0 + COLUMNS - 1) / COLUMNS * strip,
                      parts = bytes / strip * blocks * steps;
        const char *b = p->b + j0 / 16 * p->b_panel;
        s.ahead = (uintptr_t)(j1 < n1 || !p->next ? b + bytes : p->next);
        s.stream = bytes / STREAMS;
        s.lines = (s.stream / 64 + parts - 1) / parts;
        for (int64_t block = 0; block < blocks; block++) {
            const int64_t i = block + 1 < blocks ? m0 + block * rows : m1 - rows;
            for (int64_t j = j0; j < j1; j += COLUMNS, current ^= 1) {
                const int64_t width = j1 - j < COLUMNS ? j1 - j : COLUMNS;
                tile(p, p->a + i * p->a_row, b + (j - j0) / 16 * p->b_panel, rows, width,
                     t[current], &s);
                s.before = (sums){ t[current], i, rows, j, width };
                if (blocks > 1) finish_rows(&s, rows);
            }
        }
    }
    finish_rows(&s, rows);
    _tile_release();
}

static void finish_i8(const void *g, const char *t, int64_t i, int64_t rows, int64_t j,
                      int64_t width) {
    PITH_K(gemm_i8_finish)
    (g, (const int32_t *)(const void *)t, COLUMNS, 0, i, rows, j, width, true);
}

static void finish_bf16(const void *g, const char *t, int64_t i, int64_t rows, int64_t j,
                        int64_t width) {
    PITH_K(gemm_half_finish)(g, (const float *)(const void *)t, COLUMNS, i, rows, j, width);
}

void PITH_K(gemm_amx_i8)(const pith__gemm_int8 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    const product p = { .finish = finish_i8,
                        .g = g,
                        .a = g->a,
                        .b = g->b,
                        .next = g->next,
                        .a_row = g->lda,
                        .b_panel = pith__gemm_int8_panel_bytes(g->k),
                        .depth = g->k };
    run(&p, g->a_signed ? tile_signed : tile_unsigned, m0, m1, n0, n1);
}

void PITH_K(gemm_amx_bf16)(const pith__gemm_half *g, int64_t m0, int64_t m1, int64_t n0,
                           int64_t n1) {
    const product p = { .finish = finish_bf16,
                        .g = g,
                        .a = g->a,
                        .b = g->b,
                        .next = g->next,
                        .a_row = 2 * g->lda,
                        .b_panel = (g->k + 1) / 2 * 64,
                        .depth = 2 * g->k };
    run(&p, tile_bf16, m0, m1, n0, n1);
}
#else
void PITH_K(gemm_amx_i8)(const pith__gemm_int8 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    PITH_K(gemm_i8)(g, m0, m1, n0, n1);
}

void PITH_K(gemm_amx_bf16)(const pith__gemm_half *g, int64_t m0, int64_t m1, int64_t n0,
                           int64_t n1) {
    PITH_K(gemm_bf16)(g, m0, m1, n0, n1);
}
#endif
