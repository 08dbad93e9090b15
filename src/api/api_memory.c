/* api_memory.c - the public functions of pith/memory.h. */
#include "api/entry.h"
#include "base/os/system_memory.h"

pith_status pith_memory_report(pith_memory_info *info, const char *root, pith_error *err) {
    PITH_ENTRY(pith__system_memory(info, root, err));
}
