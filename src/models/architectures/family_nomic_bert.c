/* family_nomic_bert.c - NomicBERT: rotary positions, one matrix for query, key and value, a gated
 * feed-forward part.
 *
 * Its code lies beside its weights: nomic-ai/nomic-bert-2048, modeling_hf_nomic_bert.py. */
#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_encoder_layout nomic_layout = { .layer = "encoder.layers.",
                                                      .qkv = "attn.Wqkv",
                                                      .attention_out = "attn.out_proj",
                                                      .attention_norm = "norm1",
                                                      .up = "mlp.fc1",
                                                      .down = "mlp.fc2",
                                                      .norm = "norm2",
                                                      .table_norm = "emb_ln",
                                                      .type_input = true };

/* activation_function names a gated form, or the function of a plain one. */
static void nomic_choose_activation(pith__hf_builder *b, pith__hf_encoder_layout *f,
                                    pith__hf_config *c) {
    bool swiglu = pith__str_is(c->hidden_act, "swiglu");
    if (!swiglu && !pith__str_is(c->hidden_act, "geglu")) {
        if (pith__str_is(c->hidden_act, "glu"))
            pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                          "config.json: activation_function \"glu\" is not supported; supported "
                          "are geglu, swiglu and "
                          "the plain functions");
        if (!c->intermediate_size && c->hidden_size > 0 && c->hidden_size <= 1 << 20)
            c->intermediate_size = 4 * c->hidden_size;
        return;
    }
    c->hidden_act = swiglu ? PITH_STR("silu") : PITH_STR("gelu");
    if (!c->intermediate_size && c->hidden_size > 0 && c->hidden_size <= 1 << 20)
        c->intermediate_size = 8 * c->hidden_size / 3;
    if (c->intermediate_size <= 1 << 24)
        c->intermediate_size = (c->intermediate_size + 255) / 256 * 256; /* whole blocks of 256 */
    f->gating = PITH_HF_GATE_APART;
    f->up = "mlp.fc11";
    f->gate = "mlp.fc12";
}

static void nomic_check(pith__hf_builder *b) {
    static const char *const off[] = { "prenorm",
                                       "use_rms_norm",
                                       "causal",
                                       "parallel_block",
                                       "rotary_head_dim",
                                       "scale_attn_by_inverse_layer_idx",
                                       "mup" };
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) pith__hf_want_bool(b, off[i], false);
    pith__hf_want_absent(b, "rotary_emb_scale_base");
    pith__hf_want_absent(b, "num_heads_kv");
    if (pith__hf_int(b, "num_experts", 0, 0, 1 << 16) > 0)
        pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                      "config.json: num_experts: mixtures of experts are not supported");
}

static pith_status nomic_build(pith__graph *graph, const void *layout,
                               const pith__hf_config *config, const pith__weights *weights,
                               const char *weights_name, pith_error *err) {
    pith__hf_builder b;
    pith__hf_config c = *config;
    pith__hf_encoder_layout f = *(const pith__hf_encoder_layout *)layout;
    PITH_TRY(pith__hf_begin(&b, graph, &c, weights, weights_name, PITH_HF_ENCODER_ANCHOR, err));
    nomic_choose_activation(&b, &f, &c);
    pith__hf_check_sizes(&b);
    pith__hf_check_heads(&b);
    nomic_check(&b);
    if (b.status) return b.status;
    int64_t size = c.hidden_size / c.heads;
    double fraction = pith__hf_real(&b, "rotary_emb_fraction", 0);
    f.has_types = c.types > 0;
    f.rotary = fraction > 0;
    f.no_attention_bias = !pith__hf_bool(&b, "qkv_proj_bias", true);
    f.no_up_bias = !pith__hf_bool(&b, "mlp_fc1_bias", true);
    f.no_down_bias = !pith__hf_bool(&b, "mlp_fc2_bias", true);
    f.turn = (pith__hf_rotary_settings){
        .theta = pith__hf_real(&b, "rotary_emb_base", 10000),
        .size = fraction > 0 && fraction <= 1 ? (int64_t)((double)size * fraction) : 0,
        .stretch = pith__hf_real(&b, "rotary_scaling_factor", 0),
        .trained = pith__hf_int(&b, "max_trained_positions", 2048, 1, 1 << 20),
        .interleaved = pith__hf_bool(&b, "rotary_emb_interleaved", false)
    };
    return pith__hf_encoder_make(&b, &f);
}

static const pith__hf_keys nomic_keys = {
    .reads =
        "activation_function hidden_act hidden_size layer_norm_eps layer_norm_epsilon "
        "max_position_embeddings max_trained_positions mlp_fc1_bias mlp_fc2_bias n_embd n_head "
        "n_inner "
        "n_layer n_positions num_attention_heads num_hidden_layers intermediate_size qkv_proj_bias "
        "rotary_emb_base rotary_emb_fraction rotary_emb_interleaved rotary_emb_scale_base "
        "rotary_scaling_factor type_vocab_size vocab_size num_heads_kv num_experts",
    .fixed = "causal=false mup=false parallel_block=false prenorm=false rotary_head_dim=false "
             "scale_attn_by_inverse_layer_idx=false use_rms_norm=false expert_choice_router=false "
             "ffn_div=1",
    .ignores =
        "attn_pdrop embd_pdrop resid_pdrop dense_seq_output fused_bias_fc fused_dropout_add_ln "
        "last_layer_subset moe_every_n_layers moe_impl moe_normalize_expert_weights "
        "moe_resid_pdrop "
        "moe_top_k num_shared_experts pad_vocab_size_multiple parallel_block_tied_norm "
        "reorder_and_upcast_attn scale_attn_weights sequence_parallel summary_activation "
        "summary_first_dropout summary_proj_to_labels summary_type summary_use_proj use_flash_attn "
        "use_xentropy",
    .code = "NomicBertModel NomicBertForSequenceClassification",
};

const pith__hf_family pith__hf_family_nomic_bert = {
    .model_type = "nomic_bert", .build = nomic_build, .layout = &nomic_layout, .keys = &nomic_keys
};
