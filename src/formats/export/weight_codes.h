/* weight_codes.h - the columns of a weight as codes of few bits, with a scale for every block of a
 * column. */
#ifndef PITH_FORMATS_EXPORT_WEIGHT_CODES_H
#define PITH_FORMATS_EXPORT_WEIGHT_CODES_H

#include "base/memory/memory.h"
#include "engine/graph/graph.h"

struct pith__factor; /* engine/kernels/quantize.h */

/* A code q stands for (q - zero) * scale. */
typedef struct pith__weight_code_form {
    int32_t bits;   /* 4 or 8 */
    int64_t block;  /* elements of a column that share a scale; 0: all of them */
    bool symmetric; /* the zero point is the middle of the range, 8 or 128; else it is chosen for
                       each block */
    int32_t reach;  /* symmetric only: codes are at most this far from the middle; 0: all are
                       used */
} pith__weight_code_form;

/* Numbers that become codes: element i of column j is float i * row + j * column of data, at any
 * address. Their numbers must be finite. */
typedef struct pith__weight_code_source {
    const void *data;
    int64_t k, n; /* elements of a column, columns */
    int64_t row, column;
} pith__weight_code_source;

typedef struct pith__weight_codes {
    int64_t k, n, blocks; /* blocks of a column */
    int64_t block;        /* elements of a block; the last may have fewer */
    uint8_t *codes;       /* [n, k] */
    float *scales;        /* [n, blocks]; may be negative or 0 */
    uint8_t *zeros;       /* [n, blocks] */
} pith__weight_codes;

/* Rounds all columns, for a graph that is being made; if that must stop, not all of them. Without a
 * factor each number is rounded to nearest, on the scale that makes the sum of squared errors of
 * its block small. With a factor the errors are weighted by the inputs that the matmul gets, and
 * compensated in the numbers not yet rounded (engine/kernels/quantize.h). The same numbers give the
 * same codes on every processor and any number of threads. The arena gets the result; scratch is
 * freed by the caller. Returns false if memory is out. */
bool pith__weight_codes_round(pith__weight_codes *codes, const pith__weight_code_form *form,
                              const pith__weight_code_source *source,
                              const struct pith__factor *factor, const pith__graph *graph,
                              pith__arena *arena, pith__arena *scratch);

/* Packs the codes of each column into bytes, those of 4 bits with the low bits first: [n, size *
 * bits / 8]. size is the number of codes of a column, at least k, and even; those behind k are zero
 * points of the last block. *bytes is the size. NULL: memory is out. */
uint8_t *pith__weight_codes_pack(size_t *bytes, const pith__weight_codes *codes, int64_t size,
                                 int32_t bits, pith__arena *arena);
/* The same for the zero points: [n, ceil(blocks * bits / 8)]. */
uint8_t *pith__weight_codes_pack_zeros(size_t *bytes, const pith__weight_codes *codes, int32_t bits,
                                       pith__arena *arena);

#endif
