/* embed_images.c - see embed_images.h.
 *
 * Pictures are read and embedded a few at a time, so memory is bounded by the largest of them, not
 * by their number. */
#include "cli/embed/embed_images.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/parallel.h"
#include "cli/input/picture_files.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"

/* Pictures that are in memory at once, for each thread. */
enum { PICTURES_PER_THREAD = 2, PICTURES_MOST = 256 };

typedef struct picture {
    char *path;
    pith_image image;
    char *problem; /* why it was not read; NULL: it was */
} picture;

typedef struct images_job {
    embed_images *e;
    string_list found; /* the pictures of the inputs; their names are the job's own */
    passed_over passed;
    size_t next;
    text_batch batch; /* paths from stdin */
    picture *pictures;
    size_t count, room;
    float *vectors, *some;
    vector_writer writer;
} images_job;

/* ---- which pictures ---- */

static char *copy_text(const char *text, size_t size) {
    char *copy = grow(NULL, size + 1);
    memcpy(copy, text, size);
    copy[size] = 0;
    return copy;
}

/* The next pictures' paths: j->count of them, 0 when there are none left. False after a message. */
static bool next_paths(images_job *j) {
    j->count = 0;
    if (j->e->rows->inputs.count) {
        for (; j->count < j->room && j->next < j->found.count; j->next++) {
            const char *path = j->found.items[j->next];
            j->pictures[j->count++].path = copy_text(path, strlen(path));
        }
        return true;
    }
    if (text_batch_next(&j->batch, j->room) < 0) return !fail(j->e->c, "%s", j->batch.message);
    for (; j->count < j->batch.count; j->count++)
        j->pictures[j->count].path =
            copy_text(j->batch.texts[0][j->count].data, j->batch.texts[0][j->count].size);
    return true;
}

/* ---- pictures to vectors ---- */

static void read_picture(void *context, size_t index) {
    images_job *j = context;
    picture *p = &j->pictures[index];
    pith_error err = PITH_ERROR_INIT;
    pith_image_options options = PITH_IMAGE_OPTIONS_INIT;
    options.channels = 3;
    options.max_pixels = j->e->max_pixels;
    p->problem = NULL;
    p->image = (pith_image){ 0 };
    if (pith_image_read(&p->image, p->path, &options, &err))
        p->problem = copy_text(err.message, strlen(err.message));
}

/* Vectors and failures of the pictures. Where there is no memory for all of them at once, one at a
 * time. */
static void embed_read(images_job *j, const pith_image *images, size_t count,
                       pith_error *failures) {
    pith_embed_images_options options = j->e->options;
    pith_error err = PITH_ERROR_INIT;
    options.failures = failures;
    if (!pith_embed_images(j->some, j->e->model, images, count, &options, &err)) return;
    for (size_t i = 0; i < count; i++) {
        options.failures = &failures[i];
        if (pith_embed_images(j->some + i * j->e->layout.dim, j->e->model, &images[i], 1, &options,
                              &err))
            failures[i] = err;
    }
}

/* The pictures of the batch that could be read. */
static void embed_pictures(images_job *j) {
    const size_t dim = j->e->layout.dim;
    const bool has_nan =
        j->e->layout.as.type == PITH_VECTOR_F32 || j->e->layout.as.type == PITH_VECTOR_F16;
    pith_image *images = grow(NULL, j->count * sizeof *images);
    pith_error *failures = grow(NULL, j->count * sizeof *failures);
    size_t count = 0, row = 0;
    for (size_t i = 0; i < j->count; i++)
        if (!j->pictures[i].problem) images[count++] = j->pictures[i].image;
    embed_read(j, images, count, failures);
    for (size_t i = 0; i < j->count; i++) {
        picture *p = &j->pictures[i];
        float *vector = j->vectors + i * dim;
        if (!p->problem && failures[row].code) {
            const char *said = failures[row].message;
            if (!strncmp(said, "picture 0: ", 11)) said += 11;
            p->problem = grow(NULL, strlen(p->path) + strlen(said) + 3);
            sprintf(p->problem, "%s: %s", p->path, said);
            row++;
        } else if (!p->problem) {
            memcpy(vector, j->some + row++ * dim, dim * sizeof *vector);
        }
        if (p->problem)
            for (size_t k = 0; k < dim; k++) vector[k] = has_nan ? NAN : 0;
    }
    free(failures);
    free(images);
}

/* What stands before each vector: an object without its end. */
static void make_prefixes(images_job *j, bytes *prefixes, size_t *begins) {
    prefixes->size = 0;
    begins[0] = 0;
    for (size_t i = 0; i < j->count; i++) {
        if (j->batch.keeps) {
            bytes_add(prefixes, j->batch.kept.data + j->batch.kept_begins[i],
                      j->batch.kept_begins[i + 1] - j->batch.kept_begins[i]);
        } else {
            bytes_print(prefixes, "{\"path\": ");
            json_quote(prefixes, (pith_str){ j->pictures[i].path, strlen(j->pictures[i].path) });
            bytes_print(prefixes, ", ");
        }
        bytes_print(prefixes, "\"embedding\":");
        begins[i + 1] = prefixes->size;
    }
}

/* Tells of the pictures that failed, and frees all. */
static void finish_batch(images_job *j) {
    for (size_t i = 0; i < j->count; i++) {
        picture *p = &j->pictures[i];
        if (p->problem) {
            fail(j->e->c, "%s", p->problem);
            j->e->failed++;
        }
        pith_image_free(&p->image);
        free(p->problem);
        free(p->path);
        *p = (picture){ 0 };
    }
    j->e->done += j->count;
    progress_line_show(j->e->progress, j->e->done, j->found.count);
}

static bool write_batch(images_job *j, bytes *prefixes, size_t *begins) {
    if (j->e->objects) make_prefixes(j, prefixes, begins);
    bool good = true;
    for (size_t from = 0, n; good && from < j->count; from += n) {
        good = bad_lines_write(&j->batch.bad, j->writer.out, from);
        n = j->count - from;
        if (n > bad_lines_next(&j->batch.bad) - from) n = bad_lines_next(&j->batch.bad) - from;
        good = good && vector_writer_rows(&j->writer, j->vectors + from * j->e->layout.dim, n,
                                          j->e->objects ? prefixes->data : NULL, begins + from);
    }
    return good && bad_lines_write(&j->batch.bad, j->writer.out, SIZE_MAX) &&
           output_flush(j->writer.out);
}

/* ---- the whole ---- */

static int embed_batches(images_job *j) {
    bytes prefixes = { NULL, 0, 0 };
    size_t *begins = grow(NULL, (j->room + 1) * sizeof *begins);
    uint64_t skip = j->writer.rows;
    bool good = true;
    int code = EXIT_DONE;
    while (good && (good = next_paths(j)) && j->count + j->batch.bad.count) {
        if (skip && skip >= j->count) { /* an earlier call has written them */
            skip -= j->count;
            for (size_t i = 0; i < j->count; i++) free(j->pictures[i].path);
            continue;
        }
        for (size_t i = 0; i < skip; i++) free(j->pictures[i].path);
        memmove(j->pictures, j->pictures + skip, (j->count - skip) * sizeof *j->pictures);
        j->count -= skip;
        skip = 0;
        parallel_run(read_picture, j, j->count, j->e->options.call.threads);
        embed_pictures(j);
        good = write_batch(j, &prefixes, begins);
        finish_batch(j);
    }
    progress_line_end(j->e->progress, j->e->done, j->found.count);
    if (!good || j->e->failed) code = EXIT_FAILED;
    if (j->writer.conversion.code) fail(j->e->c, "%s", j->writer.conversion.message);
    if (vector_writer_unmet(&j->writer))
        code = fail(j->e->c,
                    "%s: its last vector is not that of the next picture; the pictures, model or "
                    "options were "
                    "others; remove it to start over",
                    j->writer.out->temporary);
    free(prefixes.data);
    free(begins);
    return code;
}

static int write_images(images_job *j, const char *path, bool resume) {
    const string_list *paths = &j->e->rows->inputs, *inputs = paths->count ? &j->found : paths;
    output out;
    int code = resume ? output_resume(&out, j->e->c, path, inputs)
                      : output_open(&out, j->e->c, path, inputs);
    if (code) return code;
    code = vector_writer_open(&j->writer, j->e->c, &out, &j->e->layout);
    if (code) {
        output_close(&out, j->e->c, false, code);
        return code;
    }
    code = embed_batches(j);
    vector_writer_close(&j->writer);
    return output_close(&out, j->e->c, true, code);
}

int embed_images_run(embed_images *e, const char *path, bool resume) {
    images_job j = { .e = e };
    pith_cpu_info cpu = PITH_CPU_INFO_INIT;
    pith_cpu_report(&cpu, NULL);
    int32_t threads = e->options.call.threads ? e->options.call.threads : cpu.threads;
    j.room = (size_t)threads * PICTURES_PER_THREAD;
    if (j.room > PICTURES_MOST) j.room = PICTURES_MOST;
    j.pictures = grow(NULL, j.room * sizeof *j.pictures);
    memset(j.pictures, 0, j.room * sizeof *j.pictures);
    j.vectors = grow(NULL, j.room * e->layout.dim * sizeof *j.vectors);
    j.some = grow(NULL, j.room * e->layout.dim * sizeof *j.some);
    text_batch_open(&j.batch, e->rows, NULL);
    if (!e->rows->columns.count) j.batch.fields[0] = "path";
    j.batch.keeps = e->objects && !e->rows->inputs.count;
    double began = now_seconds();
    int code = picture_files_find(&j.found, &j.passed, e->c, &e->rows->inputs);
    if (!code) code = picture_files_tell(&j.passed, e->c, write_images(&j, path, resume));
    e->seconds = now_seconds() - began;
    code = bad_lines_end(j.batch.bad.total, e->c, e->rows->errors, code);
    text_batch_close(&j.batch);
    picture_files_free(&j.found);
    free(j.pictures);
    free(j.vectors);
    free(j.some);
    return code;
}
