/* order.h - sorting, family "sort": NaN is larger than anything. */
#ifndef PITH_KERNELS_ORDER_H
#define PITH_KERNELS_ORDER_H

#include <stdint.h>

#include "kernels/kernel.h"

/* Sorts indices[n] so that x[indices[0] * stride] … ascend (descend), equal elements by ascending index. scratch: n
 * indices. */
typedef void pith_sort_fn(int64_t *indices, int64_t *scratch, const void *x, int64_t n, int64_t stride,
                          bool descending);

#endif
