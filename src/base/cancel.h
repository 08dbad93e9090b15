/* cancel.h - the flag by which a caller ends a call from another thread, or from a signal's
 * handler. */
#ifndef PITH_BASE_CANCEL_H
#define PITH_BASE_CANCEL_H

#include <stdbool.h>
#include <stddef.h>

/* flag: the caller's; NULL: the call cannot be cancelled. */
static inline bool pith__is_cancelled(const volatile int *flag) {
    return flag != NULL && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

#endif
