/* test_hf_settings.c - settings of config.json that an architecture cannot honour are refused by
 * name, and so are sizes that do not fit. */
#include <string.h>
#include <unistd.h>

#include "models/checkpoint/hf.h"
#include "support/loader_test.h"

static pith_error err;

/* tests/data/hf/<model> with one text of config.json replaced. */
static pith_status build_changed(const char *model, const char *from, const char *to) {
    char config[8192] = { 0 }, changed[8192], path[512], target[512];
    pith__graph *graph;
    pith__files own = { .arena = &arena };
    snprintf(path, sizeof path, PITH_TEST_DATA "/hf/%s/config.json", model);
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s is missing", path);
    assert_true(fread(config, 1, sizeof config - 1, f) > 0);
    fclose(f);
    char *at = strstr(config, from);
    if (!at) fail_msg("%s: no %s", model, from);
    *at = 0;
    snprintf(changed, sizeof changed, "%s%s%s", config, to, at + strlen(from));
    put_file("config.json", changed, strlen(changed));
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    snprintf(target, sizeof target, PITH_TEST_DATA "/hf/%s/model.safetensors", model);
    unlink(path);
    assert_int_equal(symlink(target, path), 0);
    err = (pith_error)PITH_ERROR_INIT;
    pith_status status = pith__hf_build(&graph, dir, &own, &arena, NULL, &err);
    pith__files_close(&own);
    return status;
}

#define BAD PITH_ERR_FORMAT
#define NO PITH_ERR_UNSUPPORTED

static const struct {
    const char *model, *from, *to;
    pith_status status;
    const char *text; /* NULL: it is taken */
} cases[] = {
    { "nomic", "\"prenorm\": false", "\"prenorm\": true", NO,
      "prenorm is true; only false is supported" },
    { "nomic", "\"causal\": false", "\"causal\": true", NO, "causal is true" },
    { "nomic", "\"prenorm\": false", "\"prenorm\": 1", NO,
      "prenorm is 1; only false is supported" },
    { "nomic", "\"swiglu\"", "\"glu\"", NO, "activation_function \"glu\"" },
    { "nomic", "\"rotary_emb_scale_base\": null", "\"rotary_emb_scale_base\": 512", NO,
      "rotary_emb_scale_base" },
    { "nomic", "\"n_inner\": 200", "\"n_inner\": 200, \"num_experts\": 8", NO, "num_experts" },
    { "nomic", "\"rotary_emb_fraction\": 1.0", "\"rotary_emb_fraction\": 1.5", BAD,
      "rotary positions need" },
    { "nomic", "\"n_head\": 2", "\"n_head\": 3", BAD, "not a multiple of num_attention_heads" },
    { "nomic", "\"max_trained_positions\": 16", "\"max_trained_positions\": 0", BAD,
      "max_trained_positions is 0" },
    { "gte", "\"ntk\"", "\"longrope\"", NO,
      "rope_scaling: type \"longrope\" is not supported; supported are default, "
      "dynamic, linear, llama3, ntk, yarn" },
    { "gte", "\"factor\": 2.0", "\"factor\": 2.0, \"mixed_b\": 0.5", NO, "rope_scaling.mixed_b" },
    { "gte", "\"factor\": 2.0", "\"factor\": 0", BAD,
      "rope_scaling.factor must be a number above 0" },
    { "gte", "\"factor\": 2.0", "\"factor\": \"2\"", BAD, "rope_scaling.factor must be a number" },
    { "gte", "\"rope_theta\": 500.0", "\"rope_theta\": -1", BAD, "rotary positions need" },
    { "gte", "\"layer_norm_type\": \"layer_norm\"", "\"layer_norm_type\": \"rms_norm\"", NO,
      "layer_norm_type \"rms_norm\"; only \"layer_norm\" is supported" },
    { "gte", "\"logn_attention_scale\": false", "\"logn_attention_scale\": true", NO,
      "logn_attention_scale" },
    { "gte", "\"position_embedding_type\": \"rope\"", "\"position_embedding_type\": \"sinus\"", NO,
      "position_embedding_type \"sinus\"" },
    { "modernbert", "\"local_attention\": 8", "\"local_attention\": 8.5", BAD,
      "local_attention must be a whole number" },
    { "modernbert", "\"local_attention\": 8", "\"local_attention\": 0", BAD,
      "local_attention is 0" },
    { "modernbert", "\"hidden_activation\": \"gelu\"", "\"hidden_activation\": \"mish\"", NO,
      "activation \"mish\"" },
    { "modernbert", "\"norm_eps\"",
      "\"layer_types\": [\"full_attention\", \"sliding_attention\"], \"norm_eps\"", BAD,
      "layer_types has 2 entries; num_hidden_layers is 3" },
    { "modernbert", "\"norm_eps\"",
      "\"layer_types\": [\"full_attention\", \"chunked_attention\", \"full_attention\"], "
      "\"norm_eps\"",
      NO, "layer_types: \"chunked_attention\"" },
    { "modernbert", "\"norm_eps\"",
      "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"sliding_attention\"], "
      "\"norm_eps\"",
      PITH_OK, NULL },
    { "qwen3-window", "\"layer_types\": [\n  \"full_attention\"", "\"layer_types\": [\n  7", BAD,
      "layer_types must be a list of strings" },
    { "qwen3-window", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", BAD,
      "num_attention_heads 4 is not a multiple of num_key_value_heads 3" },
    { "qwen3-window", "\"head_dim\": 8", "\"head_dim\": 65537", BAD, "head_dim is 65537" },
    { "qwen3-window", "\"head_dim\": 8", "\"head_dim\": 7", BAD, "rotary positions need" },
    { "qwen3-window", "\"head_dim\": 8", "\"head_dim\": 8, \"is_causal\": false", PITH_OK, NULL },
    { "qwen3-window", "\"head_dim\": 8", "\"head_dim\": 8, \"is_causal\": 0", BAD,
      "is_causal must be true or false" },
    { "qwen3-window", "\"head_dim\": 8", "\"head_dim\": 8, \"use_bidirectional_attention\": true",
      PITH_OK, NULL },
    { "qwen3-window", "\"head_dim\": 8",
      "\"head_dim\": 8, \"auto_map\": {\"AutoModel\": \"a--b.Qwen3Model\"}", NO,
      "auto_map: AutoModel is 'a--b.Qwen3Model'" },
    { "qwen2", "\"head_dim\": 8",
      "\"head_dim\": 8, \"auto_map\": {\"AutoModel\": \"a--modeling_qwen.Qwen2Model\"}", PITH_OK,
      NULL },
    { "qwen2", "\"head_dim\": 8", "\"head_dim\": 8.0", PITH_OK, NULL },
    { "qwen2", "\"head_dim\": 8", "\"head_dim\": 8, \"pruned_heads\": {\"0\": [1]}", NO,
      "pruned_heads is" },
    { "qwen2", "\"head_dim\": 8", "\"head_dim\": 8, \"quantization_config\": {\"bits\": 4}", NO,
      "quantization_config is {\"bits\": 4}; only null" },
    { "bert", "\"is_decoder\": false", "\"is_decoder\": true", NO,
      "is_decoder is true; only false" },
    { "qwen3-window", "\"head_dim\": 8", "\"head_dim\": 8, \"partial_rotary_factor\": 0.5", NO,
      "partial_rotary_factor" },
    { "qwen3-window", "\"sliding_window\": 8", "\"sliding_window\": -8", BAD,
      "sliding_window is -8" },
    { "qwen3-window", "\"sliding_window\": 8", "\"sliding_window\": null", PITH_OK, NULL },
    { "qwen3", "\"head_dim\": 8", "\"head_dim\": 4", BAD,
      "has shape [32, 16]; config.json asks for [16, 16]" },
    { "gemma3", "\"attn_logit_softcapping\": null", "\"attn_logit_softcapping\": 50.0", NO,
      "attn_logit_softcapping" },
    { "gemma3", "\"query_pre_attn_scalar\": 8", "\"query_pre_attn_scalar\": 0", BAD,
      "query_pre_attn_scalar" },
    { "deberta-v3", "\"pos_att_type\": [\n  \"p2c\"", "\"pos_att_type\": [\n  \"p2p\"", NO,
      "pos_att_type \"p2p\"" },
    { "deberta-v3", "\"norm_rel_ebd\": \"layer_norm\"", "\"norm_rel_ebd\": \"batch\"", NO,
      "norm_rel_ebd \"batch\"" },
    { "deberta-v3", "\"position_buckets\": 8", "\"position_buckets\": 2", BAD,
      "position_buckets is 2" },
    { "deberta-v3", "\"position_buckets\": 8", "\"position_buckets\": 8, \"conv_kernel_size\": 3",
      NO, "conv_kernel_size" },
    { "deberta-v3", "\"position_buckets\": 8",
      "\"position_buckets\": 8, \"attention_head_size\": 4", BAD, "attention_head_size is 4" },
    { "jina-v2", "\"geglu\"", "\"swiglu\"", NO,
      "feed_forward_type \"swiglu\" is not supported; supported are geglu, "
      "reglu, original" },
    { "jina-v2-code", "\"geglu\"", "\"original\"", NO, "feed_forward_type \"original\"" },
    { "jina-v3", "\"lora_rank\": 2", "\"lora_rank\": 2, \"default_task\": \"classification\"", BAD,
      "default_task \"classification\" is not an entry of lora_adaptations" },
    { "jina-v3-task", "\"lora_rank\": 2", "\"lora_rank\": 3", BAD,
      "config.json asks for [2, 96, 3]" },
    { "albert", "\"inner_group_num\": 1", "\"inner_group_num\": 2", NO, "inner_group_num" },
    { "albert", "\"num_hidden_groups\": 2", "\"num_hidden_groups\": 5", BAD,
      "num_hidden_groups is 5" },
    { "albert", "\"embedding_size\": 8", "\"embedding_size\": 0", BAD, "embedding_size is 0" },
    { "electra", "\"position_embedding_type\": \"absolute\"",
      "\"position_embedding_type\": \"rotary\"", NO, "position_embedding_type \"rotary\"" },
};

static void by_name(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith_status got = build_changed(cases[i].model, cases[i].from, cases[i].to);
        if (got == cases[i].status && (!cases[i].text || strstr(err.message, cases[i].text)))
            continue;
        fail_msg("%s, %s: %d '%s', not %d '%s'", cases[i].model, cases[i].to, (int)got, err.message,
                 (int)cases[i].status, cases[i].text ? cases[i].text : "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(by_name) };
    return cmocka_run_group_tests(tests, loader_setup, loader_teardown);
}
