/* output.c - results to stdout or to a file.
 *
 * A file is written under a temporary name beside its own and renamed at the end: whoever sees the name sees all of it.
 * A full disk is found at the latest by the flush and close at the end. */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int output_open(output *out, const command *c, const char *path) {
    *out = (output){ .file = stdout };
    if (!path || !strcmp(path, "-")) return EXIT_DONE;
    struct stat st;
    out->path = path;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        out->file = fopen(path, "wb");
    } else {
        size_t n = strlen(path) + 8;
        out->temporary = grow(NULL, n);
        snprintf(out->temporary, n, "%s.XXXXXX", path);
        int fd = mkstemp(out->temporary);
        mode_t mask = umask(0);
        umask(mask);
        out->file = fd < 0 || fchmod(fd, 0666 & ~mask) ? NULL : fdopen(fd, "wb");
    }
    if (out->file) return EXIT_DONE;
    int code = fail(c, "%s: %s", path, strerror(errno));
    free(out->temporary);
    return code;
}

int output_resume(output *out, const command *c, const char *path) {
    struct stat st;
    size_t n = strlen(path) + sizeof ".part";
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) return fail(c, "%s: only a file can be resumed", path);
    *out = (output){ .path = path, .temporary = grow(NULL, n), .resumable = true };
    snprintf(out->temporary, n, "%s.part", path);
    int fd = open(out->temporary, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    bool mine = fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB);
    out->file = mine ? fdopen(fd, "r+b") : NULL;
    if (out->file) return EXIT_DONE;
    int code = fd >= 0 && errno == EWOULDBLOCK ? fail(c, "%s: another process is writing it", out->temporary)
                                               : fail(c, "%s: %s", out->temporary, strerror(errno));
    if (fd >= 0) close(fd);
    free(out->temporary);
    return code;
}

bool output_write(output *out, const void *data, size_t size) {
    if (out->error) return false;
    errno = 0;
    if (size && fwrite(data, 1, size, out->file) != size) out->error = errno ? errno : EIO;
    return !out->error;
}

bool output_flush(output *out) {
    if (out->error) return false;
    errno = 0;
    if (fflush(out->file)) out->error = errno ? errno : EIO;
    return !out->error;
}

bool output_reader_left(const output *out) { return out->error == EPIPE; }

int output_close(output *out, const command *c, bool keep, int code) {
    output_flush(out);
    errno = 0;
    if (out->path && fclose(out->file) && !out->error) out->error = errno ? errno : EIO;
    bool complete = !out->error && keep && !(out->resumable && code);
    if (complete && out->temporary && rename(out->temporary, out->path))
        out->error = errno;
    else if (!complete && out->temporary && !out->resumable)
        unlink(out->temporary);
    free(out->temporary);
    out->temporary = NULL;
    if (!out->error || output_reader_left(out)) return code;
    return fail(c, "%s: %s", out->path ? out->path : "standard output", strerror(out->error));
}
