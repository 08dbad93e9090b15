/* k_transpose.c - see move.h: squares of 16 x 16 are turned in registers. */
#include "engine/kernels/move.h"
#include "engine/kernels/vec.h"

/* `rows` times `columns` elements, at most 16 each. */
PITH_INLINE void turn_square(float *to, int64_t to_row, const float *from, int64_t from_column,
                             size_t rows, size_t columns) {
    vf r[16];
    PITH_UNROLL
    for (int j = 0; j < 16; j++) {
        if ((size_t)j >= columns)
            r[j] = vf_zero();
        else if (rows == 16)
            r[j] = vf_load(from + j * from_column);
        else
            r[j] = vf_load_n(from + j * from_column, rows);
    }
    vf_transpose(r);
    PITH_UNROLL
    for (int i = 0; i < 16; i++) {
        if ((size_t)i >= rows) break;
        if (columns == 16)
            vf_store(to + i * to_row, r[i]);
        else
            vf_store_n(to + i * to_row, r[i], columns);
    }
}

/* Rows of the result in a band. Four squares below each other read four neighbouring lines of each
 * column while its page is at hand. A higher band returns to the rows of the result later; a lower
 * one comes to each page of the source more often. */
enum { BAND = 64 };

static void turn_band(float *to, int64_t to_row, const float *from, int64_t from_column,
                      int64_t rows, int64_t columns) {
    for (int64_t j = 0; j < columns; j += 16) {
        const size_t wide = columns - j < 16 ? (size_t)(columns - j) : 16;
        for (int64_t i = 0; i < rows; i += 16) {
            const size_t high = rows - i < 16 ? (size_t)(rows - i) : 16;
            if (high == 16 && wide == 16)
                turn_square(to + i * to_row + j, to_row, from + i + j * from_column, from_column,
                            16, 16);
            else
                turn_square(to + i * to_row + j, to_row, from + i + j * from_column, from_column,
                            high, wide);
        }
    }
}

void PITH_K(turn_f32)(void *to, int64_t to_row, const void *from, int64_t from_column, int64_t rows,
                      int64_t columns) {
    for (int64_t i = 0; i < rows; i += BAND)
        turn_band((float *)to + i * to_row, to_row, (const float *)from + i, from_column,
                  rows - i < BAND ? rows - i : BAND, columns);
}
