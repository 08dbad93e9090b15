/* caller_options.h - copying option structs of callers that were built with an older or newer
 * header. */
#ifndef PITH_BASE_CALLER_OPTIONS_H
#define PITH_BASE_CALLER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/private_symbol.h"

/* Copies the caller's options over the defaults in `mine`; bytes beyond my_size are ignored. theirs
 * may be NULL. Returns false if theirs->size is 0. */
PITH_PRIVATE bool pith__options_take(void *mine, size_t my_size, const void *theirs);

#define PITH_TAKE_OPTIONS(mine, theirs, err)                                                       \
    if (!pith__options_take(&(mine), sizeof(mine), theirs))                                        \
    return pith__fail(err, PITH_ERR_ARGUMENT,                                                      \
                      "the options have no size; initialise them with their _INIT macro")

#endif
