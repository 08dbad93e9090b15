/* attention.c - the scratch of the attention kernel. */
#include "kernels/attention.h"

int64_t pith_attention_f32_scratch(int64_t keys, int64_t d, int64_t dv) {
    int64_t padded = (keys + 15) / 16 * 16 + 16;
    return padded * (d + (dv + 15) / 16 * 16 + PITH_ATTENTION_ROWS + 1);
}
