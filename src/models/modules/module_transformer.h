/* module_transformer.h - the network of a directory; shared by the module Transformer and
 * directories without modules.json. */
#ifndef PITH_MODELS_MODULES_MODULE_TRANSFORMER_H
#define PITH_MODELS_MODULES_MODULE_TRANSFORMER_H

#include "models/modules/module_class.h"

/* Reads config.json and sentence_bert_config.json of the folder. *causal: config.json names an
 * architecture for causal language models. */
pith_status pith__module_transformer_read(pith__module_reader *r, pith_str folder, bool *causal);

#endif
