/* config_args.h - config_args and config_kwargs of sentence_bert_config.json: settings that go
 * before those of config.json. */
#ifndef PITH_MODELS_MODULES_CONFIG_ARGS_H
#define PITH_MODELS_MODULES_CONFIG_ARGS_H

#include "models/architectures/hf_keys.h"
#include "models/modules/module_class.h"

/* Keeps the value at the scanner in reader->modules->config_args, and consumes it, if it is one
 * that networks read as it stands; false for others. */
bool pith__config_arg_take(pith__json *j, pith__module_reader *r, pith_str key);

/* Puts args, "\"key\": value, \"key\": value", into the text of a config.json in place of its own
 * values. *text is in the arena then. PITH_ERR_UNSUPPORTED names a key that is not among
 * keys->reads; keys may be NULL. */
pith_status pith__config_args_merge(pith_str *text, pith_str args, const pith__hf_keys *keys,
                                    pith__arena *arena, pith_error *err);

#endif
