/* zip_unpack.c - see zip_unpack.h. */
#include "tables/formats/zip_unpack.h"

#include "base/error.h"
#include "tables/formats/zlib_library.h"

/* Deflate makes at most this many bytes of one. */
enum { ZIP_DENSEST = 1032 };

pith_status pith__zip_unpack(pith_str *bytes, pith__zip *zip, const pith__zip_member *m,
                             pith_str packed, const char *archive, const char *member,
                             pith__stop *stop, pith__arena *arena, pith_error *err) {
    const size_t most = pith__unpacked_most(zip->file.size);
    pith__unpacked t = { .arena = arena, .stop = stop };
    uint32_t crc;
    *bytes = packed;
    if (m->flags & PITH_ZIP_ENCRYPTED)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s is encrypted; unpack it", member);
    if (m->method == PITH_ZIP_DEFLATED && m->size / ZIP_DENSEST > m->packed)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "%s is a damaged zip archive: a member's size cannot be", archive);
    if (m->size > most - zip->unpacked) return pith__unpacked_fail(archive, err);
    zip->unpacked += (size_t)m->size;
    if (m->method == PITH_ZIP_DEFLATED) {
        const size_t size = (size_t)m->size;
        if (!pith__unpacked_room(&t, size + 1)) return pith__fail_memory(err, size);
        PITH_TRY(pith__inflate(&t, packed, PITH_INFLATE_RAW, size, "zip member", member, err));
        *bytes = (pith_str){ t.data, t.size };
    } else if (m->method != PITH_ZIP_STORED) {
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s is packed by method %u; deflate is read",
                          member, m->method);
    }
    if (bytes->size != m->size)
        return pith__fail(err, PITH_ERR_FORMAT, "%s is damaged: its size is wrong", member);
    PITH_TRY(pith__crc32(&crc, *bytes, member, stop, err));
    return crc == m->crc
               ? PITH_OK
               : pith__fail(err, PITH_ERR_FORMAT, "%s is damaged: its CRC-32 is wrong", member);
}
