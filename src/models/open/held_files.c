/* held_files.c - see held_files.h. */
#include "models/open/held_files.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/os/threads.h"
#include "base/str.h"

/* Folders below a directory that are looked into, and the files that are held of it at once. */
enum { HELD_DEPTH = 3, HELD_MOST = 4096 };
/* A file up to this size is read when the source is opened, and a larger one when it is wanted. */
#define HELD_READ_MOST ((off_t)16 << 20)

typedef enum held_kind { HELD_NOTHING, HELD_FILE, HELD_DIRECTORY } held_kind;

struct pith__held_entry {
    pith__held_entry *next;
    held_kind kind;
    const char *path;
    const char *real;        /* without symbolic links; NULL of HELD_NOTHING */
    pith__held_entry *owner; /* the entry of `real`, if another one has its file; else NULL */
    pith__file file;         /* data NULL: not read yet, and as `noted` says */
    struct stat noted;
    pith_str *names; /* [name_count] of a directory; NULL: not listed yet */
    size_t name_count;
};

static pith__held_files *held_of(pith__held *held) { return (pith__held_files *)(void *)held; }

static pith__held_entry *held_find(const pith__held_files *f, const char *path) {
    for (pith__held_entry *e = f->entries; e; e = e->next)
        if (!strcmp(e->path, path)) return e;
    return NULL;
}

static pith_status held_add(pith__held_entry **entry, pith__held_files *f, held_kind kind,
                            const char *path, pith_error *err) {
    char real[PATH_MAX];
    pith__held_entry *e = pith__arena_alloc(f->arena, sizeof *e);
    const pith_str kept = pith__arena_str(f->arena, pith__str_of(path));
    if (!e || !kept.data) return pith__fail_memory(err, strlen(path));
    *e = (pith__held_entry){ .next = f->entries, .kind = kind, .path = kept.data };
    if (kind != HELD_NOTHING) {
        if (!realpath(path, real) || stat(path, &e->noted))
            return pith__fail(err, PITH_ERR_IO, "%s: %s", path, strerror(errno));
        e->real = pith__arena_str(f->arena, pith__str_of(real)).data;
        if (!e->real) return pith__fail_memory(err, strlen(real));
        e->owner = held_find(f, e->real);
        if (e->owner && e->owner->kind != kind) e->owner = NULL;
    }
    f->entries = e;
    f->count++;
    *entry = e;
    return PITH_OK;
}

static bool held_same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Opens what was noted. */
static pith_status held_read(const pith__held_files *f, pith__held_entry *e, pith__stop *stop,
                             pith_error *err) {
    struct stat now;
    if (e->file.data) return PITH_OK;
    if (stat(e->path, &now) && (errno == ENOENT || errno == ENOTDIR))
        return pith__fail(err, PITH_ERR_IO,
                          "%s: the file is gone, which was there when the source was opened",
                          e->path);
    PITH_TRY(pith__file_open_until(&e->file, e->path, f->copy, f->arena->allocator, stop, err));
    if (!stat(e->path, &now) && held_same(&now, &e->noted)) return PITH_OK;
    pith__file_close(&e->file);
    return pith__fail(err, PITH_ERR_IO, "%s: the file has changed since the source was opened",
                      e->path);
}

/* Whether the folder of a path was listed, and without it: what was added later is not there. */
static bool held_is_new(const pith__held_files *f, const char *path) {
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0;
    if (!n || slash[1] == '.') return false;
    for (const pith__held_entry *e = f->entries; e; e = e->next) {
        size_t length = strlen(e->path);
        while (length > 1 && e->path[length - 1] == '/') length--;
        if (!e->names || length != n || memcmp(e->path, path, n) != 0) continue;
        for (size_t i = 0; i < e->name_count; i++)
            if (pith__str_is(e->names[i], slash + 1)) return false;
        return true;
    }
    return false;
}

/* The file of a path, mapped already unless files are read. Errors are those of the system, and
 * are not kept. */
static pith_status held_look(pith__held_entry **entry, pith__held_files *f, const char *path,
                             pith_error *err) {
    bool there = false;
    *entry = held_find(f, path);
    if (*entry) return PITH_OK;
    if (!held_is_new(f, path)) PITH_TRY(pith__file_there(&there, path, NULL, err));
    PITH_TRY(held_add(entry, f, there ? HELD_FILE : HELD_NOTHING, path, err));
    if (!there || f->copy || (*entry)->owner) return PITH_OK;
    return held_read(f, *entry, NULL, err); /* it is mapped */
}

/* ---- what base/os/file.h asks ---- */

static pith_status held_open_locked(pith__held_files *f, pith__file *file, const char *path,
                                    pith__stop *stop, pith_error *err) {
    pith__held_entry *e = held_find(f, path);
    struct stat now;
    if (!e && !held_is_new(f, path) && (stat(path, &now) || !S_ISREG(now.st_mode))) {
        /* No file: the error is that of opening it. */
        pith__file none;
        PITH_TRY(pith__file_open(&none, path, false, f->arena->allocator, err));
        pith__file_close(&none);
    }
    if (!e) PITH_TRY(held_look(&e, f, path, err));
    if (e->kind == HELD_NOTHING)
        return pith__fail(err, PITH_ERR_NOT_FOUND, "%s: %s", path, strerror(ENOENT));
    if (e->kind == HELD_DIRECTORY) return pith__fail(err, PITH_ERR_IO, "%s: is a directory", path);
    pith__held_entry *own = e->owner ? e->owner : e;
    PITH_TRY(held_read(f, own, stop, err));
    *file = own->file;
    file->held = true;
    return PITH_OK;
}

static pith_status held_open(pith__held *held, pith__file *file, const char *path, pith__stop *stop,
                             pith_error *err) {
    pith__held_files *f = held_of(held);
    PITH_TRY(pith__threads_lock(&f->lock, stop, err));
    const pith_status status = held_open_locked(f, file, path, stop, err);
    pthread_mutex_unlock(&f->lock);
    return status;
}

static pith_status held_there(pith__held *held, bool *there, const char *path, pith_error *err) {
    pith__held_files *f = held_of(held);
    pith__held_entry *e;
    pthread_mutex_lock(&f->lock);
    pith_status status = held_look(&e, f, path, err);
    *there = !status && e->kind == HELD_FILE;
    pthread_mutex_unlock(&f->lock);
    if (!status && e->kind == HELD_DIRECTORY)
        return pith__file_there(there, path, NULL, err); /* the error that it is no file */
    return status;
}

/* Where memory is out the path gets no entry: the answer is right, and is not kept. */
static bool held_is_dir(pith__held *held, const char *path) {
    pith__held_files *f = held_of(held);
    pthread_mutex_lock(&f->lock);
    pith__held_entry *e = held_find(f, path);
    struct stat now;
    const bool gone = !e && (held_is_new(f, path) || (lstat(path, &now) && errno == ENOENT));
    const bool there = !e && !gone && pith__dir_exists(path);
    if (gone || there) held_add(&e, f, gone ? HELD_NOTHING : HELD_DIRECTORY, path, NULL);
    pthread_mutex_unlock(&f->lock);
    return e ? e->kind == HELD_DIRECTORY : there;
}

static pith_status held_names_locked(pith__held_files *f, pith__held_entry **entry,
                                     const char *path, pith_error *err) {
    pith__held_entry *e = held_find(f, path);
    if (!e) PITH_TRY(held_add(&e, f, HELD_DIRECTORY, path, err));
    *entry = e;
    if (e->names) return PITH_OK;
    PITH_TRY(pith__dir_names(&e->names, &e->name_count, path, f->arena, err));
    if (!e->names) e->names = pith__arena_alloc(f->arena, sizeof *e->names);
    return e->names ? PITH_OK : pith__fail_memory(err, sizeof *e->names);
}

static pith_status held_names(pith__held *held, pith_str **names, size_t *count, const char *path,
                              pith_error *err) {
    pith__held_files *f = held_of(held);
    pith__held_entry *e = NULL;
    *names = NULL;
    *count = 0;
    pthread_mutex_lock(&f->lock);
    const pith_status status = held_names_locked(f, &e, path, err);
    if (!status) {
        *names = e->names;
        *count = e->name_count;
    }
    pthread_mutex_unlock(&f->lock);
    return status;
}

static const char *held_real(pith__held *held, const char *path) {
    pith__held_files *f = held_of(held);
    if (held_is_dir(held, path) || !pith__file_exists(path)) {
        pthread_mutex_lock(&f->lock);
        const pith__held_entry *e = held_find(f, path);
        pthread_mutex_unlock(&f->lock);
        return e ? e->real : NULL;
    }
    pith__held_entry *e;
    pthread_mutex_lock(&f->lock);
    const pith_status status = held_look(&e, f, path, NULL);
    pthread_mutex_unlock(&f->lock);
    return status ? NULL : e->real;
}

static uint64_t held_size(pith__held *held, const char *path) {
    pith__held_files *f = held_of(held);
    pith__held_entry *e;
    uint64_t size = 0;
    pthread_mutex_lock(&f->lock);
    if (!held_look(&e, f, path, NULL) && e->kind == HELD_FILE) size = (uint64_t)e->noted.st_size;
    pthread_mutex_unlock(&f->lock);
    return size;
}

/* ---- what a source asks ---- */

pith_status pith__held_files_begin(pith__held_files *f, pith__arena *arena, bool copy,
                                   pith_error *err) {
    *f = (pith__held_files){ .held = { .open = held_open,
                                       .there = held_there,
                                       .is_dir = held_is_dir,
                                       .names = held_names,
                                       .real = held_real,
                                       .size = held_size },
                             .arena = arena,
                             .copy = copy };
    return pthread_mutex_init(&f->lock, NULL) ? pith__fail_memory(err, sizeof f->lock) : PITH_OK;
}

void pith__held_files_end(pith__held_files *f) {
    for (pith__held_entry *e = f->entries; e; e = e->next) pith__file_close(&e->file);
    pthread_mutex_destroy(&f->lock);
}

/* What is no file is an error of who wants it, not of the source. */
static pith_status held_take(pith__held_files *f, const char *path, pith__stop *stop,
                             pith_error *err) {
    pith__held_entry *e;
    pith_error fault = PITH_ERROR_INIT;
    pthread_mutex_lock(&f->lock);
    pith_status status = held_look(&e, f, path, &fault);
    if (!status && e->kind == HELD_FILE && !e->owner && e->noted.st_size <= HELD_READ_MOST)
        status = held_read(f, e, stop, &fault);
    pthread_mutex_unlock(&f->lock);
    return status == PITH_ERR_MEMORY || pith__status_stops(status)
               ? pith__fail(err, status, "%s", fault.message)
               : PITH_OK;
}

static pith_status held_add_folder(pith__held_files *f, const char *folder, int depth,
                                   pith__stop *stop, pith__progress *told, pith_error *err) {
    pith_str *names;
    size_t count;
    pith_error fault = PITH_ERROR_INIT;
    pith_status status = held_names(&f->held, &names, &count, folder, &fault);
    if (status == PITH_ERR_MEMORY) return pith__fail(err, status, "%s", fault.message);
    if (status) return PITH_OK; /* a folder that cannot be read holds nothing */
    for (size_t i = 0; i < count; i++) {
        pith_str path;
        if (f->count >= HELD_MOST) break;
        PITH_TRY(pith__stop_check(stop, err));
        pthread_mutex_lock(&f->lock);
        const pith_status joined = pith__path_join(&path, f->arena, folder, names[i], err);
        pthread_mutex_unlock(&f->lock);
        PITH_TRY(joined);
        if (!held_is_dir(&f->held, path.data))
            PITH_TRY(held_take(f, path.data, stop, err));
        else if (depth < HELD_DEPTH)
            PITH_TRY(held_add_folder(f, path.data, depth + 1, stop, told, err));
        if (!depth) pith__progress_tell(told, "files", i + 1, count);
    }
    return PITH_OK;
}

pith_status pith__held_files_add(pith__held_files *f, const char *directory, pith__stop *stop,
                                 pith__progress *told, pith_error *err) {
    return held_add_folder(f, directory, 0, stop, told, err);
}

uint64_t pith__held_files_bytes(pith__held_files *f) {
    uint64_t bytes = 0;
    pthread_mutex_lock(&f->lock);
    for (const pith__held_entry *e = f->entries; e; e = e->next)
        bytes += e->file.data ? e->file.size : 0;
    pthread_mutex_unlock(&f->lock);
    return bytes;
}
