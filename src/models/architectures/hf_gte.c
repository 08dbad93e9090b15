/* hf_gte.c - GTE: rotary positions, one matrix for query, key and value, a gated feed-forward part.
 *
 * Its code lies beside its weights: Alibaba-NLP/new-impl, modeling.py, and copies of it under
 * another model_type (Snowflake's modeling_hf_alibaba_nlp_gte.py). transformers 5 has it as
 * modeling_gte, with the same names of tensors. */
#include "models/architectures/hf_gte.h"

#include "models/architectures/hf_encoder.h"

static const pith__hf_encoder_layout gte_layout = { .layer = "encoder.layer.",
                                                    .qkv = "attention.qkv_proj",
                                                    .query = "attention.q_proj",
                                                    .key = "attention.k_proj",
                                                    .value = "attention.v_proj",
                                                    .attention_out = "attention.o_proj",
                                                    .attention_norm = "attn_ln",
                                                    .up = "mlp.up_gate_proj",
                                                    .down = "mlp.down_proj",
                                                    .norm = "mlp_ln",
                                                    .gating = PITH_HF_GATE_SECOND,
                                                    .no_up_bias = true,
                                                    .type_input = true };

pith_status pith__hf_gte_build(pith__graph *graph, const void *layout,
                               const pith__hf_config *config, const pith__weights *weights,
                               const char *weights_name, pith_error *err) {
    pith__hf_builder b;
    pith__hf_encoder_layout f = gte_layout;
    (void)layout;
    PITH_TRY(pith__hf_begin(&b, graph, config, weights, weights_name, PITH_HF_ENCODER_ANCHOR, err));
    pith__hf_check_sizes(&b);
    pith__hf_check_heads(&b);
    pith__hf_want_bool(&b, "logn_attention_scale", false);
    pith__hf_want_bool(&b, "logn_attention_clip1", false);
    pith__hf_want_string(&b, "layer_norm_type", "layer_norm");
    f.rotary = pith__str_is(pith__hf_string(&b, "position_embedding_type", "rope"), "rope");
    if (!pith__hf_bool(&b, "pack_qkv", true)) f.qkv = NULL;
    if (pith__hf_has(&b, "rope_scaling.mixed_b"))
        pith__hf_fail(&b, PITH_ERR_UNSUPPORTED,
                      "config.json: rope_scaling.mixed_b is not supported");
    if (b.status) return b.status;
    f.has_types = config->types > 0;
    /* transformers' own class has another base than the code beside the weights, whose settings it
     * does not write. */
    bool native = pith__str_is(config->model_type, "gte") && !pith__hf_has(&b, "auto_map") &&
                  !pith__hf_has(&b, "position_embedding_type");
    f.turn = (pith__hf_rotary_settings){ .theta = native ? 160000 : 10000,
                                         .size = config->hidden_size / config->heads };
    pith__hf_rotary_read(&b, &f.turn, "full_attention");
    return pith__hf_encoder_make(&b, &f);
}
