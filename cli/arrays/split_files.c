/* split_files.c - see split_files.h.
 *
 * A call that may be interrupted has one record for all files, FILE.part.made, which says at which
 * file it is and whether that file is full and finished. These notes and the names of files change
 * in this order: rows are written to the part; "done" is noted; the part gets its name; the part of
 * the next file is made; "file" is noted. So whenever the process ends, the note and what is there
 * tell which file is next. */
#include "cli/arrays/split_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t split_files_before(const split_files *s) { return s->file * s->rows; }

/* The file to begin with, and whether it is begun anew. */
static void split_choose(split_files *s, const resume_record *record, bool *anew) {
    char *name = split_name(s->path, record->file);
    const bool there = output_has_part(name);
    free(name);
    s->file = record->file + (record->done && !there);
    *anew = record->old && !there;
}

/* A part that an earlier call has left of a file that is begun anew, is emptied. */
static int split_empty(output *out, const command *c) {
    return ftruncate(fileno(out->file), 0) ? fail(c, "%s: %s", out->temporary, strerror(errno))
                                           : EXIT_DONE;
}

static int split_begin(split_files *s, output *out, const command *c, const string_list *inputs,
                       bool anew) {
    free(s->name);
    s->name = s->rows ? split_name(s->path, s->file) : NULL;
    const char *path = s->name ? s->name : s->path; /* the output keeps it */
    if (!s->resume) return output_open(out, c, path, inputs);
    int code = output_resume(out, c, path, inputs);
    if (!code && anew && (code = split_empty(out, c))) output_close(out, c, false, code);
    return code;
}

/* The record of several files is opened before them, that of one file beside it. */
static int split_open_record(split_files *s, resume_record *record, const command *c,
                             const bytes *options, bool *anew) {
    *record = (resume_record){ .file_handle = NULL };
    *anew = false;
    if (!s->rows) return EXIT_DONE;
    int code = resume_record_open_split(record, c, s->path, options, s->resume);
    if (!code && s->resume) split_choose(s, record, anew);
    return code;
}

int split_files_open(split_files *s, output *out, vector_writer *w, resume_record *record,
                     const command *c, const vector_layout *layout, const bytes *options,
                     const string_list *inputs) {
    bool anew;
    int code = split_open_record(s, record, c, options, &anew);
    if (code) return code;
    code = split_begin(s, out, c, inputs, anew);
    if (code) {
        resume_record_close(record, false);
        free(s->name);
        return code;
    }
    code = vector_writer_open(w, c, out, layout);
    if (!code && s->rows && s->resume && w->rows >= s->rows)
        code = fail(c, "%s: it has more than %llu rows; remove it to start over", out->temporary,
                    (unsigned long long)s->rows);
    if (!code && s->rows) code = resume_record_at(record, c, s->file, false);
    if (!code && !s->rows)
        code = resume_record_open(record, c, out, options, w->rows || w->last.size);
    if (!code) return EXIT_DONE;
    vector_writer_close(w);
    code = output_close(out, c, false, code);
    resume_record_close(record, false);
    free(s->name);
    return code;
}

/* Ends the file that is full. False after a failed write, or with s->failed after a message. */
static bool split_end(split_files *s, vector_writer *w, resume_record *record, const command *c) {
    if (!vector_writer_close(w) || !output_flush(w->out)) return false;
    s->failed = resume_record_at(record, c, s->file, true) != EXIT_DONE;
    if (s->failed) return false;
    s->failed = s->closed = output_close(w->out, c, true, EXIT_DONE) != EXIT_DONE;
    return !s->failed;
}

bool split_files_next(split_files *s, vector_writer *w, resume_record *record, const command *c) {
    output *out = w->out;
    const vector_layout layout = w->layout;
    if (!split_end(s, w, record, c)) return false;
    s->file++;
    s->failed = s->closed = split_begin(s, out, c, NULL, true) != EXIT_DONE;
    if (s->failed) return false;
    s->failed =
        vector_writer_open(w, c, out, &layout) || resume_record_at(record, c, s->file, false);
    return !s->failed;
}

int split_files_close(split_files *s, output *out, vector_writer *w, resume_record *record,
                      const command *c, int code) {
    /* the texts ended with the file before */
    const bool empty = s->file && !w->rows && !w->last.size;
    if (s->failed && !code) code = EXIT_FAILED;
    if (!s->closed) {
        const bool good = vector_writer_close(w);
        /* A last file that is not full is not noted: more texts may follow when the call is given
         * again. */
        if (s->rows && w->rows == s->rows && !code && good && output_flush(out))
            code = resume_record_at(record, c, s->file, true);
        if (empty && !code) out->resumable = false; /* so that it goes */
        code = output_close(out, c, !s->failed && !(empty && !code), code);
    }
    resume_record_close(record, !code);
    free(s->name);
    s->name = NULL;
    return code;
}
