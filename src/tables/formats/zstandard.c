/* zstandard.c - see zstandard.h. libzstd takes a window of 128 MiB at most, which bounds its own
 * memory. */
#include "tables/formats/zstandard.h"

#include <pthread.h>
#include <string.h>

#include <zstd.h>

#include "base/error.h"
#include "tables/formats/zlib_library.h"
#include "base/os/shared_library.h"

#define ZSTD_FUNCTIONS(F)                                                                          \
    F(ZSTD_, createDStream)                                                                        \
    F(ZSTD_, decompressStream)                                                                     \
    F(ZSTD_, freeDStream)                                                                          \
    F(ZSTD_, isError)                                                                              \
    F(ZSTD_, getErrorName)

typedef struct zstd_library {
    ZSTD_FUNCTIONS(PITH_LIBRARY_MEMBER)
} zstd_library;

static zstd_library zstd;
static pthread_mutex_t zstd_lock = PTHREAD_MUTEX_INITIALIZER;

static pith_status zstd_load(const char *path, pith_error *err) {
    static const char *const names[] = { "libzstd.so.1", "libzstd.so" };
    PITH_TRY(pith__library_safe(err));
    void *library = pith__library_load(names, sizeof names / sizeof *names);
    zstd_library found;
    if (!library)
        return pith__fail(err, PITH_ERR_NOT_FOUND,
                          "%s is packed, and libzstd, which unpacks it, is not installed; install "
                          "it (Debian: apt-get "
                          "install libzstd1), or unpack the file",
                          path);
    if (pith__library_fill(&found, library, ZSTD_FUNCTIONS(PITH_LIBRARY_NAME)))
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "libzstd is here, but lacks a function; install version 1.0 or newer");
    zstd = found;
    return PITH_OK;
}

bool pith__zstandard_is(pith_str bytes) {
    return bytes.size >= 4 && !memcmp(bytes.data, "\x28\xB5\x2F\xFD", 4);
}

static pith_status zstd_frames(pith__unpacked *t, ZSTD_DStream *stream, pith_str bytes,
                               const char *path, pith_error *err) {
    ZSTD_inBuffer in = { bytes.data, bytes.size, 0 };
    const size_t most = pith__unpacked_most(bytes.size);
    size_t left = 1; /* 0: a frame has ended and all of it is out */
    while (in.pos < in.size || left) {
        if (t->size > most) return pith__unpacked_fail(path, err);
        PITH_TRY(pith__stop_check(t->stop, err));
        if (!pith__unpacked_room(t, 1)) return pith__fail_memory(err, t->room);
        ZSTD_outBuffer out = { t->data + t->size, pith__unpacked_piece(t), 0 };
        const size_t before = in.pos;
        left = zstd.decompressStream(stream, &out, &in);
        if (zstd.isError(left))
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s is a damaged Zstandard file: %s near byte %zu", path,
                              zstd.getErrorName(left), in.pos);
        t->size += out.pos;
        if (left && in.pos == in.size && in.pos == before && !out.pos)
            return pith__fail(
                err, PITH_ERR_FORMAT,
                "%s is not a whole Zstandard file: it ends at byte %zu, within its data", path,
                in.pos);
    }
    return PITH_OK;
}

pith_status pith__zstandard_unpack(pith_str *text, pith_str bytes, const char *path,
                                   pith__stop *stop, pith__arena *arena, pith_error *err) {
    pith__unpacked t = { .arena = arena, .stop = stop };
    pthread_mutex_lock(&zstd_lock);
    pith_status status = zstd.createDStream ? PITH_OK : zstd_load(path, err);
    pthread_mutex_unlock(&zstd_lock);
    if (status) return status;
    if (!pith__unpacked_room(&t, bytes.size < SIZE_MAX / 4 ? 4 * bytes.size : bytes.size))
        return pith__fail_memory(err, bytes.size);
    ZSTD_DStream *stream = zstd.createDStream();
    if (!stream) return pith__fail_memory(err, 0);
    status = zstd_frames(&t, stream, bytes, path, err);
    zstd.freeDStream(stream);
    *text = (pith_str){ t.data, t.size };
    return status;
}
