/* dtype.h - sizes and names of the element types. */
#ifndef PITH_BASE_DTYPE_H
#define PITH_BASE_DTYPE_H

#include <stdbool.h>

#include "base/memory/memory.h"

/* Returns the bits of one element (4 for U4, 128 for a string, which is a pith_str), or 0 for an
 * unknown dtype. */
int pith__dtype_bits(int dtype);
/* Where an element may lie in memory: its size in bytes, at least 1 and at most 8. */
size_t pith__dtype_alignment(int dtype);
const char *pith__dtype_name(int dtype); /* NumPy's name, such as "float32"; else "unknown" */
/* As the lists of select/ and of selective builds have it, such as "f32"; NumPy's name where they
 * have none. */
const char *pith__dtype_short_name(int dtype);
int pith__dtype_find(const char *name); /* the dtype of this name, or PITH_UNDEFINED */
bool pith__dtype_is_float(int dtype);   /* every float, f64 to f4 */
bool pith__dtype_is_int(int dtype);     /* every integer width, not bool */
bool pith__dtype_is_plain(int dtype);   /* elements are whole bytes and not strings */

/* Returns the number of elements of a shape. Returns -1 if a dim is negative, or if the product of
 * the dims that are not 0 does not fit in int64. */
int64_t pith__dims_count(const int64_t *dims, int rank);
/* Sets *bytes to the size of count elements; packed types are rounded up to whole bytes. Returns
 * false on overflow, for an unknown dtype and for a negative count. */
bool pith__dtype_bytes(int dtype, int64_t count, size_t *bytes);

/* Writes a shape such as "[2, 3, 384]" to buffer, with "?" for -1. Returns buffer. */
const char *pith__dims_text(const int64_t *dims, int rank, char *buffer, size_t size);
/* Parses a shape such as "1x3x480x640"; "" is a scalar. Sizes must be below 2^31, and at most
 * PITH_MAX_RANK of them. If it returns false, dims and *rank are unspecified. */
bool pith__dims_parse(const char *text, int64_t *dims, int *rank);

/* These work for the public functions pith_shape_parse and pith_shape_bytes. */
pith_status pith__dims_take(int64_t *dims, int32_t *rank, const char *text, pith_error *err);
pith_status pith__dims_bytes(size_t *bytes, int dtype, const int64_t *dims, int rank,
                             pith_error *err);

#endif
