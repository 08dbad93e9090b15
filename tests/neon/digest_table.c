/* digest_table.c - the kernels of the program that neon.sh builds: those that have levels. They are
 * declared here without their types, as in select/tables.c, so no header of a new family is
 * needed. */
#include "kernel_digest.h"

#include "base/optional_part.h"

#define LEVEL_FN(isa, family, suffix)                                                              \
    [PITH_ISA_##isa] = (pith__kernel_fn *)pith__k_##family##_##suffix##_##isa,
#define LEVEL_DECLARE(isa, family, suffix) void pith__k_##family##_##suffix##_##isa(void);
#define KERNEL(family, suffix) PITH_ISAS(LEVEL_DECLARE, family, suffix)
#define PLAIN(family, suffix) /* plain C has no levels */
#include "select/kernels.def"
#undef KERNEL

const pith__kernel_row pith__kernel_table[] = {
#define KERNEL(family, suffix)                                                                     \
    { #family, PITH_SUFFIX_##suffix, { PITH_ISAS(LEVEL_FN, family, suffix) } },
#include "select/kernels.def"
#undef KERNEL
#undef PLAIN
};
const size_t pith__kernel_table_count = COUNT(pith__kernel_table);

/* base/os/cpu.c looks for parts; nothing here needs one. */
const pith__part *const pith__part_table[] = { NULL };
