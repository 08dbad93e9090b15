/* vectors.h - rows of floats as JSON lines, CSV, raw little-endian floats or one .npy array. */
#ifndef PITH_CLI_VECTORS_H
#define PITH_CLI_VECTORS_H

#include "cli/output.h"
#include "cli/text_input.h"

typedef enum vector_format { FORMAT_JSONL, FORMAT_NPY, FORMAT_F32, FORMAT_CSV } vector_format;
#define VECTOR_FORMATS "jsonl|npy|f32|csv"

typedef struct vector_writer {
    output *out;
    vector_format format;
    size_t dim;
    uint64_t rows;
    FILE *spool; /* npy to a pipe: the rows wait here until their number is known */
    bytes text;
} vector_writer;

int vector_writer_open(vector_writer *w, const command *c, output *out, vector_format format, size_t dim);
/* prefix: NULL, or for each row the JSON object it goes into, without the closing brace. False: a write failed. */
bool vector_writer_rows(vector_writer *w, const float *rows, size_t count, const pith_str *prefix);
/* Puts the number of rows where it belongs. False: a write failed. */
bool vector_writer_close(vector_writer *w);

/* "[0.1,0.2,…]"; %.9g gives every float back exactly, what JSON cannot say is null. */
void print_floats(bytes *out, const float *x, size_t count);

#endif
