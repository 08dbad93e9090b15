/* move.c - see move.h. Adjacent dimensions with the same layout on both sides are merged first.
 * Then the two innermost loops run without index arithmetic, and a contiguous inner loop is a
 * memcpy. */
#include "engine/kernels/move.h"

#include <string.h>

typedef struct wide {
    uint64_t a, b;
} wide;

#define ROW(T)                                                                                     \
    do {                                                                                           \
        T *p = to;                                                                                 \
        const T *q = from;                                                                         \
        for (int64_t i = 0; i < n; i++) p[i * ts] = q[i * fs];                                     \
    } while (0)

static void row(void *to, int64_t ts, const void *from, int64_t fs, int64_t n, size_t size) {
    if (ts == 1 && fs == 1) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1: ROW(uint8_t); break;
    case 2: ROW(uint16_t); break;
    case 4: ROW(uint32_t); break;
    case 8: ROW(uint64_t); break;
    default: ROW(wide); break;
    }
}

/* Rows of the source lie along one axis, rows of the target along another: small squares keep both
 * in cache. */
#define TILE(T)                                                                                    \
    do {                                                                                           \
        T *p = to;                                                                                 \
        const T *q = from;                                                                         \
        for (int64_t i = 0; i < rows; i++) {                                                       \
            for (int64_t j = 0; j < columns; j++) p[i * to_row + j] = q[i + j * from_column];      \
        }                                                                                          \
    } while (0)

typedef uint32_t four __attribute__((vector_size(16)));
#if defined(__clang__)
#define FOUR_MIX(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define FOUR_MIX(a, b, i, j, k, l) __builtin_shuffle(a, b, (four){ i, j, k, l })
#endif

/* 4 x 4 elements of 4 bytes. */
static inline void turn_four(uint32_t *to, int64_t to_row, const uint32_t *from,
                             int64_t from_column) {
    four v[4], pairs[4];
    for (int i = 0; i < 4; i++) memcpy(&v[i], from + i * from_column, sizeof v[i]);
    for (int i = 0; i < 4; i += 2) {
        pairs[i] = FOUR_MIX(v[i], v[i + 1], 0, 4, 1, 5);
        pairs[i + 1] = FOUR_MIX(v[i], v[i + 1], 2, 6, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
        v[2 * i] = FOUR_MIX(pairs[i], pairs[i + 2], 0, 1, 4, 5);
        v[2 * i + 1] = FOUR_MIX(pairs[i], pairs[i + 2], 2, 3, 6, 7);
    }
    for (int i = 0; i < 4; i++) memcpy(to + i * to_row, &v[i], sizeof v[i]);
}

/* As TILE, in squares of 4 and what remains of the rows and columns. */
static void turn_words(uint32_t *to, int64_t to_row, const uint32_t *from, int64_t from_column,
                       int64_t rows, int64_t columns) {
    const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
    for (int64_t i = 0; i < whole_rows; i += 4) {
        for (int64_t j = 0; j < whole_columns; j += 4)
            turn_four(to + i * to_row + j, to_row, from + i + j * from_column, from_column);
    }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; j++)
            to[i * to_row + j] = from[i + j * from_column];
    }
}

/* Pictures of three channels, from pixels [n, 3] to planes `plane` elements apart. */
static void turn_pixels(uint32_t *to, int64_t plane, const uint32_t *from, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        four v[3], planes[3];
        memcpy(v, from + 3 * i, sizeof v);
        planes[0] = FOUR_MIX(FOUR_MIX(v[0], v[1], 0, 3, 6, 6), v[2], 0, 1, 2, 5);
        planes[1] = FOUR_MIX(FOUR_MIX(v[0], v[1], 1, 4, 7, 7), v[2], 0, 1, 2, 6);
        planes[2] = FOUR_MIX(FOUR_MIX(v[0], v[1], 2, 5, 5, 5), v[2], 0, 1, 4, 7);
        for (int c = 0; c < 3; c++) memcpy(to + c * plane + i, &planes[c], sizeof planes[c]);
    }
    for (; i < n; i++)
        for (int c = 0; c < 3; c++) to[c * plane + i] = from[3 * i + c];
}

/* The way back. */
static void turn_planes(uint32_t *to, const uint32_t *from, int64_t plane, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        four v[3], r, g, b;
        memcpy(&r, from + i, sizeof r);
        memcpy(&g, from + plane + i, sizeof g);
        memcpy(&b, from + 2 * plane + i, sizeof b);
        v[0] = FOUR_MIX(FOUR_MIX(r, g, 0, 4, 1, 1), b, 0, 1, 4, 2);
        v[1] = FOUR_MIX(FOUR_MIX(r, g, 5, 5, 2, 6), b, 0, 5, 2, 3);
        v[2] = FOUR_MIX(FOUR_MIX(r, g, 3, 3, 7, 7), b, 6, 1, 2, 7);
        memcpy(to + 3 * i, v, sizeof v);
    }
    for (; i < n; i++)
        for (int c = 0; c < 3; c++) to[3 * i + c] = from[c * plane + i];
}

static void move_tile(void *to, int64_t to_row, const void *from, int64_t from_column, int64_t rows,
                      int64_t columns, size_t size) {
    switch (size) {
    case 1: TILE(uint8_t); break;
    case 2: TILE(uint16_t); break;
    case 4: turn_words(to, to_row, from, from_column, rows, columns); break;
    case 8: TILE(uint64_t); break;
    default: TILE(wide); break;
    }
}

/* to[i * to_row + j] = from[i + j * from_column]. A transposition in squares: a whole column would
 * touch one element in each cache line and lose the line before its neighbours are read. Pictures
 * of three channels have their own loops, since their squares would be 3 wide. */
static void turn(char *to, int64_t to_row, const char *from, int64_t from_column, int64_t rows,
                 int64_t columns, size_t size, pith__turn_fn *words) {
    enum { SIDE = 16 }; /* blocks of 16 x 16: a cache line of floats on both sides */
    if (size == 4 && rows == 3 && from_column == 3) {
        turn_pixels((uint32_t *)(void *)to, to_row, (const uint32_t *)(const void *)from, columns);
        return;
    }
    if (size == 4 && columns == 3 && to_row == 3) {
        turn_planes((uint32_t *)(void *)to, (const uint32_t *)(const void *)from, from_column,
                    rows);
        return;
    }
    if (size == 4 && words && rows >= SIDE / 2 && columns >= SIDE / 2) {
        words(to, to_row, from, from_column, rows, columns);
        return;
    }
    for (int64_t i = 0; i < rows; i += SIDE) {
        for (int64_t j = 0; j < columns; j += SIDE) {
            move_tile(to + (i * to_row + j) * (int64_t)size, to_row,
                      from + (i + j * from_column) * (int64_t)size, from_column,
                      rows - i < SIDE ? rows - i : SIDE, columns - j < SIDE ? columns - j : SIDE,
                      size);
        }
    }
}

void pith__move_axis_perm(int *perm, int rank, int from, int to) {
    for (int i = 0, next = 0; i < rank; i++) {
        if (next == from) next++;
        perm[i] = i == to ? from : next++;
    }
}

void pith__strides(int64_t *strides, const int64_t *dims, int rank) {
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= dims[i];
    }
}

void pith__fill(void *to, const void *value, int64_t n, size_t size) {
    if (n > 0) row(to, 1, value, 0, n, size);
}

/* Axes of size 1 go, and neighbours that lie side by side in both arrays become one axis. What is
 * left is walked by the outer axes; the innermost one, or the two innermost where the source is
 * contiguous along another axis than the target, is done by a loop of its own. */
void pith__move(void *to, const int64_t *to_strides, const void *from, const int64_t *from_strides,
                const int64_t *dims, int rank, size_t size, pith__turn_fn *words) {
    int64_t sizes[PITH_MAX_RANK + 1], to_steps[PITH_MAX_RANK + 1], from_steps[PITH_MAX_RANK + 1],
        index[PITH_MAX_RANK + 1] = { 0 };
    int axes = 0;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 0) return;
        if (dims[i] == 1) continue;
        if (axes > 0 && to_steps[axes - 1] == to_strides[i] * dims[i] &&
            from_steps[axes - 1] == from_strides[i] * dims[i]) {
            sizes[axes - 1] *= dims[i];
            to_steps[axes - 1] = to_strides[i];
            from_steps[axes - 1] = from_strides[i];
        } else {
            sizes[axes] = dims[i];
            to_steps[axes] = to_strides[i];
            from_steps[axes++] = from_strides[i];
        }
    }
    if (axes == 0) {
        memcpy(to, from, size);
        return;
    }
    char *t = to;
    const char *f = from;
    int64_t unit = (int64_t)size;
    int across = axes - 1; /* the axis along which the source is contiguous, if that is not the last
                           one */
    const bool apart = to_steps[axes - 1] == 1 && from_steps[axes - 1] > 1;
    for (int i = 0; i < axes - 1; i++)
        if (apart && from_steps[i] == 1) across = i;
    if (across != axes - 1) { /* it goes next to the last one, which changes no result */
        int64_t own[3] = { sizes[across], to_steps[across], from_steps[across] };
        for (int i = across; i < axes - 2; i++) {
            sizes[i] = sizes[i + 1];
            to_steps[i] = to_steps[i + 1];
            from_steps[i] = from_steps[i + 1];
        }
        sizes[axes - 2] = own[0];
        to_steps[axes - 2] = own[1];
        from_steps[axes - 2] = own[2];
    }
    for (;;) {
        if (across != axes - 1)
            turn(t, to_steps[axes - 2], f, from_steps[axes - 1], sizes[axes - 2], sizes[axes - 1],
                 size, words);
        else
            row(t, to_steps[axes - 1], f, from_steps[axes - 1], sizes[axes - 1], size);
        int i = across != axes - 1 ? axes - 3 : axes - 2;
        for (; i >= 0; i--) {
            t += to_steps[i] * unit;
            f += from_steps[i] * unit;
            if (++index[i] < sizes[i]) break;
            t -= to_steps[i] * sizes[i] * unit;
            f -= from_steps[i] * sizes[i] * unit;
            index[i] = 0;
        }
        if (i < 0) return;
    }
}
