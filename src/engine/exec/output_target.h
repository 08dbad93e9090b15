/* output_target.h - memory of the caller that an output of a run goes to.
 *
 * A target is a tensor with data and bytes. Its shape is the one that the output must have; rank -1
 * allows any shape that fits. data NULL: the output has no target. */
#ifndef PITH_ENGINE_EXEC_OUTPUT_TARGET_H
#define PITH_ENGINE_EXEC_OUTPUT_TARGET_H

#include <stdbool.h>

#include "base/error.h"
#include "base/stop.h"

/* PITH_ERR_ARGUMENT, which names the output, if its dtype, shape or size does not fit the target.
 */
pith_status pith__target_check(const pith_tensor *target, const pith_tensor *output, pith_str name,
                               pith_error *err);
/* Checks the output, copies it to the target and sets its address there. Does nothing but check if
 * it is there. */
pith_status pith__target_fill(pith_tensor *output, const pith_tensor *target, pith_str name,
                              pith__stop *stop, pith_error *err);
/* Whether a tensor, or an item of a sequence, has bytes in the target. */
bool pith__target_touches(const pith_tensor *target, const pith_tensor *tensor);

#endif
