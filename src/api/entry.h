/* entry.h - how a public function calls the library.
 *
 * The files of this folder are the only ones that define public functions. One that computes is PITH_ENTRY and
 * nothing else: the library's floating-point mode is set, the call is made, the host's mode comes back. Those that
 * only hand out what is there, allocate or free call straight through; tools/lint.py lists them by name. */
#ifndef PITH_API_ENTRY_H
#define PITH_API_ENTRY_H

#include "base/cpu.h"
#include "pith/types.h"

/* The body of a public function: the status of `call`, an expression. */
#define PITH_ENTRY(call)                                                                                               \
    do {                                                                                                               \
        pith_fpmode entry_mode_ = pith_fpmode_enter();                                                                 \
        pith_status entry_status_ = (call);                                                                            \
        pith_fpmode_leave(entry_mode_);                                                                                \
        return entry_status_;                                                                                          \
    } while (0)

#endif
