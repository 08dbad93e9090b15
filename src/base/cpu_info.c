/* cpu_info.c - see cpu_info.h. */
#include "base/cpu_info.h"

#include <string.h>

#include "base/cpu.h"
#include "base/error.h"

pith_status pith_cpu_info_fill(pith_cpu_info *info, pith_error *err) {
    const pith_cpu *cpu = pith_cpu_get();
    pith_cpu_info mine = { info->size, pith_isa_name(cpu->isa), cpu->threads, cpu->l1d, cpu->l2, cpu->l3 };
    if (mine.size < sizeof mine.size)
        return pith_fail(err, PITH_ERR_ARGUMENT, "the struct has no size; initialise it with PITH_CPU_INFO_INIT");
    memcpy(info, &mine, mine.size < sizeof mine ? mine.size : sizeof mine);
    return PITH_OK;
}
