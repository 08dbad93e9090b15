/* family_distilbert.c - DistilBERT: BERT without token types. */
#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_encoder_layout distilbert_layout = { .layer = "transformer.layer.",
                                                           .query = "attention.q_lin",
                                                           .key = "attention.k_lin",
                                                           .value = "attention.v_lin",
                                                           .attention_out = "attention.out_lin",
                                                           .attention_norm = "sa_layer_norm",
                                                           .up = "ffn.lin1",
                                                           .down = "ffn.lin2",
                                                           .norm = "output_layer_norm" };

static const pith__hf_keys distilbert_keys = {
    .reads = "vocab_size=30522 max_position_embeddings=512 n_layers=6 n_heads=12 dim=768 "
             "hidden_dim=3072 "
             "activation=gelu",
    .ignores =
        "attention_dropout dropout intermediate_size n_positions qa_dropout seq_classif_dropout "
        "sinusoidal_pos_embds tie_weights_",
};

const pith__hf_family pith__hf_family_distilbert = { .model_type = "distilbert",
                                                     .build = pith__hf_encoder_build,
                                                     .layout = &distilbert_layout,
                                                     .keys = &distilbert_keys };
