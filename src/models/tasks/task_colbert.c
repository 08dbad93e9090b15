/* task_colbert.c - the vectors of tokens that ColBERT compares: last_hidden_state by a matrix without a bias.
 *
 * Source: stanford-futuredata/ColBERT, modeling/hf_colbert.py (HF_ColBERT). The vectors have their length 1 from the
 * head, not from here. */
#include "models/tasks/task.h"

static pith_value *task_colbert(pith_hf_builder *b, pith_value *x) {
    static const pith_hf_task_layers form = { .out = "linear", .out_no_bias = true };
    return pith_hf_task_has(b, form.out, ".weight") ? pith_hf_task_classify(b, &form, x) : NULL;
}

const pith_hf_task pith_hf_task_colbert = { .suffix = "HF_ColBERT",
                                            .output = "token_embeddings",
                                            .build = task_colbert };
