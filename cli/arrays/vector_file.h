/* vector_file.h - reading vectors: .npy arrays and raw floats as they lie in the file, JSON lines
 * and CSV into memory. */
#ifndef PITH_CLI_ARRAYS_VECTOR_FILE_H
#define PITH_CLI_ARRAYS_VECTOR_FILE_H

#include "cli/base/bytes.h"
#include "cli/base/mapped_file.h"

/* How a file is read. */
typedef struct vector_reading {
    size_t dim;        /* components of a vector, which a file of raw floats does not say; 0: not
                          known */
    bool bits;         /* vectors of uint8 are packed bits, dim of them or all */
    const char *field; /* JSON lines: the member that holds the vector, where lines are objects */
} vector_reading;

typedef struct vector_file {
    const char *path;
    const void *rows;
    int32_t dtype;            /* PITH_F32, PITH_F16, PITH_I8 or PITH_U8 */
    bool bits;                /* packed in uint8 */
    size_t count, dim;        /* vectors, and components (or bits) of one */
    size_t groups, per_group; /* of an array with three axes: the first and the second one; else 1
                                 and count */
    int rank;                 /* axes of the array; 1: it is one vector */
    bytes ids;                /* of JSON lines and CSV: the member or column "id" of each vector, as
                                 a JSON value */
    size_t *id_ends;          /* [count]; NULL: no vector has one */
    pith__file file;
    void *owned;
} vector_file;

/* .npy by its first bytes, .f32, .csv and .tsv by its name; everything else is JSON lines. CSV has
 * numbers alone, or a first row that names columns and a first column "id". Rows are little-endian
 * as Pith's machines are. EXIT_DONE, or another exit code after a message; then there is nothing to
 * close. */
int vector_file_open(vector_file *f, const command *c, const char *path, const vector_reading *how);
void vector_file_close(vector_file *f);

/* The id of a vector as a JSON value; size 0: it has none. */
pith_str vector_file_id(const vector_file *f, size_t index);

/* The vectors in f32 (bits as +1 and -1), which the caller frees. */
float *vector_file_floats(const vector_file *f);

/* The whole numbers of a .npy file with one axis, which the caller frees. EXIT_DONE, or another
 * exit code after a message. */
int vector_file_integers(int64_t **numbers, size_t *count, const command *c, const char *path);

#endif
