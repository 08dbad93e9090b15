/* name_search.h - finds a model of the caches by a name that is not spelled as its directory is. */
#ifndef PITH_MODELS_HUB_NAME_SEARCH_H
#define PITH_MODELS_HUB_NAME_SEARCH_H

#include "base/memory/memory.h"

/* Where models lie: <cache>/models, and the cache of Hugging Face's tools; NULL: there is none. */
typedef struct pith__model_places {
    const char *models, *others;
} pith__model_places;

/* Sets *path to the directory or file of the model that `name` means: capitals do not matter, the
 * organisation may be missing on either side, and a short name of model_names.def stands for its
 * full one. A model with the organisation that is asked for is taken before one without. data is
 * NULL if no model has such a name. PITH_ERR_NOT_FOUND: more than one has, and the message names
 * two of them. *path ends with a NUL and is in the arena. */
pith_status pith__name_search(pith_str *path, const char *name, const pith__model_places *places,
                              pith__arena *arena, pith_error *err);

#endif
