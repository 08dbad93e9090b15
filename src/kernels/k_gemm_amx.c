/* k_gemm_amx.c - 8-bit and bf16 products by the matrix tiles of AMX: 32 rows by 32 columns of sums in four tiles.
 *
 * A tile is 16 rows of 64 bytes. The packed forms of b (16 columns of 4 bytes of k) are tiles as they lie, and so are
 * 16 rows of a; what is left of k goes through copies filled up with zeros. Fewer rows are a matter of the
 * configuration: the instructions then take fewer steps. A step of 64 bytes of k loads four tiles for four products,
 * which is what the loads can keep up with. The tiles are given back at the end of a call. Source: Intel SDM volume 1,
 * chapter 18. */
#include "kernels/gemm_tile.h"

#if defined(PITH_LEVEL_avx512)
#include <immintrin.h>
#include <string.h>

#include "base/cpu.h"

#define AMX __attribute__((target("amx-tile,amx-int8,amx-bf16")))

/* DEPTH: bytes of a row of a tile; ROW: of a row of sums. */
enum { ROWS = 32, COLUMNS = 32, DEPTH = 64, TILE = 16 * DEPTH, ROW = 4 * COLUMNS };

/* Compilers do not know which memory the tile instructions read. */
#define WRITTEN() __asm__ volatile("" ::: "memory")

/* Tiles 0 to 3 are the sums, two by two; 4 and 5 rows of a; 6 and 7 panels of b. */
AMX static void configure(int64_t rows) {
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = { .palette = 1 };
    const uint8_t upper = (uint8_t)(rows < 16 ? rows : 16), lower = (uint8_t)(rows > 16 ? rows - 16 : 1);
    const uint8_t tiles[] = { upper, upper, lower, lower, upper, lower, 16, 16 };
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = DEPTH;
        config.rows[i] = tiles[i];
    }
    WRITTEN();
    _tile_loadconfig(&config);
}

#define STEP(product, a, a_row, b, b_panel)                                                                            \
    _tile_loadd(6, b, DEPTH);                                                                                          \
    _tile_loadd(4, a, a_row);                                                                                          \
    product(0, 4, 6);                                                                                                  \
    if (columns > 16) {                                                                                                \
        _tile_loadd(7, (b) + (b_panel), DEPTH);                                                                        \
        product(1, 4, 7);                                                                                              \
    }                                                                                                                  \
    if (rows > 16) {                                                                                                   \
        _tile_loadd(5, (a) + 16 * (a_row), a_row);                                                                     \
        product(2, 5, 6);                                                                                              \
        if (columns > 16) product(3, 5, 7);                                                                            \
    }

/* t[rows][32] = a b for up to 32 rows and columns; depth is k in bytes. */
typedef void tile_fn(const char *a, int64_t a_row, const char *b, int64_t b_panel, int64_t rows, int64_t columns,
                     int64_t depth, char *t);
#define TILE_FN(name, product)                                                                                         \
    AMX static void name(const char *a, int64_t a_row, const char *b, int64_t b_panel, int64_t rows, int64_t columns,  \
                         int64_t depth, char *t) {                                                                     \
        _tile_zero(0);                                                                                                 \
        _tile_zero(1);                                                                                                 \
        _tile_zero(2);                                                                                                 \
        _tile_zero(3);                                                                                                 \
        for (; depth >= DEPTH; depth -= DEPTH, a += DEPTH, b += TILE) { STEP(product, a, a_row, b, b_panel) }          \
        if (depth > 0) {                                                                                               \
            _Alignas(64) char rest[ROWS * DEPTH] = { 0 }, panels[2 * TILE] = { 0 };                                    \
            for (int64_t i = 0; i < rows; i++) memcpy(rest + i * DEPTH, a + i * a_row, (size_t)depth);                 \
            for (int64_t p = 0; p * 16 < columns; p++) {                                                               \
                memcpy(panels + p * TILE, b + p * b_panel, (size_t)((depth + 3) / 4 * 64));                            \
            }                                                                                                          \
            WRITTEN();                                                                                                 \
            STEP(product, rest, DEPTH, panels, TILE)                                                                   \
        }                                                                                                              \
        _tile_stored(0, t, ROW);                                                                                       \
        _tile_stored(1, t + DEPTH, ROW);                                                                               \
        if (rows > 16) {                                                                                               \
            _tile_stored(2, t + 16 * ROW, ROW);                                                                        \
            _tile_stored(3, t + 16 * ROW + DEPTH, ROW);                                                                \
        }                                                                                                              \
    }
TILE_FN(tile_unsigned, _tile_dpbusd)
TILE_FN(tile_signed, _tile_dpbssd)
TILE_FN(tile_bf16, _tile_dpbf16ps)

/* A product in bytes, and what becomes of a tile of its sums. */
typedef struct product {
    tile_fn *tile;
    void (*finish)(const void *g, const void *t, int64_t i, int64_t rows, int64_t j, int64_t width);
    const void *g;
    const char *a, *b;
    int64_t a_row, b_panel, depth;
} product;

AMX static void run(const product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    _Alignas(64) char t[ROWS * ROW];
    /* Columns whose b takes 3/8 of the second level cache, met by all rows. */
    int64_t strip = (int64_t)(pith_cpu_get()->l2 / 8 * 3) / (p->b_panel + 1) / 2 * COLUMNS, configured = 0;
    if (strip < COLUMNS) strip = COLUMNS;
    for (int64_t j0 = n0; j0 < n1; j0 += strip) {
        int64_t j1 = n1 - j0 < strip ? n1 : j0 + strip;
        for (int64_t i = m0; i < m1;) {
            int64_t rows = m1 - i < ROWS ? m1 - i : ROWS;
            if (rows != configured) configure(configured = rows);
            for (int64_t j = j0; j < j1; j += COLUMNS) {
                int64_t width = j1 - j < COLUMNS ? j1 - j : COLUMNS;
                p->tile(p->a + i * p->a_row, p->a_row, p->b + j / 16 * p->b_panel, p->b_panel, rows, width, p->depth,
                        t);
                p->finish(p->g, t, i, rows, j, width);
            }
            i += rows;
        }
    }
    _tile_release();
}

static void finish_i8(const void *g, const void *t, int64_t i, int64_t rows, int64_t j, int64_t width) {
    PITH_K(gemm_i8_finish)(g, t, COLUMNS, 0, i, rows, j, width);
}

static void finish_bf16(const void *g, const void *t, int64_t i, int64_t rows, int64_t j, int64_t width) {
    PITH_K(gemm_half_finish)(g, t, COLUMNS, i, rows, j, width);
}

void PITH_K(gemm_amx_i8)(const pith_gemm_int8 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    const product p = { .tile = g->a_signed ? tile_signed : tile_unsigned,
                        .finish = finish_i8,
                        .g = g,
                        .a = g->a,
                        .b = g->b,
                        .a_row = g->lda,
                        .b_panel = (g->k + 3) / 4 * 64 + 64,
                        .depth = g->k };
    run(&p, m0, m1, n0, n1);
}

void PITH_K(gemm_amx_bf16)(const pith_gemm_half *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    const product p = { .tile = tile_bf16,
                        .finish = finish_bf16,
                        .g = g,
                        .a = g->a,
                        .b = g->b,
                        .a_row = 2 * g->lda,
                        .b_panel = (g->k + 1) / 2 * 64,
                        .depth = 2 * g->k };
    run(&p, m0, m1, n0, n1);
}
#else
void PITH_K(gemm_amx_i8)(const pith_gemm_int8 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    PITH_K(gemm_i8)(g, m0, m1, n0, n1);
}

void PITH_K(gemm_amx_bf16)(const pith_gemm_half *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    PITH_K(gemm_bf16)(g, m0, m1, n0, n1);
}
#endif
