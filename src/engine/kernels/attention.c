/* attention.c - the parts of the attention kernels that all levels share, and which kernel a CPU
 * runs. */
#include "engine/kernels/attention.h"

#include <string.h>

/* Trims the mask to the range from the first key that it keeps to the last. Padding on either side
 * then costs nothing, and positions count from the first kept key, so that a text gives the same
 * bits wherever its padding lies. Zeros within the range are holes. */
pith__attention_keys pith__attention_look(const pith__attention *a) {
    pith__attention_keys k = { .count = a->keys };
    if (a->key_mask) {
        while (k.count > 0 && !a->key_mask[k.count - 1]) k.count--;
        while (k.first < k.count && !a->key_mask[k.first]) k.first++;
        k.count -= k.first;
        k.holes = k.count > 0 && memchr(a->key_mask + k.first, 0, (size_t)k.count);
    }
    k.open = k.count > 0 && !k.holes && !a->bias && a->scale > 0 && a->causal_offset == INT64_MAX &&
             a->window_left < 0 && a->window_right < 0;
    return k;
}

/* Room for what either kernel keeps: the transposed keys, the values in whole panels, and a strip
 * of scores for each row of a tile. i16 needs less for each of these, and puts the units of values
 * and the queries of a tile in what is left. */
int64_t pith__attention_f32_scratch(int64_t keys, int64_t d, int64_t dv) {
    int64_t padded = (keys + 15) / 16 * 16 + 16;
    return padded * (d + (dv + 15) / 16 * 16 + PITH_ATTENTION_ROWS + 1);
}

pith__attention_f32_fn *pith__attention_i16_find(pith__isa isa) {
    return (pith__attention_f32_fn *)pith__kernel_find_vnni("attention_vnni", "attention", PITH_I16,
                                                            isa);
}
