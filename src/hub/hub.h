/* hub.h - from what a user types to files on disk. */
#ifndef PITH_HUB_HUB_H
#define PITH_HUB_HUB_H

#include "base/memory.h"

/* The model cache: $PITH_CACHE, else $XDG_CACHE_HOME/pith, else ~/.cache/pith. NOT_FOUND if none of them is set. */
pith_status pith_hub_cache(pith_str *dir, pith_arena *arena, pith_error *err);

/* A path that exists is taken as it is; any other relative name is looked for under models/ in the cache. *path is
 * zero-terminated and lies in the arena. NOT_FOUND says where was looked. Never touches the network. */
pith_status pith_hub_find(pith_str *path, const char *name, pith_arena *arena, pith_error *err);

#endif
