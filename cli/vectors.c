/* vectors.c - writing vectors.
 *
 * The header of a .npy file holds the number of rows, which is known only at the end. If the output can seek, the
 * header is written last into a gap left for it; otherwise the rows are spooled to a temporary file. Resuming is safe
 * because a vector depends only on its text and the model: the last row that is there is computed again and compared.
 */
#include "cli/vectors.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/npy.h"
#include "cli/number.h"

/* Digits of a uint64. */
#define ROWS_WIDTH 20

void print_floats(bytes *out, const float *x, size_t count) {
    bytes_reserve(out, count * 18 + 2);
    char *p = out->data + out->size;
    *p++ = '[';
    for (size_t i = 0; i < count; i++) {
        if (i) *p++ = ',';
        if (isfinite(x[i]))
            p += number_print(p, x[i]);
        else
            p = memcpy(p, "null", 4), p += 4;
    }
    *p++ = ']';
    out->size = (size_t)(p - out->data);
}

static void print_csv(bytes *out, const float *x, size_t count) {
    bytes_reserve(out, count * 18 + 2);
    char *p = out->data + out->size;
    for (size_t i = 0; i < count; i++) {
        if (i) *p++ = ',';
        p += number_print(p, x[i]);
    }
    out->size = (size_t)(p - out->data);
}

static void header(vector_writer *w) {
    int64_t dims[2] = { (int64_t)w->rows, (int64_t)w->dim };
    w->text.size = 0;
    npy_header(&w->text, PITH_F32, 2, dims, ROWS_WIDTH, NULL);
}

/* What a row is in the file. prefix: empty, or the JSON object it goes into. */
static void print_row(vector_writer *w, const float *row, pith_str prefix) {
    w->text.size = 0;
    if (w->format == FORMAT_NPY || w->format == FORMAT_F32) {
        bytes_add(&w->text, row, w->dim * sizeof *row);
        return;
    }
    bytes_add(&w->text, prefix.data, prefix.size);
    (w->format == FORMAT_CSV ? print_csv : print_floats)(&w->text, row, w->dim);
    bytes_add(&w->text, prefix.size ? "}\n" : "\n", prefix.size ? 2 : 1);
}

/* The whole rows in the file from the place begin on: their number, and where the last of them begins and ends. */
static uint64_t find_rows(vector_writer *w, off_t begin, off_t *last, off_t *end) {
    FILE *f = w->out->file;
    off_t row = (off_t)(w->dim * sizeof(float)), at = begin;
    uint64_t rows = 0;
    char block[1 << 16];
    *last = *end = begin;
    if (w->format == FORMAT_NPY || w->format == FORMAT_F32) {
        fseeko(f, 0, SEEK_END);
        rows = ftello(f) > begin ? (uint64_t)((ftello(f) - begin) / row) : 0;
        *end = begin + (off_t)rows * row;
        *last = rows ? *end - row : begin;
        return rows;
    }
    fseeko(f, begin, SEEK_SET);
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0; at += (off_t)n) {
        for (const char *p = block; (p = memchr(p, '\n', n - (size_t)(p - block))); p++, rows++) {
            *last = *end;
            *end = at + (off_t)(p - block) + 1;
        }
    }
    return rows;
}

/* Finds what an earlier call has left. */
static int resume(vector_writer *w, const command *c) {
    FILE *f = w->out->file;
    off_t last, end;
    uint64_t rows = find_rows(w, (off_t)w->text.size, &last, &end);
    bool good = !fseeko(f, last, SEEK_SET);
    if (rows) {
        w->rows = rows - 1;
        w->last.size = 0;
        bytes_reserve(&w->last, (size_t)(end - last));
        w->last.size = (size_t)(end - last);
        good = good && fread(w->last.data, 1, w->last.size, f) == w->last.size && !fseeko(f, last, SEEK_SET);
    }
    w->found = true;
    return good ? EXIT_DONE : fail(c, "%s: %s", w->out->temporary, strerror(errno ? errno : EIO));
}

/* If this is the last row that was found, the file is written again from there. */
static bool go_on(vector_writer *w, const float *row, pith_str prefix) {
    FILE *f = w->out->file;
    print_row(w, row, prefix);
    if (w->last.size && (w->text.size != w->last.size || memcmp(w->text.data, w->last.data, w->last.size)))
        return false;
    w->found = false;
    if (!ftruncate(fileno(f), ftello(f))) return true;
    w->out->error = errno;
    return false;
}

int vector_writer_open(vector_writer *w, const command *c, output *out, vector_format format, size_t dim) {
    *w = (vector_writer){ .out = out, .format = format, .dim = dim };
    if (format == FORMAT_NPY) header(w);
    if (out->resumable) return resume(w, c);
    if (format == FORMAT_NPY && fseek(out->file, 0, SEEK_CUR)) {
        w->spool = tmpfile();
        return w->spool ? EXIT_DONE : fail(c, "no temporary file for the rows: %s", strerror(errno));
    }
    output_write(out, w->text.data, w->text.size);
    return EXIT_DONE;
}

static pith_str prefix_of(const char *prefixes, const size_t *begins, size_t i) {
    return prefixes ? (pith_str){ prefixes + begins[i], begins[i + 1] - begins[i] } : (pith_str){ NULL, 0 };
}

bool vector_writer_rows(vector_writer *w, const float *rows, size_t count, const char *prefixes, const size_t *begins) {
    if (w->found && count && !go_on(w, rows, prefix_of(prefixes, begins, 0))) return false;
    w->rows += count;
    if (w->spool) {
        if (fwrite(rows, w->dim * sizeof *rows, count, w->spool) == count) return true;
        w->out->error = errno;
        return false;
    }
    if (w->format == FORMAT_NPY || w->format == FORMAT_F32)
        return output_write(w->out, rows, count * w->dim * sizeof *rows);
    for (size_t i = 0; i < count; i++) {
        print_row(w, rows + i * w->dim, prefix_of(prefixes, begins, i));
        if (!output_write(w->out, w->text.data, w->text.size)) return false;
    }
    return true;
}

bool vector_writer_unmet(const vector_writer *w) { return w->found && w->last.size; }

static bool copy_spool(vector_writer *w) {
    char block[1 << 16];
    size_t n;
    header(w);
    bool good = output_write(w->out, w->text.data, w->text.size);
    rewind(w->spool);
    while (good && (n = fread(block, 1, sizeof block, w->spool)) > 0) good = output_write(w->out, block, n);
    return good && !ferror(w->spool);
}

bool vector_writer_close(vector_writer *w) {
    bool good = !w->out->error && !vector_writer_unmet(w);
    if (w->spool) {
        good = good && copy_spool(w);
        fclose(w->spool);
    } else if (w->format == FORMAT_NPY && good) {
        header(w);
        good = !fseek(w->out->file, 0, SEEK_SET) && output_write(w->out, w->text.data, w->text.size) &&
               !fseek(w->out->file, 0, SEEK_END);
        if (!good && !w->out->error) w->out->error = errno;
    }
    free(w->text.data);
    free(w->last.data);
    w->text = w->last = (bytes){ NULL, 0, 0 };
    return good;
}
