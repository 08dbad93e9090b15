/* carried_state.c - see carried_state.h. */
#include "engine/ops/shared/carried_state.h"

#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/infer_shapes.h"

const double *pith__state_input(const pith__wide *w, const pith__run *r, int i) {
    return i < r->in_count && r->in[i] ? w->in[i] : NULL;
}

double *pith__state_output(const pith__wide *w, const pith__run *r, int i) {
    return i < r->out_count ? w->out[i] : NULL;
}

/* Input i is absent or has this many elements. */
pith_status pith__state_check(const pith__run *r, int i, int64_t wanted) {
    if (i >= r->in_count || !r->in[i] || pith__tensor_count(r->in[i]) == wanted) return PITH_OK;
    return pith__fail(r->err, PITH_ERR_ARGUMENT, "input %d has %lld elements, not %lld", i,
                      (long long)pith__tensor_count(r->in[i]), (long long)wanted);
}

/* ends[batch + 1] begins with 0, rises and ends with `total`. */
pith_status pith__state_check_ends(const pith__run *r, const double *ends, int64_t batch,
                                   int64_t total) {
    bool fits = batch >= 0 && ends[0] == 0 && ends[batch] == (double)total;
    for (int64_t i = 0; fits && i < batch; i++) fits = ends[i] <= ends[i + 1];
    return fits ? PITH_OK
                : pith__fail(r->err, PITH_ERR_ARGUMENT,
                             "the sequences' ends do not rise from 0 to %lld", (long long)total);
}

/* How many steps of a sequence are captured. */
int64_t pith__state_captured(const double *counts, int64_t b, int64_t capacity, int64_t length) {
    double count = counts ? counts[b] : 0, most = (double)(capacity < length ? capacity : length);
    if (count < 0) return 0;
    return (int64_t)(count > most ? most : count);
}

pith_status pith__state_capacity(const pith__infer *c, int input, int64_t *capacity) {
    *capacity = pith__node_int(c->node, "state_update_capacity", 0);
    if ((*capacity > 0) != pith__has_input(c, input))
        return pith__op_fail(c, "capture_count goes with state_update_capacity, and only with it");
    return PITH_OK;
}
