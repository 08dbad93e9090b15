/* task_colbert.c - the vectors of tokens that ColBERT compares: last_hidden_state by a matrix
 * without a bias.
 *
 * Source: stanford-futuredata/ColBERT, modeling/hf_colbert.py (HF_ColBERT). The vectors have their
 * length 1 from the head, not from here. */
#include "models/tasks/task.h"

static pith__value *task_colbert(pith__hf_builder *b, pith__value *x) {
    static const pith__hf_task_layers form = { .out = "linear", .out_no_bias = true };
    return pith__hf_task_has(b, form.out, ".weight") ? pith__hf_task_classify(b, &form, x) : NULL;
}

const pith__hf_task pith__hf_task_colbert = { PITH_HF_TASK_COLBERT, .build = task_colbert };
