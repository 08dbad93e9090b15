/* topology.h - which processors share a core, and what the processor is called, from files of
 * Linux. */
#ifndef PITH_BASE_OS_TOPOLOGY_H
#define PITH_BASE_OS_TOPOLOGY_H

#include <stddef.h>

/* The number of cores that the processors with allowed[n] != 0, n < count, are on. root, if it is
 * not NULL, is put in front of /sys, for tests. A processor that /sys says nothing of counts as a
 * core of its own. */
int pith__topology_cores(const char *root, const unsigned char *allowed, int count);

/* The number of cores that the processors are on which this process may use by its affinity; at
 * least 1. */
int pith__topology_usable_cores(void);

/* Writes the name of the processor, as /proc/cpuinfo has it, to name[size]; "" if it has none (as
 * on arm64). */
void pith__topology_name(char *name, size_t size, const char *root);

#endif
