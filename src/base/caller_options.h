/* caller_options.h - taking option structs of a caller who may have been built with an older or a newer header. */
#ifndef PITH_BASE_CALLER_OPTIONS_H
#define PITH_BASE_CALLER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Copies options of any size up to ours over the defaults in `mine`; theirs may be NULL. False if theirs has no
 * size. */
bool pith_options_take(void *mine, size_t my_size, const void *theirs);

#define PITH_TAKE_OPTIONS(mine, theirs, err)                                                                           \
    if (!pith_options_take(&(mine), sizeof(mine), theirs))                                                             \
    return pith_fail(err, PITH_ERR_ARGUMENT, "the options have no size; initialise them with their _INIT macro")

#endif
