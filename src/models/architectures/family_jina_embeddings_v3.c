/* family_jina_embeddings_v3.c - Jina v3 as transformers 5 writes it: without adapters, which are
 * PEFT's then. Source: modeling_jina_embeddings_v3 of transformers; its checkpoints keep the names
 * of the code beside the weights. */
#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_encoder_layout jina_v3_layout = { .layer = "encoder.layers.",
                                                        .qkv = "mixer.Wqkv",
                                                        .attention_out = "mixer.out_proj",
                                                        .attention_norm = "norm1",
                                                        .up = "mlp.fc1",
                                                        .down = "mlp.fc2",
                                                        .norm = "norm2",
                                                        .table_norm = "emb_ln",
                                                        .rotary = true,
                                                        .has_types = true };

static pith_status jina_v3_build(pith__graph *graph, const void *layout,
                                 const pith__hf_config *config, const pith__weights *weights,
                                 const char *weights_name, pith_error *err) {
    pith__hf_builder b;
    pith__hf_encoder_layout f = *(const pith__hf_encoder_layout *)layout;
    PITH_TRY(pith__hf_begin(&b, graph, config, weights, weights_name, "emb_ln.weight", err));
    pith__hf_check_sizes(&b);
    pith__hf_check_heads(&b);
    if (b.status) return b.status;
    const int64_t size = config->hidden_size / config->heads;
    pith__hf_int(&b, "head_dim", size, size, size);
    f.turn = (pith__hf_rotary_settings){ .theta = 20000, .size = size };
    pith__hf_rotary_read(&b, &f.turn, "full_attention");
    return pith__hf_encoder_make(&b, &f);
}

static const pith__hf_keys jina_v3_keys = {
    .reads = PITH_HF_ROPE_READS
    "vocab_size=250002 hidden_size=1024 num_hidden_layers=24 num_attention_heads=16 "
    "intermediate_size=4096 hidden_act=gelu max_position_embeddings=8194 "
    "type_vocab_size=1 layer_norm_eps=1e-5 pad_token_id=1 head_dim",
    .ignores = PITH_HF_BERT_IGNORES,
};

const pith__hf_family pith__hf_family_jina_embeddings_v3 = { .model_type = "jina_embeddings_v3",
                                                             .build = jina_v3_build,
                                                             .layout = &jina_v3_layout,
                                                             .keys = &jina_v3_keys };
