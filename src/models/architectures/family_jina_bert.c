/* family_jina_bert.c - Jina v2: BERT with ALiBi and a gated feed-forward part, in two versions.
 *
 * Their code lies beside their weights: jinaai/jina-bert-implementation and
 * jinaai/jina-bert-v2-qk-post-norm, both modeling_bert.py. The second normalises queries and keys,
 * and adds the layer's input to its attention twice. */
#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_encoder_layout jina_layout = { PITH_HF_BERT_NAMES, .alibi = true,
                                                     .type_input = true, .has_types = true };

/* feed_forward_type names a gated form, or says that it is BERT's. */
static void jina_choose_gate(pith__hf_builder *b, pith__hf_encoder_layout *f, pith__hf_config *c,
                             bool second) {
    pith_str type = pith__hf_string(b, "feed_forward_type", "original");
    bool gelu = pith__str_is(type, "geglu"), relu = pith__str_is(type, "reglu");
    if (!gelu && !relu) {
        if (second || !pith__str_is(type, "original"))
            pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                          "config.json: feed_forward_type \"" PITH_STR_FMT
                          "\" is not supported; supported are geglu, "
                          "reglu%s",
                          PITH_STR_ARG(type), second ? "" : ", original");
        return;
    }
    c->hidden_act = gelu ? PITH_STR("gelu") : PITH_STR("relu");
    f->gating = second ? PITH_HF_GATE_SECOND : PITH_HF_GATE_FIRST;
    f->up = second ? "mlp.up_gated_layer" : "mlp.gated_layers";
    f->down = second ? "mlp.down_layer" : "mlp.wo";
    f->norm = second ? "layer_norm_2" : "mlp.layernorm";
    f->no_up_bias = true;
}

static pith_status jina_build(pith__graph *graph, const void *layout, const pith__hf_config *config,
                              const pith__weights *weights, const char *weights_name,
                              pith_error *err) {
    pith__hf_builder b;
    pith__hf_config c = *config;
    pith__hf_encoder_layout f = *(const pith__hf_encoder_layout *)layout;
    pith_str name;
    PITH_TRY(pith__hf_begin(&b, graph, &c, weights, weights_name, PITH_HF_ENCODER_ANCHOR, err));
    pith__hf_go_to(&b, "encoder.layer.0.layer_norm_1");
    bool second = pith__hf_find(&b, ".weight", &name);
    jina_choose_gate(&b, &f, &c, second);
    if (second) {
        f.query_norm = "attention.self.layer_norm_q";
        f.key_norm = "attention.self.layer_norm_k";
        f.again_norm = "layer_norm_1";
    }
    return pith__hf_encoder_make(&b, &f);
}

static const pith__hf_keys jina_keys = {
    .reads = PITH_HF_BERT_READS "vocab_size=30522 feed_forward_type",
    .ignores = PITH_HF_BERT_IGNORES "emb_pooler task_instructions with_flash_attention",
    .code = "JinaBertModel JinaBertForSequenceClassification",
};

const pith__hf_family pith__hf_family_jina_bert = { .model_type = "bert",
                                                    .build = jina_build,
                                                    .layout = &jina_layout,
                                                    .takes = pith__hf_takes_jina_bert,
                                                    .keys = &jina_keys };
