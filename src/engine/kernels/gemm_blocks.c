/* gemm_blocks.c - the packed form of weights in blocks, see gemm_blocks.h. */
#include "engine/kernels/gemm_blocks.h"

#include <string.h>

#include "base/checked.h"

int64_t pith__blocks_packed_size(const pith__blocks_form *f, int64_t n) {
    int64_t columns, block, panel, size;
    if (n < 0 || f->blocks < 0 || pith__add_overflows(n, PITH_GEMM_PANEL - 1, &columns) ||
        pith__add_overflows(pith__blocks_block_bytes(f), 16 + 64, &block) ||
        pith__mul_overflows(block, f->blocks, &panel))
        return -1;
    panel = pith__blocks_panel_bytes(f);
    return pith__mul_overflows(columns / PITH_GEMM_PANEL, panel, &size) ? -1 : size;
}

/* Weight i of a block's bytes. */
static unsigned blocks_weight(const uint8_t *bytes, int64_t i, int bits) {
    if (bits == 8) return bytes[i];
    return bytes[i / 2] >> (i % 2 ? 4 : 0) & 15u;
}

/* One column of a block: where k goes is said in gemm_blocks.h. */
static void blocks_pack_column(uint8_t *to, const uint8_t *from, const pith__blocks_form *f,
                               int64_t count, int64_t j) {
    for (int64_t i = 0; i < count; i++) {
        const unsigned weight = blocks_weight(from, i, f->bits);
        if (f->bits == 8)
            to[i / 4 * 64 + 4 * j + i % 4] = (uint8_t)weight;
        else
            to[i / 8 * 64 + 4 * j + i % 4] |= (uint8_t)(weight << (i / 4 % 2 ? 4 : 0));
    }
}

/* What the last block and the last panel lack stays 0. Rows of a have zeros behind k, and columns
 * that do not exist are not stored, so it has no effect. */
void pith__blocks_pack_panel(void *panel, const pith__blocks_form *f,
                             const pith__blocks_columns *from) {
    const int64_t bytes = f->block * f->bits / 8, step = pith__blocks_block_bytes(f);
    const int64_t zero_row = (f->blocks * f->bits + 7) / 8;
    uint8_t *zeros = (uint8_t *)panel + f->blocks * step;
    memset(panel, 0, (size_t)pith__blocks_panel_bytes(f));
    for (int64_t t = 0; t < f->blocks; t++) {
        uint8_t *to = (uint8_t *)panel + t * step;
        float *scales = (float *)(void *)(to + step - 64);
        const int64_t left = f->k - t * f->block, count = left < f->block ? left : f->block;
        for (int64_t j = 0; j < from->columns; j++) {
            blocks_pack_column(to, from->b + (j * f->blocks + t) * bytes, f, count, j);
            scales[j] = from->scale[j * f->blocks + t];
            if (f->zeros)
                zeros[16 * t + j] = (uint8_t)blocks_weight(from->zeros + j * zero_row, t, f->bits);
        }
    }
}
