/* error.h - filling the caller's pith_error.
 *
 * The place that finds a fault writes the message; each layer above only prepends where it was ("node 12 …: ").
 * err may be NULL everywhere. Messages are cut to PITH_ERROR_MESSAGE_SIZE on a UTF-8 boundary, the cause at their end
 * stays, and they hold no control characters: names from hostile files are shown with \xNN. */
#ifndef PITH_BASE_ERROR_H
#define PITH_BASE_ERROR_H

#include "pith/types.h"

/* Sets code and message, returns code: return pith_fail(err, PITH_ERR_FORMAT, "dims[%d] is negative", i); */
pith_status pith_fail(pith_error *err, pith_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Puts the text before the message and returns the code err already has (PITH_ERR_MEMORY's text is kept as well). */
pith_status pith_fail_at(pith_error *err, pith_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* "out of memory (N bytes wanted)". */
pith_status pith_fail_memory(pith_error *err, size_t bytes) __attribute__((cold));

/* Evaluates a call and returns its status if it is not PITH_OK. */
#define PITH_TRY(call)                                                                                                 \
    do {                                                                                                               \
        pith_status pith_try_status_ = (call);                                                                         \
        if (pith_try_status_) return pith_try_status_;                                                                 \
    } while (0)

#endif
