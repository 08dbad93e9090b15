/* writer.h - bytes for the writer of the caller (pith/call.h), and whether he could take them.
 *
 * Code that puts text together piece by piece need not look at each piece: after the first one that
 * could not be written, the writer is not called again, and pith__out_status tells it at the end.
 */
#ifndef PITH_BASE_WRITER_H
#define PITH_BASE_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/private_symbol.h"
#include "base/stop.h"
#include "pith/call.h"

typedef struct pith__out {
    const pith_writer *writer;
    bool failed;
    pith__stop *stop; /* once it says so, nothing more is written, which pith__out_status tells; it
                         is asked within long pieces. NULL: it never does */
    struct pith__progress *told; /* hears of the "bytes"; NULL: nobody does */
    uint64_t done, total;        /* bytes, for that */
} pith__out;

/* PITH_ERR_ARGUMENT if there is no writer, or it has no function. */
PITH_PRIVATE pith_status pith__writer_check(const pith_writer *writer, pith_error *err);

/* Tells the writer how many bytes will come, if it wants to know. */
PITH_PRIVATE void pith__out_begin(pith__out *out, uint64_t total);
PITH_PRIVATE void pith__out_put(pith__out *out, const void *data, size_t size);
/* PITH_ERR_IO, "the model could not be written", if the writer could not take something, or the
 * error of a call that must end; what: "the model". */
PITH_PRIVATE pith_status pith__out_status(const pith__out *out, const char *what, pith_error *err);

#endif
