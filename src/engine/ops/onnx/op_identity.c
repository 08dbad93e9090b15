/* op_identity.c - Identity: the input as it is, a view. Source: ONNX Identity (opset 25). */
#include "engine/ops/shared/infer_shapes.h"

const pith__op pith__op_Identity = { .domain = "",
                                     .name = "Identity",
                                     .since = 1,
                                     .newest = 25,
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .max_outputs = 1,
                                     .types = "a",
                                     .attrs = "",
                                     .flags = PITH_OP_VIEW | PITH_OP_SEQUENCES,
                                     .infer = pith__infer_same };
