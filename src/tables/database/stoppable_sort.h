/* stoppable_sort.h - qsort for many items in a call that can be stopped. */
#ifndef PITH_TABLES_DATABASE_STOPPABLE_SORT_H
#define PITH_TABLES_DATABASE_STOPPABLE_SORT_H

#include "base/memory/memory.h"
#include "base/stop.h"

/* Sorts as a stable qsort does. False if the call must end; some items may then be there twice.
 * Scratch is taken from the arena and given back; without it the sort is done in one piece. stop
 * may be NULL. */
bool pith__sort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *),
                pith__stop *stop, pith__arena *arena);

#endif
