/* inflate.h - gzip files (RFC 1952) as bytes. */
#ifndef PITH_RELATIONAL_INFLATE_H
#define PITH_RELATIONAL_INFLATE_H

#include "base/memory.h"

/* True if the bytes begin as a gzip file does. */
bool pith_gzip_is(pith_str bytes);
/* Unpacks all members of a gzip file into the arena, and checks their CRC-32 and length. path is for messages. */
pith_status pith_gzip_unpack(pith_str *text, pith_str bytes, const char *path, pith_arena *arena, pith_error *err);

#endif
