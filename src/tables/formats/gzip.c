/* gzip.c - see gzip.h. */
#include "tables/formats/gzip.h"

#include <string.h>

#include "base/error.h"
#include "tables/formats/zlib_library.h"

bool pith__gzip_is(pith_str bytes) { return bytes.size >= 2 && !memcmp(bytes.data, "\x1F\x8B", 2); }

pith_status pith__gzip_unpack(pith_str *text, pith_str bytes, const char *path, pith__stop *stop,
                              pith__arena *arena, pith_error *err) {
    pith__unpacked t = { .arena = arena, .stop = stop };
    const size_t most = pith__unpacked_most(bytes.size);
    if (!pith__unpacked_room(&t, bytes.size < SIZE_MAX / 4 ? 4 * bytes.size : bytes.size))
        return pith__fail_memory(err, bytes.size);
    PITH_TRY(pith__inflate(&t, bytes, PITH_INFLATE_GZIP, most, "gzip file", path, err));
    *text = (pith_str){ t.data, t.size };
    return PITH_OK;
}
