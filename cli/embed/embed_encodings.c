/* embed_encodings.c - see embed_encodings.h.
 *
 * JSON lines have one result per text: {"indices": [...], "values": [...]} for sparse weights,
 * [[...], ...] for vectors of tokens, and an object of these by name if more than one kind is asked
 * for. Arrays for NumPy are one file each, and grow while texts are read: their headers are written
 * again at the end, when their lengths are known. */
#include "cli/embed/embed_encodings.h"

#include <stdlib.h>
#include <string.h>

#include "cli/arrays/npy_tensor.h"
#include "cli/base/float_text.h"
#include "cli/embed/long_texts.h"
#include "cli/output/output.h"

/* Texts of a batch. Vectors of tokens are large: 256 texts of 512 tokens and 1024 components take
 * 512 MiB. */
#define BATCH_TEXTS ((size_t)256)
/* Room for the digits of any length. */
#define LENGTH_DIGITS 20

/* ---- JSON ---- */

static void print_sparse(bytes *out, const pith_sparse_rows *rows, size_t text) {
    char number[NUMBER_CHARS];
    bytes_print(out, "{\"indices\": [");
    for (int64_t i = rows->offsets[text]; i < rows->offsets[text + 1]; i++)
        bytes_print(out, "%s%d", i > rows->offsets[text] ? ", " : "", rows->indices[i]);
    bytes_print(out, "], \"values\": [");
    for (int64_t i = rows->offsets[text]; i < rows->offsets[text + 1]; i++) {
        if (i > rows->offsets[text]) bytes_add(out, ", ", 2);
        bytes_add(out, number, number_print(number, rows->values[i]));
    }
    bytes_print(out, "]}");
}

static void print_rows(bytes *out, const pith_token_rows *rows, size_t text) {
    bytes_add(out, "[", 1);
    for (int64_t i = rows->offsets[text]; i < rows->offsets[text + 1]; i++) {
        if (i > rows->offsets[text]) bytes_add(out, ",", 1);
        print_floats(out, rows->vectors + (size_t)i * rows->dim, rows->dim);
    }
    bytes_add(out, "]", 1);
}

static void print_kind(bytes *out, const pith_encoded *e, uint32_t kind, size_t text) {
    switch (kind) {
    case PITH_ENCODE_DENSE: print_floats(out, e->dense + text * e->dim, e->dim); break;
    case PITH_ENCODE_SPARSE: print_sparse(out, &e->sparse, text); break;
    case PITH_ENCODE_MULTI_VECTOR: print_rows(out, &e->multi_vector, text); break;
    default: print_rows(out, &e->tokens, text); break;
    }
}

static void print_result(bytes *out, const pith_encoded *e, uint32_t what, size_t text) {
    static const char *const names[] = { "dense", "sparse", "multi_vector", "tokens" };
    bool first = true;
    if (!(what & (what - 1))) {
        print_kind(out, e, what, text);
        return;
    }
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!(what & 1u << i)) continue;
        bytes_print(out, "%s\"%s\": ", first ? "{" : ", ", names[i]);
        print_kind(out, e, 1u << i, text);
        first = false;
    }
    bytes_add(out, "}", 1);
}

static bool write_lines(output *out, bytes *line, text_batch *b, const pith_encoded *e,
                        uint32_t what) {
    for (size_t i = 0; i < b->count; i++) {
        line->size = 0;
        if (b->keeps) {
            bytes_add(line, b->kept.data + b->kept_begins[i],
                      b->kept_begins[i + 1] - b->kept_begins[i]);
            bytes_print(line, "\"embedding\":");
        }
        print_result(line, e, what, i);
        bytes_print(line, b->keeps ? "}\n" : "\n");
        if (!bad_lines_write(&b->bad, out, i) || !output_write(out, line->data, line->size))
            return false;
    }
    return bad_lines_write(&b->bad, out, SIZE_MAX) && output_flush(out);
}

/* ---- arrays ---- */

/* One .npy file that grows along its first axis. */
typedef struct growing {
    output out;
    char *path;
    int32_t dtype;
    int64_t dims[2];
    int rank;
    bool open;
} growing;

static bool put_header(growing *g) {
    bytes header = { NULL, 0, 0 };
    npy_header(&header, g->dtype, g->rank, g->dims, LENGTH_DIGITS, NULL);
    bool good = output_write(&g->out, header.data, header.size);
    free(header.data);
    return good;
}

/* path: the output's name without ".npy", then "." and suffix if there is one, then ".npy". */
static int growing_open(growing *g, const embed_encodings *k, const char *suffix, int32_t dtype,
                        int64_t dim, const string_list *files) {
    size_t stem = strlen(k->output);
    if (stem > 4 && !strcmp(k->output + stem - 4, ".npy")) stem -= 4;
    g->path = grow(NULL, stem + strlen(suffix) + 6);
    sprintf(g->path, "%.*s%s%s.npy", (int)stem, k->output, *suffix ? "." : "", suffix);
    g->dtype = dtype;
    g->rank = dim ? 2 : 1;
    g->dims[1] = dim;
    int code = output_open(&g->out, k->c, g->path, files);
    g->open = !code;
    if (g->open) put_header(g);
    return code;
}

static bool growing_add(growing *g, const void *data, int64_t count, size_t item_bytes) {
    g->dims[0] += count;
    return output_write(&g->out, data, (size_t)count * item_bytes);
}

/* code: of the work so far. */
static int growing_close(growing *g, const command *c, int code) {
    if (g->open) {
        if (!code && fseek(g->out.file, 0, SEEK_SET))
            code = fail(c, "%s: the length of an array can only be written to a file", g->path);
        if (!code) put_header(g);
        code = output_close(&g->out, c, !code, code);
    }
    free(g->path);
    return code;
}

/* Sparse: offsets, indices, values. Vectors of tokens: offsets, ids, vectors. */
typedef struct arrays {
    growing files[3];
    bool sparse;
    int64_t items;
} arrays;

static int arrays_open(arrays *a, const embed_encodings *k, size_t dim, const string_list *files) {
    a->sparse = k->options.what == PITH_ENCODE_SPARSE;
    int code = growing_open(&a->files[0], k, "offsets", PITH_I64, 0, files);
    if (!code)
        code = growing_open(&a->files[1], k, a->sparse ? "indices" : "ids", PITH_I32, 0, files);
    if (!code)
        code = growing_open(&a->files[2], k, a->sparse ? "values" : "", PITH_F32,
                            a->sparse ? 0 : (int64_t)dim, files);
    if (!code) growing_add(&a->files[0], &a->items, 1, sizeof a->items);
    return code;
}

static bool arrays_add(arrays *a, const pith_encoded *e, uint32_t what) {
    const pith_token_rows *rows = what == PITH_ENCODE_TOKENS ? &e->tokens : &e->multi_vector;
    const int64_t *offsets = a->sparse ? e->sparse.offsets : rows->offsets,
                  count = offsets[e->texts];
    for (size_t i = 1; i <= e->texts; i++) {
        int64_t end = a->items + offsets[i];
        growing_add(&a->files[0], &end, 1, sizeof end);
    }
    a->items += count;
    return growing_add(&a->files[1], a->sparse ? e->sparse.indices : rows->ids, count,
                       sizeof(int32_t)) &&
           growing_add(&a->files[2], a->sparse ? e->sparse.values : rows->vectors, count,
                       (a->sparse ? 1 : rows->dim) * sizeof(float));
}

static int arrays_close(arrays *a, const command *c, int code) {
    for (int i = 0; i < 3; i++) code = growing_close(&a->files[i], c, code);
    return code;
}

/* ---- the work ---- */

/* The components of a vector of a token. */
static size_t kinds_dim(const embed_encodings *k, pith_error *err) {
    const pith_str none = { "", 0 };
    pith_encoded *e;
    if (k->bm25) return 1;
    if (pith_encode(&e, k->model, &none, 0, &k->options, err)) return 0;
    size_t dim = k->options.what == PITH_ENCODE_TOKENS ? e->tokens.dim : e->multi_vector.dim;
    pith_encoded_free(e);
    return dim ? dim : 1;
}

/* The results of one batch, from the model or from BM25. */
typedef struct kinds_results {
    pith_encoded *e; /* of the model, or: */
    pith_encoded own;
    pith_bm25_rows rows;
} kinds_results;

static const pith_encoded *kinds_encode(kinds_results *r, const embed_encodings *k,
                                        const text_batch *b, pith_error *err) {
    *r = (kinds_results){ .e = NULL };
    if (!k->bm25)
        return pith_encode(&r->e, k->model, b->texts[0], b->count, &k->options, err) ? NULL : r->e;
    if (pith_bm25_encode(&r->rows, k->bm25, b->texts[0], b->count, k->options.role,
                         &k->options.call, err))
        return NULL;
    r->own.texts = b->count;
    r->own.sparse = r->rows.sparse;
    return &r->own;
}

static void kinds_free(kinds_results *r, const embed_encodings *k) {
    if (k->bm25) pith_bm25_rows_free(&r->rows, k->bm25);
    pith_encoded_free(r->e);
}

static int kinds_batches(embed_encodings *k, text_batch *b, output *out, arrays *a) {
    pith_error err = PITH_ERROR_INIT;
    bytes line = { NULL, 0, 0 };
    unsigned long long done = 0;
    int code = EXIT_DONE, state = 0;
    bool written = true;
    while (!code && written && (state = text_batch_next(b, BATCH_TEXTS)) > 0) {
        kinds_results results;
        const pith_encoded *e = kinds_encode(&results, k, b, &err);
        if (!e) {
            code = fail(k->c, "texts %llu to %llu: %s", done + 1, done + b->count, err.message);
            break;
        }
        if (k->refuses_long && !k->bm25 && k->options.embed->stats->truncated) {
            char message[200];
            long_texts_refuse(message, sizeof message, k->model, b->texts[0], b->count, done + 1,
                              &k->options);
            kinds_free(&results, k);
            code = fail(k->c, "%s", message);
            break;
        }
        written =
            a ? arrays_add(a, e, k->options.what) : write_lines(out, &line, b, e, k->options.what);
        kinds_free(&results, k);
        done += b->count;
        progress_line_show(k->progress, done, 0);
    }
    if (!code && state < 0) code = fail(k->c, "%s", b->message);
    progress_line_end(k->progress, done, 0);
    free(line.data);
    return code;
}

int embed_encodings_run(embed_encodings *k, text_batch *b, const string_list *files) {
    pith_error err = PITH_ERROR_INIT;
    size_t dim = kinds_dim(k, &err);
    if (!dim) return fail(k->c, "%s", err.message);
    if (k->format == FORMAT_NPY) {
        arrays a = { .items = 0 };
        int code = arrays_open(&a, k, dim, files);
        if (!code) code = kinds_batches(k, b, NULL, &a);
        return arrays_close(&a, k->c, code);
    }
    output out;
    int code = output_open(&out, k->c, k->output, files);
    if (code) return code;
    code = kinds_batches(k, b, &out, NULL);
    return output_close(&out, k->c, true, code);
}
