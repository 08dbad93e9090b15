/* static_table.h - models that are a table of vectors by token: the module StaticEmbedding, and
 * Model2Vec's own layout. */
#ifndef PITH_MODELS_MODULES_STATIC_TABLE_H
#define PITH_MODELS_MODULES_STATIC_TABLE_H

#include "models/modules/module_class.h"

/* Reads the folder's weights: "embedding.weight", or "embeddings" with an optional "mapping" from
 * tokens to rows and optional "weights" of tokens. Makes the table the input of the model and the
 * mean its pooling; texts get no special tokens. */
pith_status pith__static_table_read(pith__module_reader *r, pith_str folder);

/* The same with weights of tokens alone, "weight" [tokens]: the model's output is sparse_weights
 * [batch, sequence, 1]. */
pith_status pith__static_weights_read(pith__module_reader *r, pith_str folder);

#endif
