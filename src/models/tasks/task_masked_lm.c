/* task_masked_lm.c - the vocabulary at each token: [batch, sequence, vocabulary], of which SPLADE
 * makes sparse vectors.
 *
 * The last matrix is the table of word embeddings, unless the file has one of its own. Sources:
 * …ForMaskedLM of transformers' modeling files; Alibaba-NLP/new-impl, modeling.py. */
#include "models/tasks/task.h"

static const struct masked_form {
    pith__hf_task_layers layers; /* without `out` */
    const char *decoder, *bias;  /* the matrix, and the full name of its bias; NULL: the decoder's
                                    own */
    const char *table;           /* of word embeddings, behind the architecture's prefix */
    bool narrow;                 /* rows have embedding_size columns */
} forms[] = {
    { { "albert", .dense = "predictions.dense", .norm = "predictions.LayerNorm" },
      "predictions.decoder",
      "predictions.bias",
      "embeddings.word_embeddings",
      true },
    { { "bert", .dense = "cls.predictions.transform.dense",
        .norm = "cls.predictions.transform.LayerNorm" },
      "cls.predictions.decoder",
      "cls.predictions.bias",
      "embeddings.word_embeddings",
      false },
    { { "camembert", .dense = "lm_head.dense", .act = "gelu", .norm = "lm_head.layer_norm" },
      "lm_head.decoder",
      "lm_head.bias",
      "embeddings.word_embeddings",
      false },
    { { "deberta-v2", .dense = "cls.predictions.transform.dense",
        .norm = "cls.predictions.transform.LayerNorm" },
      "cls.predictions.decoder",
      "cls.predictions.bias",
      "embeddings.word_embeddings",
      true },
    { { "distilbert", .dense = "vocab_transform", .norm = "vocab_layer_norm" },
      "vocab_projector",
      NULL,
      "embeddings.word_embeddings",
      false },
    { { "electra", .dense = "generator_predictions.dense", .act = "gelu",
        .norm = "generator_predictions.LayerNorm" },
      "generator_lm_head",
      NULL,
      "embeddings.word_embeddings",
      true },
    { { "modernbert", .dense = "head.dense", .act = "gelu", .act_setting = "classifier_activation",
        .norm = "head.norm", .bias_setting = "classifier_bias" },
      "decoder",
      NULL,
      "embeddings.tok_embeddings",
      false },
    { { "mpnet", .dense = "lm_head.dense", .act = "gelu", .norm = "lm_head.layer_norm" },
      "lm_head.decoder",
      "lm_head.bias",
      "embeddings.word_embeddings",
      false },
    { { "new", .dense = "lm_head.dense", .norm = "lm_head.norm" },
      "lm_head.decoder",
      NULL,
      "embeddings.word_embeddings",
      false },
    { { "roberta", .dense = "lm_head.dense", .act = "gelu", .norm = "lm_head.layer_norm" },
      "lm_head.decoder",
      "lm_head.bias",
      "embeddings.word_embeddings",
      false },
    { { "xlm-roberta", .dense = "lm_head.dense", .act = "gelu", .norm = "lm_head.layer_norm" },
      "lm_head.decoder",
      "lm_head.bias",
      "embeddings.word_embeddings",
      false },
};

static const struct masked_form *masked_find(pith__hf_builder *b) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (pith__str_is(b->config->model_type, forms[i].layers.model_type))
            return pith__hf_task_find(b, &forms[i].layers, 1) ? &forms[i] : NULL;
    return NULL;
}

/* The bias, wherever it stands; ModernBERT may have none. */
static pith__value *masked_bias(pith__hf_builder *b, const struct masked_form *f, pith__value *x) {
    pith_str prefix = b->prefix;
    b->prefix = PITH_STR("");
    if (f->bias && pith__hf_task_has(b, f->bias, "")) {
        pith__hf_go_to(b, f->bias);
        x = PITH_HF_PUT(b, "Add", x, pith__hf_vector(b, "", NULL, b->config->vocab_size));
    } else if (!f->layers.bias_setting || pith__hf_bool(b, "decoder_bias", true)) {
        pith__hf_go_to(b, f->decoder);
        x = PITH_HF_PUT(b, "Add", x, pith__hf_vector(b, ".bias", NULL, b->config->vocab_size));
    }
    b->prefix = prefix;
    return x;
}

/* Tied weights are the rule: without a decoder of its own the table of embeddings is read turned
 * round, and config.json must not say otherwise. */
static pith__value *task_masked_lm(pith__hf_builder *b, pith__value *x) {
    const struct masked_form *f = masked_find(b);
    if (!f) return NULL;
    int64_t width = b->config->hidden_size;
    if (f->narrow) width = pith__hf_int(b, "embedding_size", width, 1, 1 << 20);
    x = pith__hf_task_transform(b, &f->layers, x, width);
    pith_str prefix = b->prefix;
    bool own = pith__hf_task_has(b, f->decoder, ".weight");
    if (!own) pith__hf_want_bool(b, "tie_word_embeddings", true);
    if (own) b->prefix = PITH_STR("");
    pith__hf_go_to(b, own ? f->decoder : f->table);
    x = pith__hf_linear(b, x, width, b->config->vocab_size, false);
    b->prefix = prefix;
    return masked_bias(b, f, x);
}

const pith__hf_task pith__hf_task_masked_lm = { PITH_HF_TASK_MASKED_LM, .build = task_masked_lm };
