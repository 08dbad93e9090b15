/* widen_types.h - running an f32 loop on f16 and bf16 tensors, an f64 loop on narrower floats too,
 * or a loop over bytes on 4-bit and 2-bit tensors. Whole inputs are converted before the run and
 * whole outputs after it. An operator calls these around its own run; for other dtypes they only
 * call run. */
#ifndef PITH_ENGINE_OPS_SHARED_WIDEN_TYPES_H
#define PITH_ENGINE_OPS_SHARED_WIDEN_TYPES_H

#include "engine/ops/shared/infer_shapes.h"

/* Adds the memory for the conversions to *bytes. Bit i of skip is set if run does not read input i.
 */
pith_status pith__widen_scratch(const pith__infer *c, uint32_t skip, size_t *bytes);
/* Calls run with converted tensors, and with the scratch behind the bytes of pith__widen_scratch.
 * At most 16 inputs and 8 outputs. */
pith_status pith__widen_run(pith__run *r, uint32_t skip, pith_status (*run)(pith__run *r));
/* A scratch function (pith__op.scratch) of an operator that needs no memory but that. */
pith_status pith__widen_scratch_only(const pith__infer *c, const void *state, int threads,
                                     size_t *bytes);
/* The same for a loop that knows `compute`, f32 or f64, on floats that are no wider. */
pith_status pith__widen_scratch_to(const pith__infer *c, int compute, uint32_t skip, size_t *bytes);
pith_status pith__widen_run_to(pith__run *r, int compute, uint32_t skip,
                               pith_status (*run)(pith__run *r));
/* The same for packed types; run sees their bit patterns as u8. */
pith_status pith__unpack_scratch(const pith__infer *c, size_t *bytes);
pith_status pith__unpack_run(pith__run *r, pith_status (*run)(pith__run *r));

#endif
