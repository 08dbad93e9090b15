/* cpu.h - the processor's features, read once per process.
 *
 * The environment variable PITH_ISA=scalar|avx2|avx512|neon limits the instruction set. The
 * suffixes -amx, -bf16 and -vnni also disable those extensions (PITH_ISA=avx512-amx). */
#ifndef PITH_BASE_OS_CPU_H
#define PITH_BASE_OS_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/private_symbol.h"

/* The instruction sets that kernels are built for, slowest first. The comments list what each
 * vec_<isa>.h uses. */
typedef enum pith__isa {
    PITH_ISA_scalar = 0,
    PITH_ISA_avx2,   /* AVX2, FMA, F16C, BMI2 */
    PITH_ISA_avx512, /* F, BW, DQ, VL */
    PITH_ISA_neon,   /* Advanced SIMD of Armv8.0 */
    PITH_ISA_COUNT
} pith__isa;

/* Extensions that single GEMM kernels need in addition to their level. */
enum {
    PITH_CPU_AVX512_VNNI = 1u << 0,
    PITH_CPU_AVX_VNNI = 1u << 1,
    PITH_CPU_AVX512_BF16 = 1u << 2,
    PITH_CPU_DOTPROD = 1u << 3,
    PITH_CPU_I8MM = 1u << 4,
    PITH_CPU_AVX512_VBMI = 1u << 5,
    PITH_CPU_AMX_INT8 = 1u << 6,
    PITH_CPU_AMX_BF16 = 1u << 7, /* the operating system has enabled AMX tiles for this process */
    PITH_CPU_FAST_BF16 = 1u << 8 /* AVX512_BF16 does more multiply-adds per cycle than f32 */
};

typedef struct pith__cpu {
    pith__isa isa;      /* best level that is usable and allowed */
    uint32_t supported; /* bit i: level i is usable */
    uint32_t features;  /* PITH_CPU_*; only those that go with isa */
    size_t l1d, l2, l3; /* cache sizes in bytes, never 0; l3 is the whole shared cache */
    int threads;        /* CPUs this process may use, by affinity and container quota; at least 1 */
    int allowed;        /* by affinity alone; at least 1 */
    int quota;          /* CPUs that the control groups grant, rounded up; 0: no limit */
} pith__cpu;

/* The same answer for the life of the process. Thread-safe. */
PITH_PRIVATE const pith__cpu *pith__cpu_get(void);
const char *pith__isa_name(pith__isa isa);
/* Whether code for a level may run: the processor has it, and no better level than that is
 * forbidden. */
bool pith__cpu_runs(pith__isa isa);

/* Returns the CPUs that the control groups of a process grant, rounded up, or 0 without a limit.
 * proc_cgroup is a file like /proc/self/cgroup; mount is the mount point of the groups,
 * /sys/fs/cgroup. */
int pith__cpu_quota(const char *proc_cgroup, const char *mount);

/* The library's floating-point mode: round to nearest, no flush to zero, no denormals-are-zero.
 * Every public function that computes, and every worker thread, enters it. */
typedef struct pith__fpmode {
    uint64_t saved;
} pith__fpmode;
PITH_PRIVATE pith__fpmode pith__fpmode_enter(void);
PITH_PRIVATE void pith__fpmode_leave(pith__fpmode mode);

#endif
