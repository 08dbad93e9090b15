/* answer_logit.h - one more output of language models in ONNX that judge documents: the logit of
 * their answer. */
#ifndef PITH_MODELS_MODULES_ANSWER_LOGIT_H
#define PITH_MODELS_MODULES_ANSWER_LOGIT_H

#include "engine/graph/graph.h"
#include "models/modules/rerank_prompt.h"

/* The name of that output. */
#define PITH_ANSWER_OUTPUT "pith.answer"

/* Appends nodes that make one logit per text [batch, 1] in f32 of an output "logits" [batch,
 * sequence, vocabulary], at the last token, or of [batch, vocabulary]: that of rerank->yes, minus
 * that of rerank->no if there is one. If the logits are a matmul, only these columns of its matrix
 * and the last token are multiplied. Sets *output to the index of the new output and *logits to
 * that of the one it is made of; both are -1 if the judge does not answer or the graph has no such
 * output. Types are inferred; those of the new nodes are not. */
pith_status pith__answer_logit_append(int *output, int *logits, pith__graph *graph,
                                      const pith__rerank_prompt *rerank, pith_error *err);

#endif
