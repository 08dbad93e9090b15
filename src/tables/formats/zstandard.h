/* zstandard.h - Zstandard files (RFC 8878) as bytes, unpacked by libzstd, which is loaded for the
 * first one. */
#ifndef PITH_TABLES_FORMATS_ZSTANDARD_H
#define PITH_TABLES_FORMATS_ZSTANDARD_H

#include "base/memory/memory.h"
#include "base/stop.h"

/* True if the bytes begin as a Zstandard file does. */
bool pith__zstandard_is(pith_str bytes);
/* Unpacks all frames into the arena. path is for messages. PITH_ERR_NOT_FOUND names the package of
 * libzstd if that cannot be loaded. stop may be NULL. */
pith_status pith__zstandard_unpack(pith_str *text, pith_str bytes, const char *path,
                                   pith__stop *stop, pith__arena *arena, pith_error *err);

#endif
