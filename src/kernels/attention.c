/* attention.c - the scratch of the attention kernels, and which of them is for bf16. */
#include "kernels/attention.h"

int64_t pith_attention_f32_scratch(int64_t keys, int64_t d, int64_t dv) {
    int64_t padded = (keys + 15) / 16 * 16 + 16;
    return padded * (d + (dv + 15) / 16 * 16 + PITH_ATTENTION_ROWS + 1);
}

pith_attention_f32_fn *pith_attention_bf16_find(pith_isa isa) {
    if (isa != PITH_ISA_avx512 || !(pith_cpu_get()->features & PITH_CPU_FAST_BF16)) return NULL;
    return PITH_KERNEL_FIND(pith_attention_f32_fn, "attention", PITH_BF16, isa);
}
