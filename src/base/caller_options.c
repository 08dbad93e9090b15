/* caller_options.c - see caller_options.h. */
#include "base/caller_options.h"

#include <string.h>

bool pith__options_take(void *mine, size_t my_size, const void *theirs) {
    size_t size;
    if (!theirs) return true;
    memcpy(&size, theirs, sizeof size);
    if (size < sizeof size) return false;
    memcpy(mine, theirs, size < my_size ? size : my_size);
    memcpy(mine, &my_size, sizeof my_size);
    return true;
}
