/* answer_logit.c - see answer_logit.h. */
#include "models/modules/answer_logit.h"

#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

#define ANSWER_PLACE PITH_STR("answer")

static pith__value *answer_gather(pith__graph *graph, pith__value *x, const int64_t *index,
                                  int rank, int64_t axis) {
    const pith_tensor scalar = { .data = (void *)(uintptr_t)index,
                                 .bytes = sizeof *index,
                                 .dtype = PITH_I64 };
    pith__value *at = rank ? pith__graph_add_i64s(graph, PITH_STR(""), index, 1)
                           : pith__graph_add_const(graph, PITH_STR(""), &scalar);
    if (!at || !x) return NULL;
    pith__value *y = pith__row_node(graph, ANSWER_PLACE, "Gather", (pith__value *[]){ x, at }, 2);
    return !y || pith__node_set_int(y->producer, "axis", axis) ? NULL : y;
}

/* x [batch, sequence, n] at the last token, [batch, n]. Texts are not padded. */
static pith__value *answer_last(pith__graph *graph, pith__value *x) {
    static const int64_t last = -1;
    return x->type.rank == 3 ? answer_gather(graph, x, &last, 0, 1) : x;
}

/* Column yes, or column yes minus column no, of x [n, vocabulary]: [n, 1]. */
static pith__value *answer_columns(pith__graph *graph, pith__value *x,
                                   const pith__rerank_prompt *rerank) {
    const int64_t yes = rerank->yes, no = rerank->no;
    pith__value *y = answer_gather(graph, x, &yes, 1, 1);
    if (no < 0 || !y) return y;
    pith__value *other = answer_gather(graph, x, &no, 1, 1);
    return other ? pith__row_node(graph, ANSWER_PLACE, "Sub", (pith__value *[]){ y, other }, 2)
                 : NULL;
}

/* The matmul by a matrix that makes x, perhaps in another dtype; NULL: something else does. */
static const pith__node *answer_matmul(const pith__value *x) {
    const pith__node *node = x->producer;
    while (node && pith__str_is(node->op_type, "Cast")) node = node->inputs[0]->producer;
    bool is = node && pith__str_is(node->op_type, "MatMul") && !node->domain.size &&
              node->input_count == 2;
    return is && node->inputs[1]->type.rank == 2 ? node : NULL;
}

static pith__value *answer_make(pith__graph *graph, pith__value *logits,
                                const pith__rerank_prompt *rerank) {
    const pith__node *matmul = answer_matmul(logits);
    pith__value *y;
    if (matmul) {
        pith__value *last = answer_last(graph, matmul->inputs[0]);
        pith__value *columns = answer_columns(graph, matmul->inputs[1], rerank);
        if (!last || !columns) return NULL;
        y = pith__row_node(graph, ANSWER_PLACE, "MatMul", (pith__value *[]){ last, columns }, 2);
    } else {
        pith__value *last = answer_last(graph, logits);
        y = last ? answer_columns(graph, last, rerank) : NULL;
    }
    if (!y || logits->type.dtype == PITH_F32) return y;
    y = pith__row_node(graph, ANSWER_PLACE, "Cast", &y, 1);
    return !y || pith__node_set_int(y->producer, "to", PITH_F32) ? NULL : y;
}

/* Whether a type is that of logits with both answers among them. */
static bool answer_fits(const pith__type *t, const pith__rerank_prompt *rerank) {
    const int64_t most = rerank->yes > rerank->no ? rerank->yes : rerank->no;
    if (t->rank != 2 && t->rank != 3) return false;
    const pith__dim width = t->dims[t->rank - 1],
                    sequence = t->rank == 3 ? t->dims[1] : PITH_DIM_UNKNOWN;
    /* a graph of one length has padding behind the last token */
    if (pith__dim_known(sequence) && sequence != 1) return false;
    return pith__dim_known(width) && width > 1 && width > most;
}

pith_status pith__answer_logit_append(int *output, int *logits, pith__graph *graph,
                                      const pith__rerank_prompt *rerank, pith_error *err) {
    *output = -1;
    *logits = rerank->answers ? pith__graph_find_output(graph, "logits") : -1;
    if (*logits >= 0 && !answer_fits(&graph->outputs[*logits]->type, rerank)) *logits = -1;
    if (*logits < 0) return PITH_OK;
    pith__value *y = answer_make(graph, graph->outputs[*logits], rerank);
    return y ? pith__row_output(output, graph, y, PITH_STR(PITH_ANSWER_OUTPUT), err)
             : pith__fail_memory(err, 0);
}
