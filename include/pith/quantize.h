/* quantize.h - smaller vectors: floats to 16-bit floats, 8-bit integers or packed bits.
 *
 * Names and formulas are those of sentence_transformers.quantize_embeddings (5.7), in f32. */
#ifndef PITH_QUANTIZE_H
#define PITH_QUANTIZE_H

#include "pith/call.h"
#include "pith/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pith_vector_type {
    PITH_VECTOR_F32 = 0,    /* float: as it is */
    PITH_VECTOR_F16 = 1,    /* IEEE binary16, rounded to nearest even; beyond 65504 infinity */
    PITH_VECTOR_INT8 = 2,   /* int8_t: what UINT8 gives, minus 128 */
    PITH_VECTOR_UINT8 = 3,  /* uint8_t: (x - min) / step, rounded down, and at least 0 and at most
                               255; step is (max - min) / 255, or 1 if that is 0 */
    PITH_VECTOR_BINARY = 4, /* int8_t: a byte of PITH_VECTOR_UBINARY minus 128 */
    PITH_VECTOR_UBINARY = 5 /* uint8_t: one bit for each component, 1 if x > 0, as numpy.packbits
                               packs a row: the first component is the highest bit of the first
                               byte, and the bits behind the last component are 0 */
} pith_vector_type;

/* In the call context, the three ways to end a call have an effect; the rows before it are then
 * written. */
typedef struct pith_quantize_options {
    pith_call call;
    int32_t type;        /* a pith_vector_type */
    const float *ranges; /* [2, dim] for INT8 and UINT8: the smallest and then the largest value of
                            each component, as pith_quantize_ranges makes them; finite, and no
                            minimum above its maximum. NULL: -1 and 1, which components of vectors
                            of length 1 never leave. */
} pith_quantize_options;

#define PITH_QUANTIZE_OPTIONS_INIT PITH_OPTIONS_INIT(pith_quantize_options)

/* Returns the bytes of a row of dim components of this pith_vector_type, or 0 if there is no such
 * type or the bytes are more than size_t holds. Thread-safe. */
PITH_API size_t pith_quantize_row_bytes(int32_t type, size_t dim);

/* Writes vectors[count][dim], row-major, to rows[count][pith_quantize_row_bytes(type, dim)]: bytes
 * without gaps, owned by the caller and aligned as their elements are. rows and vectors must not
 * overlap. A component that is not a number gives PITH_ERR_ARGUMENT for INT8 and UINT8, and the
 * message names it; the rows before it are then written. Thread-safe. */
PITH_API pith_status pith_quantize_vectors(void *rows, const float *vectors, size_t count,
                                           size_t dim, const pith_quantize_options *options,
                                           pith_error *err);

/* Writes the smallest and the largest value of each component of vectors[count][dim] to ranges,
 * float[2][dim]. count must not be 0, and all values must be finite. In call, which may be NULL,
 * the three ways to end it have an effect. Thread-safe. */
PITH_API pith_status pith_quantize_ranges(float *ranges, const float *vectors, size_t count,
                                          size_t dim, const pith_call *call, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
