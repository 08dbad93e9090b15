/* encode_outputs.c - see encode_outputs.h. */
#include "models/texts/encode_outputs.h"

#include "base/dtype.h"
#include "base/error.h"
#include "base/str.h"
#include "models/heads/word_weights_request.h"
#include "models/texts/embed_texts.h"
#include "models/texts/encode_texts.h"

enum { KINDS = PITH_ENCODE_KINDS, DENSE = 0, SPARSE = 1 };

static const char *const head_names[KINDS] = { "dense", "sparse", "multi_vector", "tokens" };
/* The heads of sparse vectors, by pith__word_model_kind. */
static const char *const sparse_names[] = { "sparse", "bm42", "minicoil" };

int64_t pith__encode_output_width(const pith_model *m, int output) {
    const pith__type *type = &m->graph->outputs[output]->type;
    pith__dim width = type->rank ? type->dims[type->rank - 1] : PITH_DIM_UNKNOWN;
    return pith__dim_known(width) ? width : 0;
}

/* What head bm42 alone reads. */
static bool outputs_is_attention(const pith_model *m, int output) {
    return pith__str_is(m->graph->output_names[output], PITH_BM42_OUTPUT);
}

/* Rows of vocabulary entries, or one weight per token. */
static bool outputs_is_sparse(const pith_model *m, const pith__head *head, int output) {
    const pith__type *type = &m->graph->outputs[output]->type;
    int64_t width = pith__encode_output_width(m, output);
    if (outputs_is_attention(m, output)) return false;
    if (type->dtype != PITH_F32 && type->dtype != PITH_F16 && type->dtype != PITH_BF16)
        return false;
    if (type->rank == 3 && head->takes & PITH_HEAD_TOKENS && width == 1) return true;
    return (type->rank == 2 || type->rank == 3) && width > 1 &&
           width >= pith__tokenizer_vocab_size(m->tokenizer);
}

static int outputs_find_sparse(const pith_model *m, const pith__head *head) {
    int output = pith__head_output(head, m->graph);
    if (m->word_model.kind) return output;
    if (output >= 0 && outputs_is_sparse(m, head, output)) return output;
    for (size_t i = 0; i < m->graph->output_count; i++)
        if (outputs_is_sparse(m, head, (int)i)) return (int)i;
    return -1;
}

/* Vectors of tokens: not the rows that are read as sparse weights, unless their name says
 * otherwise. */
static int outputs_find_vectors(const pith_model *m, const pith__head *head) {
    const pith__graph *graph = m->graph;
    int output = pith__head_output(head, graph);
    if (output < 0 || pith__head_is_named(head, graph, output) ||
        !outputs_is_sparse(m, head, output))
        return output;
    for (size_t i = 0; i < graph->output_count; i++) {
        const pith__type *type = &graph->outputs[i]->type;
        if (pith__dtype_is_float(type->dtype) && type->rank == 3 &&
            !outputs_is_sparse(m, head, (int)i))
            return (int)i;
    }
    return -1;
}

pith_status pith__encode_find_output(const pith__head **head, int *output, const pith_model *m,
                                     int kind, pith_error *err) {
    const bool code = kind == SPARSE && m->modules.sparse.code;
    const char *name = kind == SPARSE ? sparse_names[m->word_model.kind] : head_names[kind];
    if (code) name = "sparse_code";
    PITH_TRY(pith__head_find(head, name, err));
    if (!m->text.encoder)
        return pith__fail(err, m->no_text.code ? m->no_text.code : PITH_ERR_UNSUPPORTED,
                          "this model cannot embed text: %s", m->no_text.message);
    if (kind == DENSE || code) {
        *output = m->text.outputs[0];
        return pith__model_check_dense(m, err);
    }
    *output = kind == SPARSE ? outputs_find_sparse(m, *head) : outputs_find_vectors(m, *head);
    if (*output >= 0 && kind != SPARSE && outputs_is_attention(m, *output)) *output = -1;
    if (*output >= 0) return PITH_OK;
    if (kind == SPARSE)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the model has no sparse output: neither rows as long as the vocabulary "
                          "(SPLADE) nor one weight per token (BGE-M3), nor the files of BM42 or "
                          "miniCOIL");
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      "the model has no output with one vector per token: its graph pools already, "
                      "or gives attention only");
}

int pith__model_encode_output(const pith_model *m, int kind) {
    const pith__head *head;
    int output;
    return pith__encode_find_output(&head, &output, m, kind, NULL) ? -1 : output;
}

uint32_t pith__model_encode_can(const pith_model *m) {
    uint32_t can = 0;
    for (int kind = 0; kind < KINDS; kind++)
        if (pith__model_encode_output(m, kind) >= 0) can |= 1u << kind;
    return can;
}
