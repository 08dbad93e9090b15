/* reduced_lines.c - see reduced_lines.h. */
#include "engine/ops/shared/reduced_lines.h"

#include "engine/ops/shared/as_doubles.h"

pith_status pith__line_axes(const pith__run *r, const int64_t *axes, size_t count, bool *reduced) {
    for (int d = 0; d < PITH_MAX_RANK; d++) reduced[d] = false;
    for (size_t k = 0; k < count; k++) {
        int axis;
        PITH_TRY(pith__axis_normalize(axes[k], r->in[0]->rank, &axis, r->err));
        reduced[axis] = true;
    }
    return PITH_OK;
}

pith_status pith__line_scratch(const pith__infer *c, const void *none, int threads, size_t *bytes) {
    PITH_TRY(pith__wide_scratch(c, none, threads, bytes));
    size_t n = (size_t)pith__type_count(c->in[0]);
    if (n > (SIZE_MAX - *bytes) / 32)
        return pith__fail(c->err, PITH_ERR_MEMORY, "the input is too large");
    *bytes += n * 3 * sizeof(double);
    return PITH_OK;
}
