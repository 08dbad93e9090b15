/* kernel.c - looking up the kernel table. */
#include "engine/kernels/kernel.h"

#include <stdio.h>
#include <string.h>

#include "base/os/cpu.h"
#include "base/piece_listener.h"

static const pith_kernel_row *kernel_row(const char *family, int dtype) {
    size_t low = 0, high = pith_kernel_table_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const pith_kernel_row *row = &pith_kernel_table[middle];
        int order = strcmp(family, row->family);
        if (order == 0) order = dtype - row->dtype;
        if (order == 0) return row;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

pith_kernel_fn *pith_kernel_find(const char *family, int dtype, pith_isa isa) {
    const pith_kernel_row *row = kernel_row(family, dtype);
    if (!row) return NULL;
    pith_piece_used(row);
    for (int level = (int)isa; level > 0; level--) {
        if (row->fn[level]) return row->fn[level];
    }
    return row->fn[PITH_ISA_scalar];
}

pith_kernel_fn *pith_kernel_find_vnni(const char *vnni, const char *plain, int dtype, pith_isa isa) {
    const uint32_t wanted = isa == PITH_ISA_avx512 ? PITH_CPU_AVX512_VNNI
                            : isa == PITH_ISA_avx2 ? PITH_CPU_AVX_VNNI
                                                   : 0;
    pith_kernel_fn *slower = pith_kernel_find(plain, dtype, isa), *fn = pith_kernel_find(vnni, dtype, isa);
    return fn && pith_cpu_get()->features & wanted ? fn : slower;
}

/* The kernel as lists have it. */
static pith_str kernel_listed_name(char *name, size_t size, const char *family, int dtype) {
    snprintf(name, size, "%s %s", family, pith_dtype_short_name(dtype));
    return pith_str_of(name);
}

bool pith_kernel_is_dropped(const char *family, int dtype) {
    char name[96];
    if (!pith_dropped_count) return false;
    return kernel_row(family, dtype) ||
           pith_piece_is_dropped("kernels", kernel_listed_name(name, sizeof name, family, dtype));
}

pith_kernel_fn *pith_kernel_need(const char *family, int dtype, pith_isa isa, const char *place, pith_lacks *lacks) {
    pith_kernel_fn *fn = pith_kernel_find(family, dtype, isa);
    char name[96];
    if (fn || !pith_kernel_is_dropped(family, dtype)) return fn;
    if (kernel_row(family, dtype))
        pith_lacks_note(lacks, "isas", pith_str_of(pith_isa_name(isa)), "this processor");
    else
        pith_lacks_note(lacks, "kernels", kernel_listed_name(name, sizeof name, family, dtype), place);
    return NULL;
}
