/* zlib_library.c - see zlib_library.h. */
#define ZLIB_CONST
#include "tables/formats/zlib_library.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

#include <zlib.h>

#include "base/error.h"
#include "base/os/shared_library.h"
#include "base/work.h"

enum { ZLIB_TOO_LONG = -100, ZLIB_STOPPED = -101 /* our own; zlib's codes are small */ };

#define ZLIB_FUNCTIONS(F)                                                                          \
    F(, inflateInit2_) F(, inflate) F(, inflateReset) F(, inflateEnd) F(, crc32)

typedef struct zlib_library {
    ZLIB_FUNCTIONS(PITH_LIBRARY_MEMBER)
} zlib_library;

static zlib_library zlib;
static pthread_mutex_t zlib_lock = PTHREAD_MUTEX_INITIALIZER;

static pith_status zlib_load(const char *path, pith_error *err) {
    static const char *const names[] = { "libz.so.1", "libz.so" };
    PITH_TRY(pith__library_safe(err));
    void *library = pith__library_load(names, sizeof names / sizeof *names);
    zlib_library found;
    if (!library)
        return pith__fail(err, PITH_ERR_NOT_FOUND,
                          "%s is packed, and zlib, which unpacks it, is not installed; install it "
                          "(Debian: apt-get "
                          "install zlib1g), or unpack the file",
                          path);
    if (pith__library_fill(&found, library, ZLIB_FUNCTIONS(PITH_LIBRARY_NAME)))
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "zlib is here, but lacks a function; install version 1.2 or newer");
    zlib = found;
    return PITH_OK;
}

static void *zlib_allocate(void *user, unsigned items, unsigned size) {
    return pith__arena_array(user, items, size);
}

/* The arena gives it back. */
static void zlib_release(void *user, void *memory) { (void)user, (void)memory; }

static pith_status zlib_ready(const char *path, pith_error *err) {
    pthread_mutex_lock(&zlib_lock);
    const pith_status status = zlib.inflate ? PITH_OK : zlib_load(path, err);
    pthread_mutex_unlock(&zlib_lock);
    return status;
}

size_t pith__unpacked_most(size_t packed) {
    return packed < (SIZE_MAX - PITH_UNPACKED_FREE) / PITH_UNPACKED_TIMES
               ? PITH_UNPACKED_TIMES * packed + PITH_UNPACKED_FREE
               : SIZE_MAX;
}

pith_status pith__unpacked_fail(const char *path, pith_error *err) {
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      "%s unpacks to more than %d times its size and %d MiB; if that is right, "
                      "unpack it yourself",
                      path, PITH_UNPACKED_TIMES, PITH_UNPACKED_FREE >> 20);
}

bool pith__unpacked_room(pith__unpacked *t, size_t least) {
    if (t->room - t->size >= least) return true;
    const size_t room = t->room + (t->room > least ? t->room : least);
    char *data = room > t->room ? pith__arena_alloc(t->arena, room) : NULL;
    if (!data) return false;
    if (t->size) memcpy(data, t->data, t->size);
    t->data = data;
    t->room = room;
    return true;
}

size_t pith__unpacked_piece(const pith__unpacked *t) {
    const size_t room = t->room - t->size;
    return t->stop && room > PITH_WORK_BYTES / 4 ? PITH_WORK_BYTES / 4 : room;
}

static unsigned zlib_piece(size_t size) {
    return size < INT_MAX ? (unsigned)size : (unsigned)INT_MAX;
}

/* Unpacks the stream at *at and moves it behind that; Z_STREAM_END, or what zlib says is wrong. */
static int zlib_run(pith__unpacked *t, z_stream *z, const uint8_t **at, const uint8_t *end,
                    size_t most) {
    int code = Z_OK;
    while (code == Z_OK) {
        if (t->size > most) return ZLIB_TOO_LONG;
        if (pith__stop_asked(t->stop)) return ZLIB_STOPPED;
        if (!pith__unpacked_room(t, 1)) return Z_MEM_ERROR;
        const unsigned in = zlib_piece((size_t)(end - *at)),
                       out = zlib_piece(pith__unpacked_piece(t));
        z->next_in = *at;
        z->avail_in = in;
        z->next_out = (uint8_t *)t->data + t->size;
        z->avail_out = out;
        code = zlib.inflate(z, Z_NO_FLUSH);
        *at += in - z->avail_in;
        t->size += out - z->avail_out;
    }
    return code;
}

static pith_status zlib_fail(const z_stream *z, int code, const char *what, const char *path,
                             size_t at, pith_error *err) {
    if (code == Z_MEM_ERROR) return pith__fail_memory(err, 0);
    if (code == Z_BUF_ERROR)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "%s is not a whole %s: it ends at byte %zu, within its data", path, what,
                          at);
    if (code == ZLIB_TOO_LONG)
        return pith__fail(err, PITH_ERR_FORMAT, "%s is a damaged %s: it holds more than it says",
                          path, what);
    return pith__fail(err, PITH_ERR_FORMAT, "%s is a damaged %s: %s near byte %zu", path, what,
                      z->msg ? z->msg : "broken data", at);
}

pith_status pith__inflate(pith__unpacked *t, pith_str bytes, int window, size_t most,
                          const char *what, const char *path, pith_error *err) {
    z_stream z = { .zalloc = zlib_allocate, .zfree = zlib_release, .opaque = t->arena };
    const uint8_t *at = (const uint8_t *)bytes.data, *const end = at + bytes.size;
    pith_status status = zlib_ready(path, err);
    if (status) return status;
    int code = zlib.inflateInit2_(&z, window, ZLIB_VERSION, (int)sizeof z);
    if (code) return zlib_fail(&z, code, what, path, 0, err);
    while (!code && at < end) {
        code = zlib_run(t, &z, &at, end, most);
        if (code == Z_STREAM_END && window == PITH_INFLATE_RAW && at < end)
            code = ZLIB_TOO_LONG;
        else if (code == Z_STREAM_END)
            code = zlib.inflateReset(&z);
    }
    if (code == ZLIB_STOPPED)
        status = pith__stop_check(t->stop, err);
    else if (code == ZLIB_TOO_LONG && window == PITH_INFLATE_GZIP)
        status = pith__unpacked_fail(path, err);
    else if (code)
        status = zlib_fail(&z, code, what, path, (size_t)(at - (const uint8_t *)bytes.data), err);
    zlib.inflateEnd(&z);
    return status;
}

pith_status pith__crc32(uint32_t *crc, pith_str bytes, const char *path, pith__stop *stop,
                        pith_error *err) {
    PITH_TRY(zlib_ready(path, err));
    unsigned long sum = 0;
    for (size_t i = 0; i < bytes.size;) {
        const unsigned piece =
            zlib_piece(bytes.size - i < PITH_WORK_BYTES ? bytes.size - i : PITH_WORK_BYTES);
        PITH_TRY(pith__stop_check(stop, err));
        sum = zlib.crc32(sum, (const uint8_t *)bytes.data + i, piece);
        i += piece;
    }
    *crc = (uint32_t)sum;
    return PITH_OK;
}
