/* file.h - whole files as read-only memory. */
#ifndef PITH_BASE_FILE_H
#define PITH_BASE_FILE_H

#include <stdbool.h>

#include "base/memory.h"

typedef struct pith_file {
    const uint8_t *data; /* never NULL once open, also for an empty file */
    size_t size;
    bool mapped; /* else read into memory of the allocator */
    const pith_allocator *allocator;
    const char *path; /* set by pith_files_open */
} pith_file;

/* copy: read instead of map. Directories, devices and pipes are refused, but pipes and /dev/stdin are read when copy is
 * set. */
pith_status pith_file_open(pith_file *file, const char *path, bool copy, const pith_allocator *allocator,
                           pith_error *err);
void pith_file_close(pith_file *file);

/* The files one model holds open: model, external data, safetensors shards. Closed together. */
typedef struct pith_files {
    pith_arena *arena;
    pith_file *items;
    size_t count, capacity;
    bool copy;
} pith_files;

/* Opens a file, or finds it if it is open already (by path), and returns its bytes. */
pith_status pith_files_open(pith_str *bytes, pith_files *files, const char *path, pith_error *err);
void pith_files_close(pith_files *files);
/* pith_file_release for whichever file holds the bytes; nothing if none does. */
void pith_files_release(const pith_files *files, const void *begin, size_t bytes);

/* Tells the system that these bytes will not be needed soon (after weights were packed). No effect if not mapped. */
void pith_file_release(const pith_file *file, const void *begin, size_t bytes);
bool pith_file_exists(const char *path); /* a regular file, readable */
/* Whether a file that may be left out is there. Only a path where nothing lies is *there = false. A link that leads
 * nowhere, a directory, a device and a file that may not be read are errors: the model has the file and would be run
 * without what it says. */
pith_status pith_file_there(bool *there, const char *path, pith_error *err);
/* pith_file_there for "dir/name"; *path is set in both cases. */
pith_status pith_file_find(bool *there, pith_str *path, pith_arena *arena, const char *dir, const char *name,
                           pith_error *err);
uint64_t pith_file_size(const char *path); /* 0 if there is none */
bool pith_dir_exists(const char *path);
/* The parent folder of a path, "." for a bare name; data NULL if memory is out. What comes behind its last slash. */
pith_str pith_path_parent(pith_arena *arena, pith_str path);
pith_str pith_path_name(pith_str path);
/* "dir/name" in the arena. name must be relative and stay inside dir: no "..", no leading '/', no NUL. */
pith_status pith_path_join(pith_str *path, pith_arena *arena, const char *dir, pith_str name, pith_error *err);

#endif
