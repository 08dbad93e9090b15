/* zlib_library.h - zlib, loaded when something packed is read first. */
#ifndef PITH_RELATIONAL_ZLIB_LIBRARY_H
#define PITH_RELATIONAL_ZLIB_LIBRARY_H

#include <stdint.h>

#include "base/memory.h"

/* What follows the window's size in the sense of zlib.h: a gzip header, or none. */
enum { PITH_INFLATE_GZIP = 15 + 16, PITH_INFLATE_RAW = -15 };

/* Text that grows in an arena. */
typedef struct pith_unpacked {
    pith_arena *arena;
    char *data;
    size_t size, room;
} pith_unpacked;

/* Room for at least `least` more bytes; false if memory is out. */
bool pith_unpacked_room(pith_unpacked *text, size_t least);

/* Unpacks bytes behind what text holds: members of a gzip file until the end, or one stream without a header, which
 * must end where the bytes do and give at most `most` bytes. what: "gzip file" or the like, for messages.
 * PITH_ERR_NOT_FOUND names the package of zlib if that cannot be loaded. */
pith_status pith_inflate(pith_unpacked *text, pith_str bytes, int window, size_t most, const char *what,
                         const char *path, pith_error *err);
/* The CRC-32 of bytes. */
pith_status pith_crc32(uint32_t *crc, pith_str bytes, const char *path, pith_error *err);

#endif
