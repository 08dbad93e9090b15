/* entry.h - how a public function calls the library.
 *
 * Only the files of this folder define public functions. The body of one that computes is
 * PITH_ENTRY alone: it sets the library's floating-point mode, makes the call and restores the
 * host's mode. Getters, and functions that only count, allocate or free, call straight through;
 * tools/lint.py lists them by name. */
#ifndef PITH_API_ENTRY_H
#define PITH_API_ENTRY_H

#include "base/os/cpu.h"
#include "pith/types.h"

/* The body of a public function that computes. `call` is an expression of type pith_status, which
 * is returned. */
#define PITH_ENTRY(call)                                                                           \
    do {                                                                                           \
        pith__fpmode entry_mode_ = pith__fpmode_enter();                                           \
        pith_status entry_status_ = (call);                                                        \
        pith__fpmode_leave(entry_mode_);                                                           \
        return entry_status_;                                                                      \
    } while (0)

#endif
