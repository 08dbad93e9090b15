/* relational_onnx.h - a model of rows as an ONNX network that other engines run.
 *
 * Its inputs are cells, which pith__trainer_inputs reads out of a database; its output is what
 * pith__trainer_predict gives. The graph has operators of opset 17 alone, and means are products
 * with a column of 1 / n, since ReduceMean changed its inputs in opset 18. */
#ifndef PITH_RELATIONAL_ONNX_H
#define PITH_RELATIONAL_ONNX_H

#include "tables/network/trainer.h"

pith_status pith__relational_onnx_write(const pith_relational *r, const pith_writer *writer,
                                        pith__stop *stop, pith_error *err);

#endif
