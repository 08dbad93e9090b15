/* tensor.h - element types and shapes: names, sizes, text, and conversion between number types.
 *
 * Any number of threads may call these functions at the same time. */
#ifndef PITH_TENSOR_H
#define PITH_TENSOR_H

#include "pith/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns NumPy's name of a pith_dtype, such as "float32"; "string", "sequence" or "none" for what
 * NumPy lacks; "unknown" for any other number. Valid as long as the process. */
PITH_API const char *pith_element_name(int32_t dtype);
/* Returns the pith_dtype whose pith_element_name this is, or PITH_UNDEFINED. */
PITH_API int32_t pith_element_dtype(const char *name);
/* Returns the bits of one element: 4 for PITH_U4, those of a pith_str for PITH_STRING. Returns 0
 * for a dtype whose elements have no size. */
PITH_API int32_t pith_element_bits(int32_t dtype);

/* Returns the number of elements of a shape. Returns -1 if a size is negative or the number does
 * not fit. */
PITH_API int64_t pith_shape_count(const int64_t *dims, int32_t rank);
/* Sets *bytes to the size of the elements of a tensor; packed types are rounded up to whole bytes.
 * Error: PITH_ERR_ARGUMENT if a size is negative, the result does not fit, or elements of the dtype
 * have no size. */
PITH_API pith_status pith_shape_bytes(size_t *bytes, int32_t dtype, const int64_t *dims,
                                      int32_t rank, pith_error *err);
/* Writes a shape such as "[2, 3, 384]" to text[size], with "?" for -1, and returns text. size is at
 * least 1. A shape that does not fit is cut and ends in "…". */
PITH_API const char *pith_shape_format(char *text, size_t size, const int64_t *dims, int32_t rank);
/* Parses a shape such as "1x3x480x640"; "" is a scalar. Sets *rank, and dims[PITH_MAX_RANK], of
 * which those beyond the rank are 0. Error: PITH_ERR_ARGUMENT if text is not of this form, has too
 * many sizes, or one of 2^31 or more. */
PITH_API pith_status pith_shape_parse(int64_t *dims, int32_t *rank, const char *text,
                                      pith_error *err);

/* Writes elements first to first + count - 1 of a tensor, in row-major order, to elements[count],
 * converted to another type of number by the rules of the ONNX operator Cast. These are: towards
 * zero from floats to integers, to nearest even between floats, and the largest number for an 8-bit
 * or 4-bit float that would overflow. elements and the tensor do not overlap. The tensor's data may
 * lie at any address. Packed elements are written from the low bits of the first byte on. Error:
 * PITH_ERR_ARGUMENT if the tensor has fewer elements, lies in the memory of a device, or if one of
 * the types is no real number. */
PITH_API pith_status pith_tensor_convert(void *elements, int32_t dtype, const pith_tensor *tensor,
                                         size_t first, size_t count, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
