/* error.h - filling the caller's pith_error.
 *
 * The code that finds a fault writes the message. Each caller only puts its place in front ("node
 * 12 …: "). err may be NULL everywhere. A message that is too long is cut between characters,
 * marked with "…": at its end, or, with a place in front of it, in its middle, since the cause
 * stands at the end. Control characters are written as \xNN. */
#ifndef PITH_BASE_ERROR_H
#define PITH_BASE_ERROR_H

#include "base/private_symbol.h"
#include "pith/types.h"

/* Sets the code and the message, and returns the code:
 *     return pith__fail(err, PITH_ERR_FORMAT, "dims[%d] is negative", i); */
PITH_PRIVATE pith_status pith__fail(pith_error *err, pith_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Puts the text in front of the message that err already has, and returns the code. */
pith_status pith__fail_at(pith_error *err, pith_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Fails with PITH_ERR_MEMORY and "out of memory: N bytes are needed". */
PITH_PRIVATE pith_status pith__fail_memory(pith_error *err, size_t bytes) __attribute__((cold));

/* Evaluates a call and returns its status if it is not PITH_OK. */
#define PITH_TRY(call)                                                                             \
    do {                                                                                           \
        pith_status pith__try_status_ = (call);                                                    \
        if (pith__try_status_) return pith__try_status_;                                           \
    } while (0)

#endif
