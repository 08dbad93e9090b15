/* value_places.h - offsets in one buffer for memory whose life times are known. */
#ifndef PITH_ENGINE_EXEC_VALUE_PLACES_H
#define PITH_ENGINE_EXEC_VALUE_PLACES_H

#include "base/error.h"
#include "base/memory/memory.h"

/* Memory that is in use from step begin to step end, both inclusive. end may be the number of
 * steps, for values that live until the end of the run. */
typedef struct pith__slot {
    size_t bytes;
    size_t offset; /* result, a multiple of 64 */
    uint32_t begin, end;
} pith__slot;

/* Gives each slot its offset; slots must be sorted by begin. Sets *total to the size of the buffer.
 * scratch is used during the call only. Returns PITH_ERR_MEMORY if the total overflows or memory is
 * out. */
pith_status pith__slots_place(pith__slot *slots, size_t count, size_t steps, size_t *total,
                              pith__arena *scratch);

#endif
