/* memory.h - how much memory the machine and the control group of the process have left. */
#ifndef PITH_MEMORY_H
#define PITH_MEMORY_H

#include "pith/call.h"
#include "pith/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes are in bytes. A number that cannot be read is 0. */
typedef struct pith_memory_info {
    size_t size;
    uint64_t total;       /* of the machine: MemTotal of /proc/meminfo */
    uint64_t available;   /* of the machine: MemAvailable, which counts file cache that can be
                             dropped */
    uint64_t group_limit; /* of the control group (version 2 or 1) that leaves the process least; 0:
                             no limit */
    uint64_t group_used;  /* by that group, without inactive file cache, which the kernel drops
                             first */
    double stalled;       /* share of the last ten seconds in which every task waited for memory, 0
                             to 1 (PSI: the `full avg10` of memory.pressure, or of
                             /proc/pressure/memory) */
    double used;          /* the larger of group_used / group_limit and 1 - available / total, 0 to
                             1 */
} pith_memory_info;

#define PITH_MEMORY_INFO_INIT PITH_SIZED_INIT(pith_memory_info)

/* Reads the files below /proc and /sys. root, if it is not NULL, is put in front of their paths,
 * for tests. Error: PITH_ERR_ARGUMENT if the struct has no size. Thread-safe. */
PITH_API pith_status pith_memory_report(pith_memory_info *info, const char *root, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
