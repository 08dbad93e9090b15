/* family_qwen3.c - Qwen3, of which embedders take the last token. */
#include "hf/hf_decoder.h"

static const pith_hf_decoder_layout qwen3_layout = { .head_size = 128, .theta = 10000, .head_norms = true };

const pith_hf_family pith_hf_family_qwen3 = { .model_type = "qwen3",
                                              .build = pith_hf_decoder_build,
                                              .layout = &qwen3_layout };
