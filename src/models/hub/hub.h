/* hub.h - finds the files of a model by path or by name in the model cache. */
#ifndef PITH_MODELS_HUB_HUB_H
#define PITH_MODELS_HUB_HUB_H

#include "base/memory/memory.h"

/* Sets *dir to the model cache: $PITH_CACHE, else $XDG_CACHE_HOME/pith, else ~/.cache/pith. Returns
 * PITH_ERR_NOT_FOUND if none of the variables is set. */
pith_status pith__hub_cache(pith_str *dir, pith__arena *arena, pith_error *err);

/* Sets *path to `name` if that exists, else to models/<name> in the cache, else to the model of
 * that name in the cache of Hugging Face's tools ($HF_HUB_CACHE, else $HF_HOME/hub, else
 * $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub), else to the model of the caches
 * that pith__name_search finds. A directory models--… of the
 * Hugging Face cache becomes its snapshot (refs/main, or the only one). *path ends with a NUL and
 * is in the arena. The message of PITH_ERR_NOT_FOUND lists the places that were searched. Never
 * uses the network. */
pith_status pith__hub_find(pith_str *path, const char *name, pith__arena *arena, pith_error *err);

/* Copies what pith__hub_find finds to path[size], and for name NULL the model cache.
 * PITH_ERR_ARGUMENT if size is too small. */
pith_status pith__hub_path(char *path, size_t size, const char *name, pith_error *err);

#endif
