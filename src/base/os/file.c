/* file.c - whole files as memory: mapped if they are regular files, read if the caller wants a
 * copy. */
#include "base/os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory/account.h"
#include "base/stop.h"
#include "base/str.h"

static const uint8_t nothing[1] = { 0 };

/* First buffer for a pipe, whose size is not known: what a pipe of Linux holds. It doubles from
 * there. */
#define PIPE_BUFFER ((size_t)64 << 10)

/* Bytes of one read: a millisecond, or some from a disk. */
#define READ_PIECE ((size_t)4 << 20)

static pith_status read_all(pith__file *file, int fd, size_t expected, bool regular,
                            const char *path, pith__stop *stop, pith_error *err) {
    size_t capacity = regular ? expected : PIPE_BUFFER, size = 0;
    uint8_t *data = pith__memory_alloc(file->allocator, capacity, 64);
    if (!data) return pith__fail_memory(err, capacity);
    while (!regular || size < capacity) {
        if (size == capacity) {
            uint8_t *grown = capacity > SIZE_MAX / 2
                                 ? NULL
                                 : pith__memory_alloc(file->allocator, capacity * 2, 64);
            if (!grown) {
                pith__memory_free(file->allocator, data);
                return pith__fail_memory(err, capacity * 2);
            }
            memcpy(grown, data, size);
            pith__memory_free(file->allocator, data);
            data = grown;
            capacity *= 2;
        }
        const pith_status ended = pith__stop_check(stop, err);
        if (ended) {
            pith__memory_free(file->allocator, data);
            return ended;
        }
        const size_t piece = capacity - size < READ_PIECE ? capacity - size : READ_PIECE;
        ssize_t got = read(fd, data + size, piece);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            pith__memory_free(file->allocator, data);
            return pith__fail(err, PITH_ERR_IO, "%s: %s", path, strerror(errno));
        }
        if (got == 0) break;
        size += (size_t)got;
    }
    file->data = data;
    file->size = size;
    return PITH_OK;
}

/* Only regular files are mapped. Pipes and the like can be read if the caller wants a copy; a
 * directory or a device is refused. An empty file has an address too, since mmap refuses a length
 * of 0. */
static pith_status open_fd(pith__file *file, int fd, const char *path, bool copy, pith__stop *stop,
                           pith_error *err) {
    struct stat st;
    if (fstat(fd, &st)) return pith__fail(err, PITH_ERR_IO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) return pith__fail(err, PITH_ERR_IO, "%s: is a directory", path);
    bool regular = S_ISREG(st.st_mode);
    bool stream = S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || strcmp(path, "/dev/stdin") == 0;
    if (!regular && !(copy && stream))
        return pith__fail(err, PITH_ERR_IO, "%s: not a regular file", path);
    if (regular && (uint64_t)st.st_size > PTRDIFF_MAX)
        return pith__fail(err, PITH_ERR_IO, "%s: too large", path);
    if (copy) return read_all(file, fd, (size_t)st.st_size, regular, path, stop, err);
    if (st.st_size == 0) {
        file->data = nothing;
        return PITH_OK;
    }
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) return pith__fail(err, PITH_ERR_IO, "%s: %s", path, strerror(errno));
    file->data = data;
    file->size = (size_t)st.st_size;
    file->mapped = true;
    return PITH_OK;
}

static pith__held *file_held(const pith_allocator *allocator) {
    return allocator ? pith__account_files(allocator) : NULL;
}

pith_status pith__file_open(pith__file *file, const char *path, bool copy,
                            const pith_allocator *allocator, pith_error *err) {
    pith__stop *stop = pith__account_stop(allocator);
    pith__held *held = file_held(allocator);
    return held ? held->open(held, file, path, stop, err)
                : pith__file_open_until(file, path, copy, allocator, stop, err);
}

pith_status pith__file_open_until(pith__file *file, const char *path, bool copy,
                                  const pith_allocator *allocator, pith__stop *stop,
                                  pith_error *err) {
    /* O_NONBLOCK: opening a pipe without a writer must not block before the pipe is refused. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (copy ? 0 : O_NONBLOCK));
    if (fd < 0) {
        bool missing = errno == ENOENT || errno == ENOTDIR;
        return pith__fail(err, missing ? PITH_ERR_NOT_FOUND : PITH_ERR_IO, "%s: %s", path,
                          strerror(errno));
    }
    pith__file opened = { .allocator = allocator ? allocator : &pith__allocator_default };
    pith_status status = open_fd(&opened, fd, path, copy, stop, err);
    close(fd);
    if (!status) *file = opened;
    return status;
}

void pith__file_close(pith__file *file) {
    if (file->mapped && !file->held)
        munmap((void *)(uintptr_t)file->data, file->size);
    else if (!file->held && file->data && file->data != nothing)
        pith__memory_free(file->allocator, (void *)(uintptr_t)file->data);
    *file = (pith__file){ 0 };
}

pith_status pith__files_open(pith_str *bytes, pith__files *files, const char *path,
                             pith_error *err) {
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->items[i].path, path)) continue;
        *bytes = (pith_str){ (const char *)files->items[i].data, files->items[i].size };
        return PITH_OK;
    }
    void *items = files->items;
    pith_str name = pith__arena_str(files->arena, pith__str_of(path));
    if (!name.data || !pith__arena_grow(files->arena, &items, files->count, &files->capacity,
                                        sizeof *files->items))
        return pith__fail_memory(err, sizeof *files->items);
    files->items = items;
    pith__file *file = &files->items[files->count];
    PITH_TRY(pith__file_open(file, path, files->copy, files->arena->allocator, err));
    file->path = name.data;
    files->count++;
    files->release = pith__file_release;
    *bytes = (pith_str){ (const char *)file->data, file->size };
    return PITH_OK;
}

void pith__files_close(pith__files *files) {
    while (files->count) pith__file_close(&files->items[--files->count]);
}

void pith__file_release(const pith__file *file, const void *begin, size_t bytes) {
    if (!file->mapped) return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)begin, to = from + bytes;
    from = (from + page - 1) & ~(page - 1);
    to &= ~(page - 1);
    if (from < to) madvise((void *)from, to - from, MADV_DONTNEED);
}

bool pith__file_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, R_OK) == 0;
}

pith_status pith__file_there(bool *there, const char *path, const pith_allocator *allocator,
                             pith_error *err) {
    struct stat st;
    pith__held *held = file_held(allocator);
    if (held) return held->there(held, there, path, err);
    *there = lstat(path, &st) == 0;
    if (!*there && (errno == ENOENT || errno == ENOTDIR)) return PITH_OK;
    if (!*there || (stat(path, &st) && errno != ENOENT))
        return pith__fail(err, PITH_ERR_IO, "%s: %s; make the file readable", path,
                          strerror(errno));
    if (stat(path, &st))
        return pith__fail(err, PITH_ERR_IO,
                          "%s: the symbolic link points to a file that does not exist; fetch the "
                          "model again or remove the link",
                          path);
    if (!S_ISREG(st.st_mode))
        return pith__fail(err, PITH_ERR_IO, "%s: %s; put the file in its place or remove it", path,
                          S_ISDIR(st.st_mode) ? "is a directory" : "not a regular file");
    if (access(path, R_OK))
        return pith__fail(err, PITH_ERR_IO, "%s: %s; make the file readable", path,
                          strerror(errno));
    return PITH_OK;
}

pith_status pith__file_find(bool *there, pith_str *path, pith__arena *arena, const char *dir,
                            const char *name, pith_error *err) {
    PITH_TRY(pith__path_join(path, arena, dir, pith__str_of(name), err));
    return pith__file_there(there, path->data, arena->allocator, err);
}

uint64_t pith__file_size(const char *path, const pith_allocator *allocator) {
    struct stat st;
    pith__held *held = file_held(allocator);
    if (held) return held->size(held, path);
    return stat(path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

bool pith__dir_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool pith__dir_there(const char *path, const pith_allocator *allocator) {
    pith__held *held = file_held(allocator);
    return held ? held->is_dir(held, path) : pith__dir_exists(path);
}

bool pith__file_real(char *real, const char *path, const pith_allocator *allocator) {
    pith__held *held = file_held(allocator);
    if (!held) return realpath(path, real);
    const char *found = held->real(held, path);
    if (!found || strlen(found) >= PATH_MAX) return false;
    memcpy(real, found, strlen(found) + 1);
    return true;
}

/* More names than this are no model. */
#define DIR_NAMES_MAX 100000

static int file_compare_names(const void *a, const void *b) {
    return strcmp(((const pith_str *)a)->data, ((const pith_str *)b)->data);
}

static pith_status dir_read(pith_str **names, size_t *count, DIR *dir, const char *path,
                            pith__arena *arena, pith_error *err) {
    size_t capacity = 0;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        if (*count == DIR_NAMES_MAX)
            return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s: more than %d names", path,
                              DIR_NAMES_MAX);
        void *items = *names;
        pith_str name = pith__arena_str(arena, pith__str_of(entry->d_name));
        if (!name.data || !pith__arena_grow(arena, &items, *count, &capacity, sizeof name))
            return pith__fail_memory(err, sizeof name);
        *names = items;
        (*names)[(*count)++] = name;
    }
    if (*count) qsort(*names, *count, sizeof **names, file_compare_names);
    return PITH_OK;
}

pith_status pith__dir_names(pith_str **names, size_t *count, const char *path, pith__arena *arena,
                            pith_error *err) {
    pith__held *held = file_held(arena->allocator);
    if (held) return held->names(held, names, count, path, err);
    *names = NULL;
    *count = 0;
    DIR *dir = opendir(path);
    if (!dir) return pith__fail(err, PITH_ERR_IO, "%s: %s", path, strerror(errno));
    pith_status status = dir_read(names, count, dir, path, arena, err);
    closedir(dir);
    return status;
}

pith_str pith__path_name(pith_str path) {
    size_t n = path.size;
    while (n && path.data[n - 1] != '/') n--;
    return (pith_str){ path.data + n, path.size - n };
}

pith_str pith__path_parent(pith__arena *arena, pith_str path) {
    size_t n = path.size - pith__path_name(path).size;
    if (!n) return pith__arena_str(arena, PITH_STR("."));
    return pith__arena_str(arena, (pith_str){ path.data, n > 1 ? n - 1 : 1 });
}

/* Joins a file name from a model's own files to the model's folder. The name may come from
 * anywhere, so absolute names and names that lead out of the folder are refused. */
pith_status pith__path_join(pith_str *path, pith__arena *arena, const char *dir, pith_str name,
                            pith_error *err) {
    const char *fault = NULL;
    if (!name.size)
        fault = "is empty";
    else if (memchr(name.data, 0, name.size))
        fault = "contains a NUL byte";
    else if (name.data[0] == '/')
        fault = "is absolute";
    for (size_t begin = 0; begin < name.size && !fault;) {
        const char *slash = memchr(name.data + begin, '/', name.size - begin);
        size_t end = slash ? (size_t)(slash - name.data) : name.size;
        if (end - begin == 2 && name.data[begin] == '.' && name.data[begin + 1] == '.')
            fault = "points outside its folder";
        begin = end + 1;
    }
    if (fault) {
        return pith__fail(err, PITH_ERR_FORMAT, "file name \"" PITH_STR_FMT "\" %s",
                          PITH_STR_ARG(name), fault);
    }
    size_t length = strlen(dir);
    const char *slash = length && dir[length - 1] != '/' ? "/" : "";
    size_t head = length + strlen(slash);
    char *text = pith__arena_alloc(arena, head + name.size + 1);
    if (!text) return pith__fail_memory(err, head + name.size + 1);
    memcpy(text, dir, length);
    memcpy(text + length, slash, head - length);
    memcpy(text + head, name.data, name.size);
    text[head + name.size] = 0;
    *path = (pith_str){ text, head + name.size };
    return PITH_OK;
}
