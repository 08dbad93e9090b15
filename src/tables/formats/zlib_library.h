/* zlib_library.h - zlib, loaded when something packed is read first. */
#ifndef PITH_TABLES_FORMATS_ZLIB_LIBRARY_H
#define PITH_TABLES_FORMATS_ZLIB_LIBRARY_H

#include <stdint.h>

#include "base/memory/memory.h"
#include "base/stop.h"

/* What follows the window's size in the sense of zlib.h: a gzip header, or none. */
enum { PITH_INFLATE_GZIP = 15 + 16, PITH_INFLATE_RAW = -15 };

/* What a file may unpack to: this many times its size and PITH_UNPACKED_FREE bytes. Tables as text
 * unpack to three to thirty times their size; deflate can make a thousand of one, Zstandard
 * more. */
enum { PITH_UNPACKED_TIMES = 100, PITH_UNPACKED_FREE = 16 << 20 };

/* Text that grows in an arena. */
typedef struct pith__unpacked {
    pith__arena *arena;
    char *data;
    size_t size, room;
    pith__stop *stop; /* NULL: unpacking cannot be stopped */
} pith__unpacked;

/* The bytes that a file of that size may unpack to. */
size_t pith__unpacked_most(size_t packed);
/* The error of a file that unpacks to more. */
pith_status pith__unpacked_fail(const char *path, pith_error *err);
/* Room for at least `least` more bytes; false if memory is out. */
bool pith__unpacked_room(pith__unpacked *text, size_t least);
/* The bytes to unpack next, of the room that there is: where a call can be stopped, what takes some
 * milliseconds. */
size_t pith__unpacked_piece(const pith__unpacked *text);

/* Unpacks bytes behind what text holds: members of a gzip file until the end, or one stream without
 * a header, which must end where the bytes do. At most `most` bytes in all: a gzip file of more has
 * unpacked to too much, another stream is damaged. what: "gzip file" or the like, for messages.
 * PITH_ERR_NOT_FOUND names the package of zlib if that cannot be loaded. */
pith_status pith__inflate(pith__unpacked *text, pith_str bytes, int window, size_t most,
                          const char *what, const char *path, pith_error *err);
/* The CRC-32 of bytes. */
pith_status pith__crc32(uint32_t *crc, pith_str bytes, const char *path, pith__stop *stop,
                        pith_error *err);

#endif
