/* kernel.c - looking up the kernel table.
 *
 * The table is sorted by family and dtype number, as lint checks, so a look-up is a binary search.
 * A level without a kernel of its own takes the next lower one's; the scalar level has all of them.
 * Results are not cached: users look up once per plan or call. */
#include "engine/kernels/kernel.h"

#include <stdio.h>
#include <string.h>

#include "base/os/cpu.h"
#include "base/piece_listener.h"

static const pith__kernel_row *kernel_row(const char *family, int dtype) {
    size_t low = 0, high = pith__kernel_table_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const pith__kernel_row *row = &pith__kernel_table[middle];
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

pith__kernel_fn *pith__kernel_find(const char *family, int dtype, pith__isa isa) {
    const pith__kernel_row *row = kernel_row(family, dtype);
    if (!row) return NULL;
    pith__piece_used(row);
    for (int level = (int)isa; level > 0; level--) {
        if (row->fn[level]) return row->fn[level];
    }
    return row->fn[PITH_ISA_scalar];
}

pith__kernel_fn *pith__kernel_find_vnni(const char *vnni, const char *plain, int dtype,
                                        pith__isa isa) {
    uint32_t wanted = 0;
    if (isa == PITH_ISA_avx512) wanted = PITH_CPU_AVX512_VNNI;
    if (isa == PITH_ISA_avx2) wanted = PITH_CPU_AVX_VNNI;
    pith__kernel_fn *slower = pith__kernel_find(plain, dtype, isa),
                    *fn = pith__kernel_find(vnni, dtype, isa);
    return fn && pith__cpu_get()->features & wanted ? fn : slower;
}

/* The kernel as lists have it. */
static pith_str kernel_listed_name(char *name, size_t size, const char *family, int dtype) {
    snprintf(name, size, "%s %s", family, pith__dtype_short_name(dtype));
    return pith__str_of(name);
}

bool pith__kernel_is_dropped(const char *family, int dtype) {
    char name[96];
    if (!pith__dropped_count) return false;
    return kernel_row(family, dtype) ||
           pith__piece_is_dropped("kernels", kernel_listed_name(name, sizeof name, family, dtype));
}

pith__kernel_fn *pith__kernel_need(const char *family, int dtype, pith__isa isa, const char *place,
                                   pith__lacks *lacks) {
    pith__kernel_fn *fn = pith__kernel_find(family, dtype, isa);
    char name[96];
    if (fn || !pith__kernel_is_dropped(family, dtype)) return fn;
    if (kernel_row(family, dtype))
        pith__lacks_note(lacks, "isas", pith__str_of(pith__isa_name(isa)), "this processor");
    else
        pith__lacks_note(lacks, "kernels", kernel_listed_name(name, sizeof name, family, dtype),
                         place);
    return NULL;
}
