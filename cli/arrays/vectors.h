/* vectors.h - rows of floats as JSON lines, CSV, TSV, raw little-endian floats or one .npy array;
 * new, or more of them in a file that an earlier call left. */
#ifndef PITH_CLI_ARRAYS_VECTORS_H
#define PITH_CLI_ARRAYS_VECTORS_H

#include "cli/base/text_input.h"
#include "cli/output/output.h"

typedef enum vector_format {
    FORMAT_JSONL,
    FORMAT_NPY,
    FORMAT_F32,
    FORMAT_CSV,
    FORMAT_TSV
} vector_format;

/* How rows are written. */
typedef struct vector_layout {
    vector_format format;
    size_t dim; /* floats of a row */
    pith_quantize_options as;
    bool ids; /* CSV and TSV: a header, and a first column "id", which the prefixes of rows are */
} vector_layout;

/* What stands between the numbers of a row of text. */
char vector_delimiter(vector_format format);

typedef struct vector_writer {
    output *out;
    vector_layout layout;
    size_t row_bytes; /* of a row in layout.as */
    uint64_t rows;    /* written, and before that: found and kept */
    FILE *spool;      /* npy to a pipe: the rows wait here until their number is known */
    bytes text, coded;
    bool found;            /* a file of an earlier call, of which nothing has been changed yet */
    bytes last;            /* its last whole row, to be compared with the first one written; empty:
                              none */
    pith_error conversion; /* why a row is not written, though no write failed; code PITH_OK:
                              none */
} vector_writer;

/* Rows that a resumable output holds already are kept, but for the last: the first row written must
 * be the same again, to the byte, or nothing is written (found stays). rows says how many rows the
 * caller has to leave out. */
int vector_writer_open(vector_writer *w, const command *c, output *out,
                       const vector_layout *layout);
/* prefixes: NULL, or at begins[i] to begins[i + 1] the JSON object that row i goes into, without
 * the closing brace; with layout.ids the cell of the id and the delimiter behind it. False: a write
 * failed, or `conversion` says what did. */
bool vector_writer_rows(vector_writer *w, const float *rows, size_t count, const char *prefixes,
                        const size_t *begins);
/* Whether a last row was found that no row written has been equal to. */
bool vector_writer_unmet(const vector_writer *w);
/* Puts the number of rows where it belongs. False: a write failed. */
bool vector_writer_close(vector_writer *w);

/* "[0.1,0.2,…]"; %.9g gives every float back exactly, what JSON cannot say is null. */
void print_floats(bytes *out, const float *x, size_t count);

#endif
