/* task_token_classification.c - one row of logits per token: [batch, sequence, labels].
 *
 * Source: …ForTokenClassification of transformers' modeling files. */
#include "models/tasks/task.h"

static const pith__hf_task_layers forms[] = {
    { "albert", .out = "classifier" },
    { "bert", .out = "classifier" },
    { "camembert", .out = "classifier" },
    { "deberta-v2", .out = "classifier" },
    { "distilbert", .out = "classifier" },
    { "electra", .out = "classifier" },
    { "modernbert", .dense = "head.dense", .act = "gelu", .act_setting = "classifier_activation",
      .norm = "head.norm", .out = "classifier", .bias_setting = "classifier_bias" },
    { "mpnet", .out = "classifier" },
    { "new", .out = "classifier" },
    { "qwen2", .out = "score" },
    { "qwen3", .out = "score" },
    { "roberta", .out = "classifier" },
    { "xlm-roberta", .out = "classifier" },
};

static pith__value *task_token_classification(pith__hf_builder *b, pith__value *x) {
    const pith__hf_task_layers *form = pith__hf_task_find(b, forms, sizeof forms / sizeof *forms);
    if (!form) return NULL;
    return pith__hf_task_classify(b, form,
                                  pith__hf_task_transform(b, form, x, b->config->hidden_size));
}

const pith__hf_task pith__hf_task_token_classification = { PITH_HF_TASK_TOKEN_CLASSIFICATION,
                                                           .build = task_token_classification };
