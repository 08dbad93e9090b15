/* sort_order.h - sorting, family "sort", and the first elements of that order, family "best": NaN
 * is larger than anything. */
#ifndef PITH_ENGINE_KERNELS_SORT_ORDER_H
#define PITH_ENGINE_KERNELS_SORT_ORDER_H

#include <stdint.h>

#include "base/stop.h"
#include "engine/kernels/kernel.h"

/* Sorts indices[n] so that x[indices[0] * stride] … ascend (descend), equal elements by ascending
 * index. scratch: n indices. If the call must end, which stop (NULL: it never must) then goes on to
 * say, indices are anything. */
typedef void pith__sort_fn(int64_t *indices, int64_t *scratch, const void *x, int64_t n,
                           int64_t stride, bool descending, pith__stop *stop);

/* best[k] = the first k of the indices that pith__sort_fn would give, 1 <= k <= n. stop: as there.
 */
typedef void pith__best_fn(int64_t *best, const void *x, int64_t n, int64_t stride, int64_t k,
                           bool descending, pith__stop *stop);

pith__sort_fn pith__k_sort_f64;

#endif
