/* cpu.h - what the processor can do, read once. PITH_ISA=scalar|avx2|avx512|neon in the environment limits it; -amx,
 * -bf16, -vnni behind the level take those extensions away too (PITH_ISA=avx512-amx). */
#ifndef PITH_BASE_CPU_H
#define PITH_BASE_CPU_H

#include <stddef.h>
#include <stdint.h>

/* The instruction set levels kernels are built for, worst first. A level names everything its vec_<isa>.h uses. */
typedef enum pith_isa {
    PITH_ISA_scalar = 0,
    PITH_ISA_avx2,   /* AVX2, FMA, F16C, BMI2 */
    PITH_ISA_avx512, /* F, BW, DQ, VL */
    PITH_ISA_neon,   /* Advanced SIMD of Armv8.0 */
    PITH_ISA_COUNT
} pith_isa;

/* Extensions that single GEMM rows need beyond their level. */
enum {
    PITH_CPU_AVX512_VNNI = 1u << 0,
    PITH_CPU_AVX_VNNI = 1u << 1,
    PITH_CPU_AVX512_BF16 = 1u << 2,
    PITH_CPU_DOTPROD = 1u << 3,
    PITH_CPU_I8MM = 1u << 4,
    PITH_CPU_AVX512_VBMI = 1u << 5,
    PITH_CPU_AMX_INT8 = 1u << 6,
    PITH_CPU_AMX_BF16 = 1u << 7, /* the system has granted this process the tiles */
    PITH_CPU_FAST_BF16 = 1u << 8 /* AVX512_BF16 with more multiply-adds a cycle than f32 has */
};

typedef struct pith_cpu {
    pith_isa isa;       /* best level that is usable and allowed */
    uint32_t supported; /* bit i: level i is usable */
    uint32_t features;  /* PITH_CPU_*; only those that go with isa */
    size_t l1d, l2, l3; /* bytes; l3 as shared, all with fall-backs */
    int threads;        /* usable by this process: affinity and container quota, at least 1 */
} pith_cpu;

/* The same answer for the life of the process. Thread-safe. */
const pith_cpu *pith_cpu_get(void);
const char *pith_isa_name(pith_isa isa);

/* Processors granted by the control groups of a process, rounded up; 0 if they set no limit. proc_cgroup: a file like
 * /proc/self/cgroup; mount: where the groups are mounted, /sys/fs/cgroup. */
int pith_cpu_quota(const char *proc_cgroup, const char *mount);

/* Rounding to nearest, no flush to zero, no denormals-are-zero: set at each API entry and in pool threads. */
typedef struct pith_fpmode {
    uint64_t saved;
} pith_fpmode;
pith_fpmode pith_fpmode_enter(void);
void pith_fpmode_leave(pith_fpmode mode);

#endif
