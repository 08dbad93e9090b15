/* cpu.h - what the library found out about the processor, and how it adapts to it. */
#ifndef PITH_CPU_H
#define PITH_CPU_H

#include "pith/call.h"
#include "pith/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pith_cpu_info {
    size_t size;
    const char *isa; /* the instruction set of the kernels that run: "scalar", "avx2", "avx512" or
                        "neon". The string lives as long as the process. */
    int32_t threads; /* CPUs that this process may use, by affinity and container quota; at least 1.
                        It is the number of threads that 0 stands for in options. */
    size_t l1d_bytes, l2_bytes; /* data caches of one core; never 0 */
    size_t l3_bytes;            /* the whole cache that cores share; never 0 */
    int32_t cpus;               /* hardware threads that the affinity of the process allows,
                                   whatever its quota is */
    int32_t cores;              /* physical cores that these are on; at least 1 */
    int32_t quota;              /* CPUs that the control groups (version 2 or 1) grant, rounded up;
                                   0: no limit */
    const char *model;          /* name of the processor; "" if the system does not tell it. These
                                   strings live as long as the process. */
    const char *isas;           /* instruction sets that the processor has kernels for, the slowest
                                   first, with spaces between them */
    const char *features;       /* extensions that are used, with spaces between them, such as
                                   "avx512-vnni" */
} pith_cpu_info;

#define PITH_CPU_INFO_INIT PITH_SIZED_INIT(pith_cpu_info)

/* Fills a struct that was initialised with PITH_CPU_INFO_INIT. The answer stays the same for the
 * life of the process. Thread-safe. Error: PITH_ERR_ARGUMENT if the struct has no size. */
PITH_API pith_status pith_cpu_report(pith_cpu_info *info, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
