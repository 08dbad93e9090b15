/* pull_file.c - see pull_file.h.
 *
 * The hash is computed as the bytes come. When a part is resumed, its bytes are read once for the
 * hash. A drop of the connection is no failure as long as each attempt brings bytes. */
#include "base/text_out.h"
#include "cli/hub/pull_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The most bytes of a file whose size the hub does not tell. */
#define PULL_UNKNOWN_BYTES ((int64_t)64 << 20)

typedef struct pull_part {
    const hub_file *file;
    const char *path;
    int fd;
    int64_t size, limit; /* bytes so far; and at most */
    SHA2_CTX hash;       /* SHA-256 of them */
    pull_progress *progress;
    int error;          /* errno of a failed write */
    bool begun, beyond; /* this answer's body has begun; it has more bytes than it may */
    bool elsewhere;     /* it begins at another byte than was asked for */
} pull_part;

static double pull_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void pull_progress_clear(const pull_progress *p) {
    if (p->terminal) fputs("\r\033[K", stderr);
}

static void pull_progress_show(pull_progress *p, const char *name) {
    double now = p->terminal ? pull_now() : 0;
    if (!p->terminal || now - p->shown < 0.1) return;
    p->shown = now;
    fprintf(stderr, "\r\033[K%3.0f %%  %.1f of %.1f MB  %.50s",
            p->total ? 100 * (double)p->done / (double)p->total : 0.0, (double)p->done / 1e6,
            (double)p->total / 1e6, name);
}

bool pull_make_folders(const char *path) {
    char folder[PATH_MAX];
    if (strlen(path) >= sizeof folder) {
        errno = ENAMETOOLONG;
        return false;
    }
    strcpy(folder, path);
    for (char *slash = folder + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        if (mkdir(folder, 0777) && errno != EEXIST) return false;
        *slash = '/';
    }
    return true;
}

/* Forgets what has come of the file. */
static bool pull_part_empty(pull_part *p) {
    p->progress->done -= (uint64_t)p->size;
    p->size = 0;
    SHA256Init(&p->hash);
    if (!ftruncate(p->fd, 0) && lseek(p->fd, 0, SEEK_SET) == 0) return true;
    p->error = errno;
    return false;
}

static bool pull_part_write(pull_part *p, const char *data, size_t size) {
    SHA256Update(&p->hash, (const uint8_t *)data, size);
    while (size) {
        ssize_t n = write(p->fd, data, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            p->error = n ? errno : EIO;
            return false;
        }
        p->size += n;
        p->progress->done += (uint64_t)n;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

static bool pull_part_take(void *user, const http_answer *answer, const void *data, size_t size) {
    pull_part *p = user;
    if (!p->begun && answer->status == 200 && p->size && !pull_part_empty(p)) return false;
    if (!p->begun && answer->status == 206 && answer->from != (uint64_t)p->size) {
        p->elsewhere = true;
        return false;
    }
    p->begun = true;
    p->progress->fetched += size;
    p->beyond = size > (uint64_t)(p->limit - p->size);
    bool good = !p->beyond && pull_part_write(p, data, size);
    pull_progress_show(p->progress, p->file->name);
    return good;
}

/* Opens the part and takes in what it has. */
static bool pull_part_open(pull_part *p) {
    uint8_t buffer[65536];
    ssize_t n;
    p->fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (p->fd < 0) {
        p->error = errno;
        return false;
    }
    SHA256Init(&p->hash);
    if (!p->file->hash) return pull_part_empty(p);
    while ((n = read(p->fd, buffer, sizeof buffer)) > 0) {
        SHA256Update(&p->hash, buffer, (size_t)n);
        p->size += n;
        p->progress->done += (uint64_t)n;
    }
    if (n < 0) p->error = errno;
    return !n && (p->size <= p->limit || pull_part_empty(p));
}

/* Until all bytes are there. */
static int pull_part_fetch(const hub *h, pull_part *p, const char *commit) {
    const int64_t wanted = p->file->size;
    char *url = hub_file_address(h, commit, p->file->name);
    http_answer a = { .complete = false };
    bool there = wanted >= 0 && p->size == wanted && wanted > 0, again = true;
    int64_t most = p->size;
    for (int attempt = 0; !there && again; attempt++) {
        p->begun = p->elsewhere = false;
        bool complete = http_get(&h->http, url, (uint64_t)p->size, pull_part_take, p, &a);
        if (p->error || p->beyond) break;
        if (complete && (a.status == 200 || (a.status == 206 && wanted >= 0)))
            there = wanted < 0 || p->size == wanted;
        else if ((a.status == 416 || p->elsewhere) && !pull_part_empty(p))
            break;
        if (there) break;
        if ((complete && (a.status == 200 || a.status == 206 || a.status == 416)) || p->elsewhere) {
            a.complete = a.refused = false; /* fewer bytes than were promised: as a drop of the
                                               connection */
            pith__text_print(a.message, sizeof a.message, "the hub sends %lld of %lld bytes",
                             (long long)p->size, (long long)wanted);
        }
        if (p->size > most) { /* progress: more than there has ever been */
            most = p->size;
            attempt = 0;
        }
        again = hub_wait(h, &a, attempt);
        if (again && !p->file->hash && !pull_part_empty(p))
            break; /* without a hash, parts of two answers are not joined */
    }
    free(url);
    if (p->error)
        return fail(h->c, "%s: %s; space or rights are missing, what has come is kept", p->path,
                    strerror(p->error));
    if (p->beyond)
        return fail(
            h->c, "%s: %s: the hub sends more than the %lld bytes %s; nothing of it is used",
            h->repository, p->file->name, (long long)p->limit,
            wanted >= 0 ? "that its list says" : "that a file without a size in the list may have");
    return there ? EXIT_DONE : hub_fail(h, &a, p->file->name, commit);
}

/* Gives the whole part its name. */
static int pull_part_settle(const hub *h, pull_part *p, const char *directory, char hash[65]) {
    char path[PATH_MAX];
    SHA256End(&p->hash, hash);
    if (p->file->hash && strcmp(hash, p->file->hash)) {
        unlink(p->path);
        return fail(h->c,
                    "%s: %s: the bytes that came are not those of the hub's list (SHA-256 "
                    "%.12s..., not %.12s...); they are "
                    "removed, try again",
                    h->repository, p->file->name, hash, p->file->hash);
    }
    snprintf(path, sizeof path, "%s/%s", directory, p->file->name);
    if (fsync(p->fd) || !pull_make_folders(path) || rename(p->path, path))
        return fail(h->c, "%s cannot be written: %s", path, strerror(errno));
    return EXIT_DONE;
}

int pull_file_get(const hub *h, const hub_file *file, const char *commit, const char *directory,
                  pull_progress *progress, char hash[65]) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/.pith-part%s%s", directory, file->hash ? "-" : "",
             file->hash ? file->hash : "");
    pull_part p = { .file = file,
                    .path = path,
                    .limit = file->size >= 0 ? file->size : PULL_UNKNOWN_BYTES,
                    .progress = progress };
    int code;
    if (!pull_make_folders(path) || !pull_part_open(&p)) {
        code = fail(h->c, "%s cannot be written: %s", path, strerror(p.error ? p.error : errno));
    } else {
        code = pull_part_fetch(h, &p, commit);
        if (p.beyond) unlink(path);
        if (!code) code = pull_part_settle(h, &p, directory, hash);
    }
    if (p.fd > 0) close(p.fd);
    return code;
}

bool pull_file_hash(const char *path, char hash[65]) {
    uint8_t buffer[65536];
    SHA2_CTX h;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    SHA256Init(&h);
    while ((n = read(fd, buffer, sizeof buffer)) > 0) SHA256Update(&h, buffer, (size_t)n);
    close(fd);
    if (n) return false;
    SHA256End(&h, hash);
    return true;
}
