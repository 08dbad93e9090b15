/* hf_tasks.c - finds the tasks of a checkpoint, and builds what they share. */
#include <string.h>

#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/piece_listener.h"
#include "base/str.h"
#include "models/tasks/task.h"

/* More architectures than any config.json names. */
#define ARCHITECTURES_MAX 8

static bool hf_tasks_ends_in(pith_str name, const char *suffix) {
    size_t size = strlen(suffix);
    return name.size >= size && !memcmp(name.data + name.size - size, suffix, size);
}

/* A checkpoint whose config.json names no class, or that of the network alone, has every task whose
 * weights are there. */
static bool hf_tasks_names(const pith__hf_task *task, const pith_str *classes, int64_t count) {
    bool plain = task->unnamed;
    for (int64_t i = 0; i < count; i++) {
        if (hf_tasks_ends_in(classes[i], task->suffix)) return true;
        plain &= hf_tasks_ends_in(classes[i], "Model");
    }
    return plain;
}

/* A checkpoint that one of the tasks would give an output. `of` says which classes of config.json
 * have the task; model_types and tensors repeat the tables of the task's own file, and the tests
 * compare the two. NULL: all model types; no tensor is needed. */
typedef struct hf_tasks_sign {
    const char *task; /* its line in select/tasks.def */
    pith__hf_task of;
    const char *model_types, *tensors;
} hf_tasks_sign;

static const hf_tasks_sign hf_tasks_signs[] = {
    { "bge_m3_colbert", { PITH_HF_TASK_BGE_M3_COLBERT }, NULL, "colbert_linear" },
    { "bge_m3_sparse", { PITH_HF_TASK_BGE_M3_SPARSE }, NULL, "sparse_linear" },
    { "colbert", { PITH_HF_TASK_COLBERT }, NULL, "linear" },
    { "masked_lm",
      { PITH_HF_TASK_MASKED_LM },
      "albert bert camembert deberta-v2 distilbert electra modernbert mpnet new roberta "
      "xlm-roberta",
      "predictions.dense cls.predictions.transform.dense lm_head.dense vocab_transform "
      "generator_predictions.dense head.dense" },
    { "sequence_classification",
      { PITH_HF_TASK_SEQUENCE_CLASSIFICATION },
      "albert bert camembert deberta-v2 distilbert electra ernie gemma gemma2 gemma3_text gte "
      "jina_embeddings_v3 llama mistral modernbert mpnet new nomic_bert qwen2 qwen3 roberta "
      "xlm-roberta",
      "classifier classifier.out_proj score" },
    { "token_classification",
      { PITH_HF_TASK_TOKEN_CLASSIFICATION },
      "albert bert camembert deberta-v2 distilbert electra modernbert mpnet new qwen2 qwen3 "
      "roberta xlm-roberta",
      "classifier score" },
    { "causal_answer", { PITH_HF_TASK_CAUSAL_ANSWER }, PITH_HF_TASK_CAUSAL_ANSWER_TYPES, NULL },
};

bool pith__hf_task_lists(const char *words, pith_str name) {
    for (const char *at = words; *at;) {
        const pith_str word = { at, strcspn(at, " ") };
        if (pith__str_eq(word, name)) return true;
        at += word.size + (at[word.size] != 0);
    }
    return false;
}

/* Whether one of the tensors, named without ".weight", is in the file. */
static bool hf_tasks_has_any(pith__hf_builder *b, const char *tensors) {
    for (const char *at = tensors; *at;) {
        const pith_str word = { at, strcspn(at, " ") };
        const pith_str full =
            pith__arena_printf(b->graph->arena, PITH_STR_FMT ".weight", PITH_STR_ARG(word));
        if (full.data && pith__weights_find(b->weights, full)) return true;
        at += word.size + (at[word.size] != 0);
    }
    return false;
}

static bool hf_tasks_applies(pith__hf_builder *b, const hf_tasks_sign *sign,
                             const pith_str *classes, int64_t count) {
    if (!hf_tasks_names(&sign->of, classes, count)) return false;
    if (sign->model_types && !pith__hf_task_lists(sign->model_types, b->config->model_type))
        return false;
    return !sign->tensors || hf_tasks_has_any(b, sign->tensors);
}

/* An output that is missing would be taken for a model that has none, or its readers would take
 * another one. So a build that was made without a task refuses the checkpoints that have it. The
 * task causal_answer takes part only where a reranker asks for answers. */
static void hf_tasks_check_left_out(pith__hf_builder *b, const pith_str *classes, int64_t count) {
    if (!pith__dropped_names[0]) return;
    for (size_t i = 0; i < sizeof hf_tasks_signs / sizeof *hf_tasks_signs; i++) {
        const hf_tasks_sign *sign = &hf_tasks_signs[i];
        pith_error lacks = PITH_ERROR_INIT;
        if (!strcmp(sign->task, "causal_answer") && !b->config->rerank) continue;
        if (!hf_tasks_applies(b, sign, classes, count)) continue;
        if (!pith__piece_check_for("tasks", pith__str_of(sign->task), sign->of.output, &lacks))
            continue;
        pith__hf_fail(b, lacks.code, "%s", lacks.message);
        return;
    }
}

/* Outputs of tasks stand behind last_hidden_state. A task whose weights are missing adds nothing;
 * one that this build lacks is an error, see hf_tasks_check_left_out. */
void pith__hf_add_tasks(pith__hf_builder *b, pith__value *x) {
    int64_t count;
    const pith_str *classes = pith__hf_strings(b, "architectures", ARCHITECTURES_MAX, &count);
    pith__value **outputs =
        b->status ? NULL
                  : pith__arena_array(b->graph->arena, b->graph->output_count + pith__hf_task_count,
                                      sizeof *outputs);
    if (!outputs) {
        pith__hf_made(b, NULL);
        return;
    }
    hf_tasks_check_left_out(b, classes, count);
    memcpy(outputs, b->graph->outputs, b->graph->output_count * sizeof *outputs);
    b->graph->outputs = outputs;
    b->adapter = 0;
    pith__hf_set_layer(b, PITH_STR(""));
    for (size_t i = 0; i < pith__hf_task_count; i++) {
        if (b->status) break;
        const pith__hf_task *task = pith__hf_task_table[i];
        if (!hf_tasks_names(task, classes, count)) continue;
        pith__value *y = task->build(b, x);
        if (b->status || !y) continue;
        pith__piece_used(task);
        y->name = pith__str_of(task->output);
        y->output_uses = 1;
        outputs[b->graph->output_count++] = y;
    }
}

bool pith__hf_task_has(pith__hf_builder *b, const char *name, const char *suffix) {
    pith_str full = pith__arena_printf(b->graph->arena, "%s%s", name, suffix);
    if (!full.data) pith__hf_made(b, NULL);
    return !b->status && pith__weights_find(b->weights, full);
}

/* Only a model_type of the list can have the task: the same tensor names mean other things in other
 * architectures. */
const pith__hf_task_layers *pith__hf_task_find(pith__hf_builder *b,
                                               const pith__hf_task_layers *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!pith__str_is(b->config->model_type, list[i].model_type)) continue;
        const char *layer = list[i].out ? list[i].out : list[i].dense;
        return pith__hf_task_has(b, layer, ".weight") ? &list[i] : NULL;
    }
    return NULL;
}

/* Goes to a tensor by its name in the file, or, inside, behind the architecture's prefix. Returns
 * the prefix to be set again. */
static pith_str hf_tasks_go_to(pith__hf_builder *b, const char *name, bool inside) {
    pith_str prefix = b->prefix;
    if (!inside) b->prefix = PITH_STR("");
    pith__hf_go_to(b, name);
    return prefix;
}

/* The activation of the task, which may differ from that of the network. A copy of the config
 * carries it to pith__hf_activate. */
static pith__value *hf_tasks_activate(pith__hf_builder *b, const pith__hf_task_layers *t,
                                      pith__value *x) {
    const pith__hf_config *config = b->config;
    pith__hf_config c = *config;
    if (t->act) c.hidden_act = pith__str_of(t->act);
    if (t->act_setting) c.hidden_act = pith__hf_string(b, t->act_setting, t->act);
    b->config = &c;
    x = pith__hf_activate(b, x);
    b->config = config;
    return x;
}

/* norm(act(dense(x))), each if the layers have it. */
pith__value *pith__hf_task_transform(pith__hf_builder *b, const pith__hf_task_layers *t,
                                     pith__value *x, int64_t width) {
    const pith__hf_config *c = b->config;
    if (t->dense) {
        bool biased = !t->bias_setting || pith__hf_bool(b, t->bias_setting, false);
        pith_str prefix = hf_tasks_go_to(b, t->dense, t->inside);
        x = pith__hf_linear(b, x, c->hidden_size, width, biased);
        b->prefix = prefix;
        x = hf_tasks_activate(b, t, x);
    }
    if (!t->norm) return x;
    /* ModernBERT says norm_eps, and whether norms have biases. */
    double eps = pith__hf_real(b, "norm_eps", c->layer_norm_eps);
    bool biased = !t->bias_setting || pith__hf_bool(b, "norm_bias", false);
    pith_str prefix = hf_tasks_go_to(b, t->norm, false);
    x = pith__hf_norm(b, x, width, eps, biased);
    b->prefix = prefix;
    return x;
}

/* The number of labels is that of the matrix' rows; config.json may name fewer or more. */
pith__value *pith__hf_task_classify(pith__hf_builder *b, const pith__hf_task_layers *t,
                                    pith__value *x) {
    pith_str name, prefix = hf_tasks_go_to(b, t->out, false);
    const pith_tensor *weight = pith__hf_find(b, ".weight", &name);
    if (weight && (weight->rank != 2 || weight->dims[0] < 1))
        pith__hf_fail(b, PITH_ERR_FORMAT,
                      "%s: tensor '" PITH_STR_FMT "' must have a row for each label",
                      b->weights_name, PITH_STR_ARG(name));
    pith__value *y = b->status || !weight ? NULL
                                          : pith__hf_linear(b, x, b->config->hidden_size,
                                                            weight->dims[0], !t->out_no_bias);
    b->prefix = prefix;
    return y;
}

/* ArgMax over position times mask finds the last real token wherever the padding is. Source:
 * GenericForSequenceClassification of transformers' modeling_layers. */
pith__value *pith__hf_task_last(pith__hf_builder *b, pith__value *x, bool skips_pad) {
    pith__value *ids = b->graph->inputs[0], *mask = b->graph->inputs[1];
    pith__hf_go_to(b, "pooling");
    pith__value *real = mask;
    if (skips_pad && b->config->pad_token_id >= 0) {
        pith__value *is_pad =
            PITH_HF_PUT(b, "Equal", ids, pith__hf_i64_scalar(b, b->config->pad_token_id));
        real = pith__hf_cast(b, PITH_HF_PUT(b, "Not", is_pad), PITH_I64);
    }
    pith__value *at =
        pith__hf_put_axis(b, "ArgMax", PITH_HF_PUT(b, "Mul", pith__hf_range(b, ids), real), 1);
    pith__hf_set_int(b, at, "keepdims", 0);
    pith__value *texts =
        PITH_HF_PUT(b, "Gather", PITH_HF_PUT(b, "Shape", ids), pith__hf_i64_scalar(b, 0));
    pith__value *text =
        PITH_HF_PUT(b, "Range", pith__hf_i64_scalar(b, 0), texts, pith__hf_i64_scalar(b, 1));
    pith__value *pairs =
        pith__hf_join(b, pith__hf_unsqueeze(b, text, 1), pith__hf_unsqueeze(b, at, 1), 1);
    return PITH_HF_PUT(b, "GatherND", x, pairs);
}
