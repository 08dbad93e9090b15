/* task_bge_m3.c - BGE-M3's two heads beside its network: a weight per token, and vectors of tokens.
 *
 * They are in files of their own, sparse_linear.pt and colbert_linear.pt, which hf_build.c reads
 * beside the network's weights. Source: FlagEmbedding, inference/embedder/encoder_only/m3.py:
 * sparse = relu(linear(x)), colbert = linear(x) without the first token, which the head leaves
 * out. */
#include "models/tasks/task.h"

static pith__value *task_bge_m3_sparse(pith__hf_builder *b, pith__value *x) {
    static const pith__hf_task_layers form = { .out = "sparse_linear" };
    if (!pith__hf_task_has(b, form.out, ".weight")) return NULL;
    return PITH_HF_PUT(b, "Relu", pith__hf_task_classify(b, &form, x));
}

static pith__value *task_bge_m3_colbert(pith__hf_builder *b, pith__value *x) {
    static const pith__hf_task_layers form = { .out = "colbert_linear" };
    return pith__hf_task_has(b, form.out, ".weight") ? pith__hf_task_classify(b, &form, x) : NULL;
}

const pith__hf_task pith__hf_task_bge_m3_sparse = { PITH_HF_TASK_BGE_M3_SPARSE,
                                                    .build = task_bge_m3_sparse };
const pith__hf_task pith__hf_task_bge_m3_colbert = { PITH_HF_TASK_BGE_M3_COLBERT,
                                                     .build = task_bge_m3_colbert };
