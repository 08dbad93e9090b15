/* gzip.h - gzip files (RFC 1952) as bytes, unpacked by zlib, which is loaded for the first one. */
#ifndef PITH_TABLES_FORMATS_GZIP_H
#define PITH_TABLES_FORMATS_GZIP_H

#include "base/memory/memory.h"
#include "base/stop.h"

/* True if the bytes begin as a gzip file does. */
bool pith__gzip_is(pith_str bytes);
/* Unpacks all members of a gzip file into the arena; zlib checks their CRC-32 and length. path is
 * for messages. PITH_ERR_NOT_FOUND names the package of zlib if that cannot be loaded. stop may be
 * NULL. */
pith_status pith__gzip_unpack(pith_str *text, pith_str bytes, const char *path, pith__stop *stop,
                              pith__arena *arena, pith_error *err);

#endif
