/* resume_record.c - see resume_record.h. */
#include "cli/resume_record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD_END ".made"

uint64_t resume_hash(uint64_t hash, const char *data, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
    return (hash ^ 0xff) * UINT64_C(0x100000001b3); /* a byte that no text has ends it */
}

/* The whole file, with a NUL behind it; NULL if it cannot be read. */
static char *record_read(const char *path) {
    FILE *f = fopen(path, "re");
    bytes text = { NULL, 0, 0 };
    char piece[4096];
    if (!f) return NULL;
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) bytes_add(&text, piece, n);
    fclose(f);
    bytes_add(&text, "", 1);
    return text.data;
}

/* Compares line by line; the first that differs is told. */
static int record_refuse(const resume_record *r, const command *c, const char *before, const char *now) {
    const int part = (int)(strlen(r->path) - strlen(RECORD_END));
    while (*now) {
        size_t old = strcspn(before, "\n"), new = strcspn(now, "\n"), name = strcspn(now, " \n");
        if (old != new || strncmp(before, now, old)) {
            bool same = old >= name && !strncmp(before, now, name);
            return fail(c,
                        "%.*s: %.*s was%.*s when the finished part was made, and is%.*s now; use the same options, or "
                        "remove it to start over",
                        part, r->path, (int)name, now, same ? (int)(old - name) : 8, same ? before + name : " another",
                        (int)(new - name), now + name);
        }
        before += old + (before[old] == '\n');
        now += new + (now[new] == '\n');
    }
    return EXIT_DONE;
}

static void record_take_marks(resume_record *r, const char *text) {
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        resume_mark mark;
        if (sscanf(line, "%" SCNu64 " %" SCNx64, &mark.rows, &mark.hash) != 2) continue;
        r->marks = grow_for(r->marks, r->count, sizeof *r->marks);
        r->marks[r->count++] = mark;
    }
}

int resume_record_open(resume_record *r, const command *c, const output *out, const bytes *options, bool rows_found) {
    *r = (resume_record){ .file = NULL };
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
        if (!code) record_take_marks(r, before + (strlen(before) < options->size ? strlen(before) : options->size));
        free(now.data);
    }
    r->old = before != NULL;
    bytes_add(&r->options, options->data, options->size);
    free(before);
    return code;
}

bool resume_record_agrees(const resume_record *r, uint64_t rows, uint64_t hash) {
    for (size_t i = 0; i < r->count; i++)
        if (r->marks[i].rows == rows && r->marks[i].hash != hash) return false;
    return true;
}

void resume_record_note(resume_record *r, uint64_t rows, uint64_t hash) {
    if (!r->path) return;
    if (!r->file && (r->file = fopen(r->path, r->old ? "ae" : "we")) && !r->old)
        fwrite(r->options.data, 1, r->options.size, r->file);
    if (!r->file) return; /* a later call then compares the last row only */
    fprintf(r->file, "%" PRIu64 " %016" PRIx64 "\n", rows, hash);
    fflush(r->file);
}

void resume_record_close(resume_record *r, bool complete) {
    if (r->file) fclose(r->file);
    if (r->path && complete) unlink(r->path);
    free(r->path);
    free(r->marks);
    free(r->options.data);
    *r = (resume_record){ .file = NULL };
}
