/* move.c - see move.h. Adjacent dimensions with the same layout on both sides are merged first. Then the two innermost
 * loops run without index arithmetic, and a contiguous inner loop is a memcpy. */
#include "kernels/move.h"

#include <string.h>

typedef struct wide {
    uint64_t a, b;
} wide;

#define ROW(T)                                                                                                         \
    do {                                                                                                               \
        T *p = to;                                                                                                     \
        const T *q = from;                                                                                             \
        for (int64_t i = 0; i < n; i++) p[i * ts] = q[i * fs];                                                         \
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

/* Rows of the source lie along one axis, rows of the target along another: small squares keep both in cache. */
#define TILE(T)                                                                                                        \
    do {                                                                                                               \
        T *p = to;                                                                                                     \
        const T *q = from;                                                                                             \
        for (int64_t i = 0; i < rows; i++) {                                                                           \
            for (int64_t j = 0; j < columns; j++) p[i * to_row + j] = q[i + j * from_column];                          \
        }                                                                                                              \
    } while (0)

static void move_tile(void *to, int64_t to_row, const void *from, int64_t from_column, int64_t rows, int64_t columns,
                      size_t size) {
    switch (size) {
    case 1: TILE(uint8_t); break;
    case 2: TILE(uint16_t); break;
    case 4: TILE(uint32_t); break;
    case 8: TILE(uint64_t); break;
    default: TILE(wide); break;
    }
}

/* to[i * to_row + j] = from[i + j * from_column] */
static void turn(char *to, int64_t to_row, const char *from, int64_t from_column, int64_t rows, int64_t columns,
                 size_t size) {
    enum { SIDE = 16 }; /* blocks of 16 x 16: a cache line of floats on both sides */
    for (int64_t i = 0; i < rows; i += SIDE) {
        for (int64_t j = 0; j < columns; j += SIDE) {
            move_tile(to + (i * to_row + j) * (int64_t)size, to_row, from + (i + j * from_column) * (int64_t)size,
                      from_column, rows - i < SIDE ? rows - i : SIDE, columns - j < SIDE ? columns - j : SIDE, size);
        }
    }
}

void pith_move_axis_perm(int *perm, int rank, int from, int to) {
    for (int i = 0, next = 0; i < rank; i++) {
        if (next == from) next++;
        perm[i] = i == to ? from : next++;
    }
}

void pith_strides(int64_t *strides, const int64_t *dims, int rank) {
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= dims[i];
    }
}

void pith_fill(void *to, const void *value, int64_t n, size_t size) {
    if (n > 0) row(to, 1, value, 0, n, size);
}

void pith_move(void *to, const int64_t *to_strides, const void *from, const int64_t *from_strides, const int64_t *dims,
               int rank, size_t size) {
    int64_t d[PITH_MAX_RANK + 1], ts[PITH_MAX_RANK + 1], fs[PITH_MAX_RANK + 1], index[PITH_MAX_RANK + 1] = { 0 };
    int r = 0;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 0) return;
        if (dims[i] == 1) continue;
        if (r > 0 && ts[r - 1] == to_strides[i] * dims[i] && fs[r - 1] == from_strides[i] * dims[i]) {
            d[r - 1] *= dims[i];
            ts[r - 1] = to_strides[i];
            fs[r - 1] = from_strides[i];
        } else {
            d[r] = dims[i];
            ts[r] = to_strides[i];
            fs[r++] = from_strides[i];
        }
    }
    if (r == 0) {
        memcpy(to, from, size);
        return;
    }
    char *t = to;
    const char *f = from;
    int64_t unit = (int64_t)size;
    int across = r - 1; /* the axis along which the source is contiguous, if that is not the last one */
    for (int i = 0; i < r - 1 && ts[r - 1] == 1 && fs[r - 1] > 1; i++) {
        if (fs[i] == 1) across = i;
    }
    if (across != r - 1) { /* it goes next to the last one, which changes no result */
        int64_t own[3] = { d[across], ts[across], fs[across] };
        for (int i = across; i < r - 2; i++) {
            d[i] = d[i + 1];
            ts[i] = ts[i + 1];
            fs[i] = fs[i + 1];
        }
        d[r - 2] = own[0];
        ts[r - 2] = own[1];
        fs[r - 2] = own[2];
    }
    for (;;) {
        if (across != r - 1)
            turn(t, ts[r - 2], f, fs[r - 1], d[r - 2], d[r - 1], size);
        else
            row(t, ts[r - 1], f, fs[r - 1], d[r - 1], size);
        int i = across != r - 1 ? r - 3 : r - 2;
        for (; i >= 0; i--) {
            t += ts[i] * unit;
            f += fs[i] * unit;
            if (++index[i] < d[i]) break;
            t -= ts[i] * d[i] * unit;
            f -= fs[i] * d[i] * unit;
            index[i] = 0;
        }
        if (i < 0) return;
    }
}
