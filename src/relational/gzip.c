/* gzip.c - see gzip.h. The struct and the functions are those of zlib.h, whose interface has been the same since
 * version 1.2; inflateInit2_ is given the size of the struct and refuses another. */
#include "relational/gzip.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/shared_library.h"

enum { ZLIB_OK = 0, ZLIB_END = 1, ZLIB_MEMORY = -4, ZLIB_NO_PROGRESS = -5, ZLIB_NO_FLUSH = 0 };
#define ZLIB_VERSION "1.2.0"
#define ZLIB_GZIP_ALONE (15 + 16) /* the largest window; the header must be gzip's */

typedef struct zlib_stream {
    const uint8_t *next_in;
    unsigned avail_in;
    unsigned long total_in;
    uint8_t *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *message;
    void *state;
    void *(*allocate)(void *user, unsigned items, unsigned size);
    void (*release)(void *user, void *memory);
    void *user;
    int data_type;
    unsigned long check, reserved;
} zlib_stream;

typedef struct zlib_library {
    int (*begin)(zlib_stream *stream, int window_bits, const char *version, int size);
    int (*run)(zlib_stream *stream, int flush);
    int (*again)(zlib_stream *stream);
    int (*end)(zlib_stream *stream);
} zlib_library;

static zlib_library zlib;
static pthread_mutex_t zlib_lock = PTHREAD_MUTEX_INITIALIZER;

static pith_status zlib_load(const char *path, pith_error *err) {
    static const char *const names[] = { "libz.so.1", "libz.so" };
    void *library = pith_library_load(names, sizeof names / sizeof *names);
    zlib_library found;
    if (!library)
        return pith_fail(err, PITH_ERR_NOT_FOUND,
                         "%s is packed, and zlib, which unpacks it, is not installed; install it (Debian: apt-get "
                         "install zlib1g), or unpack the file",
                         path);
    if (!pith_library_find(&found.begin, library, "inflateInit2_") ||
        !pith_library_find(&found.run, library, "inflate") ||
        !pith_library_find(&found.again, library, "inflateReset") ||
        !pith_library_find(&found.end, library, "inflateEnd"))
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "zlib is here, but lacks a function; install version 1.2 or newer");
    zlib = found;
    return PITH_OK;
}

static void *zlib_allocate(void *user, unsigned items, unsigned size) { return pith_arena_array(user, items, size); }

/* The arena gives it back. */
static void zlib_release(void *user, void *memory) { (void)user, (void)memory; }

typedef struct gzip_text {
    pith_arena *arena;
    char *data;
    size_t size, room;
} gzip_text;

/* Room for at least `least` more bytes. */
static bool gzip_room(gzip_text *t, size_t least) {
    if (t->room - t->size >= least) return true;
    const size_t room = t->room + (t->room > least ? t->room : least);
    char *data = room > t->room ? pith_arena_alloc(t->arena, room) : NULL;
    if (!data) return false;
    if (t->size) memcpy(data, t->data, t->size);
    t->data = data;
    t->room = room;
    return true;
}

static unsigned gzip_piece(size_t size) { return size < INT_MAX ? (unsigned)size : (unsigned)INT_MAX; }

/* Unpacks the member at *at and moves it behind that; ZLIB_END, or what zlib says is wrong. */
static int gzip_member(gzip_text *t, zlib_stream *z, const uint8_t **at, const uint8_t *end) {
    int code = ZLIB_OK;
    while (code == ZLIB_OK) {
        if (!gzip_room(t, 1)) return ZLIB_MEMORY;
        const unsigned in = gzip_piece((size_t)(end - *at)), out = gzip_piece(t->room - t->size);
        z->next_in = *at;
        z->avail_in = in;
        z->next_out = (uint8_t *)t->data + t->size;
        z->avail_out = out;
        code = zlib.run(z, ZLIB_NO_FLUSH);
        *at += in - z->avail_in;
        t->size += out - z->avail_out;
    }
    return code;
}

static pith_status gzip_fail(const zlib_stream *z, int code, const char *path, size_t at, pith_error *err) {
    if (code == ZLIB_MEMORY) return pith_fail_memory(err, 0);
    if (code == ZLIB_NO_PROGRESS)
        return pith_fail(err, PITH_ERR_FORMAT, "%s is not a whole gzip file: it ends at byte %zu, within its data",
                         path, at);
    return pith_fail(err, PITH_ERR_FORMAT, "%s is a damaged gzip file: %s near byte %zu", path,
                     z->message ? z->message : "broken data", at);
}

bool pith_gzip_is(pith_str bytes) { return bytes.size >= 2 && !memcmp(bytes.data, "\x1F\x8B", 2); }

pith_status pith_gzip_unpack(pith_str *text, pith_str bytes, const char *path, pith_arena *arena, pith_error *err) {
    gzip_text t = { .arena = arena };
    zlib_stream z = { .allocate = zlib_allocate, .release = zlib_release, .user = arena };
    const uint8_t *at = (const uint8_t *)bytes.data, *const end = at + bytes.size;
    pthread_mutex_lock(&zlib_lock);
    pith_status status = zlib.begin ? PITH_OK : zlib_load(path, err);
    pthread_mutex_unlock(&zlib_lock);
    if (status) return status;
    int code = zlib.begin(&z, ZLIB_GZIP_ALONE, ZLIB_VERSION, (int)sizeof z);
    if (code) return gzip_fail(&z, code, path, 0, err);
    if (!gzip_room(&t, bytes.size < SIZE_MAX / 4 ? 4 * bytes.size : bytes.size)) code = ZLIB_MEMORY;
    while (!code && at < end) {
        code = gzip_member(&t, &z, &at, end);
        if (code == ZLIB_END) code = zlib.again(&z);
    }
    if (code) status = gzip_fail(&z, code, path, (size_t)(at - (const uint8_t *)bytes.data), err);
    zlib.end(&z);
    *text = (pith_str){ t.data, t.size };
    return status;
}
