/* family_gemma3_text.c - the text part of Gemma 3, and EmbeddingGemma, which attends in both directions. */
#include "hf/hf_decoder.h"

static const pith_hf_decoder_layout gemma3_layout = {
    .head_size = 256, .theta = 1000000, .head_norms = true, .gemma = true
};

const pith_hf_family pith_hf_family_gemma3_text = { .model_type = "gemma3_text",
                                                    .build = pith_hf_decoder_build,
                                                    .layout = &gemma3_layout };
