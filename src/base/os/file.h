/* file.h - whole files as read-only memory. */
#ifndef PITH_BASE_OS_FILE_H
#define PITH_BASE_OS_FILE_H

#include <stdbool.h>

#include "base/memory/memory.h"
#include "base/private_symbol.h"
#include "base/stop.h"

typedef struct pith__file {
    const uint8_t *data; /* never NULL once open, also for an empty file */
    size_t size;
    bool mapped; /* false: the file was read into memory of the allocator */
    bool held;   /* closing it is left to who holds it */
    const pith_allocator *allocator;
    const char *path; /* set by pith__files_open */
} pith__file;

/* Files as they were when they were first asked for: what a source holds (models/open/source.h).
 * The functions below that are given an allocator, or an arena, whose account has one of these ask
 * it in place of the system. Thread-safe. */
typedef struct pith__held pith__held;
struct pith__held {
    /* stop, which may be NULL, is that of who asks: the file may have to be read now. */
    pith_status (*open)(pith__held *held, pith__file *file, const char *path, pith__stop *stop,
                        pith_error *err);
    pith_status (*there)(pith__held *held, bool *there, const char *path, pith_error *err);
    bool (*is_dir)(pith__held *held, const char *path);
    /* As pith__dir_names; the arrays belong to the held files. */
    pith_status (*names)(pith__held *held, pith_str **names, size_t *count, const char *path,
                         pith_error *err);
    /* The path without symbolic links; NULL: nothing is there. Lives as long as the held files. */
    const char *(*real)(pith__held *held, const char *path);
    uint64_t (*size)(pith__held *held, const char *path); /* 0 if there is no such file */
    void (*keep)(pith__held *held);
    void (*release)(pith__held *held);
};

/* Maps the file, or reads it if copy is set. Directories and devices are refused. Pipes and
 * /dev/stdin are refused unless copy is set. Reading ends with the opening that the allocator's
 * account belongs to (pith__account_stop). */
PITH_PRIVATE pith_status pith__file_open(pith__file *file, const char *path, bool copy,
                                         const pith_allocator *allocator, pith_error *err);
/* The same of a file of the system, ended by this stop, which may be NULL. */
pith_status pith__file_open_until(pith__file *file, const char *path, bool copy,
                                  const pith_allocator *allocator, pith__stop *stop,
                                  pith_error *err);
PITH_PRIVATE void pith__file_close(pith__file *file);

/* All files that one model holds open: the model, external data, safetensors shards. They are
 * closed together. */
typedef struct pith__files {
    pith__arena *arena;
    pith__file *items;
    size_t count, capacity;
    bool copy;
    /* pith__file_release, once a file is open: who only has bytes in memory does not link the code
     * for files. */
    void (*release)(const pith__file *file, const void *begin, size_t bytes);
} pith__files;

/* Opens a file, or finds it if it is open already (by path), and returns its bytes. */
PITH_PRIVATE pith_status pith__files_open(pith_str *bytes, pith__files *files, const char *path,
                                          pith_error *err);
PITH_PRIVATE void pith__files_close(pith__files *files);
/* Calls release for the file that holds the bytes, if any does. */
static inline void pith__files_release(const pith__files *files, const void *begin, size_t size) {
    for (size_t i = 0; i < files->count; i++) {
        const pith__file *file = &files->items[i];
        uintptr_t offset = (uintptr_t)begin - (uintptr_t)file->data;
        if (offset < file->size && size <= file->size - offset) files->release(file, begin, size);
    }
}

/* Tells the system that these bytes will not be needed soon, such as weights that were packed. Has
 * no effect on a file that is not mapped. */
void pith__file_release(const pith__file *file, const void *begin, size_t bytes);
bool pith__file_exists(const char *path); /* a regular file, readable */
/* Sets *there to whether an optional file exists. It is false only if nothing has this path. A
 * dangling link, a directory, a device and an unreadable file are errors: the model has the file,
 * and to ignore it would change the results. */
PITH_PRIVATE pith_status pith__file_there(bool *there, const char *path,
                                          const pith_allocator *allocator, pith_error *err);
/* pith__file_there for "dir/name". *path is set whether the file exists or not. */
PITH_PRIVATE pith_status pith__file_find(bool *there, pith_str *path, pith__arena *arena,
                                         const char *dir, const char *name, pith_error *err);
/* 0 if there is none. allocator: as in pith__file_open. */
uint64_t pith__file_size(const char *path, const pith_allocator *allocator);
PITH_PRIVATE bool pith__dir_exists(const char *path);
/* The same where files may be held. */
bool pith__dir_there(const char *path, const pith_allocator *allocator);
/* Sets real[PATH_MAX] to the path without symbolic links; false: nothing is there. */
bool pith__file_real(char *real, const char *path, const pith_allocator *allocator);
/* Lists the names in a directory, sorted, without those that begin with a dot. Arrays and names are
 * in the arena. */
PITH_PRIVATE pith_status pith__dir_names(pith_str **names, size_t *count, const char *path,
                                         pith__arena *arena, pith_error *err);
/* Return the parent folder of a path ("." for a bare name; data is NULL if memory is out), and the
 * part behind its last slash. */
pith_str pith__path_parent(pith__arena *arena, pith_str path);
PITH_PRIVATE pith_str pith__path_name(pith_str path);
/* Sets *path to "dir/name" in the arena. Fails if name is not relative or could leave dir: no "..",
 * no leading '/', no NUL. */
PITH_PRIVATE pith_status pith__path_join(pith_str *path, pith__arena *arena, const char *dir,
                                         pith_str name, pith_error *err);

#endif
