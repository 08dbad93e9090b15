/* vector_file.c - see vector_file.h. Files are hostile: sizes are checked against the bytes that
 * are there. */
#include "cli/arrays/vector_file.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/formats/csv.h"
#include "base/formats/npy.h"
#include "base/half.h"
#include "base/str.h"
#include "cli/arrays/npy_tensor.h"
#include "cli/arrays/tensor_file.h"
#include "cli/base/text_input.h"
#include "cli/output/json_out.h"

/* The longest line of JSON. A vector of a million components has about 20 MB. */
#define LINE_BYTES ((size_t)64 << 20)

void vector_file_close(vector_file *f) {
    pith__file_close(&f->file);
    free(f->owned);
    free(f->ids.data);
    free(f->id_ends);
    *f = (vector_file){ 0 };
}

/* Rows of floats that were read into memory. */
static int take_rows(vector_file *f, const command *c, const vector_reading *how) {
    f->dtype = PITH_F32;
    f->rank = 2;
    f->groups = 1;
    f->per_group = f->count;
    if (!f->count || !f->dim) return fail(c, "%s: there are no vectors in it", f->path);
    if (how->dim && how->dim != f->dim)
        return fail(c, "%s: vectors have %zu components, not %zu", f->path, f->dim, how->dim);
    return EXIT_DONE;
}

/* The code of an opening; after a failure nothing is open. */
static int opened(vector_file *f, int code) {
    if (code) vector_file_close(f);
    return code;
}

/* ---- .npy ---- */

static size_t element_size(int32_t dtype) {
    if (dtype == PITH_F32) return 4;
    if (dtype == PITH_F16) return 2;
    if (dtype == PITH_I8 || dtype == PITH_U8) return 1;
    return 0;
}

/* Takes the shape of an array of vectors. */
static int take_shape(vector_file *f, const command *c, const pith_tensor *t,
                      const vector_reading *how) {
    char shape[300];
    if (!element_size(t->dtype))
        return fail(
            c, "%s: %s cannot be searched; save x.astype(numpy.float32), or float16, int8, uint8",
            f->path, tensor_text(t, shape, sizeof shape));
    if (t->rank < 1 || t->rank > 3)
        return fail(c, "%s: %s; vectors are the rows of an array with two axes", f->path,
                    tensor_text(t, shape, sizeof shape));
    const size_t last = (size_t)t->dims[t->rank - 1];
    f->rank = t->rank;
    f->dtype = t->dtype;
    f->bits = how->bits && t->dtype == PITH_U8;
    f->groups = t->rank == 3 ? (size_t)t->dims[0] : 1;
    f->per_group = t->rank > 1 ? (size_t)t->dims[t->rank - 2] : 1;
    f->count = f->groups * f->per_group;
    f->dim = last;
    if (f->bits) {
        f->dim = how->dim ? how->dim : last * 8;
        if ((f->dim + 7) / 8 != last)
            return fail(c, "%s: rows have %zu bytes, which are not %zu bits", f->path, last,
                        f->dim);
    } else if (how->dim && how->dim != last)
        return fail(c, "%s: vectors have %zu components, not %zu", f->path, last, how->dim);
    return f->dim ? EXIT_DONE
                  : fail(c, "%s: %s; vectors have at least one component", f->path,
                         tensor_text(t, shape, sizeof shape));
}

static int open_npy(vector_file *f, const command *c, const vector_reading *how) {
    char message[300];
    pith_tensor t;
    if (!npy_view(&t, f->file.data, f->file.size, message, sizeof message))
        return fail(c, "%s: %s", f->path, message);
    int code = take_shape(f, c, &t, how);
    if (code) return code;
    f->rows = t.data;
    if ((uintptr_t)f->rows % element_size(f->dtype)) { /* NumPy writes no such file */
        f->owned = grow(NULL, t.bytes + 1);
        f->rows = memcpy(f->owned, t.data, t.bytes);
    }
    return EXIT_DONE;
}

/* Elements are copied one by one: the array of a .npy file need not be aligned for its type. */
int vector_file_integers(int64_t **numbers, size_t *count, const command *c, const char *path) {
    char message[300], shape[300];
    pith__file file;
    pith_tensor t = { 0 };
    int code = map_file(&file, c, path);
    if (code) return code;
    if (!npy_view(&t, file.data, file.size, message, sizeof message)) {
        code = fail(c, "%s: %s", path, message);
    } else if (t.rank != 1 || (t.dtype != PITH_I64 && t.dtype != PITH_I32)) {
        code = fail(c, "%s: %s; offsets are int64 with one axis", path,
                    tensor_text(&t, shape, sizeof shape));
    } else {
        *count = (size_t)t.dims[0];
        *numbers = grow(NULL, *count * sizeof **numbers + 1);
        for (size_t i = 0; i < *count; i++) {
            int32_t small;
            memcpy(&small, (const char *)t.data + 4 * i, sizeof small);
            if (t.dtype == PITH_I32)
                (*numbers)[i] = small;
            else
                memcpy(&(*numbers)[i], (const char *)t.data + 8 * i, sizeof **numbers);
        }
    }
    pith__file_close(&file);
    return code;
}

/* ---- raw floats ---- */

static int open_raw(vector_file *f, const command *c, const vector_reading *how) {
    if (!how->dim) return fail(c, "%s: a file of raw floats needs --dim", f->path);
    const size_t row = how->dim * sizeof(float);
    if (f->file.size % row)
        return fail(
            c,
            "%s: %zu bytes are not whole vectors of %zu floats; it is cut off, or --dim is another",
            f->path, f->file.size, how->dim);
    f->dtype = PITH_F32;
    f->rank = 2;
    f->groups = 1;
    f->count = f->per_group = f->file.size / row;
    f->dim = how->dim;
    f->rows = f->file.data;
    return EXIT_DONE;
}

/* ---- ids ---- */

/* Notes where the id of the next vector ends, which was added to f->ids. */
static void end_id(vector_file *f, bool any) {
    if (any && !f->id_ends) { /* those before it have none */
        f->id_ends = grow(NULL, 1);
        for (size_t i = 0; i < f->count; i++) {
            f->id_ends = grow_for(f->id_ends, i, sizeof *f->id_ends);
            f->id_ends[i] = 0;
        }
    }
    if (!f->id_ends) return;
    f->id_ends = grow_for(f->id_ends, f->count, sizeof *f->id_ends);
    f->id_ends[f->count] = f->ids.size;
}

pith_str vector_file_id(const vector_file *f, size_t index) {
    if (!f->id_ends) return (pith_str){ NULL, 0 };
    return bytes_text(&f->ids, index ? f->id_ends[index - 1] : 0, f->id_ends[index]);
}

/* ---- CSV ---- */

/* The number in a cell; false: there is none. */
static bool csv_number(float *x, pith_str cell) {
    char text[64], *end;
    if (!cell.size || cell.size >= sizeof text) return false;
    memcpy(text, cell.data, cell.size);
    text[cell.size] = 0;
    *x = strtof(text, &end);
    return !*end;
}

/* Whether the row that begins here names columns, and whether the first one is "id". */
static bool csv_header(bool *ids, pith__csv_scan s) {
    bool numbers = false;
    pith__csv_after after;
    *ids = false;
    for (size_t column = 0;; column++) {
        pith_str cell;
        float x;
        after = pith__csv_next(&s, &cell);
        if (!column) *ids = pith__str_is(cell, "id");
        numbers |= csv_number(&x, cell);
        if (after != PITH_CSV_CELL) return *ids || !numbers;
    }
}

/* Reads the vector that begins here. NULL, or what is wrong. */
static const char *csv_row(vector_file *f, bytes *rows, pith__csv_scan *s, bool ids) {
    const char *why = NULL;
    size_t dim = 0;
    pith__csv_after after = PITH_CSV_CELL;
    for (size_t column = 0; after == PITH_CSV_CELL; column++) {
        pith_str cell;
        float x;
        after = pith__csv_next(s, &cell);
        if (after == PITH_CSV_FAULT) return s->fault;
        if (after == PITH_CSV_MEMORY) return "out of memory";
        if (ids && !column) {
            json_quote(&f->ids, cell);
            continue;
        }
        if (!csv_number(&x, cell))
            why = "it holds something else than numbers; ids are a first column named id in the "
                  "header";
        bytes_add(rows, &x, why ? 0 : sizeof x);
        dim++;
    }
    if (why) return why;
    if (!f->count) f->dim = dim;
    if (dim != f->dim) return "it has another number of components than the row before it";
    end_id(f, ids);
    f->count++;
    return NULL;
}

static int open_csv(vector_file *f, const command *c, char usual, const vector_reading *how) {
    const pith_str all = { (const char *)f->file.data, f->file.size };
    bytes rows = { NULL, 0, 0 };
    pith__csv_scan s = pith__csv_begin(all, usual);
    pith__arena arena;
    bool ids = false;
    int code = EXIT_DONE;
    pith__arena_init(&arena, &pith__allocator_default);
    s.arena = &arena;
    s.loose = true;
    s.delimiter = pith__csv_delimiter((pith_str){ s.at, (size_t)(s.end - s.at) }, usual);
    while (s.at < s.end && pith__csv_blank(&s)) continue;
    pith_str cell;
    if (s.at < s.end && csv_header(&ids, s))
        while (pith__csv_next(&s, &cell) == PITH_CSV_CELL) continue;
    while (!code && s.at < s.end) {
        if (pith__csv_blank(&s)) continue;
        pith__arena_reset(&arena);
        const char *why = csv_row(f, &rows, &s, ids);
        if (why) code = fail(c, "%s, row %zu: %s", f->path, f->count + 1, why);
    }
    pith__arena_free(&arena);
    f->owned = rows.data;
    f->rows = rows.data;
    return code ? code : take_rows(f, c, how);
}

/* ---- JSON lines ---- */

/* The array in a line, or NULL and why. */
static const json_t *line_vector(const json_t *line, const char *field, const char **why) {
    const json_t *array = json_is_object(line) ? json_object_get(line, field) : line;
    *why = NULL;
    if (!array)
        *why = "there is no such field";
    else if (!json_is_array(array))
        *why = "it holds no array";
    else if (!json_array_size(array))
        *why = "the array is empty";
    return *why ? NULL : array;
}

/* Appends the vector in a line; NULL, or why it cannot be. */
static const char *take_line(vector_file *f, bytes *rows, const json_t *line, const char *field) {
    const char *why;
    const json_t *array = line_vector(line, field, &why);
    if (!array) return why;
    const size_t dim = json_array_size(array);
    if (!f->count) f->dim = dim;
    if (dim != f->dim) return "it has another number of components than the vector before it";
    for (size_t i = 0; i < dim; i++) {
        const json_t *number = json_array_get(array, i);
        if (!json_is_number(number) && !json_is_null(number))
            return "it holds something else than numbers";
        /* as print_floats writes it */
        const float x = json_is_null(number) ? NAN : (float)json_number_value(number);
        bytes_add(rows, &x, sizeof x);
    }
    char *id = json_is_object(line) ? json_dumps(json_object_get(line, "id"),
                                                 JSON_ENCODE_ANY | JSON_REAL_PRECISION(17))
                                    : NULL;
    if (id) bytes_add(&f->ids, id, strlen(id));
    end_id(f, id != NULL);
    free(id);
    f->count++;
    return NULL;
}

static bool is_blank(const bytes *line) {
    for (size_t i = 0; i < line->size; i++)
        if (!strchr(" \t\r", line->data[i])) return false;
    return true;
}

/* JSON lines cannot be mapped, so all vectors are read into one block. Empty lines are passed over;
 * any other line must have a vector of the same length. */
static int open_jsonl(vector_file *f, const command *c, const vector_reading *how) {
    const char *const paths[] = { f->path };
    const string_list list = { (const char **)(uintptr_t)paths, 1 };
    text_input in;
    bytes line = { NULL, 0, 0 }, rows = { NULL, 0, 0 };
    bool cut;
    int state, code = EXIT_DONE;
    text_input_open(&in, &list);
    in.limit = LINE_BYTES;
    while (!code && (state = text_input_next(&in, &line, &cut)) != 0) {
        json_error_t error;
        if (state < 0) {
            code = fail(c, "%s", in.message);
        } else if (!is_blank(&line)) {
            json_t *value = json_loadb(line.data, line.size, 0, &error);
            const char *why = cut ? "the line is longer than 64 MiB" : NULL;
            if (!why) why = value ? take_line(f, &rows, value, how->field) : error.text;
            if (why) code = fail(c, "%s: field '%s': %s", text_input_place(&in), how->field, why);
            json_decref(value);
        }
        line.size = 0;
    }
    text_input_close(&in);
    free(line.data);
    f->owned = rows.data;
    f->rows = rows.data;
    return code ? code : take_rows(f, c, how);
}

/* ---- all ---- */

int vector_file_open(vector_file *f, const command *c, const char *path,
                     const vector_reading *how) {
    *f = (vector_file){ .path = path };
    const file_kind *kind = file_kind_of(path);
    const char *suffix = kind ? kind->suffix : "";
    int code = map_file(&f->file, c, path);
    if (code) return code;
    const bool npy = pith__npy_is((pith_str){ (const char *)f->file.data, f->file.size });
    if (npy || !strcmp(suffix, ".npy")) return opened(f, open_npy(f, c, how));
    if (!strcmp(suffix, ".f32") || !strcmp(suffix, ".bin")) return opened(f, open_raw(f, c, how));
    if (!strcmp(suffix, ".csv")) return opened(f, open_csv(f, c, ',', how));
    if (!strcmp(suffix, ".tsv")) return opened(f, open_csv(f, c, '\t', how));
    return opened(f, open_jsonl(f, c, how));
}

float *vector_file_floats(const vector_file *f) {
    float *floats = grow(NULL, f->count * f->dim * sizeof *floats + 1);
    const size_t packed = (f->dim + 7) / 8;
    for (size_t i = 0; i < f->count * f->dim; i++) {
        const size_t row = i / f->dim, at = i % f->dim;
        if (f->bits)
            floats[i] = ((const uint8_t *)f->rows)[row * packed + at / 8] >> (7 - at % 8) & 1
                            ? 1.0f
                            : -1.0f;
        else if (f->dtype == PITH_F32)
            floats[i] = ((const float *)f->rows)[i];
        else if (f->dtype == PITH_F16)
            floats[i] = pith__f32_of_f16(((const uint16_t *)f->rows)[i]);
        else
            floats[i] =
                f->dtype == PITH_I8 ? ((const int8_t *)f->rows)[i] : ((const uint8_t *)f->rows)[i];
    }
    return floats;
}
