/* api_cpu.c - the public functions of pith/cpu.h. */
#include "api/entry.h"
#include "base/os/cpu_info.h"

pith_status pith_cpu_report(pith_cpu_info *info, pith_error *err) {
    PITH_ENTRY(pith__cpu_info_fill(info, err));
}
