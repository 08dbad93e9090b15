/* hf_build.h - Hugging Face model directories: config.json and weights to a graph. */
#ifndef PITH_MODELS_CHECKPOINT_HF_BUILD_H
#define PITH_MODELS_CHECKPOINT_HF_BUILD_H

#include "base/os/file.h"
#include "engine/graph/graph.h"
#include "formats/weights/tensor_files.h"
#include "models/architectures/hf_config.h"
#include "models/architectures/hf_keys.h"
#include "models/modules/rerank_prompt.h"

/* Builds the encoder of a directory with config.json and weights (formats/weights/tensor_files.h):
 * inputs input_ids, attention_mask, token_type_ids (where the architecture has types) of [batch,
 * sequence] i64, output last_hidden_state [batch, sequence, hidden]. Weights stay spans of the
 * mapped files. */
pith_status pith__hf_build(pith__graph **graph, const char *dir, pith__files *files,
                           pith__arena *arena, const pith_log *log, pith_error *err);
/* The same with the weights of a file of this name; NULL: the first that is there. A judge that
 * answers gives the graph an output "logits"; NULL: none. task: the entry of lora_adaptations to
 * take; size 0: the default. args: settings that go before those of config.json (config_args.h);
 * size 0: none. report says what became of the keys of config.json; it may be NULL. */
pith_status pith__hf_build_from(pith__graph **graph, pith__hf_report *report, const char *dir,
                                const char *weights, const pith__rerank_prompt *rerank,
                                pith_str task, pith_str args, pith__files *files,
                                pith__arena *arena, const pith_log *log, pith_error *err);
/* The same from what has been read. weights_name is for messages; config and weights must outlive
 * the call only. */
pith_status pith__hf_build_weights(pith__graph **graph, const pith__hf_config *config,
                                   const pith__weights *weights, const char *weights_name,
                                   pith__arena *arena, const pith_log *log, pith_error *err);

#endif
