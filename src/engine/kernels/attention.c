/* attention.c - the parts of the attention kernels that all levels share, and which kernel a CPU
 * runs. */
#include "engine/kernels/attention.h"

#include <string.h>

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

int64_t pith__attention_f32_scratch(int64_t keys, int64_t d, int64_t dv) {
    int64_t padded = (keys + 15) / 16 * 16 + 16;
    return padded * (d + (dv + 15) / 16 * 16 + PITH_ATTENTION_ROWS + 1);
}

pith__attention_f32_fn *pith__attention_i16_find(pith__isa isa) {
    return (pith__attention_f32_fn *)pith__kernel_find_vnni("attention_vnni", "attention", PITH_I16,
                                                            isa);
}
