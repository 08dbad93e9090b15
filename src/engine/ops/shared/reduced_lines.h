/* reduced_lines.h - a tensor as lines along some of its axes, which a statistic is taken over. For
 * operators that are computed in double (as_doubles.h). */
#ifndef PITH_ENGINE_OPS_SHARED_REDUCED_LINES_H
#define PITH_ENGINE_OPS_SHARED_REDUCED_LINES_H

#include "engine/ops/op.h"

/* The line of element i: its number among the lines along the axes marked in `reduced`. */
static inline int64_t pith__line_of(const pith_tensor *x, const bool *reduced, int64_t i) {
    int64_t line = 0, stride = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        if (!reduced[d]) line += i % x->dims[d] * stride, stride *= x->dims[d];
        i /= x->dims[d];
    }
    return line;
}

/* Marks axes, of which negative ones count from the end; fails if one is out of range. */
pith_status pith__line_axes(const pith__run *r, const int64_t *axes, size_t count, bool *reduced);
/* The memory of pith__wide_scratch, and behind it three doubles per line; there are at most as many
 * lines as elements. */
pith_status pith__line_scratch(const pith__infer *c, const void *none, int threads, size_t *bytes);

#endif
