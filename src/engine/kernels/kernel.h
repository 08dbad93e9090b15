/* kernel.h - the kernel table: inner loops by family, dtype and instruction set level.
 *
 * A family is one file k_<family>.c, written once on the 16-lane primitives of vec.h, compiled once
 * per level, and one line per dtype in select/kernels.def. A kernel is a pure function on pointers
 * and lengths: it knows no graph, makes no allocation and starts no thread; every level gives the
 * same bits (docs/architecture.md, Numbers).
 *
 * k_foo.c defines pith_k_foo_f32_<level>:
 *     void PITH_K(foo_f32)(const float *x, float *y, size_t n) { … }
 * foo.h declares it:
 *     typedef void pith_foo_fn(const float *x, float *y, size_t n);
 *     PITH_KERNEL_DECLARE(foo_f32, pith_foo_fn)
 * kernels.def lists it:
 *     KERNEL(foo, f32)
 * A loop in plain C that no level would change is pith_k_foo_i64 in foo.c, listed as:
 *     PLAIN(foo, i64)
 * A user finds it:
 *     pith_foo_fn *foo = PITH_KERNEL_FIND(pith_foo_fn, "foo", PITH_F32, isa); */
#ifndef PITH_ENGINE_KERNELS_KERNEL_H
#define PITH_ENGINE_KERNELS_KERNEL_H

#include <stddef.h>

#include "base/dtype.h"
#include "base/left_out_pieces.h"
#include "base/os/cpu.h"
#include "base/private_symbol.h"
#include "select/isas.def"

typedef void pith__kernel_fn(void);

typedef struct pith__kernel_row {
    const char *family;
    int dtype;
    pith__kernel_fn *fn[PITH_ISA_COUNT]; /* NULL where the level is not built */
} pith__kernel_row;

/* Sorted by family, then dtype number; defined by select/tables.c. */
extern const pith__kernel_row pith__kernel_table[];
extern const size_t pith__kernel_table_count;

/* The best built level not above isa, or NULL if this build has no such kernel. */
pith__kernel_fn *pith__kernel_find(const char *family, int dtype, pith__isa isa);
#define PITH_KERNEL_FIND(type, family, dtype, isa) ((type *)pith__kernel_find(family, dtype, isa))
/* The kernel for processors that have VNNI on the level (AVX512_VNNI, AVX_VNNI), or else the plain
 * one: same bits, slower. */
pith__kernel_fn *pith__kernel_find_vnni(const char *vnni, const char *plain, int dtype,
                                        pith__isa isa);
/* Of a kernel that pith__kernel_find does not find: whether only this build lacks it, because it
 * was made without it or without the instruction sets that the processor has. */
bool pith__kernel_is_dropped(const char *family, int dtype);
/* As pith__kernel_find; but a kernel that is dropped is noted in lacks, with the place that needs
 * it ("": none). The caller then fails with what pith__lacks_check says. */
PITH_PRIVATE pith__kernel_fn *pith__kernel_need(const char *family, int dtype, pith__isa isa,
                                                const char *place, pith__lacks *lacks);
#define PITH_KERNEL_NEED(type, family, dtype, isa, lacks)                                          \
    ((type *)pith__kernel_need(family, dtype, isa, "", lacks))

#define PITH_PASTE3_(a, b, c) a##b##_##c
#define PITH_PASTE3(a, b, c) PITH_PASTE3_(a, b, c)
/* The name of a kernel in the file being compiled for one level. */
#define PITH_K(name) PITH_PASTE3(pith__k_, name, PITH_ISA)

#define PITH_KERNEL_DECLARE_ONE_(isa, name, type) type pith__k_##name##_##isa;
#define PITH_KERNEL_DECLARE(name, type) PITH_ISAS(PITH_KERNEL_DECLARE_ONE_, name, type)

/* The suffixes used in kernels.def, as dtype numbers. */
enum {
    PITH_SUFFIX_f32 = PITH_F32,
    PITH_SUFFIX_f64 = PITH_F64,
    PITH_SUFFIX_f16 = PITH_F16,
    PITH_SUFFIX_bf16 = PITH_BF16,
    PITH_SUFFIX_u8 = PITH_U8,
    PITH_SUFFIX_i8 = PITH_I8,
    PITH_SUFFIX_u16 = PITH_U16,
    PITH_SUFFIX_i16 = PITH_I16,
    PITH_SUFFIX_u32 = PITH_U32,
    PITH_SUFFIX_i32 = PITH_I32,
    PITH_SUFFIX_u64 = PITH_U64,
    PITH_SUFFIX_i64 = PITH_I64,
    PITH_SUFFIX_bool = PITH_BOOL,
    PITH_SUFFIX_string = PITH_STRING
};

#endif
