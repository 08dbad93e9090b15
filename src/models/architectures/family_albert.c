/* family_albert.c - ALBERT: BERT with tables of embedding_size, whose layers share their weights in
 * groups. */
#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

/* Layer i belongs to group i / (layers per group); state points to the number of groups. */
static void albert_place(pith__hf_builder *b, const void *state, int64_t i) {
    int64_t group =
        (int64_t)((double)i / ((double)b->config->layers / (double)*(const int64_t *)state));
    pith__hf_set_layer(b, pith__arena_printf(b->graph->arena,
                                             "encoder.albert_layer_groups.%lld.albert_layers.0.",
                                             (long long)group));
}

static const pith__hf_encoder_layout albert_layout = { .query = "attention.query",
                                                       .key = "attention.key",
                                                       .value = "attention.value",
                                                       .attention_out = "attention.dense",
                                                       .attention_norm = "attention.LayerNorm",
                                                       .up = "ffn",
                                                       .down = "ffn_output",
                                                       .norm = "full_layer_layer_norm",
                                                       .projection =
                                                           "encoder.embedding_hidden_mapping_in",
                                                       .projects = true,
                                                       .place = albert_place,
                                                       .relative_keys = true,
                                                       .type_input = true,
                                                       .has_types = true };

static pith_status albert_build(pith__graph *graph, const void *layout,
                                const pith__hf_config *config, const pith__weights *weights,
                                const char *weights_name, pith_error *err) {
    pith__hf_builder b;
    pith__hf_encoder_layout f = *(const pith__hf_encoder_layout *)layout;
    PITH_TRY(pith__hf_begin(&b, graph, config, weights, weights_name, PITH_HF_ENCODER_ANCHOR, err));
    if (pith__hf_int(&b, "inner_group_num", 1, 1, 1 << 12) != 1)
        pith__hf_fail(&b, PITH_ERR_UNSUPPORTED,
                      "config.json: inner_group_num is not 1, which alone is supported");
    pith__hf_check_sizes(&b);
    int64_t groups = pith__hf_int(&b, "num_hidden_groups", 1, 1, config->layers);
    f.state = &groups;
    return pith__hf_encoder_make(&b, &f);
}

static const pith__hf_keys albert_keys = {
    .reads = "vocab_size=30000 embedding_size=128 hidden_size=4096 num_hidden_layers=12 "
             "num_hidden_groups=1 "
             "num_attention_heads=64 intermediate_size=16384 inner_group_num=1 hidden_act=gelu_new "
             "max_position_embeddings=512 type_vocab_size=2 layer_norm_eps=1e-12 "
             "position_embedding_type=absolute",
    .ignores =
        "attention_probs_dropout_prob classifier_dropout classifier_dropout_prob down_scale_factor "
        "gap_size net_structure_type num_memory_blocks",
};

const pith__hf_family pith__hf_family_albert = {
    .model_type = "albert", .build = albert_build, .layout = &albert_layout, .keys = &albert_keys
};
