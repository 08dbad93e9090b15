/* held_files.h - the files of a source, as they were when they were first asked for.
 *
 * What is asked for by path is mapped, or read, and stays as it is: whoever asks again gets the
 * same bytes, whatever has become of the path. So does the answer that nothing has a path, and what
 * a directory lists. While a source is opened, all that a model may want of its directory is asked
 * for. Large files of a source that reads in place of mapping are noted only, and read when they
 * are wanted; one that has changed by then, or is gone, is an error. */
#ifndef PITH_MODELS_OPEN_HELD_FILES_H
#define PITH_MODELS_OPEN_HELD_FILES_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/os/file.h"
#include "base/progress.h"
#include "base/stop.h"

typedef struct pith__held_entry pith__held_entry;

typedef struct pith__held_files {
    pith__held held; /* the first member */
    pith__arena *arena;
    bool copy;
    pthread_mutex_t lock; /* guards the members below, and the arena */
    pith__held_entry *entries;
    size_t count;
} pith__held_files;

/* The arena must live as long; its allocator has no held files. Memory out is PITH_ERR_MEMORY.
 * `keep` and `release` of held are the owner's. */
pith_status pith__held_files_begin(pith__held_files *files, pith__arena *arena, bool copy,
                                   pith_error *err);
void pith__held_files_end(pith__held_files *files);

/* Asks for all that a directory has, three folders deep. What cannot be read is left to who wants
 * it. */
pith_status pith__held_files_add(pith__held_files *files, const char *directory, pith__stop *stop,
                                 pith__progress *told, pith_error *err);
/* Bytes of all files that are mapped or read. */
uint64_t pith__held_files_bytes(pith__held_files *files);

#endif
