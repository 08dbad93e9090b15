/* gguf_model.h - a GGUF file that is a whole model: llama.cpp's files have settings and tokenizer
 * in them.
 *
 * Source of the keys: ggml, docs/gguf.md; llama.cpp, gguf-py/gguf/constants.py. */
#ifndef PITH_MODELS_CHECKPOINT_GGUF_MODEL_H
#define PITH_MODELS_CHECKPOINT_GGUF_MODEL_H

#include "engine/graph/graph.h"
#include "models/modules/modules.h"

/* Builds the encoder as pith__hf_build does, with tables of the sizes that the tensors have, and
 * fills *modules: pooling as the file says, its dense layers, and vectors of length 1, as llama.cpp
 * makes them unless it is told otherwise. name is the file's, for messages; bytes and name must
 * outlive both. */
pith_status pith__gguf_build(pith__graph **graph, pith__modules *modules, pith_str bytes,
                             const char *name, pith__arena *arena, const pith_log *log,
                             pith_error *err);

#endif
