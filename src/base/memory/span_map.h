/* span_map.h - hash map from byte strings to uint32, in an arena. Keys are spans that must outlive the map.
 * Hash-flood safe: the hash is seeded per map. Look-ups are read-only and may run in parallel. */
#ifndef PITH_BASE_MEMORY_SPAN_MAP_H
#define PITH_BASE_MEMORY_SPAN_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"

typedef struct pith_map {
    pith_arena *arena;
    struct pith_map_slot *slots;
    uint32_t count, mask;
    uint64_t seed;
} pith_map;

pith_status pith_map_init(pith_map *map, pith_arena *arena, size_t expected_count);
/* Sets the value of a key. *old, if old is not NULL, receives the earlier value, or UINT32_MAX for a new key. Returns
 * false if memory is out. */
bool pith_map_put(pith_map *map, pith_str key, uint32_t value, uint32_t *old);
/* Returns UINT32_MAX if the key is absent. */
uint32_t pith_map_get(const pith_map *map, pith_str key);

#endif
