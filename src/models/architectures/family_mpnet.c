/* family_mpnet.c - MPNet: RoBERTa with relative positions, and 1 for padding whatever config.json
 * says (MPNetEmbeddings.padding_idx of transformers). */
#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_encoder_layout mpnet_layout = { .layer = "encoder.layer.",
                                                      .query = "attention.attn.q",
                                                      .key = "attention.attn.k",
                                                      .value = "attention.attn.v",
                                                      .attention_out = "attention.attn.o",
                                                      .attention_norm = "attention.LayerNorm",
                                                      .up = "intermediate.dense",
                                                      .down = "output.dense",
                                                      .norm = "output.LayerNorm",
                                                      .padded_positions = true,
                                                      .pads_with_one = true,
                                                      .relative_bias = true };

static const pith__hf_keys mpnet_keys = {
    .reads = PITH_HF_BERT_SIZES
    "vocab_size=30527 layer_norm_eps=1e-12 relative_attention_num_buckets=32",
    .ignores = "attention_probs_dropout_prob",
};

const pith__hf_family pith__hf_family_mpnet = { .model_type = "mpnet",
                                                .build = pith__hf_encoder_build,
                                                .layout = &mpnet_layout,
                                                .keys = &mpnet_keys };
