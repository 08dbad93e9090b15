/* random_inputs.h - made-up inputs for a model, the same for the same seed on every machine. */
#ifndef PITH_CLI_INPUT_RANDOM_INPUTS_H
#define PITH_CLI_INPUT_RANDOM_INPUTS_H

#include "cli/input/model_inputs.h"

/* Adds tensors for missing inputs. A free size is chosen by its name, so axes of one name agree: 2
 * for a batch, 64 for a height or width, else 8. Floats are in [-1, 1), masks are ones, ids of
 * tokens are below 16, other integers 0 or 1. Returns an exit code, after a message. */
int random_inputs_add(model_inputs *in, const command *c, const pith_model *model, uint64_t seed);

#endif
