/* vectors.c - writing vectors.
 *
 * The header of a .npy file holds the number of rows, which is known only at the end. If the output
 * can seek, the header is written last into a gap left for it; otherwise the rows are spooled to a
 * temporary file. Resuming is safe because a vector depends only on its text and the model: the
 * last row that is there is computed again and compared. */
#include "cli/arrays/vectors.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/half.h"
#include "cli/arrays/npy_tensor.h"
#include "cli/arrays/vector_file.h"
#include "cli/base/float_text.h"

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

/* Dtypes of pith_vector_type, in its order. */
static const int32_t row_dtypes[] = { PITH_F32, PITH_F16, PITH_I8, PITH_U8, PITH_I8, PITH_U8 };

char vector_delimiter(vector_format format) { return format == FORMAT_TSV ? '\t' : ','; }

static bool is_cells(const vector_writer *w) {
    return w->layout.format == FORMAT_CSV || w->layout.format == FORMAT_TSV;
}

/* Appends the numbers of a row with commas between them. */
static void print_numbers(vector_writer *w, const void *row) {
    const int32_t type = w->layout.as.type, dtype = row_dtypes[type];
    const bool half = type == PITH_VECTOR_F16, whole = dtype == PITH_I8 || dtype == PITH_U8;
    const size_t count = whole ? w->row_bytes : w->layout.dim;
    const char comma = vector_delimiter(w->layout.format);
    bytes_reserve(&w->text, count * 18);
    char *p = w->text.data + w->text.size;
    for (size_t i = 0; i < count; i++) {
        float x = 0;
        if (i) *p++ = comma;
        if (whole) {
            p += sprintf(p, "%d",
                         dtype == PITH_I8 ? ((const int8_t *)row)[i] : ((const uint8_t *)row)[i]);
            continue;
        }
        if (half)
            x = pith__f32_of_f16(((const uint16_t *)row)[i]);
        else
            x = ((const float *)row)[i];
        if (isfinite(x) || is_cells(w))
            p += number_print(p, x);
        else
            p = memcpy(p, "null", 4), p += 4;
    }
    w->text.size = (size_t)(p - w->text.data);
}

/* "id,v0,v1,…" */
static void cells_header(vector_writer *w) {
    const char comma = vector_delimiter(w->layout.format);
    const int32_t dtype = row_dtypes[w->layout.as.type];
    const bool whole = dtype == PITH_I8 || dtype == PITH_U8;
    const size_t count = whole ? w->row_bytes : w->layout.dim;
    w->text.size = 0;
    bytes_add(&w->text, "id", 2);
    for (size_t i = 0; i < count; i++) bytes_print(&w->text, "%cv%zu", comma, i);
    bytes_add(&w->text, "\n", 1);
}

static void header(vector_writer *w) {
    if (is_cells(w)) {
        cells_header(w);
        return;
    }
    const int32_t dtype = row_dtypes[w->layout.as.type];
    const bool whole = dtype == PITH_I8 || dtype == PITH_U8;
    int64_t dims[2] = { (int64_t)w->rows, (int64_t)(whole ? w->row_bytes : w->layout.dim) };
    w->text.size = 0;
    npy_header(&w->text, dtype, 2, dims, ROWS_WIDTH, NULL);
}

static bool is_raw(const vector_writer *w) {
    return w->layout.format == FORMAT_NPY || w->layout.format == FORMAT_F32;
}

/* What a row is in the file. prefix: empty, or the JSON object it goes into. */
static void print_row(vector_writer *w, const void *row, pith_str prefix) {
    w->text.size = 0;
    if (is_raw(w)) {
        bytes_add(&w->text, row, w->row_bytes);
        return;
    }
    const bool cells = is_cells(w);
    bytes_add(&w->text, prefix.data, prefix.size);
    if (!cells) bytes_add(&w->text, "[", 1);
    print_numbers(w, row);
    if (!cells) bytes_add(&w->text, prefix.size ? "]}" : "]", prefix.size ? 2 : 1);
    bytes_add(&w->text, "\n", 1);
}

/* The rows in the type they are written in; NULL: conversion says why not. */
static const char *code_rows(vector_writer *w, const float *rows, size_t count) {
    if (w->layout.as.type == PITH_VECTOR_F32) return (const char *)rows;
    w->coded.size = 0;
    bytes_reserve(&w->coded, count * w->row_bytes + 1);
    pith_status status = pith_quantize_vectors(w->coded.data, rows, count, w->layout.dim,
                                               &w->layout.as, &w->conversion);
    return status ? NULL : w->coded.data;
}

/* The whole rows in the file from the place begin on: their number, and where the last of them
 * begins and ends. */
static uint64_t find_rows(vector_writer *w, off_t begin, off_t *last, off_t *end) {
    FILE *f = w->out->file;
    off_t row = (off_t)w->row_bytes, at = begin;
    uint64_t rows = 0;
    char block[1 << 16];
    *last = *end = begin;
    if (is_raw(w)) {
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
        good = good && fread(w->last.data, 1, w->last.size, f) == w->last.size &&
               !fseeko(f, last, SEEK_SET);
    }
    w->found = true;
    if (good) return EXIT_DONE;
    return fail(c, "%s: %s", w->out->temporary, strerror(errno ? errno : EIO));
}

/* Writes the header of cells where it belongs, and goes back. False: errno says why. */
static bool put_header(vector_writer *w) {
    FILE *f = w->out->file;
    bytes row = w->text;
    const off_t at = ftello(f);
    w->text = (bytes){ NULL, 0, 0 };
    header(w);
    errno = 0;
    const bool good = !fseeko(f, 0, SEEK_SET) &&
                      fwrite(w->text.data, 1, w->text.size, f) == w->text.size &&
                      !fseeko(f, at, SEEK_SET);
    free(w->text.data);
    w->text = row;
    return good;
}

/* If this is the last row that was found, the file is written again from there. */
static bool go_on(vector_writer *w, const void *row, pith_str prefix) {
    FILE *f = w->out->file;
    print_row(w, row, prefix);
    if (w->last.size &&
        (w->text.size != w->last.size || memcmp(w->text.data, w->last.data, w->last.size)))
        return false;
    w->found = false;
    if (!ftruncate(fileno(f), ftello(f)) && (!w->layout.ids || put_header(w))) return true;
    w->out->error = errno ? errno : EIO;
    return false;
}

int vector_writer_open(vector_writer *w, const command *c, output *out,
                       const vector_layout *layout) {
    *w = (vector_writer){ .out = out, .layout = *layout };
    w->row_bytes = pith_quantize_row_bytes(layout->as.type, layout->dim);
    if (layout->format == FORMAT_NPY || layout->ids) header(w);
    if (out->resumable) return resume(w, c);
    if (layout->format == FORMAT_NPY && fseek(out->file, 0, SEEK_CUR)) {
        w->spool = tmpfile();
        return w->spool ? EXIT_DONE
                        : fail(c, "no temporary file for the rows: %s", strerror(errno));
    }
    output_header(out, w->text.data, w->text.size);
    return EXIT_DONE;
}

static pith_str prefix_of(const char *prefixes, const size_t *begins, size_t i) {
    return prefixes ? (pith_str){ prefixes + begins[i], begins[i + 1] - begins[i] }
                    : (pith_str){ NULL, 0 };
}

bool vector_writer_rows(vector_writer *w, const float *rows, size_t count, const char *prefixes,
                        const size_t *begins) {
    const char *coded = code_rows(w, rows, count);
    if (!coded || (w->found && count && !go_on(w, coded, prefix_of(prefixes, begins, 0))))
        return false;
    w->rows += count;
    if (w->spool) {
        if (fwrite(coded, w->row_bytes, count, w->spool) == count) return true;
        w->out->error = errno;
        return false;
    }
    if (is_raw(w)) return output_write(w->out, coded, count * w->row_bytes);
    for (size_t i = 0; i < count; i++) {
        print_row(w, coded + i * w->row_bytes, prefix_of(prefixes, begins, i));
        if (!output_write(w->out, w->text.data, w->text.size)) return false;
    }
    return true;
}

bool vector_writer_unmet(const vector_writer *w) { return w->found && w->last.size; }

static bool copy_spool(vector_writer *w) {
    char block[1 << 16];
    size_t n;
    header(w);
    bool good = output_header(w->out, w->text.data, w->text.size);
    rewind(w->spool);
    while (good && (n = fread(block, 1, sizeof block, w->spool)) > 0)
        good = output_write(w->out, block, n);
    return good && !ferror(w->spool);
}

bool vector_writer_close(vector_writer *w) {
    bool good = !w->out->error && !vector_writer_unmet(w);
    if (w->spool) {
        good = good && copy_spool(w);
        fclose(w->spool);
    } else if (w->layout.format == FORMAT_NPY && good) {
        header(w);
        good = !fseek(w->out->file, 0, SEEK_SET) &&
               output_header(w->out, w->text.data, w->text.size) &&
               !fseek(w->out->file, 0, SEEK_END);
        if (!good && !w->out->error) w->out->error = errno;
    }
    free(w->text.data);
    free(w->coded.data);
    free(w->last.data);
    w->text = w->coded = w->last = (bytes){ NULL, 0, 0 };
    return good;
}
