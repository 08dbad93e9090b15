/* k_gemm_tile.c - the register tile: every accumulator stays in a register over the whole of k.
 *
 * Each step loads one row of b (16 * panels floats) and multiplies it by one element of each row of
 * a. There is one function per tile size, made by inlining `tile` with constant bounds.
 *
 * If another thread shares the core, the number of instructions besides the multiply-adds decides
 * the speed. So rows of a are addressed from a pointer for every third row, which fits the
 * addressing modes (base, base + stride, base + 2 * stride), and the pointers move once in STEPS
 * steps. And for two rows whose address is a plain pointer, the multiply-add takes the element from
 * memory itself; an address of two registers would make it two instructions again. Only two rows do
 * this: such an element is loaded once per panel, and rows a multiple of 64 bytes apart lie in one
 * bank of the L1 cache, so three or more of them would delay each other even on a core of their
 * own. */
#include "engine/kernels/gemm_tile.h"

#include <stdbool.h>

#include "engine/kernels/vmath.h"

/* Steps of k per iteration of the loop that also prefetches. More make fewer branches and more
 * code; eight gain nothing. */
enum { STEPS = 4 };
/* Whether rows of the result are prefetched. Small tiles write few lines, and those stores delay
 * nothing. */
enum { FETCH_TARGET = !PITH_TILE_SMALL };

/* Where a tile is in k. */
typedef struct place {
    const float *a[(PITH_TILE_ROWS + 2) / 3]; /* every third row */
    const float *b[PITH_TILE_PANELS];
} place;

/* What a tile's elements are: floats, or pairs of bf16 in their places. */
typedef enum kind { SINGLES, PAIRS } kind;

#if defined(PITH_LEVEL_avx512)
PITH_INLINE vf add_at(const kind of, const float *a, vf b, vf sum) {
    return of == PAIRS ? vf_pairs_at(a, b, sum) : vf_fma_at(a, b, sum);
}
PITH_INLINE vf add_onto(const kind of, vf a, vf b, vf sum) {
    return of == PAIRS ? vf_pairs_onto(a, b, sum) : vf_fma_onto(a, b, sum);
}
#else
PITH_INLINE vf add_at(const kind of, const float *a, vf b, vf sum) {
    return (void)of, vf_fma_at(a, b, sum);
}
PITH_INLINE vf add_onto(const kind of, vf a, vf b, vf sum) {
    return (void)of, vf_fma_onto(a, b, sum);
}
#endif

/* `steps` steps of k. */
PITH_INLINE void gemm_tile_advance(const kind of, const int rows, const int panels, const int steps,
                                   int64_t a_row, place *at,
                                   vf sum[PITH_TILE_ROWS][PITH_TILE_PANELS]) {
    int64_t two_rows = 2 * a_row;
    PITH_FORGET(a_row); /* or offsets like a_row + 1, which are free in an address, would each take
                           a register */
    PITH_FORGET(two_rows);
    PITH_UNROLL
    for (int s = 0; s < steps; s++) {
        vf column[PITH_TILE_PANELS];
        PITH_UNROLL
        for (int p = 0; p < panels; p++) column[p] = vf_load(at->b[p] + 16 * s);
        PITH_UNROLL
        for (int i = 0; i < rows; i++) {
            const float *element = at->a[i / 3] + (i % 3 == 2 ? two_rows : i % 3 * a_row) + s;
            if (i == 0 || i == 6) {
                PITH_UNROLL
                for (int p = 0; p < panels; p++)
                    sum[i][p] = add_at(of, element, column[p], sum[i][p]);
            } else {
                vf x = vf_set1(*element);
                PITH_UNROLL
                for (int p = 0; p < panels; p++) sum[i][p] = add_onto(of, x, column[p], sum[i][p]);
            }
        }
    }
    PITH_UNROLL
    for (int i = 0; i < rows; i += 3) at->a[i / 3] += steps;
    PITH_UNROLL
    for (int p = 0; p < panels; p++) at->b[p] += 16 * steps;
}

/* What the sums start from: t or zeros. */
PITH_INLINE void begin(const int rows, const int panels, const float *t, int64_t t_row,
                       bool accumulate, vf sum[PITH_TILE_ROWS][PITH_TILE_PANELS]) {
    if (!accumulate) {
        PITH_UNROLL
        for (int i = 0; i < rows; i++) {
            PITH_UNROLL
            for (int p = 0; p < panels; p++) sum[i][p] = vf_clear();
        }
        return;
    }
    PITH_FORGET(t_row); /* or the rows' addresses would be kept for the end, by way of memory */
    PITH_UNROLL
    for (int i = 0; i < rows; i++, t += t_row) {
        PITH_UNROLL
        for (int p = 0; p < panels; p++) sum[i][p] = vf_load(t + 16 * p);
    }
}

PITH_INLINE void gemm_tile_finish(const int rows, const int panels, float *t, int64_t t_row,
                                  const float *bias, vf sum[PITH_TILE_ROWS][PITH_TILE_PANELS]) {
    if (bias) {
        PITH_UNROLL
        for (int p = 0; p < panels; p++) {
            vf b = vf_load(bias + 16 * p);
            PITH_UNROLL
            for (int i = 0; i < rows; i++) sum[i][p] = vf_add(sum[i][p], b);
        }
    }
    PITH_UNROLL
    for (int i = 0; i < rows; i++, t += t_row) {
        PITH_UNROLL
        for (int p = 0; p < panels; p++) vf_store(t + 16 * p, sum[i][p]);
    }
}

/* GELU of the next vector that waits; two of them are a row. The line that is written eight turns
 * later is fetched. */
PITH_INLINE void take_gelu(pith__gemm_gelu *w, int64_t target_row) {
    __builtin_prefetch(w->to + 4 * target_row, 1);
    vf_store(w->to, vf_gelu(vf_load(w->from)));
    w->from += 16;
    w->to += w->left % 2 ? target_row - 16 : 16;
    w->left--;
}

/* The lines that gemm_tile.h says are fetched in one turn. */
PITH_INLINE void fetch_panels(const int panels, const pith__gemm_tile *g, uintptr_t at) {
    PITH_UNROLL
    for (int line = 0; line < 4 * panels; line++) {
        uintptr_t skip = (uintptr_t)(line % 4 * g->ahead_stream + line / 4 * g->ahead_panel);
        __builtin_prefetch((const void *)(at + skip), 0, 2);
    }
}

/* Both ends of a row that will be written. */
PITH_INLINE void fetch_target(const pith__gemm_tile *g, uintptr_t row) {
    __builtin_prefetch((const void *)row, 1);
    __builtin_prefetch((const void *)(row + (uintptr_t)(g->target_width - 1) * sizeof(float)), 1);
}

/* Where a tile begins in its rows of a and panels of b. Returns what is behind those panels. */
PITH_INLINE const float *gemm_tile_place(const int rows, const int panels, const float *a,
                                         int64_t a_row, const float *b, int64_t b_panel,
                                         place *at) {
    PITH_UNROLL
    for (int i = 0; i < rows; i += 3) at->a[i / 3] = a + i * a_row;
    PITH_UNROLL
    for (int p = 0; p < panels; p++, b += b_panel) at->b[p] = b;
    return b;
}

/* A column of tiles, one below the other, over all groups of panels. `of`, `gelu`, `rows` and
 * `panels` are constants at every call, so that each combination becomes a function whose sums are
 * registers.
 *
 * What is fetched meanwhile moves on by itself: `ahead` and `wait` are where the last tile stopped,
 * and each group of panels begins `ahead_panel * panels` bytes further. Small tiles (AVX2 and
 * below) take one line in PITH_TILE_STEADY steps, without a counter in the loop; large ones take
 * several every ahead_every turns.
 *
 * With gelu, the sums of a group go to w.spare instead of the result. They wait there while the
 * next group is multiplied, whose steps take them one vector at a time through GELU to the result;
 * so the two buffers change places after each group. What is left at the end is handed back in
 * *g->gelu. */
PITH_INLINE void gemm_tile_tile(const kind of, const bool gelu, const int rows, const int panels,
                                const pith__gemm_tile *g) {
    const int64_t a_row = g->a_row, width = 16 * panels;
    const float *a = g->a;
    float *t = g->t;
    uintptr_t ahead = g->ahead ? g->ahead : (uintptr_t)a, target = (uintptr_t)g->target;
    int64_t wait = g->ahead_every > 0;
    pith__gemm_gelu w = { 0 };
    if (gelu) w = *g->gelu;
    for (int64_t tiles = g->tiles; tiles > 0; tiles--) {
        const float *b = g->b;
        uintptr_t fetched = ahead;
        int64_t waited = wait;
        for (int64_t group = 0; group < g->groups; group++) {
            int64_t targets = FETCH_TARGET && !gelu && g->target ? rows : 0;
            uintptr_t row = target + (uintptr_t)(group * width) * sizeof(float);
            float *to = gelu ? w.spare : t + group * width;
            place at;
            vf sum[PITH_TILE_ROWS][PITH_TILE_PANELS];
            fetched = ahead + (uintptr_t)(group * g->ahead_panel * panels);
            waited = wait;
            begin(rows, panels, to, g->t_row, !gelu && g->accumulate, sum);
            b = gemm_tile_place(rows, panels, a, a_row, b, g->b_panel, &at);
            uint64_t left = (uint64_t)g->k;
            for (; left >= PITH_TILE_STEADY; left -= PITH_TILE_STEADY) {
                if (!PITH_TILE_SMALL || g->ahead_every) break;
                __builtin_prefetch((const void *)fetched, 0, 2);
                fetched += (uintptr_t)g->ahead_step;
                gemm_tile_advance(of, rows, panels, PITH_TILE_STEADY, a_row, &at, sum);
            }
            for (; left >= STEPS; left -= STEPS) {
                if (--waited == 0) {
                    fetch_panels(panels, g, fetched);
                    fetched += 64;
                    waited = g->ahead_every;
                }
                if (gelu && w.left > 0) take_gelu(&w, g->target_row);
                if (FETCH_TARGET && !gelu && --targets >= 0) {
                    fetch_target(g, row);
                    row += (uintptr_t)g->target_row * sizeof(float);
                }
                gemm_tile_advance(of, rows, panels, STEPS, a_row, &at, sum);
            }
            for (; left > 0; left--) gemm_tile_advance(of, rows, panels, 1, a_row, &at, sum);
            gemm_tile_finish(rows, panels, to, gelu ? width : g->t_row,
                             g->bias ? g->bias + group * width : NULL, sum);
            if (gelu) {
                while (w.left > 0) take_gelu(&w, g->target_row);
                w = (pith__gemm_gelu){ w.busy, to, to, (float *)target + group * width,
                                       rows * panels };
            }
        }
        ahead = fetched - (uintptr_t)((g->groups - 1) * g->ahead_panel * panels);
        wait = waited;
        a += rows * a_row;
        t += rows * g->t_row;
        target += (uintptr_t)(rows * g->target_row) * sizeof(float);
    }
    if (gelu) *g->gelu = w;
}

typedef void tile_fn(const pith__gemm_tile *tile);

#define TILE(rows, panels)                                                                         \
    static void tile_##rows##x##panels(const pith__gemm_tile *g) {                                 \
        gemm_tile_tile(SINGLES, false, rows, panels, g);                                           \
    }
#define TILE_PAIRS(rows, panels)                                                                   \
    static void pairs_##rows##x##panels(const pith__gemm_tile *g) {                                \
        gemm_tile_tile(PAIRS, false, rows, panels, g);                                             \
    }
#define TILE_GELU(rows, panels)                                                                    \
    static void gelu_##rows##x##panels(const pith__gemm_tile *g) {                                 \
        gemm_tile_tile(SINGLES, true, rows, panels, g);                                            \
    }
#define TILE_PAIRS_GELU(rows, panels)                                                              \
    static void pairs_gelu_##rows##x##panels(const pith__gemm_tile *g) {                           \
        gemm_tile_tile(PAIRS, true, rows, panels, g);                                              \
    }
#define TILES_5(X, panels) X(1, panels) X(2, panels) X(3, panels) X(4, panels) X(5, panels)
#define TILES_14(X, panels)                                                                        \
    TILES_5(X, panels)                                                                             \
    X(6, panels)                                                                                   \
    X(7, panels) TILES_8_14(X, panels)
#define TILES_8_14(X, panels)                                                                      \
    X(8, panels) X(9, panels) X(10, panels) X(11, panels) X(12, panels) X(13, panels) X(14, panels)
#if defined(PITH_LEVEL_avx512)
#define TILES(X) TILES_14(X, 1) TILES_14(X, 2)
#define TILES_GELU(X) TILES_8_14(X, 2)
#elif defined(PITH_LEVEL_avx2)
#define TILES(X) TILES_5(X, 1) X(6, 1)
#define TILES_GELU(X)
#else
#define TILES(X) TILES_5(X, 1)
#define TILES_GELU(X)
#endif
/* By panels and rows; those that take GELU lie after the others. */
typedef tile_fn *const tile_table[PITH_TILE_PANELS + 1][PITH_TILE_ROWS];
#define ENTRY(rows, panels) [panels - 1][rows - 1] = tile_##rows##x##panels,
#define ENTRY_PAIRS(rows, panels) [panels - 1][rows - 1] = pairs_##rows##x##panels,
#define ENTRY_GELU(rows, panels) [PITH_TILE_PANELS][rows - 1] = gelu_##rows##x##panels,
#define ENTRY_PAIRS_GELU(rows, panels) [PITH_TILE_PANELS][rows - 1] = pairs_gelu_##rows##x##panels,

TILES(TILE)
TILES_GELU(TILE_GELU)

void PITH_K(gemm_tile_f32)(int rows, int panels, const pith__gemm_tile *g) {
    static tile_table tiles = { TILES(ENTRY) TILES_GELU(ENTRY_GELU) };
    tiles[g->gelu ? PITH_TILE_PANELS : panels - 1][rows - 1](g);
}

#if defined(PITH_LEVEL_avx512)
TILES(TILE_PAIRS)
TILES_GELU(TILE_PAIRS_GELU)

void PITH_K(gemm_tile_bf16)(int rows, int panels, const pith__gemm_tile *g) {
    static tile_table tiles = { TILES(ENTRY_PAIRS) TILES_GELU(ENTRY_PAIRS_GELU) };
    tiles[g->gelu ? PITH_TILE_PANELS : panels - 1][rows - 1](g);
}
#endif
