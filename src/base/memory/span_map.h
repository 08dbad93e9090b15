/* span_map.h - hash map from byte strings to uint32, in an arena. Keys are spans that must outlive
 * the map. Hash-flood safe: the hash is seeded per map. Look-ups are read-only and may run in
 * parallel. */
#ifndef PITH_BASE_MEMORY_SPAN_MAP_H
#define PITH_BASE_MEMORY_SPAN_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"
#include "base/private_symbol.h"

typedef struct pith__map {
    pith__arena *arena;
    struct pith__map_slot *slots;
    uint32_t count, mask;
    uint64_t seed;
} pith__map;

PITH_PRIVATE pith_status pith__map_init(pith__map *map, pith__arena *arena, size_t expected_count);
/* Sets the value of a key. *old, if old is not NULL, receives the earlier value, or UINT32_MAX for
 * a new key. Returns false if memory is out. */
PITH_PRIVATE bool pith__map_put(pith__map *map, pith_str key, uint32_t value, uint32_t *old);
/* Returns UINT32_MAX if the key is absent. */
PITH_PRIVATE uint32_t pith__map_get(const pith__map *map, pith_str key);

#endif
