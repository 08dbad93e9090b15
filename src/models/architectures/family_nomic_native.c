/* family_nomic_native.c - NomicBERT as transformers 5 writes it: the same tensors, under the usual
 * names of settings and without the choices of the code beside the weights. Source:
 * modeling_nomic_bert of transformers. */
#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_encoder_layout nomic_native_layout = { .layer = "encoder.layers.",
                                                             .qkv = "attn.Wqkv",
                                                             .attention_out = "attn.out_proj",
                                                             .attention_norm = "norm1",
                                                             .up = "mlp.fc11",
                                                             .gate = "mlp.fc12",
                                                             .down = "mlp.fc2",
                                                             .norm = "norm2",
                                                             .table_norm = "emb_ln",
                                                             .gating = PITH_HF_GATE_APART,
                                                             .rotary = true,
                                                             .type_input = true,
                                                             .has_types = true,
                                                             .no_attention_bias = true,
                                                             .no_up_bias = true,
                                                             .no_down_bias = true };

static pith_status nomic_native_build(pith__graph *graph, const void *layout,
                                      const pith__hf_config *config, const pith__weights *weights,
                                      const char *weights_name, pith_error *err) {
    pith__hf_builder b;
    pith__hf_encoder_layout f = *(const pith__hf_encoder_layout *)layout;
    PITH_TRY(pith__hf_begin(&b, graph, config, weights, weights_name, PITH_HF_ENCODER_ANCHOR, err));
    pith__hf_check_sizes(&b);
    pith__hf_check_heads(&b);
    if (b.status) return b.status;
    const int64_t size = config->hidden_size / config->heads;
    pith__hf_int(&b, "head_dim", size, size, size);
    f.turn = (pith__hf_rotary_settings){ .theta = 1000, .size = size };
    pith__hf_rotary_read(&b, &f.turn, "full_attention");
    return pith__hf_encoder_make(&b, &f);
}

static const pith__hf_keys nomic_native_keys = {
    .reads = PITH_HF_ROPE_READS
    "vocab_size=30528 hidden_size=768 num_hidden_layers=12 num_attention_heads=12 "
    "intermediate_size=3072 hidden_act=silu max_position_embeddings=2048 "
    "type_vocab_size=2 layer_norm_eps=1e-12 head_dim",
    .ignores = PITH_HF_BERT_IGNORES,
};

const pith__hf_family pith__hf_family_nomic_native = { .model_type = "nomic_bert",
                                                       .build = nomic_native_build,
                                                       .layout = &nomic_native_layout,
                                                       .takes = pith__hf_takes_nomic_native,
                                                       .keys = &nomic_native_keys };
