/* task.h - what checkpoints have on top of an architecture: classifiers, vocabularies, projections
 * of tokens.
 *
 * A task is one file task_<name>.c and one line in select/tasks.def. It adds one more output to the
 * graph of a family, whose cost is paid only by those who ask for it. Checkpoints often name a task
 * in config.json but leave out its weights, as embedders do that were trained on from a language
 * model. They get no such output. */
#ifndef PITH_MODELS_TASKS_TASK_H
#define PITH_MODELS_TASKS_TASK_H

#include "models/architectures/hf_builder.h"

typedef struct pith__hf_task {
    const char *suffix; /* what the class in "architectures" of config.json ends in:
                           "ForMaskedLM" */
    const char *output; /* name of the graph's output */
    bool unnamed;       /* it is also made where "architectures" names no class with a task */
    /* Returns the output, made from x, which is last_hidden_state [batch, sequence, hidden]. NULL
     * without a fault: the weights, or the architecture's form of the task, are not there. */
    pith__value *(*build)(pith__hf_builder *b, pith__value *x);
} pith__hf_task;

/* What a task of that name is told by. These lines are apart from the code of the tasks, so that a
 * build without a task still knows a checkpoint that has it, and can say what it lacks
 * (hf_tasks.c). */
#define PITH_HF_TASK_BGE_M3_COLBERT .suffix = "Model", .output = "pith.colbert_vecs"
#define PITH_HF_TASK_BGE_M3_SPARSE .suffix = "Model", .output = "sparse_vecs"
#define PITH_HF_TASK_CAUSAL_ANSWER .suffix = "ForCausalLM", .output = "logits"
#define PITH_HF_TASK_COLBERT .suffix = "HF_ColBERT", .output = "token_embeddings"
#define PITH_HF_TASK_MASKED_LM .suffix = "ForMaskedLM", .output = "logits"
#define PITH_HF_TASK_SEQUENCE_CLASSIFICATION                                                       \
    .suffix = "ForSequenceClassification", .output = "logits", .unnamed = true
#define PITH_HF_TASK_TOKEN_CLASSIFICATION .suffix = "ForTokenClassification", .output = "logits"
/* Architectures whose logits are lm_head of the last layer and nothing else, which the task
 * causal_answer takes. */
#define PITH_HF_TASK_CAUSAL_ANSWER_TYPES "gemma3_text qwen2 qwen3"

/* Made from select/tasks.def by select/tables.c. */
extern const pith__hf_task *const pith__hf_task_table[];
extern const size_t pith__hf_task_count;

/* Adds the outputs of the tasks that config.json names. */
void pith__hf_add_tasks(pith__hf_builder *b, pith__value *x);

/* ---- what tasks share; see hf_tasks.c ---- */

/* The row of each text's last token, [batch, hidden]; if config.json names a padding token and
 * skips_pad is set, of the last one that is another. The first two inputs of the graph are ids and
 * mask. */
pith__value *pith__hf_task_last(pith__hf_builder *b, pith__value *x, bool skips_pad);

/* A network on top of the rows: norm(act(dense(x))), then `out`. NULL where there is no such part.
 * The names of tensors are those of the file, unless `inside` says that the first stands beside the
 * architecture's own ("bert."). */
typedef struct pith__hf_task_layers {
    const char *model_type; /* of config.json */
    const char *dense, *act, *norm, *out;
    const char *act_setting;  /* of config.json, instead of `act`; what it falls back to is `act` */
    const char *bias_setting; /* dense has a bias if this is true; NULL: it has one */
    bool inside;
    bool out_no_bias;
} pith__hf_task_layers;

/* The layers of this model_type, if the tensor "<out>.weight", or else "<dense>.weight", is there.
 */
const pith__hf_task_layers *pith__hf_task_find(pith__hf_builder *b,
                                               const pith__hf_task_layers *list, size_t count);
/* x [.., hidden] through dense, act and norm: [.., width]. */
pith__value *pith__hf_task_transform(pith__hf_builder *b, const pith__hf_task_layers *t,
                                     pith__value *x, int64_t width);
/* x [.., hidden] through `out`, which has as many rows as the file says. */
pith__value *pith__hf_task_classify(pith__hf_builder *b, const pith__hf_task_layers *t,
                                    pith__value *x);
/* Whether the name is one of the words, which have blanks between them. */
bool pith__hf_task_lists(const char *words, pith_str name);
/* True if the file has the tensor of this full name. */
bool pith__hf_task_has(pith__hf_builder *b, const char *name, const char *suffix);

#endif
