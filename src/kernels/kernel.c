/* kernel.c - looking up the kernel table. */
#include "kernels/kernel.h"

#include <string.h>

pith_kernel_fn *pith_kernel_find(const char *family, int dtype, pith_isa isa) {
    size_t low = 0, high = pith_kernel_table_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const pith_kernel_row *row = &pith_kernel_table[middle];
        int order = strcmp(family, row->family);
        if (order == 0) order = dtype - row->dtype;
        if (order == 0) {
            for (int level = (int)isa; level > 0; level--) {
                if (row->fn[level]) return row->fn[level];
            }
            return row->fn[PITH_ISA_scalar];
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
