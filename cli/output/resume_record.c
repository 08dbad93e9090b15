/* resume_record.c - see resume_record.h. */
#include "cli/output/resume_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_END ".made"
enum { HASH_DIGITS = 16 };

uint64_t resume_hash(uint64_t hash, const char *data, size_t size) {
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
    return (hash ^ 0xff) * UINT64_C(0x100000001b3); /* a byte that no text has ends it */
}

/* The whole file, with a NUL behind it. */
static char *record_read_all(FILE *f) {
    bytes text = { NULL, 0, 0 };
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) bytes_add(&text, piece, n);
    bytes_add(&text, "", 1);
    return text.data;
}

/* NULL if it cannot be read. */
static char *record_read(const char *path) {
    FILE *f = fopen(path, "re");
    if (!f) return NULL;
    char *text = record_read_all(f);
    fclose(f);
    return text;
}

/* Compares line by line; the first that differs is told. */
static int record_refuse(const resume_record *r, const command *c, const char *before,
                         const char *now) {
    const int part = (int)(strlen(r->path) - (r->split ? 0 : strlen(RECORD_END)));
    while (*now) {
        size_t old = strcspn(before, "\n"), new = strcspn(now, "\n"), name = strcspn(now, " \n");
        if (old != new || strncmp(before, now, old)) {
            bool same = old >= name && !strncmp(before, now, name);
            return fail(c,
                        "%.*s: %.*s was%.*s when the finished part was made, and is%.*s now; use "
                        "the same options, or "
                        "remove it to start over",
                        part, r->path, (int)name, now, same ? (int)(old - name) : 8,
                        same ? before + name : " another", (int)(new - name), now + name);
        }
        before += old + (before[old] == '\n');
        now += new + (now[new] == '\n');
    }
    return EXIT_DONE;
}

static void record_take_marks(resume_record *r, const char *text) {
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        resume_mark mark;
        char word[5];
        if (sscanf(line, "%4[a-z] %" SCNu64, word, &mark.rows) == 2) {
            r->file = mark.rows;
            r->done = !strcmp(word, "done");
            r->noted = true;
            continue;
        }
        int begin = 0, end = 0; /* of the hash, all of it */
        if (sscanf(line, "%" SCNu64 " %n%" SCNx64 "%n", &mark.rows, &begin, &mark.hash, &end) != 2)
            continue;
        if (end - begin != HASH_DIGITS || line[end] != '\n') continue;
        r->marks = grow_for(r->marks, r->count, sizeof *r->marks);
        r->marks[r->count++] = mark;
    }
}

int resume_record_open(resume_record *r, const command *c, const output *out, const bytes *options,
                       bool rows_found) {
    *r = (resume_record){ .file_handle = NULL };
    if (!out->resumable) return EXIT_DONE;
    r->path = grow(NULL, strlen(out->temporary) + sizeof RECORD_END);
    sprintf(r->path, "%s" RECORD_END, out->temporary);
    char *before = rows_found ? record_read(r->path) : NULL;
    int code = EXIT_DONE;
    if (before) {
        bytes now = { NULL, 0, 0 };
        bytes_add(&now, options->data, options->size);
        bytes_add(&now, "", 1);
        code = record_refuse(r, c, before, now.data);
        if (!code)
            record_take_marks(
                r, before + (strlen(before) < options->size ? strlen(before) : options->size));
        free(now.data);
    }
    r->old = before != NULL;
    bytes_add(&r->options, options->data, options->size);
    free(before);
    return code;
}

/* Compares with what the file holds. One that ends within the options was never written to the end,
 * and is new. */
static int record_take_split(resume_record *r, const command *c, const bytes *options) {
    rewind(r->file_handle);
    char *before = record_read_all(r->file_handle), *last = strrchr(before, '\n');
    bytes now = { NULL, 0, 0 };
    int code = EXIT_DONE;
    if (last && last[1]) { /* a line that was not written to its end */
        last[1] = 0;
        if (ftruncate(fileno(r->file_handle), last + 1 - before))
            code = fail(c, "%s: %s", r->path, strerror(errno));
    }
    const size_t size = strlen(before);
    bytes_add(&now, options->data, options->size);
    bytes_add(&now, "", 1);
    r->old = size > options->size || strncmp(before, now.data, size) != 0;
    if (r->old && !code) code = record_refuse(r, c, before, now.data);
    if (r->old && !code) record_take_marks(r, before + options->size);
    if (!code && fseek(r->file_handle, 0, SEEK_END))
        code = fail(c, "%s: %s", r->path, strerror(errno));
    if (!code && !r->old &&
        (ftruncate(fileno(r->file_handle), 0) ||
         fwrite(options->data, 1, options->size, r->file_handle) != options->size))
        code = fail(c, "%s: %s", r->path, strerror(errno));
    free(before);
    free(now.data);
    return code;
}

int resume_record_open_split(resume_record *r, const command *c, const char *path,
                             const bytes *options, bool resume) {
    *r = (resume_record){ .split = true };
    r->path = grow(NULL, strlen(path) + sizeof ".part" RECORD_END);
    sprintf(r->path, "%s.part" RECORD_END, path);
    if (!resume) {
        unlink(r->path);
        free(r->path);
        r->path = NULL;
        return EXIT_DONE;
    }
    int fd = open(r->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666),
        code = EXIT_DONE;
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        code = fail(c, "%s: %s", r->path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        code = fail(c, "%s: only a file can be resumed", r->path);
    else if (flock(fd, LOCK_EX | LOCK_NB))
        code = errno == EWOULDBLOCK ? fail(c, "%s: another process is writing the files", r->path)
                                    : fail(c, "%s: %s", r->path, strerror(errno));
    else if (!(r->file_handle = fdopen(fd, "a+b")))
        code = fail(c, "%s: %s", r->path, strerror(errno));
    if (code && fd >= 0) close(fd);
    if (!code) code = record_take_split(r, c, options);
    if (code) resume_record_close(r, false);
    return code;
}

int resume_record_at(resume_record *r, const command *c, uint64_t file, bool done) {
    if (!r->file_handle || !r->split || (r->noted && r->file == file && r->done == done))
        return EXIT_DONE;
    r->noted = true;
    r->file = file;
    r->done = done;
    errno = 0;
    const bool good = fprintf(r->file_handle, "%s %" PRIu64 "\n", done ? "done" : "file", file) > 0;
    if (good && !fflush(r->file_handle)) return EXIT_DONE;
    return fail(c, "%s: %s", r->path, strerror(errno ? errno : EIO));
}

bool resume_record_agrees(resume_record *r, uint64_t rows, uint64_t hash) {
    while (r->next < r->count && r->marks[r->next].rows < rows) r->next++;
    for (; r->next < r->count && r->marks[r->next].rows == rows; r->next++)
        if (r->marks[r->next].hash != hash) return false;
    return true;
}

void resume_record_note(resume_record *r, uint64_t rows, uint64_t hash) {
    if (!r->path) return;
    if (!r->file_handle && (r->file_handle = fopen(r->path, r->old ? "ae" : "we")) && !r->old)
        fwrite(r->options.data, 1, r->options.size, r->file_handle);
    if (!r->file_handle) return; /* a later call then compares the last row only */
    fprintf(r->file_handle, "%" PRIu64 " %016" PRIx64 "\n", rows, hash);
    fflush(r->file_handle);
}

void resume_record_close(resume_record *r, bool complete) {
    if (r->file_handle) fclose(r->file_handle);
    if (r->path && complete) unlink(r->path);
    free(r->path);
    free(r->marks);
    free(r->options.data);
    *r = (resume_record){ .file_handle = NULL };
}
