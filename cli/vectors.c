/* vectors.c - writing vectors.
 *
 * A .npy header holds the number of rows, which is known at the end: it is written last into a gap left for it where
 * the output can be positioned, and otherwise the rows are spooled to a temporary file. */
#include "cli/vectors.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

int vector_writer_open(vector_writer *w, const command *c, output *out, vector_format format, size_t dim) {
    *w = (vector_writer){ .out = out, .format = format, .dim = dim };
    if (format != FORMAT_NPY) return EXIT_DONE;
    if (fseek(out->file, 0, SEEK_CUR)) {
        w->spool = tmpfile();
        return w->spool ? EXIT_DONE : fail(c, "no temporary file for the rows: %s", strerror(errno));
    }
    header(w);
    output_write(out, w->text.data, w->text.size);
    return EXIT_DONE;
}

bool vector_writer_rows(vector_writer *w, const float *rows, size_t count, const pith_str *prefix) {
    w->rows += count;
    if (w->spool) {
        if (fwrite(rows, w->dim * sizeof *rows, count, w->spool) == count) return true;
        w->out->error = errno;
        return false;
    }
    if (w->format == FORMAT_NPY || w->format == FORMAT_F32)
        return output_write(w->out, rows, count * w->dim * sizeof *rows);
    for (size_t i = 0; i < count; i++) {
        w->text.size = 0;
        if (prefix) bytes_add(&w->text, prefix[i].data, prefix[i].size);
        (w->format == FORMAT_CSV ? print_csv : print_floats)(&w->text, rows + i * w->dim, w->dim);
        bytes_add(&w->text, prefix ? "}\n" : "\n", prefix ? 2 : 1);
        if (!output_write(w->out, w->text.data, w->text.size)) return false;
    }
    return true;
}

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
    bool good = !w->out->error;
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
    w->text = (bytes){ NULL, 0, 0 };
    return good;
}
