/* pool_rows.c - see pool_rows.h: which windows it takes. */
#include "engine/kernels/pool_rows.h"

bool pith__pool_rows_fits(const pith__window *w) {
    const int last = w->rank - 1;
    if (w->rank > 2 || w->stride[last] > 2 || w->dilation[last] != 1 || w->begin[last] < 0)
        return false;
    return w->kernel[0] <= PITH_POOL_ROWS_MOST && w->kernel[last] <= PITH_POOL_ROWS_MOST;
}
