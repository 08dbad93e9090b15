/* inner_outputs.h - a model whose inner values are outputs too (PITH_OPEN_INNER). */
#ifndef PITH_MODELS_OPEN_INNER_OUTPUTS_H
#define PITH_MODELS_OPEN_INNER_OUTPUTS_H

#include "models/model.h"

/* Makes every value that a node of the graph gives an output of the graph, in the order of nodes;
 * outputs that no node gives follow. Call it when the graph was read, and before operators are
 * bound. */
pith_status pith__inner_add(pith__graph *graph, pith_error *err);

/* Takes the inner values out again that are no tensors of numbers. Call it when types are inferred.
 */
void pith__inner_settle(pith__graph *graph);

/* Sets *bytes to a copy of the model's .onnx file with the outputs of the model's graph, in
 * model->arena. */
pith_status pith__inner_file(pith_str *bytes, pith_model *model, pith_error *err);

#endif
