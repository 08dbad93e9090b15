/* cpu_info.h - what a host is told of the processor. */
#ifndef PITH_BASE_OS_CPU_INFO_H
#define PITH_BASE_OS_CPU_INFO_H

#include "pith/cpu.h"

/* Fills as much of the caller's struct as its size says there is. */
pith_status pith__cpu_info_fill(pith_cpu_info *info, pith_error *err);

#endif
