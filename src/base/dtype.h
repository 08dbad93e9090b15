/* dtype.h - sizes and names of the element types. */
#ifndef PITH_BASE_DTYPE_H
#define PITH_BASE_DTYPE_H

#include <stdbool.h>

#include "base/memory.h"

/* Bits of one element (4 for U4, 128 for a string: pith_str), 0 for an unknown number. */
int pith_dtype_bits(int dtype);
const char *pith_dtype_name(int dtype); /* "float32", "int64", … as NumPy says it; "unknown" */
bool pith_dtype_is_float(int dtype);    /* every f64 … f4 */
bool pith_dtype_is_int(int dtype);      /* every integer width, not bool */
bool pith_dtype_is_plain(int dtype);    /* copied as bytes, element by element: whole bytes, and no string */

/* Elements of a shape; -1 if a dim is negative or the product does not fit in int64, of the others where some are 0. */
int64_t pith_dims_count(const int64_t *dims, int rank);
/* Bytes for count elements, packed types rounded up; false on overflow, unknown type or negative count. */
bool pith_dtype_bytes(int dtype, int64_t count, size_t *bytes);

/* "[2, 3, 384]" into buffer; -1 is shown as "?". Returns buffer. */
const char *pith_dims_text(const int64_t *dims, int rank, char *buffer, size_t size);
/* "1x3x480x640", "" for a scalar: sizes below 2^31, at most PITH_MAX_RANK. dims and *rank are undefined if false. */
bool pith_dims_parse(const char *text, int64_t *dims, int *rank);

#endif
