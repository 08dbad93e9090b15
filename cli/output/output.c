/* output.c - results to stdout or to a file.
 *
 * A file is written under a temporary name next to its own and renamed at the end, so it is
 * complete whenever its name is there. A full disk is noticed at the latest by the flush and close
 * at the end. */
#include "cli/output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/temporary_file.h"
#include "cli/output/call_files.h"

static bool same_file(const struct stat *a, const struct stat *b) {
    return S_ISREG(a->st_mode) && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether a file is one of the inputs, by whatever name. */
static bool is_input(const struct stat *file, const string_list *inputs) {
    struct stat st;
    if (!inputs) return false;
    if (!inputs->count) return !fstat(STDIN_FILENO, &st) && same_file(file, &st);
    for (size_t i = 0; i < inputs->count; i++) {
        bool standard = !strcmp(inputs->items[i], "-");
        if (!(standard ? fstat(STDIN_FILENO, &st) : stat(inputs->items[i], &st)) &&
            same_file(file, &st))
            return true;
    }
    return false;
}

static int refuse_input(const command *c, const char *path) {
    return usage(c, "%s is an input too; write to another file", path);
}

/* "folder/name" + suffix; a name so long that there is no room for the suffix is shortened where
 * that is allowed. */
static char *beside(const char *target, const char *suffix, bool may_shorten) {
    const char *slash = strrchr(target, '/');
    size_t folder = slash ? (size_t)(slash - target) + 1 : 0, base = strlen(target + folder),
           more = strlen(suffix);
    if (may_shorten && base + more > NAME_MAX) base = NAME_MAX - more;
    char *name = grow(NULL, folder + base + more + 1);
    memcpy(name, target, folder + base);
    strcpy(name + folder + base, suffix);
    return name;
}

/* A new file next to the target, with the permissions that a file made or overwritten by the shell
 * would have. */
static FILE *open_beside(output *out, const struct stat *old) {
    if (old && access(out->target, W_OK)) return NULL;
    out->temporary = beside(out->target, ".XXXXXX", true);
    int fd = temporary_file_make(out->temporary);
    if (fd < 0) return NULL;
    mode_t mask = umask(0);
    umask(mask);
    const mode_t mode = old ? old->st_mode & 0777 : 0666 & ~mask;
    FILE *file = fchmod(fd, mode) ? NULL : fdopen(fd, "wb");
    if (file) return file;
    int error = errno;
    close(fd);
    unlink(out->temporary);
    temporary_file_forget(out->temporary);
    errno = error;
    return NULL;
}

static int fail_open(output *out, const command *c) {
    int code = fail(c, "%s cannot be written: %s", out->path, strerror(errno));
    free(out->target);
    free(out->temporary);
    return code;
}

int output_open(output *out, const command *c, const char *path, const string_list *inputs) {
    struct stat st, standard;
    bool known = !fstat(STDOUT_FILENO, &standard);
    *out = (output){ .file = stdout };
    if (path && !*path) return usage(c, "-o needs the name of a file");
    bool named = path && strcmp(path, "-"), there = named && !stat(path, &st);
    if (there && known && same_file(&st, &standard)) named = false; /* /dev/stdout */
    if (!named)
        return known && is_input(&standard, inputs) ? refuse_input(c, "standard output")
                                                    : EXIT_DONE;
    if (there && is_input(&st, inputs)) return refuse_input(c, path);
    int code = call_files_check(c, path);
    if (code) return code;
    out->path = path;
    if (there && !S_ISREG(st.st_mode))
        out->file = fopen(path, "wb");
    else {
        out->target = call_files_follow(path);
        out->file = NULL;
        if (out->target) out->file = open_beside(out, there ? &st : NULL);
    }
    return out->file ? EXIT_DONE : fail_open(out, c);
}

int output_resume(output *out, const command *c, const char *path, const string_list *inputs) {
    struct stat st;
    bool there = !stat(path, &st);
    *out = (output){ .path = path, .resumable = true };
    if (there && !S_ISREG(st.st_mode)) return fail(c, "%s: only a file can be resumed", path);
    if (there && is_input(&st, inputs)) return refuse_input(c, path);
    if (!(out->target = call_files_follow(path))) return fail_open(out, c);
    out->temporary = beside(out->target, ".part", false);
    int fd = open(out->temporary, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666),
        code = EXIT_DONE;
    if (fd < 0 || fstat(fd, &st))
        code = fail(c, "%s: %s", out->temporary, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        code = fail(c, "%s: only a file can be resumed", out->temporary);
    else if (is_input(&st, inputs))
        code = refuse_input(c, out->temporary);
    else if (flock(fd, LOCK_EX | LOCK_NB))
        code = errno == EWOULDBLOCK ? fail(c, "%s: another process is writing it", out->temporary)
                                    : fail(c, "%s: %s", out->temporary, strerror(errno));
    else if (!(out->file = fdopen(fd, "r+b")))
        code = fail(c, "%s: %s", out->temporary, strerror(errno));
    if (!code) return EXIT_DONE;
    if (fd >= 0) close(fd);
    free(out->target);
    free(out->temporary);
    return code;
}

bool output_has_part(const char *path) {
    char *target = call_files_follow(path), *part = target ? beside(target, ".part", false) : NULL;
    const bool there = part && !access(part, F_OK);
    free(target);
    free(part);
    return there;
}

char *split_name(const char *path, uint64_t number) {
    const char *name = strrchr(path, '/'), *end = strrchr(name ? name : path, '.');
    size_t stem = end ? (size_t)(end - path) : strlen(path);
    char *made = grow(NULL, strlen(path) + 24);
    sprintf(made, "%.*s-%05llu%s", (int)stem, path, (unsigned long long)number, end ? end : "");
    return made;
}

bool output_header(output *out, const void *data, size_t size) {
    if (out->error) return false;
    errno = 0;
    if (size && fwrite(data, 1, size, out->file) != size) out->error = errno ? errno : EIO;
    return !out->error;
}

bool output_write(output *out, const void *data, size_t size) {
    out->begun |= size > 0;
    return output_header(out, data, size);
}

bool output_append(const char *path, const char *line) {
    FILE *file = fopen(path, "ae");
    if (!file) return false;
    const bool written = fprintf(file, "%s\n", line) > 0;
    return !fclose(file) && written;
}

bool output_flush(output *out) {
    if (out->error) return false;
    errno = 0;
    if (fflush(out->file)) out->error = errno ? errno : EIO;
    return !out->error;
}

static int32_t output_take(void *user, const void *data, size_t size) {
    return !output_write(user, data, size);
}

pith_writer output_writer(output *out) {
    return (pith_writer){ .write = output_take, .user = out };
}

/* Gives the temporary file its name, or removes it. False after a message. */
static bool settle(output *out, const command *c, bool complete) {
    bool good = true;
    if (complete && rename(out->temporary, out->target))
        good = fail(c, "%s: %s; the result is in %s", out->path, strerror(errno), out->temporary) ==
               EXIT_DONE;
    else if (!complete && !out->resumable)
        unlink(out->temporary);
    temporary_file_forget(out->temporary);
    return good;
}

int output_close(output *out, const command *c, bool keep, int code) {
    output_flush(out);
    if (code && !out->begun) keep = false; /* the work failed as a whole */
    errno = 0;
    if (out->path && fclose(out->file) && !out->error) out->error = errno ? errno : EIO;
    bool settled =
        !out->temporary || settle(out, c, !out->error && keep && !(out->resumable && code));
    if (out->error && out->error != EPIPE) /* a reader that left is no failure */
        code = fail(c, "%s: %s", out->path ? out->path : "standard output", strerror(out->error));
    free(out->temporary);
    free(out->target);
    out->temporary = out->target = NULL;
    return settled ? code : EXIT_FAILED;
}

int output_close_standard(const command *c, int code) {
    output out = { .file = stdout };
    int error = errno; /* of the write that failed, if one did: hardly anything has been called
                          since */
    if (output_flush(&out) && ferror(stdout)) out.error = error ? error : EIO;
    return output_close(&out, c, true, code);
}
