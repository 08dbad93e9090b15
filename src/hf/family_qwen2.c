/* family_qwen2.c - Qwen2: Qwen3 without norms of heads, with biases of query, key and value. Source: modeling_qwen2 of
 * transformers. */
#include "hf/hf_decoder.h"

static const pith_hf_decoder_layout qwen2_layout = { .theta = 10000, .projection_bias = true };

const pith_hf_family pith_hf_family_qwen2 = { .model_type = "qwen2",
                                              .build = pith_hf_decoder_build,
                                              .layout = &qwen2_layout };
