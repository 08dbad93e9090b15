/* family_jina_xlm_roberta.c - Jina v3: XLM-RoBERTa with rotary positions and an adapter for each
 * task.
 *
 * Its code lies beside its weights: jinaai/xlm-roberta-flash-implementation,
 * modeling_xlm_roberta.py, modeling_lora.py. Without a task it computes with the weights alone, as
 * that code does. default_task in config.json names an entry of lora_adaptations, whose adapters
 * are then added. */
#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

/* Adapters that are told apart. */
#define ADAPTERS_MAX 64

static const pith__hf_encoder_layout jina_xlm_layout = { .layer = "encoder.layers.",
                                                         .qkv = "mixer.Wqkv",
                                                         .attention_out = "mixer.out_proj",
                                                         .attention_norm = "norm1",
                                                         .up = "mlp.fc1",
                                                         .down = "mlp.fc2",
                                                         .norm = "norm2",
                                                         .table_norm = "emb_ln",
                                                         .padded_positions = true,
                                                         .has_types = true };

static void jina_xlm_choose_task(pith__hf_builder *b) {
    pith_str task = b->config->task.size ? b->config->task : pith__hf_string(b, "default_task", "");
    pith_str *tasks = pith__hf_strings(b, "lora_adaptations", ADAPTERS_MAX, &b->adapters);
    if (task.size)
        for (int64_t i = 0; i < b->adapters; i++)
            if (pith__str_eq(tasks[i], task)) b->adapter = i + 1;
    b->adapter_rank = pith__hf_int(b, "lora_rank", 4, 1, 1 << 16);
    b->adapter_scale = pith__hf_real(b, "lora_alpha", 1) / (double)b->adapter_rank;
    if (task.size && !b->adapter)
        pith__hf_fail(b, PITH_ERR_FORMAT,
                      "config.json: default_task \"" PITH_STR_FMT
                      "\" is not an entry of lora_adaptations",
                      PITH_STR_ARG(task));
}

static pith_status jina_xlm_build(pith__graph *graph, const void *layout,
                                  const pith__hf_config *config, const pith__weights *weights,
                                  const char *weights_name, pith_error *err) {
    pith__hf_builder b;
    pith__hf_encoder_layout f = *(const pith__hf_encoder_layout *)layout;
    PITH_TRY(pith__hf_begin(&b, graph, config, weights, weights_name, "emb_ln.weight", err));
    pith__hf_check_sizes(&b);
    pith__hf_check_heads(&b);
    if (b.status) return b.status;
    f.rotary = pith__str_is(config->position_embedding_type, "rotary");
    f.turn = (pith__hf_rotary_settings){ .theta = pith__hf_real(&b, "rotary_emb_base", 10000),
                                         .size = config->hidden_size / config->heads };
    f.has_types = config->types > 0;
    jina_xlm_choose_task(&b);
    return pith__hf_encoder_make(&b, &f);
}

static const pith__hf_keys jina_xlm_keys = {
    .reads = PITH_HF_BERT_READS
    "vocab_size=30522 pad_token_id=1 rotary_emb_base use_flash_attn lora_adaptations lora_rank "
    "lora_alpha default_task",
    .ignores = PITH_HF_BERT_IGNORES
    "emb_pooler load_trained_adapters lora_dropout_p lora_main_params_trainable "
    "matryoshka_dimensions task_instructions truncate_dim use_reentrant classifier_dropout",
    .code = "XLMRobertaModel XLMRobertaLoRA XLMRobertaForSequenceClassification",
};

const pith__hf_family pith__hf_family_jina_xlm_roberta = { .model_type = "xlm-roberta",
                                                           .build = jina_xlm_build,
                                                           .layout = &jina_xlm_layout,
                                                           .takes = pith__hf_takes_jina_xlm_roberta,
                                                           .keys = &jina_xlm_keys };
