/* gguf_config.h - the settings of a GGUF file as a config.json, so that they are checked as any
 * other. */
#ifndef PITH_FORMATS_WEIGHTS_GGUF_GGUF_CONFIG_H
#define PITH_FORMATS_WEIGHTS_GGUF_GGUF_CONFIG_H

#include "formats/weights/gguf/gguf_settings.h"
#include "formats/weights/tensor_files.h"

/* *config is in the arena. Sizes of tables, and whether there are biases, are those of the tensors.
 * Settings that cannot be honoured give PITH_ERR_UNSUPPORTED or PITH_ERR_FORMAT, with their
 * names. */
pith_status pith__gguf_config(pith_str *config, pith__gguf_settings *settings,
                              const pith__weights *weights, pith__arena *arena);

#endif
