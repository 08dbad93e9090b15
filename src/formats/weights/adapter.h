/* adapter.h - low-rank adapters (LoRA) that the package peft writes: adapter_config.json with
 * adapter_model.safetensors.
 *
 * The matrices of an adapter are multiplied and added to the weights when a model is opened. */
#ifndef PITH_FORMATS_WEIGHTS_ADAPTER_H
#define PITH_FORMATS_WEIGHTS_ADAPTER_H

#include "formats/weights/tensor_files.h"

/* Sets *there to whether the directory has an adapter, and *base to the directory of the network
 * that it adapts: what adapter_config.json names (base_model_name_or_path), a path or the name of a
 * model in the caches; if there is no such network, or it is ".", `dir` itself. PITH_ERR_NOT_FOUND
 * if that has no config.json. *base is `dir` or in the arena. */
pith_status pith__adapter_base(pith_str *base, bool *there, const char *dir, pith__arena *arena,
                               pith_error *err);

/* Adds the adapter in the directory to weights: W + scale * B A, in f32. Returns
 * PITH_ERR_UNSUPPORTED, with the key, if the adapter is of another kind, and PITH_ERR_FORMAT, with
 * the tensor, if it does not fit the weights. */
pith_status pith__adapter_apply(pith__weights *weights, const char *dir, pith__files *files,
                                pith_error *err);

#endif
