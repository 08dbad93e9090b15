/* cpu.h - what the library found out about the processor, and how it adapts to it. */
#ifndef PITH_CPU_H
#define PITH_CPU_H

#include "pith/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pith_cpu_info {
    size_t size;
    const char *isa; /* the instruction set of the kernels that run: "scalar", "avx2", "avx512" or "neon". The string
                        lives as long as the process. */
    int32_t threads; /* CPUs that this process may use, by affinity and container quota; at least 1. It is the number
                        of threads that 0 stands for in options. */
    size_t l1d_bytes, l2_bytes; /* data caches of one core; never 0 */
    size_t l3_bytes;            /* the whole cache that cores share; never 0 */
} pith_cpu_info;

/* clang-format off */
#define PITH_CPU_INFO_INIT { sizeof(pith_cpu_info), NULL, 0, 0, 0, 0 }
/* clang-format on */

/* Fills a struct that was initialised with PITH_CPU_INFO_INIT. The answer stays the same for the life of the process.
 * Thread-safe. Error: PITH_ERR_ARGUMENT if the struct has no size. */
PITH_API pith_status pith_cpu_report(pith_cpu_info *info, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
