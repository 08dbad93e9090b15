/* gzip.c - see gzip.h. */
#include "base/formats/gzip.h"

#include <string.h>

#include "base/error.h"
#include "base/formats/zlib_library.h"

bool pith_gzip_is(pith_str bytes) { return bytes.size >= 2 && !memcmp(bytes.data, "\x1F\x8B", 2); }

pith_status pith_gzip_unpack(pith_str *text, pith_str bytes, const char *path, pith_arena *arena, pith_error *err) {
    pith_unpacked t = { .arena = arena };
    const size_t most = pith_unpacked_most(bytes.size);
    if (!pith_unpacked_room(&t, bytes.size < SIZE_MAX / 4 ? 4 * bytes.size : bytes.size))
        return pith_fail_memory(err, bytes.size);
    PITH_TRY(pith_inflate(&t, bytes, PITH_INFLATE_GZIP, most, "gzip file", path, err));
    *text = (pith_str){ t.data, t.size };
    return PITH_OK;
}
