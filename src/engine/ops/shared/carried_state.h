/* carried_state.h - for operators whose state goes from call to call, which are computed in double:
 * optional inputs and outputs, and packed sequences of which the first steps are captured. */
#ifndef PITH_ENGINE_OPS_SHARED_CARRIED_STATE_H
#define PITH_ENGINE_OPS_SHARED_CARRIED_STATE_H

#include "engine/ops/shared/as_doubles.h"

/* The doubles of an input or output; NULL if it is absent. */
const double *pith__state_input(const pith__wide *w, const pith__run *r, int i);
double *pith__state_output(const pith__wide *w, const pith__run *r, int i);
/* Fails unless input i is absent or has this many elements. */
pith_status pith__state_check(const pith__run *r, int i, int64_t wanted);
/* Fails unless ends[batch + 1] begins with 0, rises and ends with `total`. */
pith_status pith__state_check_ends(const pith__run *r, const double *ends, int64_t batch,
                                   int64_t total);
/* How many steps of a sequence are captured: counts[b] (0 if counts is NULL), within the capacity
 * and its length. */
int64_t pith__state_captured(const double *counts, int64_t b, int64_t capacity, int64_t length);
/* The attribute state_update_capacity; fails unless the input of counts is there just when it is
 * not 0. */
pith_status pith__state_capacity(const pith__infer *c, int input, int64_t *capacity);

#endif
