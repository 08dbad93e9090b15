/* task_sequence_classification.c - one row of logits per text: classifiers and cross-encoders.
 *
 * Sources: …ForSequenceClassification of transformers' modeling files and
 * GenericForSequenceClassification of its modeling_layers; for code beside weights, the files that
 * families name. */
#include "models/tasks/task.h"

static const pith__hf_task_layers forms[] = {
    { "albert", .dense = "pooler", .act = "tanh", .out = "classifier", .inside = true },
    { "bert", .dense = "pooler.dense", .act = "tanh", .out = "classifier", .inside = true },
    { "camembert", .dense = "classifier.dense", .act = "tanh", .out = "classifier.out_proj" },
    { "deberta-v2", .dense = "pooler.dense", .act = "gelu", .act_setting = "pooler_hidden_act",
      .out = "classifier" },
    { "distilbert", .dense = "pre_classifier", .act = "relu", .out = "classifier" },
    { "electra", .dense = "classifier.dense", .act = "gelu", .out = "classifier.out_proj" },
    { "ernie", .dense = "pooler.dense", .act = "tanh", .out = "classifier", .inside = true },
    { "gemma", .out = "score", .out_no_bias = true },
    { "gemma2", .out = "score", .out_no_bias = true },
    { "gemma3_text", .out = "score", .out_no_bias = true },
    { "gte", .dense = "pooler.dense", .act = "tanh", .out = "classifier", .inside = true },
    { "jina_embeddings_v3", .dense = "classifier.dense", .act = "tanh",
      .out = "classifier.out_proj" },
    { "llama", .out = "score", .out_no_bias = true },
    { "mistral", .out = "score", .out_no_bias = true },
    { "modernbert", .dense = "head.dense", .act = "gelu", .act_setting = "classifier_activation",
      .norm = "head.norm", .out = "classifier", .bias_setting = "classifier_bias" },
    { "mpnet", .dense = "classifier.dense", .act = "tanh", .out = "classifier.out_proj" },
    { "new", .dense = "pooler.dense", .act = "tanh", .out = "classifier", .inside = true },
    { "nomic_bert", .dense = "pooler.dense", .act = "tanh", .out = "classifier", .inside = true },
    { "qwen2", .out = "score", .out_no_bias = true },
    { "qwen3", .out = "score", .out_no_bias = true },
    { "roberta", .dense = "classifier.dense", .act = "tanh", .out = "classifier.out_proj" },
    { "xlm-roberta", .dense = "classifier.dense", .act = "tanh", .out = "classifier.out_proj" },
};

static pith__value *task_first(pith__hf_builder *b, pith__value *x) {
    pith__value *y = PITH_HF_PUT(b, "Gather", x, pith__hf_i64_scalar(b, 0));
    pith__hf_set_int(b, y, "axis", 1);
    return y;
}

static pith__value *task_sum(pith__hf_builder *b, pith__value *x, bool keep) {
    pith__value *y = PITH_HF_PUT(b, "ReduceSum", x, pith__hf_i64(b, 1));
    pith__hf_set_int(b, y, "keepdims", keep);
    return y;
}

static pith__value *task_mean(pith__hf_builder *b, pith__value *x, pith__value *mask) {
    pith__value *real = pith__hf_cast(b, mask, PITH_F32);
    pith__value *sum = task_sum(b, PITH_HF_PUT(b, "Mul", x, pith__hf_unsqueeze(b, real, 2)), false);
    return PITH_HF_PUT(b, "Div", sum, task_sum(b, real, true));
}

/* Networks with a dense layer read the first token, decoders the last one that is no padding.
 * ModernBERT alone may take the mean. */
static pith__value *task_pool(pith__hf_builder *b, const pith__hf_task_layers *form,
                              pith__value *x) {
    pith__value *mask = b->graph->inputs[1];
    pith__hf_go_to(b, "pooling");
    if (!form->dense) return pith__hf_task_last(b, x, true);
    if (!form->norm) return task_first(b, x);
    pith_str pooling = pith__hf_string(b, "classifier_pooling", "cls");
    if (pith__str_is(pooling, "mean")) return task_mean(b, x, mask);
    if (!pith__str_is(pooling, "cls"))
        pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                      "config.json: classifier_pooling \"" PITH_STR_FMT
                      "\" is not supported; supported are cls, mean",
                      PITH_STR_ARG(pooling));
    return task_first(b, x);
}

static pith__value *task_sequence_classification(pith__hf_builder *b, pith__value *x) {
    const pith__hf_task_layers *form = pith__hf_task_find(b, forms, sizeof forms / sizeof *forms);
    if (!form) return NULL;
    x = pith__hf_task_transform(b, form, task_pool(b, form, x), b->config->hidden_size);
    return pith__hf_task_classify(b, form, x);
}

const pith__hf_task pith__hf_task_sequence_classification = { PITH_HF_TASK_SEQUENCE_CLASSIFICATION,
                                                              .build =
                                                                  task_sequence_classification };
