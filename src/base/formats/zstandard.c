/* zstandard.c - see zstandard.h. The structs and functions are those of zstd.h's stable interface.
 * libzstd takes a window of 128 MiB at most, which bounds its own memory. */
#include "base/formats/zstandard.h"

#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/formats/zlib_library.h"
#include "base/os/shared_library.h"

typedef struct zstd_out {
    void *data;
    size_t size, at;
} zstd_out;

typedef struct zstd_in {
    const void *data;
    size_t size, at;
} zstd_in;

typedef struct zstd_library {
    void *(*begin)(void);
    size_t (*run)(void *stream, zstd_out *out, zstd_in *in);
    size_t (*end)(void *stream);
    unsigned (*is_error)(size_t code);
    const char *(*error_name)(size_t code);
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
    if (!pith__library_find(&found.begin, library, "ZSTD_createDStream") ||
        !pith__library_find(&found.run, library, "ZSTD_decompressStream") ||
        !pith__library_find(&found.end, library, "ZSTD_freeDStream") ||
        !pith__library_find(&found.is_error, library, "ZSTD_isError") ||
        !pith__library_find(&found.error_name, library, "ZSTD_getErrorName"))
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "libzstd is here, but lacks a function; install version 1.0 or newer");
    zstd = found;
    return PITH_OK;
}

bool pith__zstandard_is(pith_str bytes) {
    return bytes.size >= 4 && !memcmp(bytes.data, "\x28\xB5\x2F\xFD", 4);
}

static pith_status zstd_frames(pith__unpacked *t, void *stream, pith_str bytes, const char *path,
                               pith_error *err) {
    zstd_in in = { bytes.data, bytes.size, 0 };
    const size_t most = pith__unpacked_most(bytes.size);
    size_t left = 1; /* 0: a frame has ended and all of it is out */
    while (in.at < in.size || left) {
        if (t->size > most) return pith__unpacked_fail(path, err);
        if (!pith__unpacked_room(t, 1)) return pith__fail_memory(err, t->room);
        zstd_out out = { t->data + t->size, t->room - t->size, 0 };
        const size_t before = in.at;
        left = zstd.run(stream, &out, &in);
        if (zstd.is_error(left))
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s is a damaged Zstandard file: %s near byte %zu", path,
                              zstd.error_name(left), in.at);
        t->size += out.at;
        if (left && in.at == in.size && in.at == before && !out.at)
            return pith__fail(
                err, PITH_ERR_FORMAT,
                "%s is not a whole Zstandard file: it ends at byte %zu, within its data", path,
                in.at);
    }
    return PITH_OK;
}

pith_status pith__zstandard_unpack(pith_str *text, pith_str bytes, const char *path,
                                   pith__arena *arena, pith_error *err) {
    pith__unpacked t = { .arena = arena };
    pthread_mutex_lock(&zstd_lock);
    pith_status status = zstd.begin ? PITH_OK : zstd_load(path, err);
    pthread_mutex_unlock(&zstd_lock);
    if (status) return status;
    if (!pith__unpacked_room(&t, bytes.size < SIZE_MAX / 4 ? 4 * bytes.size : bytes.size))
        return pith__fail_memory(err, bytes.size);
    void *stream = zstd.begin();
    if (!stream) return pith__fail_memory(err, 0);
    status = zstd_frames(&t, stream, bytes, path, err);
    zstd.end(stream);
    *text = (pith_str){ t.data, t.size };
    return status;
}
