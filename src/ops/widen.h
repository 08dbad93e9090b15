/* widen.h - running a loop that knows f32 on f16 and bf16 tensors, one that knows f64 on narrower floats beside it, or
 * one that moves bytes on tensors of 4 and 2 bits: inputs are converted as a whole before, outputs after. An operator
 * calls these around its own run; for other dtypes they do nothing. */
#ifndef PITH_OPS_WIDEN_H
#define PITH_OPS_WIDEN_H

#include "ops/infer.h"

/* Adds to *bytes what the conversions need; skip: bit i set for an input that run does not read. */
pith_status pith_widen_scratch(const pith_infer *c, uint32_t skip, size_t *bytes);
/* run sees converted tensors, and scratch behind what pith_widen_scratch took. At most 16 inputs and 8 outputs. */
pith_status pith_widen_run(pith_run *r, uint32_t skip, pith_status (*run)(pith_run *r));
/* The same for a loop that knows `compute`, f32 or f64, on floats that are no wider. */
pith_status pith_widen_scratch_to(const pith_infer *c, int compute, uint32_t skip, size_t *bytes);
pith_status pith_widen_run_to(pith_run *r, int compute, uint32_t skip, pith_status (*run)(pith_run *r));
/* The same for packed types, whose patterns run sees as u8. */
pith_status pith_unpack_scratch(const pith_infer *c, size_t *bytes);
pith_status pith_unpack_run(pith_run *r, pith_status (*run)(pith_run *r));

#endif
