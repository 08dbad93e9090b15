/* compare_tensors.h - comparing two tensors within a tolerance. */
#ifndef PITH_CLI_COMPARE_COMPARE_TENSORS_H
#define PITH_CLI_COMPARE_COMPARE_TENSORS_H

#include "cli/base/cli.h"

typedef struct tolerance {
    double rtol, atol; /* |got - wanted| <= atol + rtol * |wanted|; NaN equals NaN. wanted is the
                          expected tensor */
    double rtol_bf16;  /* rtol of bf16 outputs where it is larger than rtol */
} tolerance;

/* Types and shapes must be equal; sequences and optionals item by item; strings byte by byte. If it
 * returns false, message says what differs, where and by how much. *worst, if worst is not NULL,
 * grows to the largest difference seen. */
bool tensors_agree(const pith_tensor *got, const pith_tensor *wanted, tolerance t, double *worst,
                   char *message, size_t size);

#endif
