/* encode_outputs.h - which output of a model's graph, and which head, each kind of results of
 * pith_encode is made of. */
#ifndef PITH_MODELS_TEXTS_ENCODE_OUTPUTS_H
#define PITH_MODELS_TEXTS_ENCODE_OUTPUTS_H

#include "models/model.h"

/* Sets the head of a kind (bit i of PITH_ENCODE_*), and the output that it reads; an error says
 * what the model lacks. */
pith_status pith__encode_find_output(const pith__head **head, int *output, const pith_model *model,
                                     int kind, pith_error *err);
/* The numbers in a row of an output; 0: not known. */
int64_t pith__encode_output_width(const pith_model *model, int output);

#endif
