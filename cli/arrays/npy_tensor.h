/* npy_tensor.h - NumPy's .npy files and pith_tensor. Headers are read by base/formats/npy.h. */
#ifndef PITH_CLI_ARRAYS_NPY_TENSOR_H
#define PITH_CLI_ARRAYS_NPY_TENSOR_H

#include "cli/base/text_input.h"

/* A tensor from the bytes of a file: little-endian, C order (Fortran order of rank 2 and up is
 * refused). Strings (U and S) become PITH_STRING. The tensor's data is freed with npy_free. False:
 * message says why. */
bool npy_parse(pith_tensor *tensor, const void *data, size_t size, char *message,
               size_t message_size);
void npy_free(pith_tensor *tensor);
/* The same for numbers only, without a copy: the tensor's data lies within the file's bytes, at any
 * alignment. */
bool npy_view(pith_tensor *tensor, const void *data, size_t size, char *message,
              size_t message_size);

/* The header for a tensor of this dtype and shape; bfloat16 and 8-bit floats are written as
 * unsigned integers of their size (raw is then true). rows_width: the header is padded so that
 * dims[0] may grow to that many digits. False: there is no such NumPy type (sequence, 4-bit). */
bool npy_header(bytes *out, int32_t dtype, int rank, const int64_t *dims, int rows_width,
                bool *raw);
/* Header and contents; 4-bit and 2-bit elements are unpacked to bytes, strings become U. */
bool npy_write(bytes *out, const pith_tensor *tensor, bool *raw);

#endif
